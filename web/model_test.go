package web_test

import (
	"strings"
	"testing"
)

const (
	modelPath = "/api/v2/model"
	invoices  = "actions:\n  invoice.read: {roles: [OWNER, ADMIN, USER], about: See invoices}\n  invoice.approve: {roles: [OWNER, ADMIN]}\n"
)

// Without a model the actions are those of a messaging platform, and the version is 0.
func TestModelIsReplaced(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		key := d.operatorKey(t)
		initial := d.send(t, "GET "+modelPath, nil, bearer(key)).ok(200).is("version", 0.0).members("", "version", "text")
		tag := initial.header.Get("ETag")
		first := d.send(t, "PUT "+modelPath, m{"text": invoices}, bearer(key), with("If-Match", tag)).ok(200).is("version", 1.0).is("text", invoices)
		if first.header.Get("X-Revocation-Nodes") == "" {
			t.Errorf("the answer doesn't say on how many nodes it holds: %v", first.header)
		}
		read := d.send(t, "GET "+modelPath, nil, bearer(key)).ok(200).is("text", invoices)
		if read.header.Get("ETag") != first.header.Get("ETag") || read.header.Get("ETag") == tag || read.text("createdAt") != first.text("createdAt") || read.text("createdBy") == "" {
			t.Errorf("the model that was read differs from the answer to PUT: %v %s", read.header, read.body)
		}
		d.send(t, "PUT "+modelPath, m{"text": "actions: {}"}, bearer(key), with("If-Match", tag)).fails(412, "precondition_failed")
		d.send(t, "PUT "+modelPath, m{"text": "actions: {}"}, bearer(key)).fails(428, "precondition_required")
		d.send(t, "PUT "+modelPath, m{"text": invoices}, bearer(key), with("If-Match", `"1"`)).ok(200).is("version", 1.0)
		d.send(t, "GET "+modelPath, nil, bearer(key)).ok(200).is("version", 1.0)
	})
}

// Each fault of a text has its line and column. The form of the body is checked first, then
// If-Match, then the text.
func TestFaultsOfModel(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		key := bearer(d.operatorKey(t))
		put := func(body any) answer { return d.send(t, "PUT "+modelPath, body, key, with("If-Match", "*")) }
		a := put(m{"text": "actions:\n  user.read: {roles: [OWNER]}\n  b: {roles: [ADMIN]}\n"}).invalid("/text", "reserved", "/text", "not_closed")
		for _, place := range []string{`"line":2,"column":3,`, `"line":3,"column":14,`} {
			if !strings.Contains(string(a.body), place) {
				t.Errorf("no fault is at %s: %s", place, a.body)
			}
		}
		put(m{"text": ""}).invalid("/text", "required")
		put(m{}).invalid("/text", "required")
		put(m{"text": 1}).fails(400, "invalid_body")
		d.send(t, "PUT "+modelPath, m{"text": 1}, key).fails(400, "invalid_body")
		d.send(t, "PUT "+modelPath, m{"text": "actions: ["}, key).fails(428, "precondition_required")
		put(m{"text": "actions: {}\n#" + strings.Repeat("x", 100<<10)}).ok(200)               // more than other bodies may have
		put(m{"text": strings.Repeat("#", 1<<20-100), "other": 1}).fails(400, "invalid_body") // the form is checked also in a body near the limit
		put(m{"text": strings.Repeat("#", 1<<20)}).fails(413, "body_too_large")
		put(m{"text": "actions: {}\npolicies: permit(principal, action, resource);"}).fails(422, "validation_failed")
	})
}

// Checks, introspection and the permissions of sessions and keys follow the model. An action
// that the model lacks is unknown.
func TestModelDecides(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, operator := d.Tenant("Acme"), bearer(d.operatorKey(t))
		user, viewer := acme.Join("user@acme.example", "USER"), acme.Join("viewer@acme.example", "VIEWER")
		apply := func(text string) {
			d.send(t, "PUT "+modelPath, m{"text": text}, operator, with("If-Match", "*")).ok(200)
		}
		apply(invoices)
		key := d.send(t, "POST /api/v2/api-keys", m{"name": "sync", "permissions": []string{"invoice.read", "user.read"}}, as(acme.Owner.Token())).ok(201).text("key")
		check := func(action string, who opt, status int, code string) {
			t.Helper()
			a := d.send(t, "GET /api/v2/access/check?action="+action, nil, who)
			if a.status != status || code != "" && a.text("code") != code {
				t.Errorf("%s is answered %d %s, want %d %s", action, a.status, a.body, status, code)
			}
		}
		introspect := func(credential, action string, want any) {
			t.Helper()
			a := d.send(t, "POST /api/v2/access/introspect", m{"credential": credential, "action": action}, operator).ok(200)
			if a.at("allowed") != want {
				t.Errorf("introspection of %s: %s", action, a.body)
			}
		}
		check("invoice.read", as(user.Token()), 200, "")
		check("invoice.read", as(viewer.Token()), 403, "forbidden")
		check("invoice.approve", as(user.Token()), 403, "forbidden")
		check("message.send", as(user.Token()), 403, "unknown_action")
		check("invoice.pay", as(acme.Owner.Token()), 403, "unknown_action")
		unknown := d.send(t, "GET /api/v2/access/check?action=message.send", nil, as(user.Token())).text("detail")
		if want := "There is no such action. Those of the platform are invoice."; !strings.HasPrefix(unknown, want) {
			t.Errorf("an unknown action is answered %q, want %q…", unknown, want)
		}
		check("invoice.read", bearer(key), 200, "")
		introspect(user.Token(), "invoice.read", true)
		introspect(viewer.Token(), "invoice.read", false)
		introspect(key, "invoice.read", true)
		d.send(t, "POST /api/v2/access/introspect", m{"credential": key, "action": "message.send"}, operator).invalid("/action", "invalid")
		session := d.send(t, "GET /api/v2/auth/session", nil, as(user.Token())).ok(200)
		if got := session.at("user.permissions"); !has(got, "invoice.read") || has(got, "message.send") {
			t.Errorf("the permissions are %v", got)
		}

		apply("actions: {}")
		check("invoice.read", as(user.Token()), 403, "unknown_action")
		check("invoice.read", bearer(key), 403, "unknown_action")
		self := d.send(t, "GET /api/v2/auth/key", nil, bearer(key)).ok(200)
		if !has(self.at("apiKey.permissions"), "invoice.read") || has(self.at("apiKey.effectivePermissions"), "invoice.read") {
			t.Errorf("the key is %s", self.body)
		}
		apply(invoices)
		check("invoice.read", bearer(key), 200, "")
		check("invoice.read", as(user.Token()), 200, "")
	})
}

// TestModelTakesActionFromKeys: a key that has an action can't use it while the model says that no
// key can have it.
func TestModelTakesActionFromKeys(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		operator, acme := bearer(d.operatorKey(t)), d.Tenant("Acme")
		apply := func(keys string) {
			text := strings.Replace(invoices, "approve: {", "approve: {keys: "+keys+", ", 1)
			d.send(t, "PUT "+modelPath, m{"text": text}, operator, with("If-Match", "*")).ok(200)
		}
		apply("true")
		_, key := d.newKey(t, acme.Owner, m{"role": "ADMIN", "permissions": []string{"invoice.read", "invoice.approve"}})
		approve := func() answer {
			d.send(t, "GET /api/v2/access/check?action=invoice.read", nil, bearer(key)).ok(200)
			return d.send(t, "GET /api/v2/access/check?action=invoice.approve", nil, bearer(key))
		}
		approve().ok(200)
		apply("false")
		approve().fails(403, "forbidden")
		if effective := d.send(t, "GET /api/v2/auth/key", nil, bearer(key)).ok(200).at("apiKey.effectivePermissions"); has(effective, "invoice.approve") || !has(effective, "invoice.read") {
			t.Errorf("the effective permissions are %v", effective)
		}
		d.send(t, "POST /api/v2/access/introspect", m{"credential": key, "action": "invoice.approve"}, operator).ok(200).is("allowed", false)
		apply("true")
		approve().ok(200)
	})
}

// has reports whether a JSON array has the text.
func has(list any, want string) bool {
	all, _ := list.([]any)
	for _, v := range all {
		if v == want {
			return true
		}
	}
	return false
}
