package web_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
)

const (
	policyPath = "/api/v2/policy"
	noSending  = `@id("closed") @reason("Closed for the audit.") forbid(principal, action == Action::"message.send", resource);`
)

func policyText(id, when string) string {
	return fmt.Sprintf(`@id(%q) forbid(principal, action == Action::"message.send", resource) when { %s };`, id, when)
}

// The check, introspection and Doorward's own endpoints follow the policies of the tenant.
func TestPolicyDecides(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, operator := d.Tenant("Acme"), bearer(d.operatorKey(t))
		owner, user := as(acme.Owner.Token()), acme.Join("user@acme.example", "USER")
		initial := d.send(t, "GET "+policyPath, nil, owner).ok(200).is("version", 0.0).is("text", "").members("", "version", "text", "mode", "timeZone").is("timeZone", "UTC")
		tag := initial.header.Get("ETag")
		put := func(text string) answer {
			return d.send(t, "PUT "+policyPath, m{"text": text, "mode": "enforce"}, owner, with("If-Match", "*")).ok(200).is("text", text)
		}
		key := d.send(t, "POST /api/v2/api-keys", m{"name": "sync", "permissions": []string{"message.send"}}, owner).ok(201).text("key")
		check := func(who opt, more ...opt) answer {
			return d.send(t, "GET /api/v2/access/check?action=message.send", nil, append(more, who)...)
		}
		introspect := func(credential string, context m) any {
			return d.send(t, "POST /api/v2/access/introspect", m{"credential": credential, "action": "message.send", "context": context}, operator).ok(200).at("allowed")
		}
		first := put(noSending).is("version", 1.0).is("updatedBy", acme.Owner.ID)
		if first.header.Get("X-Revocation-Nodes") == "" || first.header.Get("ETag") == tag {
			t.Errorf("the headers are %v", first.header)
		}
		check(as(user.Token())).fails(403, "denied_by_policy").is("policyId", "closed").is("reason", "Closed for the audit.").is("detail", "Closed for the audit.")
		check(bearer(key)).fails(403, "denied_by_policy")
		d.send(t, "PUT "+policyPath, m{"text": ""}, owner, with("If-Match", tag)).fails(412, "precondition_failed")
		d.send(t, "PUT "+policyPath, m{"text": "", "timeZone": "Berlin"}, owner, with("If-Match", "*")).invalid("/timeZone", "invalid")
		for _, c := range []struct {
			when    string
			context m
			allowed bool
		}{
			{`context.ip.isInRange(ip("198.51.100.0/24"))`, m{"ip": "198.51.100.7"}, false},
			{`context.ip.isInRange(ip("198.51.100.0/24"))`, m{"ip": "203.0.113.7"}, true},
			{`context.ip.isInRange(ip("198.51.100.0/24"))`, m{}, false},
			{`context.ip.isInRange(ip("198.51.100.0/24"))`, m{"ip": "somewhere"}, false},
			{`context.now > datetime("2030-01-01")`, m{"time": "2029-12-31T23:00:00Z"}, true},
			{`context.now > datetime("2030-01-01")`, m{"time": "2030-01-01T01:00:00Z"}, false},
			{`context.now > datetime("2030-01-01")`, m{"time": "tomorrow"}, false},
			{`context.weekday == 7 && context.hour == 23`, m{"time": "2030-01-06T23:59:00Z"}, false},
			{`context.weekday == 7 && context.hour == 23`, m{"time": "2030-01-07T00:00:00Z"}, true},
			{`context.hour == 23`, m{"time": "tomorrow"}, false},
			{`context.now > datetime("2030-01-01")`, m{}, true},
			{`context has path && context.path like "/admin*"`, m{}, true},
		} {
			put(policyText("a", c.when))
			for _, credential := range []string{user.Token(), key} {
				if got := introspect(credential, c.context); got != c.allowed {
					t.Errorf("forbidden when %s: with the context %v, introspection says %v", c.when, c.context, got)
				}
			}
		}
		put(policyText("far", `context.ip.isInRange(ip("198.51.100.0/24"))`))
		check(as(user.Token()), from("198.51.100.7")).fails(403, "denied_by_policy").is("policyId", "far")
		check(as(user.Token()), from("203.0.113.7")).ok(200)

		put(`@id("all") forbid(principal, action, resource);`)
		d.send(t, "GET /api/v2/users", nil, owner).fails(403, "denied_by_policy").is("policyId", "all")
		d.send(t, "GET /api/v2/users", nil, as(user.Token())).fails(403, "denied_by_policy")
		d.send(t, "DELETE /api/v2/users/"+user.ID+"/sessions", nil, owner).ok(200)
		d.send(t, "GET "+policyPath, nil, owner).ok(200)
		d.send(t, "POST "+policyPath+"/versions/1/restore", nil, owner).ok(200).is("text", noSending)
		d.send(t, "GET /api/v2/users", nil, owner).ok(200)
		versions := d.send(t, "GET "+policyPath+"/versions?limit=2", nil, owner).ok(200)
		if items, _ := versions.at("items").([]any); len(items) != 2 || items[0].(map[string]any)["text"] != noSending {
			t.Errorf("the versions are %s", versions.body)
		}
		d.send(t, "GET "+policyPath+"/versions?limit=2&cursor="+versions.text("nextCursor"), nil, owner).ok(200)
		unconfirmed := d.send(t, "PUT "+policyPath, m{"text": "", "confirmMinutes": 10}, owner, with("If-Match", "*")).ok(200).header.Get("ETag")
		d.send(t, "POST "+policyPath+"/confirm", nil, owner, with("If-Match", tag)).fails(412, "precondition_failed")
		d.send(t, "POST "+policyPath+"/confirm", nil, owner, with("If-Match", unconfirmed)).ok(200)
		if schema := d.send(t, "GET "+policyPath+"/schema", nil, owner).ok(200).text("schema"); !strings.Contains(schema, `action "message.send"`) {
			t.Errorf("the schema is %s", schema)
		}
	}, doorwardtest.TrustLoopback())
}

// Policies see the path, host and method that a trusted gateway forwards, with dot segments
// resolved. If one can't be parsed, the check is refused.
func TestPolicySeesForwardedRequest(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		put := func(when string) {
			t.Helper()
			d.send(t, "PUT "+policyPath, m{"text": policyText("a", when)}, as(acme.Owner.Token()), with("If-Match", "*")).ok(200)
		}
		for _, c := range []struct {
			when    string
			headers [][2]string
			status  int
		}{
			{`context has path && context.path like "/admin*"`, nil, 200},
			{`context has path && context.path like "/admin*"`, [][2]string{{"X-Forwarded-Uri", "/admin/x?y=1"}}, 403},
			{`context has path && context.path like "/admin*"`, [][2]string{{"X-Original-URI", "/a/%2e%2e/%61dmin"}}, 403},
			{`context has path && context.path like "/admin*"`, [][2]string{{"X-Original-URI", "/a/b?next=%2fadmin;//%00"}}, 200},
			{`context has path && context.path like "/admin*"`, [][2]string{{"X-Original-URI", "/Admin"}}, 200},
			{`context has path && context.path like "/admin*"`, [][2]string{{"X-Original-URI", "/a%C3%A9/b%20c"}}, 200},
			{`context has host && context.host == "b.example"`, [][2]string{{"X-Original-URI", "/a;b//c%2Fd"}}, 200},
			{`context has path && context.path like "/admin*"`, [][2]string{{"X-Original-URI", "/a?/admin"}}, 200},
			{`context has path && context.path like "/admin*"`, [][2]string{{"X-Original-URI", "/admin"}, {"X-Forwarded-Uri", "/a"}}, 403},
			{`context has path && context.path like "/admin*"`, [][2]string{{"X-Original-URI", "/a%zz"}}, 403},
			{`context has host && context.host == "a.example"`, [][2]string{{"X-Forwarded-Host", "A.example"}}, 403},
			{`context has host && context.host == "a.example"`, [][2]string{{"X-Forwarded-Host", "b.example"}}, 200},
			{`context has host && context.host == "a.example"`, [][2]string{{"X-Forwarded-Host", "a.example:8443"}}, 403},
			{`context has host && context.host == "a.example"`, [][2]string{{"X-Forwarded-Host", "A.example.:443"}}, 403},
			{`context has host && context.host == "a.example"`, [][2]string{{"X-Forwarded-Host", "a.example:x"}}, 403},
			{`context has host && context.host == "a.example"`, [][2]string{{"X-Forwarded-Host", "b@a.example"}}, 403},
			{`context has host && context.host == "::1"`, [][2]string{{"X-Forwarded-Host", "[::1]:443"}}, 403},
			{`context has host && context.host == "a.example"`, [][2]string{{"X-Forwarded-Host", "a.example.b.example"}}, 200},
			{`context has method && context.method == "DELETE"`, [][2]string{{"X-Forwarded-Method", "DELETE"}}, 403},
			{`context has authAge && context.authAge > 600`, nil, 200},
			{`context has authAge && context.authAge < 600`, nil, 403},
			{`context has aal && context.aal < 2`, nil, 403},
		} {
			put(c.when)
			var opts []opt
			for _, h := range c.headers {
				opts = append(opts, with(h[0], h[1]))
			}
			a := d.send(t, "GET /api/v2/access/check?action=message.send", nil, append(opts, as(acme.Owner.Token()))...)
			if a.status != c.status {
				t.Errorf("%s with %v: %d %s", c.when, c.headers, a.status, a.body)
			}
		}
	}, doorwardtest.TrustLoopback())
}

// A path that servers read differently is refused by a policy that reads the path, however it is
// written.
func TestAmbiguousPathsAreUnreadable(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		d.send(t, "PUT "+policyPath, m{"text": policyText("a", `context has path && context.path like "/admin*"`)}, owner, with("If-Match", "*")).ok(200)
		for _, path := range []string{
			"//admin", "/a//b", "/a/%2fb", "/a%2Fb", "/a%5cb", "/a%5Cb", "/a%252fb", "/a%2500", "/a%00", "/a;b", "/a%3bb", "/a%3Bb=1/c",
			"/a%23b", "/a#b", "/a%0ab", "/a%7f", "/a%c2%85", "/a%ff", "/a\\b", "/" + strings.Repeat("a", 4096), "a", "",
		} {
			for _, name := range []string{"X-Forwarded-Uri", "X-Original-URI"} {
				d.send(t, "GET /api/v2/access/check?action=message.send", nil, owner, with(name, path)).fails(403, "denied_by_policy")
			}
		}
	}, doorwardtest.TrustLoopback())
}

// A last dot segment leaves the slash before it, as a server behind the gateway resolves it.
func TestPathsKeepTheLastSlash(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		d.send(t, "PUT "+policyPath, m{"text": policyText("a", `context has path && context.path == "/admin/"`)}, owner, with("If-Match", "*")).ok(200)
		for path, status := range map[string]int{
			"/admin/": 403, "/admin/.": 403, "/admin/./": 403, "/admin/x/..": 403, "/admin/x/%2e%2e": 403, "/x/../admin/%2e": 403, "/admin/%2e?x": 403,
			"/admin": 200, "/admin/...": 200, "/admin/x.": 200, "/admin/..": 200, "/..": 200, "/": 200,
		} {
			if a := d.send(t, "GET /api/v2/access/check?action=message.send", nil, owner, with("X-Forwarded-Uri", path)); a.status != status {
				t.Errorf("%s: %d", path, a.status)
			}
		}
	}, doorwardtest.TrustLoopback())
}

// A host with an empty label is unreadable: which site a gateway chooses for it isn't known.
func TestHostsWithEmptyLabelsAreUnreadable(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		d.send(t, "PUT "+policyPath, m{"text": policyText("a", `context has host && context.host == "shop.example"`)}, owner, with("If-Match", "*")).ok(200)
		for host, status := range map[string]int{
			"shop.example": 403, "SHOP.example.": 403, "shop.example.:80": 403, "shop.example..": 403, "shop.example..:80": 403, ".shop.example": 403,
			"shop..example": 403, ".": 403, "..": 403, ":80": 403,
			"x.example.": 200, "localhost": 200, "192.0.2.1:80": 200, "[2001:db8::1]:80": 200,
		} {
			if a := d.send(t, "GET /api/v2/access/check?action=message.send", nil, owner, with("X-Forwarded-Host", host)); a.status != status {
				t.Errorf("%s: %d", host, a.status)
			}
		}
	}, doorwardtest.TrustLoopback())
}

// What a gateway can't state is unreadable in a check, and as well where somebody asks why.
func TestExplainReadsAsChecksDo(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		person := d.Tenant("Acme").Owner
		owner := as(person.Token())
		names := map[string]string{"path": "X-Forwarded-Uri", "host": "X-Forwarded-Host", "method": "X-Forwarded-Method"}
		d.send(t, "PUT "+policyPath, m{"text": `@id("path") forbid(principal, action == Action::"message.send", resource) when { context has path && context.path like "/admin*" };
			@id("host") forbid(principal, action == Action::"message.send", resource) when { context has host && context.host == "shop.example" };
			@id("method") forbid(principal, action == Action::"message.send", resource) when { context has method && context.method == "DELETE" };`}, owner, with("If-Match", "*")).ok(200)
		for _, c := range []struct {
			name, value string
			allowed     bool
		}{
			{"path", "/" + strings.Repeat("a", 6000), false},
			{"path", "/a/../admin;/x", false},
			{"path", "/a%2fb", false},
			{"path", "/x/../admin", false},
			{"path", "/%61dmin", false},
			{"path", "/orders/%31?x=/admin", true},
			{"host", strings.Repeat("a", 5000), false},
			{"host", "shop.example,x.example", false},
			{"host", "Shop.Example.:443", false},
			{"host", "x.example", true},
			{"method", strings.Repeat("A", 5000), false},
			{"method", "GET,DELETE", false},
			{"method", "GET DELETE", false},
			{"method", "delete", false},
			{"method", "M-SEARCH", true},
		} {
			name := fmt.Sprintf("%s %.40s", c.name, c.value)
			if a := d.send(t, "GET /api/v2/access/check?action=message.send", nil, owner, with(names[c.name], c.value)); a.status == 200 != c.allowed {
				t.Errorf("check of %s: %d", name, a.status)
			}
			a := d.send(t, "POST /api/v2/access/explain", m{"userId": person.ID, "action": "message.send", "context": m{c.name: c.value}}, owner).ok(200)
			if a.at("allowed") != c.allowed || !c.allowed && !strings.Contains(string(a.body), `"id":"`+c.name+`"`) {
				t.Errorf("explain %s: %s", name, a.body)
			}
		}
	}, doorwardtest.TrustLoopback())
}

// The headers of a client that is no trusted gateway are ignored.
func TestPolicyDoesNotBelieveClients(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		d.send(t, "PUT "+policyPath, m{"text": policyText("a", `context has path || context has host || context has method`)}, owner, with("If-Match", "*")).ok(200)
		d.send(t, "GET /api/v2/access/check?action=message.send", nil, owner,
			with("X-Forwarded-Uri", "/a"), with("X-Original-URI", "/a"), with("X-Forwarded-Host", "a"), with("X-Forwarded-Method", "GET")).ok(200)
	})
}

// A version in the mode observe refuses nothing, and counts what it would have refused for any
// caller. The enforced version before it still refuses.
func TestPolicyObserves(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, operator := d.Tenant("Acme"), bearer(d.operatorKey(t))
		owner, user := as(acme.Owner.Token()), acme.Join("user@acme.example", "USER")
		put := func(text, mode string) answer {
			return d.send(t, "PUT "+policyPath, m{"text": text, "mode": mode}, owner, with("If-Match", "*")).ok(200)
		}
		key := d.send(t, "POST /api/v2/api-keys", m{"name": "sync", "permissions": []string{"message.send"}}, owner).ok(201).text("key")
		put(`@id("nobody-reads") forbid(principal, action == Action::"message.read", resource);`, "enforce")
		inside := policyText("inside", `!context.ip.isInRange(ip("192.0.2.0/24"))`)
		text := noSending + `@id("invite") forbid(principal, action == Action::"user.invite", resource);` + inside
		put(text, "observe").is("mode", "observe").is("enforcedVersion", 1.0)
		for range 2 {
			d.send(t, "GET /api/v2/access/check?action=message.send", nil, as(user.Token())).ok(200)
		}
		d.send(t, "GET /api/v2/access/check?action=message.read", nil, as(user.Token())).fails(403, "denied_by_policy")
		d.send(t, "GET /api/v2/access/check?action=user.invite", nil, as(user.Token())).fails(403, "forbidden") // by the role
		d.send(t, "GET /api/v2/access/check?action=message.send", nil, bearer(key)).ok(200)
		d.send(t, "POST /api/v2/access/introspect", m{"credential": key, "action": "message.send"}, operator).ok(200).is("allowed", true)
		d.send(t, "POST /access/v1/evaluation", m{"subject": m{"type": "user", "id": user.ID}, "action": m{"name": "message.send"}, "resource": m{"type": "tenant", "id": acme.ID}}, operator).ok(200).is("decision", true)
		d.send(t, "POST /api/v2/auth/invite", m{"email": "new@acme.example", "role": "USER"}, owner).ok(201)
		want := []any{map[string]any{"id": "closed", "refused": 5.0}, map[string]any{"id": "invite", "refused": 1.0}, map[string]any{"id": "inside", "refused": 0.0}}
		if diff := cmp.Diff(want, d.send(t, "GET "+policyPath, nil, owner).ok(200).at("observed")); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
		put(inside, "observe")
		d.send(t, "GET /api/v2/access/check?action=message.send", nil, as(user.Token()), from("192.0.2.7")).ok(200)
		d.send(t, "GET /api/v2/access/check?action=message.send", nil, as(user.Token()), from("198.51.100.7")).ok(200)
		want = []any{map[string]any{"id": "inside", "refused": 1.0}}
		if diff := cmp.Diff(want, d.send(t, "GET "+policyPath, nil, owner).ok(200).is("enforcedVersion", 1.0).at("observed")); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
		put(inside, "enforce").members("", "version", "text", "mode", "timeZone", "updatedAt", "updatedBy")
		d.send(t, "GET /api/v2/access/check?action=message.send", nil, as(user.Token()), from("198.51.100.7")).fails(403, "denied_by_policy")
		d.send(t, "GET /api/v2/access/check?action=message.read", nil, as(user.Token())).ok(200)
		d.send(t, "PUT "+policyPath, m{"text": "", "mode": "watch"}, owner, with("If-Match", "*")).fails(422, "validation_failed")
	}, doorwardtest.TrustLoopback())
}

// A check or an introspection has no resource, so a policy that needs one refuses it, unless the
// gateway or the service says that the service asks again.
func TestPolicyNeedsTheResource(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		d.send(t, "PUT /api/v2/model", m{"text": "actions:\n  invoice.pay: {roles: [OWNER], resource: invoice}\nresources:\n  invoice: {amount: long}\n"}, bearer(d.operatorKey(t)), with("If-Match", "*")).ok(200)
		text := `@id("large") forbid(principal, action == Action::"invoice.pay", resource) when { resource.amount > 10000 };`
		put := func(text string) {
			d.send(t, "PUT "+policyPath, m{"text": text}, as(acme.Owner.Token()), with("If-Match", "*")).ok(200)
		}
		check := func(query string) answer {
			return d.send(t, "GET /api/v2/access/check?action=invoice.pay"+query, nil, as(acme.Owner.Token()))
		}
		introspect := func(more m) answer {
			body := m{"credential": acme.Owner.Token(), "action": "invoice.pay"}
			maps.Copy(body, more)
			return d.send(t, "POST /api/v2/access/introspect", body, bearer(d.operatorKey(t)))
		}
		put(text)
		introspect(nil).ok(200).is("allowed", false)
		introspect(m{"resource": "deferred"}).ok(200).is("allowed", true)
		introspect(m{"resource": "none"}).invalid("/resource", "invalid")
		check("").fails(403, "denied_by_policy").is("policyId", "large")
		check("&resource=deferred").ok(200)
		check("&original=/x&resource=deferred").fails(403, "denied_by_policy")
		check("&resource=none").fails(400, "invalid_query")
		check("&resource=deferred&resource=deferred").fails(400, "invalid_query")
		put(text + `@id("never") forbid(principal, action == Action::"invoice.pay", resource) when { context has aal && context.aal < 2 };`)
		check("&resource=deferred").fails(403, "denied_by_policy").is("policyId", "never")
		introspect(m{"resource": "deferred"}).ok(200).is("allowed", false)
	})
}

func TestFaultsOfPolicy(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		put := func(body any) answer { return d.send(t, "PUT "+policyPath, body, owner, with("If-Match", "*")) }
		a := put(m{"text": "forbid(principal, action, resource);\n  @id(\"a\") permit(principal, action == Action::\"x.y\", resource);"}).
			invalid("/text", "missing_id", "/text", "only_forbid", "/text", "unknown_action")
		for _, place := range []string{`"line":1,"column":1,`, `"line":2,"column":12,`, `"line":2,"column":48,`} {
			if !strings.Contains(string(a.body), place) {
				t.Errorf("no fault is at %s: %s", place, a.body)
			}
		}
		put(m{"text": strings.Repeat("(", 100000)}).invalid("/text", "too_large")
		put(m{"text": `@id("a") forbid(principal, action, resource) when { ` + strings.Repeat("(", 5000) + " };"}).invalid("/text", "too_deep")
		put(m{"text": strings.Repeat("x", 1<<20)}).fails(413, "body_too_large")
		put(m{}).invalid("/text", "required")
		put(m{"text": "", "confirmMinutes": 61}).invalid("/confirmMinutes", "out_of_range")
		put(m{"text": "", "mode": "off"}).invalid("/mode", "invalid")
		put(m{"text": "", "mode": ""}).invalid("/mode", "invalid")
		d.send(t, "GET "+policyPath, nil, owner).ok(200).is("version", 0.0)
	})
}

// The example of docs/policies.md is accepted, and refuses what the page says.
func TestPolicyOfTheDocument(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		page, err := os.ReadFile("../docs/policies.md")
		if err != nil {
			t.Fatal(err)
		}
		block := func(language string) string {
			_, text, _ := strings.Cut(string(page), "```"+language+"\n")
			text, _, _ = strings.Cut(text, "```")
			return text
		}
		acme, operator := d.Tenant("Acme"), bearer(d.operatorKey(t))
		d.send(t, "PUT /api/v2/model", m{"text": block("yaml")}, operator, with("If-Match", "*")).ok(200)
		d.send(t, "PUT "+policyPath, m{"text": block("cedar")}, as(acme.Owner.Token()), with("If-Match", "*")).ok(200)
		for at, want := range map[string]bool{"2026-11-23T12:00:00Z": true, "2026-11-23T07:59:00Z": false, "2026-11-23T18:00:00Z": false} {
			a := d.send(t, "POST /api/v2/access/introspect", m{"credential": acme.Owner.Token(), "action": "invoice.pay", "context": m{"time": at}}, operator).ok(200)
			if a.at("allowed") != want {
				t.Errorf("at %s: %s", at, a.body)
			}
		}
	})
}

// keptDecisions counts the decisions of a tenant that are kept: all refusals, and at random a
// permit.
func (s *server) keptDecisions(t *testing.T, tenantID string) (refused, permitted int) {
	t.Helper()
	all, err := s.Node.DB.Read().Decisions(t.Context(), tenantID, time.Time{}, doorward.Position{At: 1 << 62}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if k.Allowed {
			permitted++
		} else {
			refused++
		}
	}
	return refused, permitted
}

// A plan shows what a text would change for each role, and in the recorded decisions of checks,
// introspection and requests to Doorward itself.
func TestPlanPolicy(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, operator := d.Tenant("Acme"), bearer(d.operatorKey(t))
		owner, user := as(acme.Owner.Token()), acme.Join("user@acme.example", "USER")
		d.send(t, "PUT "+policyPath, m{"text": noSending}, owner, with("If-Match", "*")).ok(200)
		d.send(t, "GET /api/v2/access/check?action=message.send", nil, as(user.Token()), from("203.0.113.7")).fails(403, "denied_by_policy")
		d.send(t, "POST /api/v2/access/introspect", m{"credential": user.Token(), "action": "message.send", "context": m{"ip": "198.51.100.7"}}, operator).ok(200).is("allowed", false)
		d.send(t, "GET "+policyPath, nil, as(user.Token())).fails(403, "forbidden")

		plan := d.send(t, "POST "+planPath, m{"text": policyText("far", `context.ip.isInRange(ip("198.51.100.0/24"))`), "hours": 1}, owner).ok(200).members("", "matrix", "decisions")
		decisions := plan.at("decisions").(m)
		changed := decisions["changed"].([]any)
		refused, permitted := d.keptDecisions(t, acme.ID)
		if len(changed) != 1 || refused != 3 || decisions["checked"] != float64(refused+permitted) {
			t.Fatalf("the plan is %s", plan.body)
		}
		got := changed[0].(m)
		if delete(got, "at"); fmt.Sprint(got) != fmt.Sprintf("map[action:message.send actor:map[email:user@acme.example id:%s type:user] because:[map[id:USER kind:role]] was:refused would:allowed]", user.ID) {
			t.Errorf("changed is %v", got)
		}
		var cells []string
		for _, cell := range plan.at("matrix").([]any) {
			if c := cell.(m); c["was"] != c["would"] {
				cells = append(cells, fmt.Sprint(c["role"], " ", c["action"], " ", c["was"], " ", c["would"]))
			}
		}
		if got := strings.Join(cells, ", "); got != "USER message.send refused conditional, ADMIN message.send refused conditional, OWNER message.send refused conditional" {
			t.Errorf("the matrix has %s", got)
		}
		d.send(t, "POST "+planPath, m{"text": "", "hours": 169}, owner).invalid("/hours", "out_of_range")
		d.send(t, "POST "+planPath, m{"text": "", "hours": 0}, owner).invalid("/hours", "out_of_range")
		d.send(t, "PUT "+policyPath, m{"text": "", "confirmMinutes": 0}, owner, with("If-Match", "*")).invalid("/confirmMinutes", "out_of_range")
		for _, version := range []int{0, -1} {
			question := m{"userId": user.ID, "action": "message.send", "version": version}
			d.send(t, "POST /api/v2/access/explain", question, owner).invalid("/version", "out_of_range")
		}
		d.send(t, "POST "+planPath, m{"text": "permit(principal, action, resource);"}, owner).fails(422, "validation_failed")
		d.send(t, "POST "+planPath, m{"text": ""}, as(user.Token())).fails(403, "forbidden")
		d.send(t, "GET "+policyPath, nil, owner).ok(200).is("version", 1.0)
		d.send(t, "GET /api/v2/access/check?action=message.send", nil, as(user.Token())).fails(403, "denied_by_policy")
	})
}
