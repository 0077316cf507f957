package web_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/evaluation"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
)

const (
	evaluationPath  = "POST /access/v1/evaluation"
	evaluationsPath = "POST /access/v1/evaluations"
	searchPath      = "POST /access/v1/search/"
	metadataPath    = "GET /.well-known/authzen-configuration"
)

// evaluator is a service that asks for decisions.
type evaluator struct {
	*server
	key opt
}

func newEvaluator(t *testing.T, d *server, tenants ...string) evaluator {
	t.Helper()
	return evaluator{d, bearer(d.serviceKey(t, []doorward.Action{doorward.ServiceEvaluate}, tenants...))}
}

// entity returns a subject or a resource.
func entity(kind, id string) m { return m{"type": kind, "id": id} }

func question(subject m, action string, resource m) m {
	return m{"subject": subject, "action": m{"name": action}, "resource": resource}
}

func memberOf(tenantID string, who *doorwardtest.Person) m {
	return m{"type": "user", "id": who.ID, "properties": m{"tenantId": tenantID}}
}

// permits requires that the question is answered with a permission.
func (e evaluator) permits(t *testing.T, question m) {
	t.Helper()
	e.send(t, evaluationPath, question, e.key).ok(http.StatusOK).is("decision", true).members("", "decision")
}

// refuses requires that the question is refused, with a reason that contains the text.
func (e evaluator) refuses(t *testing.T, question m, reason string) {
	t.Helper()
	a := e.send(t, evaluationPath, question, e.key).ok(http.StatusOK).is("decision", false).members("", "decision", "context")
	if got := a.text("context.reason"); !strings.Contains(got, reason) {
		t.Errorf("%v is refused for the reason %q, want %q", question, got, reason)
	}
}

func TestEvaluation(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann, bob := acme.Join("ann@acme.example", "VIEWER"), acme.Join("bob@acme.example", "USER")
		e, tenant := newEvaluator(t, d), entity("tenant", acme.ID)
		id, key := d.newKey(t, acme.Owner, m{"permissions": []string{"report.read"}})
		bound, _ := d.newKey(t, acme.Owner, m{"name": "Bound", "permissions": []string{"report.read"}, "allowedIps": []string{"192.0.2.0/24"}})

		e.permits(t, question(entity("user", bob.ID), "message.send", tenant))
		e.permits(t, question(entity("session", bob.Token()), "message.send", tenant))
		e.permits(t, question(entity("key", id), "report.read", tenant))
		e.refuses(t, question(entity("user", ann.ID), "message.send", tenant), "The role VIEWER does not grant message.send.")
		e.refuses(t, question(entity("key", id), "message.send", tenant), "The API key does not have the permission message.send.")
		e.refuses(t, question(entity("user", bob.ID), "message.send", entity("tenant", globex.ID)), "not the subject's tenant")
		e.refuses(t, question(entity("user", bob.ID), "message.send", entity("message", "1")), "of the type tenant")
		e.refuses(t, question(entity("user", bob.ID), "message.shout", tenant), "no such")
		e.refuses(t, question(entity("user", bob.ID), "session.open", tenant), "no such")
		for _, nobody := range []m{entity("user", "usr_nobody"), entity("user", id), entity("user", bob.Email), entity("key", bob.ID), entity("key", key), entity("session", forged), entity("session", bob.ID), entity("session", key)} {
			e.refuses(t, question(nobody, "message.send", tenant), "There is no such subject.")
		}
		e.refuses(t, question(entity("spaceship", "1"), "message.send", tenant), "user, key and session")

		askedFrom := func(ip any) m {
			q := question(entity("key", bound), "report.read", tenant)
			q["context"] = m{"ip": ip}
			return q
		}
		e.permits(t, askedFrom("192.0.2.9"))
		for _, elsewhere := range []any{"198.51.100.1", "", "x", 7, m{}} {
			e.refuses(t, askedFrom(elsewhere), "address")
		}
		e.refuses(t, question(entity("key", bound), "report.read", tenant), "address")
	})
}

// A user in several tenants is evaluated in the one that tenantId names, and refused without a
// tenantId. A service key that is limited to tenants finds no subject of others.
func TestEvaluationTenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := acme.Join("ann@acme.example", "USER")
		e, forAcme := newEvaluator(t, d), newEvaluator(t, d, acme.ID)
		send := func(subject m, in *doorwardtest.Tenant) m {
			return question(subject, "message.send", entity("tenant", in.ID))
		}
		e.permits(t, send(entity("user", ann.ID), acme))
		e.refuses(t, send(memberOf(globex.ID, ann), globex), "There is no such subject.")
		d.addMember(t, globex, ann, "VIEWER")
		e.refuses(t, send(entity("user", ann.ID), acme), "several tenants")
		e.permits(t, send(memberOf(acme.ID, ann), acme))
		e.refuses(t, send(memberOf(globex.ID, ann), globex), "VIEWER")
		// A role in the request has no effect.
		claims := memberOf(globex.ID, ann)
		claims["properties"] = m{"tenantId": globex.ID, "role": "OWNER"}
		e.refuses(t, send(claims, globex), "VIEWER")
		session := entity("session", ann.Token())
		session["properties"] = m{"tenantId": globex.ID}
		e.permits(t, send(session, acme))

		forAcme.permits(t, send(entity("user", ann.ID), acme))
		forAcme.permits(t, send(entity("session", ann.Token()), acme))
		id, _ := d.newKey(t, globex.Owner, nil)
		for _, hidden := range []m{memberOf(globex.ID, ann), entity("user", globex.Owner.ID), entity("session", globex.Owner.Token()), entity("key", id)} {
			forAcme.refuses(t, send(hidden, globex), "There is no such subject.")
		}
	})
}

// Disabled keys, suspended people, ended sessions, and all subjects of a closing or frozen
// tenant are refused.
func TestEvaluationOfEndedSubjects(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		e := newEvaluator(t, d)
		ask := func(subject m) m { return question(subject, "report.read", entity("tenant", acme.ID)) }
		disabled, _ := d.newKey(t, acme.Owner, nil)
		owned, _ := d.newKey(t, acme.Owner, m{"name": "Owned", "ownerId": bob.ID})
		e.permits(t, ask(entity("key", disabled)))
		e.permits(t, ask(entity("key", owned)))
		d.patchKey(t, acme.Owner, disabled, m{"status": "disabled"}).ok(http.StatusOK)
		e.refuses(t, ask(entity("key", disabled)), "There is no such subject.")
		d.suspend(t, acme.ID, bob.ID)
		e.refuses(t, ask(entity("user", bob.ID)), "The membership is suspended.")
		e.refuses(t, ask(entity("session", bob.Token())), "There is no such subject.")
		e.refuses(t, ask(entity("key", owned)), "There is no such subject.")
		d.send(t, "POST /api/v2/auth/logout", nil, as(ann.Token())).ok(http.StatusNoContent)
		e.refuses(t, ask(entity("session", ann.Token())), "There is no such subject.")
		e.permits(t, ask(entity("user", ann.ID)))
		d.patchKey(t, acme.Owner, disabled, m{"status": "active"}).ok(http.StatusOK)
		for _, status := range []doorward.TenantStatus{doorward.TenantClosing, doorward.TenantFrozen} {
			d.setTenantStatus(t, acme, status)
			for _, subject := range []m{entity("user", ann.ID), entity("user", acme.Owner.ID), entity("key", disabled)} {
				e.refuses(t, ask(subject), "tenant")
			}
		}
	})
}

func TestEvaluationForm(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		e := newEvaluator(t, d)
		id := acme.Owner.ID
		whole := question(entity("user", id), "message.send", entity("tenant", acme.ID))
		for path, sought := range map[string]string{evaluationPath: "", evaluationsPath: "", searchPath + "subject": "/subject/id", searchPath + "resource": "/resource/id", searchPath + "action": "/action/name"} {
			d.send(t, path, whole, e.key).ok(http.StatusOK)
			for pointer, body := range map[string]m{
				"/subject": withoutMember(whole, "subject", ""), "/action": withoutMember(whole, "action", ""), "/resource": withoutMember(whole, "resource", ""),
				"/subject/type": withoutMember(whole, "subject", "type"), "/subject/id": withoutMember(whole, "subject", "id"), "/action/name": withoutMember(whole, "action", "name"),
				"/resource/type": withoutMember(whole, "resource", "type"), "/resource/id": withoutMember(whole, "resource", "id"),
			} {
				if pointer == sought || pointer == "/action" && sought == "/action/name" {
					d.send(t, path, body, e.key).ok(http.StatusOK)
					continue
				}
				a := d.send(t, path, body, e.key).fails(http.StatusBadRequest, "invalid_body")
				if !strings.Contains(string(a.body), `"`+pointer+`"`) {
					t.Errorf("%s without %s: %s", path, pointer, a.body)
				}
			}
			for _, bad := range []string{
				"", "{", "[]", "null", `"x"`, `{"subject": "alice"}`, `{"subject": []}`, `{"action": {"name": 123}}`, `{"subject": {"type": "user", "id": 1}}`,
				`{"subject": {"properties": {"tenantId": 7}}}`, `{"resource": {"properties": "x"}}`, `{"context": "x"}`, `{"subject": {}, "subject": {}}`, `{} {}`, "\ufeff{}", "{\"a\": \"\xff\"}",
			} {
				d.send(t, path, bad, e.key).fails(http.StatusBadRequest, "invalid_body")
			}
			d.send(t, path, `{"subject": {"properties": {"tenantId": 7}}}`, e.key).is("detail", "JSON body at /subject/properties: send tenantId as a string here")
			for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/problem+json", ""} {
				d.send(t, path, whole, e.key, without("Content-Type"), with("Content-Type", media)).fails(http.StatusBadRequest, "invalid_body")
			}
			d.send(t, path, whole, e.key, with("Content-Encoding", "gzip")).fails(http.StatusBadRequest, "invalid_body")
			d.send(t, path, whole, e.key, without("Content-Type"), with("Content-Type", "application/json; charset=UTF-8")).ok(http.StatusOK)
			d.send(t, path, `{"x": "`+strings.Repeat("x", 256<<10)+`"}`, e.key).fails(http.StatusRequestEntityTooLarge, "body_too_large")
			d.send(t, strings.Replace(path, "POST", "GET", 1), nil, e.key).fails(http.StatusMethodNotAllowed, "method_not_allowed")
		}
		more := question(m{"type": "user", "id": id, "properties": m{"department": "Sales", "role": 3}, "new": nil}, "message.send", m{"type": "tenant", "id": acme.ID, "x": nil})
		more["foo"], more["futureField"], more["context"] = "bar", m{"nested": []any{true, nil, m{"a": "b"}}}, m{"time": "2025-06-27T18:03-07:00", "ip": "x", "source": 1}
		e.permits(t, more)
	})
}

// withoutMember returns a copy without the member or, if inner is not empty, without that
// member of the member.
func withoutMember(from m, name, inner string) m {
	c := m{}
	for k, v := range from {
		if k == name && inner == "" {
			continue
		}
		if c[k] = v; k == name {
			c[k] = withoutMember(v.(m), inner, "")
		}
	}
	return c
}

// An X-Request-ID of visible ASCII is echoed, also with an error; any other is replaced.
func TestEvaluationRequestID(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		e := newEvaluator(t, d)
		post := func(id, body string) (echoed, status string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/access/v1/evaluation", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("X-Request-ID", id)
			e.key(req)
			res, err := d.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			return res.Header.Get("X-Request-ID"), res.Status
		}
		whole, _ := encode(t, question(entity("user", acme.Owner.ID), "message.send", entity("tenant", acme.ID)))
		for _, body := range []string{whole, "{}"} {
			for _, id := range []string{"bfe9eb29-ab87-4ca3-be83-a1d5d8305716", `!"#$%&'()*+,/:;<=>?@[\]^{|}~`, "=1+1", strings.Repeat("~", 128), strings.Repeat("x", 1000)} {
				if got, status := post(id, body); got != id {
					t.Errorf("%s: X-Request-ID %q became %q", status, id, got)
				}
			}
			for _, id := range []string{"two words", "é", "tab\there"} {
				if got, status := post(id, body); got == id || len(got) < 16 {
					t.Errorf("%s: X-Request-ID %q became %q, want a new one", status, id, got)
				}
			}
		}
	})
}

func TestEvaluations(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "VIEWER")
		e, tenant := newEvaluator(t, d), entity("tenant", acme.ID)
		decisions := func(body m) (all []any) {
			t.Helper()
			a := d.send(t, evaluationsPath, body, e.key).ok(http.StatusOK).members("", "evaluations")
			for _, one := range a.at("evaluations").([]any) {
				all = append(all, one.(m)["decision"])
			}
			return all
		}
		want := func(name string, got []any, want ...any) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		onlyAction := func(action string) m { return m{"action": m{"name": action}} }
		three := m{"subject": entity("user", ann.ID), "resource": tenant, "evaluations": []m{onlyAction("message.read"), onlyAction("message.send"), onlyAction("report.read")}}
		want("execute_all by default", decisions(three), true, false, true)
		for semantic, all := range map[string][]any{"execute_all": {true, false, true}, "deny_on_first_deny": {true, false}, "permit_on_first_permit": {true}} {
			three["options"] = m{"evaluations_semantic": semantic, "another_option": "value"}
			want(semantic, decisions(three), all...)
		}
		three["options"] = m{"evaluations_semantic": "sometimes"}
		d.send(t, evaluationsPath, three, e.key).fails(http.StatusBadRequest, "invalid_body")
		delete(three, "options")

		want("defaults", decisions(m{
			"subject": m{"type": "user"}, "action": m{"name": "message.send"}, "resource": tenant, "context": m{"ip": "192.0.2.1"},
			"evaluations": []m{{"subject": m{"id": acme.Owner.ID}}, {"subject": m{"id": ann.ID}}, {"subject": m{"id": ann.ID}, "action": m{"name": "message.read"}}, {"subject": m{"id": acme.Owner.ID}, "resource": entity("tenant", "tnt_x")}},
		}), true, false, true, false)
		want("properties are not merged", decisions(m{
			"subject": m{"type": "user", "properties": m{"tenantId": "tnt_x"}}, "action": m{"name": "message.read"}, "resource": tenant,
			"evaluations": []m{{"subject": m{"id": ann.ID}}, {"subject": memberOf("tnt_x", ann)}},
		}), true, false)
		broken := m{"subject": entity("user", ann.ID), "action": m{"name": "message.read"}, "evaluations": []m{{"resource": tenant}, {}, {"resource": tenant}}}
		want("an incomplete one", decisions(broken), true, false, true)
		a := d.send(t, evaluationsPath, broken, e.key)
		if reason := a.at("evaluations").([]any)[1].(m)["context"].(m)["reason"]; reason != "The evaluation lacks /resource." {
			t.Errorf("the reason is %v", reason)
		}

		single := question(entity("user", ann.ID), "message.read", tenant)
		d.send(t, evaluationsPath, single, e.key).ok(http.StatusOK).members("", "decision").is("decision", true)
		single["evaluations"] = []m{}
		d.send(t, evaluationsPath, single, e.key).ok(http.StatusOK).members("", "decision").is("decision", true)
		single["evaluations"] = slices.Repeat([]m{{}}, 100)
		want("a hundred", decisions(single), slices.Repeat([]any{true}, 100)...)
		single["evaluations"] = slices.Repeat([]m{{}}, 101)
		d.send(t, evaluationsPath, single, e.key).fails(http.StatusBadRequest, "invalid_body")
	})
}

// searchAll returns the ids of all results of a search (of actions: the names), read in pages
// of at most limit results.
func (e evaluator) searchAll(t *testing.T, kind string, body m, limit int) (all []string) {
	t.Helper()
	request := withoutMember(body, "page", "")
	for token := ""; ; {
		request["page"] = m{"limit": limit, "token": token}
		a := e.send(t, searchPath+kind, request, e.key).ok(http.StatusOK)
		results := a.at("results").([]any)
		if len(results) > limit || a.at("page.count") != float64(len(results)) {
			t.Fatalf("%d results on a page of %d: %s", len(results), limit, a.body)
		}
		for _, r := range results {
			name := "id"
			if kind == "action" {
				name = "name"
			}
			all = append(all, r.(m)[name].(string))
		}
		if token = a.text("page.next_token"); token == "" {
			return all
		}
	}
}

func TestSearches(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		e, forGlobex, tenant := newEvaluator(t, d), newEvaluator(t, d, globex.ID), entity("tenant", acme.ID)
		senders := []string{acme.Owner.ID}
		var viewer *doorwardtest.Person
		for i, role := range []string{"VIEWER", "USER", "VIEWER", "USER", "ADMIN", "VIEWER"} {
			p := acme.Join(fmt.Sprintf("p%d@acme.example", i), role)
			if role == "VIEWER" {
				viewer = p
			} else {
				senders = append(senders, p.ID)
			}
		}
		d.suspend(t, acme.ID, senders[1])
		senders = slices.Delete(senders, 1, 2)
		slices.Sort(senders)
		users := m{"subject": m{"type": "user", "id": "ignored"}, "action": m{"name": "message.send"}, "resource": tenant}
		for _, limit := range []int{1, 2, 100} {
			got := e.searchAll(t, "subject", users, limit)
			slices.Sort(got)
			if !slices.Equal(got, senders) {
				t.Errorf("pages of %d find %q, want %q", limit, got, senders)
			}
		}
		a := d.send(t, searchPath+"subject", users, e.key).ok(http.StatusOK)
		for _, r := range a.at("results").([]any) { // each can be sent back as a subject
			e.permits(t, question(r.(m), "message.send", tenant))
		}
		key, _ := d.newKey(t, acme.Owner, nil)
		_, _ = d.newKey(t, acme.Owner, m{"name": "Other", "permissions": []string{"user.read"}})
		if got := e.searchAll(t, "subject", m{"subject": m{"type": "key"}, "action": m{"name": "report.read"}, "resource": tenant}, 1); !slices.Equal(got, []string{key}) {
			t.Errorf("the keys %q, want %s", got, key)
		}

		d.addMember(t, globex, viewer, "USER")
		tenants := m{"subject": entity("user", viewer.ID), "action": m{"name": "message.send"}, "resource": m{"type": "tenant"}}
		if got := e.searchAll(t, "resource", tenants, 1); !slices.Equal(got, []string{globex.ID}) {
			t.Errorf("the VIEWER may send in %q, want %s", got, globex.ID)
		}
		tenants["action"] = m{"name": "message.read"}
		if got := e.searchAll(t, "resource", tenants, 1); len(got) != 2 {
			t.Errorf("the VIEWER may read in %q, want both", got)
		}
		if got := forGlobex.searchAll(t, "resource", tenants, 1); !slices.Equal(got, []string{globex.ID}) {
			t.Errorf("a service of one tenant finds %q, want %s", got, globex.ID)
		}
		actions := m{"subject": memberOf(acme.ID, viewer), "resource": tenant}
		if got := e.searchAll(t, "action", actions, 2); !slices.Equal(got, []string{"message.read", "report.read", "tenant.read", "user.read"}) {
			t.Errorf("a VIEWER may %q", got)
		}

		for kind, bodies := range map[string][]m{
			"subject": {
				question(m{"type": "spaceship"}, "message.send", tenant), question(m{"type": "user"}, "none", tenant), question(m{"type": "user"}, "message.send", entity("record", "1")),
				question(m{"type": "session"}, "message.send", tenant), question(m{"type": "user"}, "message.send", entity("tenant", "tnt_x")), question(m{"type": "key"}, "message.send", entity("tenant", "tnt_x")),
			},
			"resource": {question(entity("user", "usr_x"), "message.send", m{"type": "tenant"}), question(entity("user", viewer.ID), "message.send", m{"type": "spaceship"}), question(entity("x", "y"), "message.send", m{"type": "tenant"})},
			"action":   {{"subject": entity("user", "usr_x"), "resource": tenant}, {"subject": entity("user", viewer.ID), "resource": tenant}, {"subject": memberOf(acme.ID, viewer), "resource": entity("tenant", globex.ID)}},
		} {
			for _, body := range bodies {
				if got := e.searchAll(t, kind, body, 10); len(got) != 0 {
					t.Errorf("%s %v finds %q", kind, body, got)
				}
			}
		}
		if got := forGlobex.searchAll(t, "subject", users, 10); len(got) != 0 {
			t.Errorf("a service of another tenant finds %q", got)
		}
		for _, page := range []m{{"limit": 0}, {"limit": -1}} {
			users["page"] = page
			d.send(t, searchPath+"subject", users, e.key).fails(http.StatusBadRequest, "invalid_body")
		}
		users["page"] = m{"token": "x"}
		d.send(t, searchPath+"subject", users, e.key).fails(http.StatusBadRequest, "invalid_cursor")
		users["page"] = m{"limit": 1e6}
		d.send(t, searchPath+"subject", users, e.key).ok(http.StatusOK)
	})
}

// A page may be empty although results follow, since a search looks at a limited number of
// rows for each page.
func TestSearchOfManySubjects(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		const people = 2100
		err := d.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
			for i := range people {
				id := doorward.NewID(doorward.PrefixUser)
				if _, err := tx.InsertAccount(t.Context(), doorward.Account{ID: id, Email: fmt.Sprintf("p%d@acme.example", i), CreatedAt: tx.Now}); err != nil {
					return err
				}
				u := doorward.User{ID: id, TenantID: acme.ID, Role: doorward.RoleViewer, Status: doorward.UserActive, CreatedAt: tx.Now.Add(-time.Hour)}
				if _, err := tx.InsertMembership(t.Context(), u); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		e := newEvaluator(t, d)
		search := m{"subject": m{"type": "user"}, "action": m{"name": "billing.read"}, "resource": entity("tenant", acme.ID)}
		first := d.send(t, searchPath+"subject", search, e.key).ok(http.StatusOK)
		if first.at("page.count") != 0.0 || first.text("page.next_token") == "" {
			t.Errorf("after %d rows without a result: %s", people, first.body)
		}
		if got := e.searchAll(t, "subject", search, 100); !slices.Equal(got, []string{acme.Owner.ID}) {
			t.Errorf("it finds %q, want the OWNER", got)
		}
		search["action"] = m{"name": "message.read"}
		if got := e.searchAll(t, "subject", search, 1000); len(got) != people+1 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != people+1 {
			t.Errorf("it finds %d, want each of %d once", len(got), people+1)
		}
	})
}

func TestWhoEvaluates(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		q := question(entity("user", acme.Owner.ID), "message.send", entity("tenant", acme.ID))
		_, key := d.newKey(t, acme.Owner, nil)
		other := slices.DeleteFunc(doorward.ServicePermissions(), func(a doorward.Action) bool { return a == doorward.ServiceEvaluate })
		for _, path := range []string{evaluationPath, evaluationsPath, searchPath + "subject", searchPath + "resource", searchPath + "action"} {
			d.send(t, path, q, bearer(d.operatorKey(t))).ok(http.StatusOK)
			d.send(t, path, q, newEvaluator(t, d).key).ok(http.StatusOK)
			d.send(t, path, q).fails(http.StatusUnauthorized, "unauthenticated")
			d.send(t, path, "{", bearer(d.serviceKey(t, other))).fails(http.StatusForbidden, "forbidden")
			d.send(t, path, "{", as(acme.Owner.Token())).fails(http.StatusForbidden, "forbidden")
			d.send(t, path, "{", bearer(key)).fails(http.StatusForbidden, "forbidden")
		}
	})
}

func TestAuthzenMetadata(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		for _, path := range []string{metadataPath, metadataPath + "/platform", "GET /platform/.well-known/authzen-configuration"} {
			a := d.send(t, path, nil).ok(http.StatusOK)
			const base = "https://door.example/platform"
			a.members("", "policy_decision_point", "access_evaluation_endpoint", "access_evaluations_endpoint", "search_subject_endpoint", "search_resource_endpoint", "search_action_endpoint")
			a.is("policy_decision_point", base).is("access_evaluation_endpoint", base+"/access/v1/evaluation").is("access_evaluations_endpoint", base+"/access/v1/evaluations")
			a.is("search_subject_endpoint", base+"/access/v1/search/subject").is("search_resource_endpoint", base+"/access/v1/search/resource").is("search_action_endpoint", base+"/access/v1/search/action")
		}
	}, doorwardtest.BaseURL("https://door.example/platform"))
}

// A fault of the database is answered 503, never with a decision.
func TestEvaluationFault(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "doorward.db")
	d := start(t, doorwardtest.Database("sqlite:"+file))
	acme := d.Tenant("Acme")
	e, tenant := newEvaluator(t, d), entity("tenant", acme.ID)
	id, _ := d.newKey(t, acme.Owner, nil)
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(30000)") // the server writes, too
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE memberships RENAME TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	user, key := question(entity("user", acme.Owner.ID), "message.send", tenant), question(entity("key", id), "message.send", tenant)
	batch := m{"action": m{"name": "message.send"}, "resource": tenant, "evaluations": []m{{"subject": entity("spaceship", "x")}, {"subject": entity("user", acme.Owner.ID)}}}
	for path, bodies := range map[string][]m{
		evaluationPath: {user, key}, evaluationsPath: {user, batch}, searchPath + "subject": {user, key}, searchPath + "resource": {user, key}, searchPath + "action": {user, key},
	} {
		for _, body := range bodies {
			a := d.send(t, path, body, e.key).fails(http.StatusServiceUnavailable, "unavailable")
			if a.header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", path)
			}
		}
	}
}

const approvals = `actions:
  invoice.approve:
    about: Approve invoices
    roles: [OWNER, ADMIN]
    resource: invoice
  report.read:
    about: See reports
    roles: [OWNER, ADMIN, USER, VIEWER]
resources:
  invoice:
    amount: long
`

const amountPolicies = `@id("large") @reason("Invoices over 10,000 need two people.")
forbid(principal, action, resource is invoice) when { resource.amount > 10000 };
@id("exact") forbid(principal, action, resource is invoice) when { resource.amount == -9007199254740993 };
@id("office") forbid(principal, action == Action::"report.read", resource) unless { context.ip.isInRange(ip("192.0.2.0/24")) };
@id("hours") forbid(principal, action == Action::"user.read", resource) when { context.now.toTime() >= duration("18h") };
`

// A tenant's policies read the resource and the request as the service states them.
func TestEvaluationUnderPolicies(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		err := d.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.InsertModel(t.Context(), store.ModelVersion{Version: 1, Text: approvals, CreatedAt: tx.Now}); err != nil {
				return err
			}
			return tx.InsertPolicy(t.Context(), store.PolicyVersion{TenantID: acme.ID, Version: 1, Text: amountPolicies, Mode: store.PolicyEnforces, CreatedAt: tx.Now, CreatedBy: acme.Owner.ID})
		})
		if err != nil {
			t.Fatal(err)
		}
		e, owner, tenant := newEvaluator(t, d), entity("user", acme.Owner.ID), entity("tenant", acme.ID)
		invoice := func(amount string) m {
			return question(owner, "invoice.approve", m{"type": "invoice", "id": "inv_1", "properties": m{"amount": json.RawMessage(amount), "other": "x"}})
		}
		refusedBy := func(policy string, q m) {
			t.Helper()
			a := d.send(t, evaluationPath, q, e.key).ok(http.StatusOK).is("decision", false)
			a.members("context", "reason", "policyId").is("context.policyId", policy)
		}
		e.permits(t, invoice("10000"))
		e.permits(t, invoice("-9007199254740992")) // what a float64 would make of the number in the policy
		refusedBy("exact", invoice("-9007199254740993"))
		refusedBy("large", invoice("10001"))
		d.send(t, evaluationPath, invoice("10001"), e.key).ok(http.StatusOK).is("context.reason", "Invoices over 10,000 need two people.")
		for _, unreadable := range []string{`"1"`, "1.5", "[]", "1e400"} {
			refusedBy("large", invoice(unreadable))
		}
		refusedBy("large", question(owner, "invoice.approve", entity("invoice", "inv_1")))
		e.refuses(t, question(owner, "invoice.approve", tenant), "of the type invoice")

		askedIn := func(action string, context m) m {
			q := question(owner, action, tenant)
			q["context"] = context
			return q
		}
		e.permits(t, askedIn("report.read", m{"ip": "192.0.2.7"}))
		for _, ip := range []any{"198.51.100.1", "", "x", 7} {
			refusedBy("office", askedIn("report.read", m{"ip": ip}))
		}
		refusedBy("office", question(owner, "report.read", tenant))
		e.permits(t, askedIn("user.read", m{"time": "2031-05-06T12:00:00Z"}))
		e.permits(t, askedIn("user.read", m{"time": "2031-05-06T19:00+02:00"}))
		for _, at := range []any{"2031-05-06T18:00:00Z", "2031-05-06T12:00:00-07:00", "", "noon", 7} {
			refusedBy("hours", askedIn("user.read", m{"time": at}))
		}
		search := askedIn("report.read", m{"ip": "192.0.2.7"})
		if got := e.searchAll(t, "subject", search, 10); !slices.Equal(got, []string{acme.Owner.ID}) {
			t.Errorf("in the office %q are found", got)
		}
		search["context"] = m{}
		if got := e.searchAll(t, "subject", search, 10); len(got) != 0 {
			t.Errorf("outside %q are found", got)
		}
		if got := e.searchAll(t, "action", m{"subject": owner, "resource": m{"type": "invoice", "id": "inv_1", "properties": m{"amount": 5}}}, 10); !slices.Equal(got, []string{"invoice.approve"}) {
			t.Errorf("on an invoice the OWNER may %q", got)
		}
	})
}

// Check, introspection, evaluation and explanation decide the same.
func TestEvaluationAgrees(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		rounds, size := fulltest.Of(8, 20), fulltest.Of(60, 100)
		r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
		acme := d.Tenant("Acme")
		owner, operator, e := as(acme.Owner.Token()), bearer(d.operatorKey(t)), newEvaluator(t, d)
		people := []*doorwardtest.Person{acme.Owner}
		for i, role := range []string{"ADMIN", "USER", "VIEWER"} {
			people = append(people, acme.Join(fmt.Sprintf("p%d@acme.example", i), role))
		}
		d.send(t, "POST /api/v2/roles", m{"name": "READERS", "permissions": []string{"report.read", "message.read", "user.read"}}, owner).ok(http.StatusCreated)
		reader := acme.Join("reader@acme.example", "USER")
		d.send(t, "PATCH /api/v2/users/"+reader.ID, m{"role": "READERS"}, owner).ok(http.StatusOK)
		people = append(people, reader)
		var ids, keys []string
		for i, may := range [][]string{{"report.read"}, {"message.send", "message.read", "user.read"}} {
			id, key := d.newKey(t, people[i], m{"name": fmt.Sprint("Key ", i), "permissions": may})
			ids, keys = append(ids, id), append(keys, key)
		}
		var actions []string
		for _, v := range doorward.Verbs() {
			if v.IsPermission() {
				actions = append(actions, string(v.Action))
			}
		}
		// More rounds are run while the random policies have refused too little.
		seen, byPolicy, enough := map[bool]int{}, 0, rounds*size/50
		for round := 0; round < rounds || byPolicy < enough && round < 4*rounds; round++ {
			text, readsSession := "", false
			if round%4 > 0 {
				text, readsSession = randomPolicies(r, actions)
			}
			d.send(t, "PUT /api/v2/policy", m{"text": text}, owner, with("If-Match", "*")).ok(http.StatusOK)
			var items, named, presented []m
			here := m{"ip": "127.0.0.1"}
			for range size {
				action := actions[r.IntN(len(actions))]
				var subject, byCredential m
				var credential string
				if n := r.IntN(len(people) + len(keys)); n < len(people) {
					subject, credential = entity("user", people[n].ID), people[n].Token()
					byCredential = entity("session", credential)
				} else {
					subject, credential = entity("key", ids[n-len(people)]), keys[n-len(people)]
					byCredential = subject
				}
				items = append(items, m{"credential": credential, "action": action, "context": here})
				named = append(named, m{"subject": subject, "action": m{"name": action}})
				presented = append(presented, m{"subject": byCredential, "action": m{"name": action}})
			}
			introspected := d.send(t, "POST /api/v2/access/introspect", m{"items": items}, operator).ok(http.StatusOK).at("items").([]any)
			tenant := entity("tenant", acme.ID)
			byID := d.send(t, evaluationsPath, m{"resource": tenant, "context": here, "evaluations": named}, e.key).ok(http.StatusOK).at("evaluations").([]any)
			byToken := d.send(t, evaluationsPath, m{"resource": tenant, "context": here, "evaluations": presented}, e.key).ok(http.StatusOK).at("evaluations").([]any)
			for i, item := range items {
				allowed := introspected[i].(m)["allowed"].(bool)
				checked := d.getStatus(t, "/api/v2/access/check?action="+item["action"].(string), item["credential"].(string)) == http.StatusOK
				explained := d.send(t, "POST /api/v2/access/explain", item, owner).ok(http.StatusOK)
				seen[allowed]++
				if byToken[i].(m)["decision"] != allowed || checked != allowed || explained.at("allowed") != allowed {
					t.Errorf("%v under %s: introspection %v, check %v, by token %v, explained %s", named[i], text, allowed, checked, byToken[i], explained.body)
				}
				policy, _ := byToken[i].(m)["context"].(m)
				if id := policy["policyId"]; id != nil {
					byPolicy++
					if because := fmt.Sprint(explained.at("because")); !strings.Contains(because, fmt.Sprintf("id:%v kind:policy", id)) {
						t.Errorf("%v is refused by %v; explained: %s", named[i], id, because)
					}
				}
				if readsSession {
					continue // a user given by id has no session
				}
				subject := named[i]["subject"].(m)
				question := m{subject["type"].(string) + "Id": subject["id"], "action": item["action"], "context": here, "resource": tenant}
				if explained := d.send(t, "POST /api/v2/access/explain", question, owner).ok(http.StatusOK); byID[i].(m)["decision"] != allowed || explained.at("allowed") != allowed {
					t.Errorf("%v under %s: introspection %v, by id %v, explained %s", named[i], text, allowed, byID[i], explained.body)
				}
			}
		}
		if all := seen[true] + seen[false]; seen[true] < all/10 || seen[false] < all/10 || byPolicy < enough {
			t.Errorf("%v of %d requests were permitted, %d refused by policies", seen, all, byPolicy)
		}
	})
}

// randomPolicies returns the text of policies, and whether they read aal or authAge, which only
// sessions have.
func randomPolicies(r *rand.Rand, actions []string) (text string, readsSession bool) {
	principals := []string{"principal", `principal in Role::"USER"`, `principal in Role::"ADMIN"`, `principal in Role::"READERS"`, "principal is User", "principal is Key"}
	conditions := []string{
		"", `when { context.ip == ip("127.0.0.1") }`, `unless { context.ip.isInRange(ip("192.0.2.0/24")) }`, `when { context.kind == "key" }`,
		`when { context.now > datetime("2020-01-01") }`, `when { context.now < datetime("2020-01-01") }`, `unless { principal in Role::"OWNER" }`,
		`when { context has path && context.path like "*" }`, `when { context has host || context has method }`,
		`when { context has aal && context.aal < 2 }`, `when { context has authAge && context.authAge > 3600 }`,
	}
	for i := range 1 + r.IntN(6) {
		action := "action"
		if r.IntN(4) > 0 {
			var named []string
			for range 1 + r.IntN(6) {
				named = append(named, fmt.Sprintf("Action::%q", actions[r.IntN(len(actions))]))
			}
			action = "action in [" + strings.Join(named, ", ") + "]"
		}
		condition := conditions[r.IntN(len(conditions))]
		if condition == "" && action == "action" { // would refuse everything too often
			condition = conditions[1+r.IntN(len(conditions)-1)]
		}
		readsSession = readsSession || strings.Contains(condition, "aal") || strings.Contains(condition, "authAge")
		text += fmt.Sprintf("@id(\"p%d\") forbid(%s, %s, resource) %s;\n", i, principals[r.IntN(len(principals))], action, condition)
	}
	return text, readsSession
}

// getStatus sends a GET with a bearer credential and returns the status. The answer is not
// checked.
func (s *server) getStatus(t *testing.T, path, credential string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+credential)
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// What is revoked on one node is refused on every node once the call has returned.
func TestEvaluationOnThreeNodes(t *testing.T) {
	t.Parallel()
	d := start(t, doorwardtest.Database(dbtest.Postgres(t)))
	nodes := []*doorwardtest.Server{d.Server}
	for range 2 {
		nodes = append(nodes, doorwardtest.Start(t, doorwardtest.NodeOf(d.Server), func(c *node.Config) { c.Clock = d.clock.now }))
	}
	acme := d.Tenant("Acme")
	allowed := func(subject evaluation.Subject) (all []bool) {
		t.Helper()
		for _, n := range nodes {
			got, err := n.Node.App.Evaluations.Decide(t.Context(), nil, []evaluation.Question{{
				Subject: subject, Action: doorward.MessageSend, Resource: doorward.Resource{Type: "tenant", ID: acme.ID},
			}})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, got[0].Allowed)
		}
		return all
	}
	for round := range 2 {
		ann := acme.Join(fmt.Sprintf("ann%d@acme.example", round), "USER")
		key, _ := d.newKey(t, acme.Owner, m{"name": fmt.Sprint("Key ", round)})
		user, session, apiKey := evaluation.Subject{Type: "user", ID: ann.ID}, evaluation.Subject{Type: "session", ID: ann.Token()}, evaluation.Subject{Type: "key", ID: key}
		for _, s := range []evaluation.Subject{user, session, apiKey} {
			if got := allowed(s); slices.Contains(got, false) {
				t.Fatalf("%s before: %v", s.Type, got)
			}
		}
		if round%2 == 0 {
			d.send(t, "PATCH /api/v2/users/"+ann.ID, m{"role": "VIEWER"}, as(acme.Owner.Token())).ok(http.StatusOK)
		} else {
			d.send(t, "PATCH /api/v2/users/"+ann.ID, m{"status": "suspended"}, as(acme.Owner.Token())).ok(http.StatusOK)
		}
		for _, s := range []evaluation.Subject{user, session} {
			if got := allowed(s); slices.Contains(got, true) {
				t.Errorf("%s after a change of role or a suspension: %v", s.Type, got)
			}
		}
		d.send(t, "DELETE /api/v2/api-keys/"+key, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		if got := allowed(apiKey); slices.Contains(got, true) {
			t.Errorf("a revoked key: %v", got)
		}
	}
}
