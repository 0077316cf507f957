package web_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
)

// operatorModel is a model with policies of the operator.
const operatorModel = `
actions:
  invoice.read: {roles: [OWNER, ADMIN, USER]}
  invoice.approve: {roles: [OWNER, ADMIN]}
  invoice.pay: {roles: [OWNER], resource: invoice}
  invoice.void: {roles: [OWNER, ADMIN]}
resources: {invoice: {amount: long, owner: user}}
policies: |
  @id("clerks")
  permit (principal, action == Action::"invoice.approve", resource)
  when { principal in Role::"USER" || principal is Key };
  @id("own")
  permit (principal is User, action == Action::"invoice.pay", resource)
  when { resource.owner == principal && resource.amount < 100 };
  @id("final") @reason("Invoices are final.")
  forbid (principal, action == Action::"invoice.void", resource)
  unless { context has ip && context.ip.isLoopback() };
  @id("blocked")
  forbid (principal, action == Action::"invoice.approve", resource)
  when { context.subject has blocked && context.subject.blocked };
entities:
  - uid: {type: invoice, id: small}
    attrs: {amount: 5}
`

// Checks, introspection, evaluation and explanation follow the policies of the operator.
func TestOperatorPolicies(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		bob, eve := acme.Join("bob@acme.example", "USER"), acme.Join("eve@acme.example", "VIEWER")
		d.ApplyModel(operatorModel)
		_, key := d.newKey(t, acme.Owner, m{"role": "ADMIN", "permissions": []string{"invoice.read", "invoice.void"}})
		operator, e, tenant := bearer(d.operatorKey(t)), newEvaluator(t, d), entity("tenant", acme.ID)
		check := func(credential, action string) answer {
			return d.send(t, "GET /api/v2/access/check?action="+action, nil, bearer(credential))
		}
		introspect := func(credential, action string, context m) any {
			return d.send(t, "POST /api/v2/access/introspect", m{"credential": credential, "action": action, "context": context}, operator).ok(http.StatusOK).at("allowed")
		}
		check(bob.Token(), "invoice.approve").ok(http.StatusOK)
		check(eve.Token(), "invoice.approve").fails(http.StatusForbidden, "forbidden")
		check(key, "invoice.approve").fails(http.StatusForbidden, "forbidden")
		check(acme.Owner.Token(), "invoice.void").ok(http.StatusOK)
		check(key, "invoice.void").ok(http.StatusOK)
		for credential, want := range map[string]bool{bob.Token(): true, eve.Token(): false, key: false} {
			if got := introspect(credential, "invoice.approve", m{}); got != want {
				t.Errorf("introspection says %v of invoice.approve", got)
			}
		}
		if got := introspect(key, "invoice.void", m{"ip": "192.0.2.1"}); got != false {
			t.Errorf("from another address a key may void: %v", got)
		}
		e.permits(t, question(entity("user", bob.ID), "invoice.approve", tenant))
		e.refuses(t, question(entity("user", eve.ID), "invoice.approve", tenant), "The role VIEWER does not grant invoice.approve.")
		e.refuses(t, question(withProperties(entity("user", bob.ID), m{"blocked": true}), "invoice.approve", tenant), `The policy "blocked" of the platform refuses it.`)
		void := question(entity("user", acme.Owner.ID), "invoice.void", tenant)
		d.send(t, evaluationPath, withMember(void, "context", m{"ip": "192.0.2.1"}), e.key).ok(http.StatusOK).is("decision", false).is("context.policyId", "final").is("context.reason", "Invoices are final.")
		e.permits(t, withMember(void, "context", m{"ip": "::1"}))

		for who, want := range map[string]string{
			bob.ID:        `true [map[id:clerks kind:policy line:1 platform:true]]`,
			acme.Owner.ID: `true [map[id:OWNER kind:role]]`,
			eve.ID:        `false [map[id:VIEWER kind:role reason:The role VIEWER does not grant invoice.approve.]]`,
		} {
			a := d.send(t, "POST /api/v2/access/explain", m{"userId": who, "action": "invoice.approve"}, as(acme.Owner.Token())).ok(http.StatusOK)
			if got := fmt.Sprint(a.at("allowed"), a.at("because")); got != want {
				t.Errorf("explained %s, want %s", got, want)
			}
		}

		// Attributes of the resource are those that the service sends, else those of the model.
		toPay := func(invoice m) m { return question(entity("user", bob.ID), "invoice.pay", invoice) }
		e.permits(t, toPay(withProperties(entity("invoice", "small"), m{"owner": bob.ID})))
		e.refuses(t, toPay(withProperties(entity("invoice", "small"), m{"owner": eve.ID})), "does not grant")
		e.refuses(t, toPay(withProperties(entity("invoice", "small"), m{"owner": bob.ID, "amount": 100})), "does not grant")
		e.refuses(t, toPay(withProperties(entity("invoice", "large"), m{"owner": bob.ID})), "does not grant")
		if got := e.searchAll(t, "resource", question(entity("user", bob.ID), "invoice.pay", withProperties(anyInvoice, m{"owner": bob.ID})), 10); len(got) != 1 || got[0] != "small" {
			t.Errorf("the invoices to pay are %q", got)
		}
		// A check knows no resource. With resource=deferred the service behind the gateway asks again.
		check(bob.Token(), "invoice.pay").fails(http.StatusForbidden, "forbidden")
		check(bob.Token(), "invoice.pay&resource=deferred").ok(http.StatusOK)
		check(key, "invoice.pay&resource=deferred").fails(http.StatusForbidden, "forbidden")
	})
}

var anyInvoice = m{"type": "invoice"}

// A permit of the operator has no effect against a tenant's policy, for a suspended member or in
// a frozen tenant, and doesn't let a person create a role with the action.
func TestOperatorPermitsAreLimited(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		bob := acme.Join("bob@acme.example", "USER")
		d.ApplyModel(operatorModel)
		e, q := newEvaluator(t, d), question(entity("user", bob.ID), "invoice.approve", entity("tenant", acme.ID))
		admin := as(acme.Join("eve@acme.example", "ADMIN").Token())
		d.send(t, "POST /api/v2/roles", m{"name": "READER", "permissions": []string{"invoice.read"}}, admin).ok(http.StatusCreated)
		d.send(t, "POST /api/v2/roles", m{"name": "PAYER", "permissions": []string{"invoice.pay"}}, admin).fails(http.StatusForbidden, "forbidden") // though Eve may pay her own invoices
		d.send(t, "POST /api/v2/roles", m{"name": "CLERK", "permissions": []string{"invoice.approve"}}, as(bob.Token())).fails(http.StatusForbidden, "forbidden")
		e.permits(t, q)

		policy := `@id("night") forbid(principal, action == Action::"invoice.approve", resource) when { principal has email };`
		d.send(t, "PUT /api/v2/policy", m{"text": policy, "mode": "enforce"}, as(acme.Owner.Token()), with("If-Match", "*")).ok(http.StatusOK)
		d.send(t, evaluationPath, q, e.key).ok(http.StatusOK).is("decision", false).is("context.policyId", "night")
		d.send(t, "GET /api/v2/access/check?action=invoice.approve", nil, bearer(bob.Token())).fails(http.StatusForbidden, "denied_by_policy").is("policyId", "night")
		d.send(t, "PUT /api/v2/policy", m{"text": "", "mode": "enforce"}, as(acme.Owner.Token()), with("If-Match", "*")).ok(http.StatusOK)
		e.permits(t, q)

		d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"status": "suspended"}, as(acme.Owner.Token())).ok(http.StatusOK)
		if a := d.send(t, evaluationPath, q, e.key).ok(http.StatusOK); a.at("decision") != false {
			t.Errorf("a suspended member is answered %s", a.body)
		}
		d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"status": "active"}, as(acme.Owner.Token())).ok(http.StatusOK)
		e.permits(t, q)
		d.freeze(t, acme.ID)
		if a := d.send(t, evaluationPath, q, e.key).ok(http.StatusOK); a.at("decision") != false {
			t.Errorf("a member of a frozen tenant is answered %s", a.body)
		}
	})
}

// Policies of the operator see no roles of tenants, so a tenant can't get a permission by the
// name of a role.
func TestOperatorPoliciesSeeNoRolesOfTenants(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		const model = "actions:\n  invoice.approve: {roles: [OWNER]}\n  invoice.read: {roles: [OWNER, ADMIN, USER]}\npolicies: |\n  %s\n"
		acme, operator := d.Tenant("Acme"), bearer(d.operatorKey(t))
		bob := acme.Join("bob@acme.example", "USER")
		d.ApplyModel(fmt.Sprintf(model, `permit (principal, action == Action::"invoice.approve", resource) when { principal has role && principal.role like "AUDIT*" };`))
		d.send(t, "POST /api/v2/roles", m{"name": "AUDITOR", "permissions": []string{"invoice.read"}}, as(acme.Owner.Token())).ok(http.StatusCreated)
		d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"role": "AUDITOR"}, as(acme.Owner.Token())).ok(http.StatusOK)
		token := d.token(t, bob.Email)
		d.send(t, "GET /api/v2/access/check?action=invoice.read", nil, bearer(token)).ok(http.StatusOK)
		d.send(t, "GET /api/v2/access/check?action=invoice.approve", nil, bearer(token)).fails(http.StatusForbidden, "forbidden")
		plan := d.send(t, "POST "+planPath, m{"text": `@id("a") forbid(principal in Role::"AUDITOR", action == Action::"invoice.read", resource);`}, as(acme.Owner.Token())).ok(http.StatusOK)
		if got := string(plan.body); !strings.Contains(got, `{"role":"AUDITOR","action":"invoice.approve","was":"refused","would":"refused"}`) || !strings.Contains(got, `{"role":"AUDITOR","action":"invoice.read","was":"allowed","would":"refused","users":{"was":"allowed","would":"refused","wasBecause":[{"kind":"role","id":"AUDITOR"}],"because":[{"kind":"policy","id":"a","line":1}]},"keys":{`) {
			t.Errorf("the plan is %s", got)
		}
		d.send(t, "PUT /api/v2/model", m{"text": fmt.Sprintf(model, `permit (principal in Role::"AUDITOR", action == Action::"invoice.approve", resource);`)}, operator, with("If-Match", "*")).fails(http.StatusUnprocessableEntity, "validation_failed")
	})
}

// A plan says that the operator's policies may refuse, and names none that is about one person or thing: its id and reason
// may tell of another tenant. It names those that are about all. The tenant's own are always named.
func TestPlanNamesNobodyElsewhere(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme, beta := d.Tenant("Acme"), d.Tenant("Beta")
		bob := acme.Join("bob@acme.example", "USER")
		d.ApplyModel(fmt.Sprintf(`actions:
  invoice.pay: {roles: [OWNER, ADMIN, USER]}
  invoice.void: {roles: [OWNER, ADMIN, USER], resource: invoice}
resources: {invoice: {amount: long}}
policies: |
  @id("acme-fraud") @reason("Bob of Acme is investigated.")
  forbid(principal == User::"%[1]s", action, resource);
  @id("acme-late") @reason("Bob of Acme works by day.")
  forbid(principal, action, resource) when { principal == User::"%[1]s" && context.now < datetime("2000-01-01") };
  @id("acme-mail") @reason("Bob's address is old.")
  forbid(principal is User, action, resource) when { principal.email == "bob@acme.example" };
  @id("acme-invoice") @reason("Acme disputes it.")
  forbid(principal, action == Action::"invoice.void", resource == invoice::"acme-17");
  @id("acme-only") @reason("Acme is late.")
  forbid(principal, action, resource) when { resource == Tenant::"%[2]s" && context.now < datetime("2000-01-01") };
  @id("night") @reason("By day only.")
  forbid(principal, action, resource) when { context.hour < 6 };
`, bob.ID, acme.ID))
		const text = `@id("own") @reason("Bob, too.") forbid(principal, action in [Action::"invoice.pay", Action::"invoice.void"], resource) when { principal == User::"usr_x" };`
		of := func(p *doorwardtest.Person) string {
			return string(d.send(t, "POST "+planPath, m{"text": text}, as(p.Token())).ok(http.StatusOK).body)
		}
		plan := of(beta.Owner)
		for _, name := range []string{"acme-", "Bob of", "Bob's", "Acme"} {
			if strings.Contains(plan, name) {
				t.Errorf("the plan of another tenant has %q: %s", name, plan)
			}
		}
		for _, want := range []string{`{"kind":"policy","id":"night","line":`, `"reason":"By day only.","platform":true},{"kind":"policy","id":"","platform":true}`, `"id":"own"`, `"reason":"Bob, too."`} {
			if !strings.Contains(plan, want) {
				t.Errorf("the plan lacks %s: %s", want, plan)
			}
		}
		if plan := of(acme.Owner); !strings.Contains(plan, "acme-only") || strings.Contains(plan, "acme-fraud") {
			t.Errorf("the plan of their tenant is %s", plan)
		}
	})
}

// Users of the model are subjects, but not for a service that is limited to tenants.
func TestWhoSeesTheModelsUsers(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		d.ApplyModel(strings.Replace(operatorModel, "entities:", `  permit (principal == user::"morty", action, resource) when { principal.level == 3 };`+"\nentities:\n  - uid: {type: user, id: morty}\n    attrs: {level: 3}", 1))
		e, forAcme := newEvaluator(t, d), newEvaluator(t, d, acme.ID)
		pay := question(entity("user", "morty"), "invoice.pay", entity("invoice", "small"))
		e.permits(t, pay)
		forAcme.refuses(t, pay, "There is no such subject.")
		e.refuses(t, question(withProperties(entity("user", "morty"), m{"level": 4}), "invoice.pay", entity("invoice", "small")), "No policy of the platform permits invoice.pay.")
		e.refuses(t, question(entity("user", "morty"), "invoice.read", entity("tenant", acme.ID)), "not the subject's tenant")
		e.refuses(t, question(entity("user", "Morty"), "invoice.pay", entity("invoice", "small")), "There is no such subject.")
		e.refuses(t, question(entity("user", "morty"), "user.invite", entity("tenant", acme.ID)), "not the subject's tenant")
		search := question(anyUser, "invoice.pay", entity("invoice", "small"))
		if got := e.searchAll(t, "subject", search, 10); len(got) != 1 || got[0] != "morty" {
			t.Errorf("found %q", got)
		}
		if got := forAcme.searchAll(t, "subject", search, 10); len(got) != 0 {
			t.Errorf("a limited service finds %q", got)
		}
	})
}

// Check, introspection, evaluation and explanation decide the same under policies of the operator.
func TestOperatorPoliciesAgree(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		const rounds, size = 10, 100
		r := rand.New(rand.NewPCG(2, uint64(time.Now().UnixNano())))
		acme := d.Tenant("Acme")
		people := []*doorwardtest.Person{acme.Owner, acme.Join("a@acme.example", "ADMIN"), acme.Join("u@acme.example", "USER"), acme.Join("v@acme.example", "VIEWER")}
		operator, e, tenant := bearer(d.operatorKey(t)), newEvaluator(t, d), entity("tenant", acme.ID)
		actions := []string{"doc.a", "doc.b", "doc.c", "user.invite"}
		pick := func(from ...string) string { return from[r.IntN(len(from))] }
		seen := map[bool]int{}
		var key, id string
		for n := range rounds {
			var text strings.Builder
			text.WriteString("actions:\n  doc.a: {roles: [OWNER]}\n  doc.b: {roles: [OWNER, ADMIN]}\n  doc.c: {roles: [OWNER, ADMIN, USER]}\npolicies: |\n")
			for range 8 {
				fmt.Fprintf(&text, "  %s (principal %s, action %s, resource) %s;\n", pick("permit", "permit", "forbid"),
					pick("", "is User", `in Role::"USER"`, `in Role::"VIEWER"`, "is Key"), pick("", `== Action::"doc.a"`, `== Action::"doc.b"`, `== Action::"doc.c"`),
					pick("", `when { context.kind == "user" }`, `when { context.ip.isLoopback() }`, `unless { context.ip.isLoopback() }`, `when { principal.role == "VIEWER" }`,
						`when { context has aal && context.aal == 1 }`, `when { context.authAge < 3600 }`, `when { context.subject has x }`, `when { context.action.x }`, `when { resource has x }`,
						`when { context.now < datetime("2000-01-01") }`))
			}
			d.ApplyModel(text.String())
			if n == 0 {
				id, key = d.newKey(t, acme.Owner, m{"role": "ADMIN", "permissions": []string{"doc.b", "doc.c"}})
			}
			var items, evaluations []m
			for range size {
				action, who := pick(actions...), r.IntN(len(people)+1)
				credential, subject := key, entity("key", id)
				if who < len(people) {
					credential = people[who].Token()
					subject = entity("session", credential)
				}
				context := m{"ip": "127.0.0.1"}
				items = append(items, m{"credential": credential, "action": action, "context": context})
				evaluations = append(evaluations, m{"subject": subject, "action": m{"name": action}, "context": context})
			}
			introspected := d.send(t, "POST /api/v2/access/introspect", m{"items": items}, operator).ok(http.StatusOK).at("items").([]any)
			evaluated := d.send(t, evaluationsPath, m{"resource": tenant, "evaluations": evaluations}, e.key).ok(http.StatusOK).at("evaluations").([]any)
			for i, item := range items {
				allowed := introspected[i].(m)["allowed"].(bool)
				checked := d.getStatus(t, "/api/v2/access/check?action="+item["action"].(string), item["credential"].(string)) == http.StatusOK
				seen[allowed]++
				explained := d.send(t, "POST /api/v2/access/explain", item, as(acme.Owner.Token())).ok(http.StatusOK)
				if evaluated[i].(m)["decision"] != allowed || checked != allowed || explained.at("allowed") != allowed {
					t.Errorf("%s\n%v: introspection %v, check %v, evaluation %v, explained %s", text.String(), evaluations[i], allowed, checked, evaluated[i], explained.body)
				}
			}
		}
		if seen[true] < 50 || seen[false] < 50 {
			t.Errorf("%v of %d requests were permitted", seen, rounds*size)
		}
	})
}
