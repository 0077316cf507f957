package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/web/front"
)

// TestKeysOnEndpoints: a key may do only what its permissions allow, within its tenant and up
// to the rank of its role. Pages don't take it.
func TestKeysOnEndpoints(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		bob, stranger := acme.Join("bob@acme.example", "USER"), zeta.Owner
		id, key := d.newKey(t, acme.Owner, m{"role": "ADMIN", "permissions": []string{"user.read", "user.manage", "user.invite", "tenant.read"}})
		ask := func(route string, body any) answer { return d.send(t, route, body, bearer(key)) }

		ask("GET /api/v2/users", nil).ok(200)
		ask("GET /api/v2/tenant", nil).ok(200).is("id", acme.ID)
		ask("GET /api/v2/users/"+stranger.ID, nil).fails(404, "not_found")
		ask("PATCH /api/v2/users/"+stranger.ID, m{"name": "x"}).fails(404, "not_found")
		ask("PATCH /api/v2/users/"+bob.ID, m{"name": "Bob"}).ok(200).is("user.name", "Bob")
		ask("PATCH /api/v2/users/"+acme.Owner.ID, m{"name": "x"}).fails(403, "forbidden")
		ask("PATCH /api/v2/users/"+bob.ID, m{"role": "OWNER"}).fails(403, "forbidden")
		ask("POST /api/v2/auth/invite", m{"email": "cat@acme.example", "role": "USER"}).ok(201).is("invitedBy", acme.Owner.ID)
		ask("POST /api/v2/auth/invite", m{"email": "dan@acme.example", "role": "OWNER"}).fails(403, "forbidden")
		ask("GET /api/v2/audit-events", nil).fails(403, "forbidden")
		ask("GET /api/v2/api-keys", nil).fails(403, "forbidden")
		ask("GET /api/v2/tenants", nil).fails(403, "forbidden")
		ask("POST /api/v2/access/introspect", m{"credential": "x"}).fails(403, "forbidden")
		ask("GET /api/v2/auth/key", nil).ok(200).is("apiKey.id", id).is("apiKey.role", "ADMIN")
		d.send(t, "GET /api/v2/auth/key", nil, as(bob.Token())).fails(403, "forbidden")
		d.send(t, "GET /api/v2/auth/key", nil).fails(401, "unauthenticated")
		d.send(t, "GET /api/v2/users", nil, bearer(key), as(bob.Token())).fails(401, "unauthenticated")
		if a := d.send(t, "GET /console/people", nil, bearer(key)); a.status == http.StatusOK || strings.Contains(string(a.body), "bob@acme.example") {
			t.Errorf("a page takes a key: %d", a.status)
		}

		events := d.send(t, "GET /api/v2/audit-events?actor="+id+"&action=user.rename", nil, as(acme.Owner.Token())).ok(200)
		if got := events.at("items").([]any)[0].(m)["actor"].(m); got["type"] != "key" || got["id"] != id {
			t.Errorf("a rename by a key is by %v", got)
		}
	})
}

// TestKeysRevokeWhatTheyCantGive: a key can't send or resend an invitation of a role that could do more
// than a key, but it can revoke one, up to its rank.
func TestKeysRevokeWhatTheyCantGive(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		_, key := d.newKey(t, acme.Owner, m{"role": "ADMIN", "permissions": []string{"user.invite"}})
		_, low := d.newKey(t, acme.Owner, m{"role": "VIEWER", "permissions": []string{"user.read"}})
		invite := func(email, role string) string {
			return d.send(t, "POST /api/v2/auth/invite", m{"email": email, "role": role}, as(acme.Owner.Token())).ok(201).text("id")
		}
		one, two, top := invite("a@acme.example", "ADMIN"), invite("b@acme.example", "ADMIN"), invite("c@acme.example", "OWNER")
		ask := func(route string, body any) answer { return d.send(t, route, body, bearer(key)) }
		ask("POST /api/v2/auth/invite", m{"email": "d@acme.example", "role": "ADMIN"}).fails(403, "forbidden")
		ask("POST /api/v2/invitations/"+one+"/resend", nil).fails(403, "forbidden")
		ask("DELETE /api/v2/invitations/"+top, nil).fails(403, "forbidden")
		d.send(t, "DELETE /api/v2/invitations/"+one, nil, bearer(low)).fails(403, "forbidden")
		ask("DELETE /api/v2/invitations/"+one, nil).ok(204)
		a := ask("POST /api/v2/invitations/revoke", m{"ids": []string{two, top}}).ok(200)
		items := a.at("items").([]any)
		if first, second := items[0].(m), items[1].(m); first["status"] != 204.0 && first["status"] != 200.0 || second["status"] != 403.0 {
			t.Errorf("%s", a.body)
		}
		for id, status := range map[string]string{one: "REVOKED", two: "REVOKED", top: "PENDING"} {
			d.send(t, "GET /api/v2/invitations/"+id, nil, as(acme.Owner.Token())).ok(200).is("status", status)
		}
	})
}

// TestNotForKeys: every endpoint that is only for people refuses API keys and operator keys.
func TestNotForKeys(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		_, key := d.newKey(t, d.Tenant("Acme").Owner, nil)
		operator := d.operatorKey(t)
		tried := 0
		for _, e := range d.operations(t) {
			if !e.route.Guard.PeopleOnly() {
				continue
			}
			tried++
			d.send(t, e.Request, m{}, bearer(key)).fails(403, "not_for_keys")
			d.send(t, e.Request, m{}, bearer(operator)).fails(403, "forbidden")
		}
		if tried < 8 {
			t.Errorf("only %d endpoints were tried", tried)
		}
	})
}

// TestKeyRefusalsOnEveryRoute: every route that isn't public refuses a key from another address,
// an unknown key and one over its rate limit. Routes that take keys also refuse a key of a frozen
// or closing tenant.
func TestKeyRefusalsOnEveryRoute(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, frozen, closing := d.Tenant("Acme"), d.Tenant("Frozen"), d.Tenant("Closing")
		_, bound := d.newKey(t, acme.Owner, m{"allowedIps": []string{"192.0.2.0/24"}})
		_, rateLimited := d.newKey(t, acme.Owner, m{"permissions": []string{"user.read"}, "perSecond": 1})
		_, ofFrozen := d.newKey(t, frozen.Owner, nil)
		_, ofClosing := d.newKey(t, closing.Owner, nil)
		d.freeze(t, frozen.ID)
		d.send(t, "DELETE /api/v2/tenant", m{"confirm": "Closing"}, as(closing.Owner.Token())).ok(http.StatusAccepted)
		unknown := func(route string) answer { return d.send(t, route, nil, bearer(secret.NewKey("dwk_").Reveal())) }
		for range 30 { // uses up what the client may try with unknown keys
			unknown("GET /api/v2/users").fails(401, "unauthenticated")
		}
		exceedRate := func(route string) {
			a := d.send(t, route, nil, bearer(rateLimited))
			for tries := 0; a.status != http.StatusTooManyRequests && tries < 10; tries++ { // one request a second passes
				a = d.send(t, route, nil, bearer(rateLimited))
			}
			a.fails(429, "rate_limited")
		}
		guarded := 0
		for _, e := range d.operations(t, checkPath) {
			if e.route.Guard.Name() == front.Public().Name() {
				continue
			}
			guarded++
			d.send(t, e.Request, nil, bearer(bound)).fails(403, "ip_not_allowed")
			unknown(e.Request).fails(429, "too_many_attempts")
			exceedRate(e.Request)
			if e.route.Guard.TakesKeys() {
				d.send(t, e.Request, nil, bearer(ofFrozen)).fails(403, "tenant_frozen")
				d.send(t, e.Request, nil, bearer(ofClosing)).fails(403, "tenant_closing")
			}
		}
		if guarded < 40 {
			t.Errorf("only %d routes were tried", guarded)
		}
	})
}

// TestKeyRefusals: the answer to a valid key says that the address or the tenant is refused.
// Disabled, revoked and unknown keys all get the same answer.
func TestKeyRefusals(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ask := func(key string, opts ...opt) answer {
			return d.send(t, "GET /api/v2/users", nil, append(opts, bearer(key))...)
		}
		permissions := m{"permissions": []string{"user.read"}}
		_, bound := d.newKey(t, acme.Owner, m{"permissions": []string{"user.read"}, "allowedIps": []string{"192.0.2.0/24"}})
		ask(bound, from("198.51.100.1")).fails(403, "ip_not_allowed")
		ask(bound, from("192.0.2.1")).ok(200)

		unknown := ask(secret.NewKey("dwk_").Reveal()).fails(401, "unauthenticated")
		for name, end := range map[string]func(id string){
			"disabled": func(id string) { d.patchKey(t, acme.Owner, id, m{"status": "disabled"}).ok(200) },
			"revoked":  func(id string) { d.send(t, "DELETE "+keysPath+"/"+id, nil, as(acme.Owner.Token())).ok(204) },
		} {
			id, key := d.newKey(t, acme.Owner, permissions)
			ask(key).ok(200)
			end(id)
			if a := ask(key).fails(401, "unauthenticated"); a.withoutIDs() != unknown.withoutIDs() {
				t.Errorf("%s: %s\nunknown: %s", name, a.withoutIDs(), unknown.withoutIDs())
			}
		}
		_, key := d.newKey(t, acme.Owner, permissions)
		d.freeze(t, acme.ID)
		ask(key).fails(403, "tenant_frozen")
		if _, err := d.Node.App.Tenants.Thaw(t.Context(), doorward.OperatorAtTerminal(), acme.ID); err != nil {
			t.Fatal(err)
		}
		ask(key).ok(200)
	}, doorwardtest.TrustLoopback())
}

// TestHandingOverHigherKeys: an ADMIN can't transfer a key with a role above ADMIN, which the role
// of its owner limits, to an owner who doesn't limit it. An OWNER can, with a recent proof.
func TestHandingOverHigherKeys(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		admin, olga := acme.Join("admin@acme.example", "ADMIN"), acme.Join("olga@acme.example", "OWNER")
		d.send(t, "POST /api/v2/roles", m{"name": "PAYER", "permissions": []string{"billing.read"}}, owner).ok(201)
		k := d.makeKey(t, acme.Owner, m{"role": "PAYER", "permissions": []string{"billing.read"}, "ownerId": olga.ID}).ok(201)
		path := "/api/v2/users/" + olga.ID
		d.send(t, "PATCH "+path, m{"role": "USER"}, owner).ok(200)
		mayPay := func(want int) {
			t.Helper()
			if got := d.send(t, "GET /api/v2/access/check?action=billing.read", nil, bearer(k.text("key"))).status; got != want {
				t.Errorf("a check with the key is %d, want %d", got, want)
			}
		}
		mayPay(403)
		to := "?apiKeys=transfer&ownerId=" + acme.Owner.ID
		d.send(t, "DELETE "+path+to, nil, as(admin.Token())).fails(403, "forbidden")
		d.send(t, "PATCH "+path+to, m{"status": "suspended"}, as(admin.Token())).fails(403, "forbidden")
		d.send(t, "DELETE "+path+to+"&dryRun=true", nil, as(admin.Token())).fails(403, "forbidden")
		mayPay(403)
		bob := acme.Join("bob@acme.example", "USER")
		d.makeKey(t, acme.Owner, m{"ownerId": bob.ID}).ok(201)
		d.Advance(11 * time.Minute)
		d.send(t, "DELETE "+path+to, nil, owner).fails(403, "step_up_required") // the key could do more
		d.send(t, "DELETE /api/v2/users/"+bob.ID+to, nil, owner).ok(200).is("ended.apiKeysTransferred", 1.0)
		mayPay(403)
		d.send(t, "DELETE "+path+to, nil, as(acme.Owner.Login())).ok(200).is("ended.apiKeysTransferred", 1.0)
		mayPay(200)
	})
}

// TestHandingOverKeys: suspending or removing a user ends the user's keys or transfers them. A
// dry run says how many.
func TestHandingOverKeys(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		bob, cat := acme.Join("bob@acme.example", "USER"), acme.Join("cat@acme.example", "USER")
		var ids []string
		for _, ownerID := range []string{bob.ID, bob.ID, cat.ID} {
			a := d.makeKey(t, acme.Owner, m{"ownerId": ownerID}).ok(201)
			ids = append(ids, a.text("apiKey.id"))
		}
		path := "/api/v2/users/" + bob.ID
		for query, parameter := range map[string]string{
			"apiKeys=keep": "apiKeys", "apiKeys=transfer&ownerId=" + bob.ID: "ownerId", "apiKeys=transfer&ownerId=usr_none": "ownerId",
			"ownerId=" + cat.ID: "ownerId", "apiKeys=": "apiKeys", "apiKeys": "apiKeys", "apiKeys=transfer&ownerId=": "ownerId", "ownerId": "ownerId",
		} {
			a := d.send(t, "DELETE "+path+"?"+query, nil, owner).fails(422, "validation_failed")
			if got := a.at("errors").([]any)[0].(m)["parameter"]; got != parameter {
				t.Errorf("%s: the fault is of %v, want %s", query, got, parameter)
			}
		}
		d.send(t, "DELETE "+path+"?apikeys=transfer", nil, owner).fails(400, "invalid_query")

		d.send(t, "DELETE "+path+"?dryRun=true", nil, owner).ok(200).is("ended.apiKeys", 2.0)
		d.send(t, "DELETE "+path+"?dryRun=true&apiKeys=transfer", nil, owner).ok(200).is("ended.apiKeys", 0.0).is("ended.apiKeysTransferred", 2.0)
		d.send(t, "PATCH "+path+"?dryRun=true&apiKeys=transfer&ownerId="+cat.ID, m{"status": "suspended"}, owner).ok(200).is("ended.apiKeysTransferred", 2.0)
		d.getKey(t, acme.Owner, ids[0]).ok(200).is("ownerId", bob.ID).is("status", "active")

		d.send(t, "PATCH "+path+"?apiKeys=transfer&ownerId="+cat.ID, m{"status": "suspended"}, owner).ok(200).is("ended.apiKeysTransferred", 2.0)
		k := d.getKey(t, acme.Owner, ids[0]).ok(200).is("ownerId", cat.ID)
		if left := k.instant("rotateBy").Sub(d.Node.App.Now()); left < 7*24*time.Hour-time.Minute || left > 7*24*time.Hour {
			t.Errorf("it has to be rotated within %v", left)
		}
		d.send(t, "DELETE /api/v2/users/"+cat.ID+"?apiKeys=end", nil, owner).ok(200).is("ended.apiKeys", 3.0)
		for _, id := range ids {
			d.getKey(t, acme.Owner, id).ok(200).is("status", "revoked")
			events := d.send(t, "GET /api/v2/audit-events?target="+id+"&action=apikey.revoke", nil, owner).ok(200)
			if n := len(events.at("items").([]any)); n != 1 {
				t.Errorf("%d events say that the key was revoked, want 1", n)
			}
		}
	})
}
