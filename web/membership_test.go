package web_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const switchPath = "POST /api/v2/auth/switch-tenant"

func TestMemberships(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, initech := d.Tenant("Acme"), d.Tenant("Globex"), d.Tenant("Initech")
		ann := acme.Join("ann@acme.example", "VIEWER")
		d.addMember(t, globex, ann, "ADMIN")
		d.addMember(t, initech, ann, "OWNER")
		d.suspend(t, globex.ID, ann.ID)
		a := d.send(t, "GET /api/v2/auth/memberships", nil, as(ann.Token())).ok(http.StatusOK)
		want := []any{
			m{"tenantId": acme.ID, "tenantName": "Acme", "role": "VIEWER", "status": "active", "current": true},
			m{"tenantId": globex.ID, "tenantName": "Globex", "role": "ADMIN", "status": "suspended", "current": false},
			m{"tenantId": initech.ID, "tenantName": "Initech", "role": "OWNER", "status": "active", "current": false},
		}
		if diff := cmp.Diff(want, a.members("", "items", "total").at("items")); diff != "" {
			t.Errorf("memberships:\n%s", diff)
		}
	})
}

func TestSwitchTenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, initech := d.Tenant("Acme"), d.Tenant("Globex"), d.Tenant("Initech")
		ann := acme.Join("ann@acme.example", "USER")
		d.addMember(t, globex, ann, "ADMIN")
		old, second := d.token(t, ann.Email), d.token(t, ann.Email)

		a := d.send(t, switchPath, m{"tenantId": globex.ID}, as(old)).ok(http.StatusOK)
		a.members("", "token", "expiresAt", "idleExpiresAt", "user").is("user.tenantId", globex.ID).is("user.role", "ADMIN").is("user.id", ann.ID)
		match := sessionCookie.FindStringSubmatch(cookieNamed(a, "JSESSIONID"))
		if match == nil || match[1] != a.text("token") || a.text("token") == old {
			t.Errorf("the cookies are %q, with the token %s", a.cookies(), a.text("token"))
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(old)).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, switchPath, m{"tenantId": acme.ID}, as(old)).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "GET /api/v2/auth/session", nil, as(a.text("token"))).ok(http.StatusOK).is("session.tenantId", globex.ID)
		d.send(t, "GET /api/v2/auth/session", nil, as(second)).ok(http.StatusOK).is("session.tenantId", acme.ID)

		same := d.send(t, switchPath, m{"tenantId": acme.ID}, as(second)).ok(http.StatusOK).is("user.tenantId", acme.ID)
		token := as(same.text("token"))
		absent := d.send(t, switchPath, m{"tenantId": "tnt_x"}, token).fails(http.StatusNotFound, "not_found")
		foreign := d.send(t, switchPath, m{"tenantId": initech.ID}, token).fails(http.StatusNotFound, "not_found")
		if absent.withoutIDs() != foreign.withoutIDs() {
			t.Errorf("the answers for a foreign and an unknown tenant differ:\n%s\n%s", foreign.body, absent.body)
		}
		d.suspend(t, globex.ID, ann.ID)
		if suspended := d.send(t, switchPath, m{"tenantId": globex.ID}, token).fails(http.StatusNotFound, "not_found"); suspended.withoutIDs() != absent.withoutIDs() {
			t.Errorf("the answers for a suspended membership and an unknown tenant differ:\n%s\n%s", suspended.body, absent.body)
		}
		d.send(t, "GET /api/v2/auth/session", nil, token).ok(http.StatusOK) // refusals end nothing
	})
}

// TestSwitchToATenantWithAShorterLimit: every tenant's limit counts from the password check, so
// a session may be too old for one tenant and valid in another.
func TestSwitchToATenantWithAShorterLimit(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		d.patchTenant(t, globex.Owner.Token(), m{"settings": m{"sessionAbsoluteMinutes": 60}}).ok(http.StatusOK)
		ann := acme.Join("ann@acme.example", "USER")
		d.addMember(t, globex, ann, "USER")
		login := d.login(t, ann.Email, password).ok(http.StatusOK).is("user.tenantId", acme.ID)
		end := login.instant("expiresAt")

		d.Advance(40 * time.Minute)
		there := d.send(t, switchPath, m{"tenantId": globex.ID}, as(login.text("token"))).ok(http.StatusOK)
		if got, want := there.instant("expiresAt"), end.Add(-23*time.Hour); !got.Equal(want) {
			t.Errorf("forty minutes after the login the session ends at %v, want an hour after the login, %v", got, want)
		}
		back := d.send(t, switchPath, m{"tenantId": acme.ID}, as(there.text("token"))).ok(http.StatusOK)
		if got := back.instant("expiresAt"); !got.Equal(end) {
			t.Errorf("after the switch back it ends at %v, want %v as after the login", got, end)
		}

		d.Advance(20 * time.Minute)
		token := as(back.text("token"))
		d.send(t, switchPath, m{"tenantId": globex.ID}, token).fails(http.StatusForbidden, "login_too_old")
		d.send(t, "GET /api/v2/auth/session", nil, token).ok(http.StatusOK) // a refusal ends nothing
		d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK)
	})
}

func TestSwitchToAClosingOrFrozenTenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		_, globex, ann := d.inTwoTenants(t, "USER", "USER")
		d.setTenantStatus(t, globex, "closing")
		d.send(t, switchPath, m{"tenantId": globex.ID}, as(ann.Token())).fails(http.StatusForbidden, "tenant_closing")
		d.setTenantStatus(t, globex, "frozen")
		d.send(t, switchPath, m{"tenantId": globex.ID}, as(ann.Token())).fails(http.StatusForbidden, "tenant_frozen")
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).ok(http.StatusOK)
	})
}

func TestLeaveTenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, ann := d.inTwoTenants(t, "ADMIN", "USER")
		leave := func(id string, opts ...opt) answer {
			t.Helper()
			return d.send(t, "DELETE /api/v2/auth/memberships/"+id, nil, opts...)
		}
		invited := d.invite(t, ann, "bob@acme.example", "USER")
		there := d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK).text("token")

		d.Advance(11 * time.Minute)
		leave(acme.ID, as(there)).fails(http.StatusForbidden, "step_up_required")
		leave("tnt_x", as(there)).fails(http.StatusForbidden, "step_up_required")
		there = d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK).text("token")
		a := leave(acme.ID, as(there)).ok(http.StatusNoContent)
		if len(a.cookies()) > 0 {
			t.Errorf("cookies %q, though the session is in another tenant", a.cookies())
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		d.complete(t, invited, password).fails(http.StatusGone, "invitation_revoked")
		d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).fails(http.StatusUnauthorized, "invalid_credentials")
		d.send(t, "GET /api/v2/auth/session", nil, as(there)).ok(http.StatusOK)

		again := leave(acme.ID, as(there)).fails(http.StatusNotFound, "not_found")
		for _, unknown := range []string{"tnt_" + acme.ID[4:10], "tnt_x", "x", "usr_x", "tnt_", "tnt_%00", "tnt_a%2Fb", "tnt_'", "%F0%9F%98%80"} {
			got := leave(unknown, as(there)).fails(http.StatusNotFound, "not_found")
			if got.text("detail") != again.text("detail") || got.at("errors") != nil {
				t.Errorf("the tenant %s is answered %s\none that was left %s", unknown, got.body, again.body)
			}
		}
		a = leave(globex.ID, as(there)).ok(http.StatusNoContent)
		if got, want := cookieNamed(a, "JSESSIONID"), "JSESSIONID=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"; got != want {
			t.Errorf("the cookie is %q, want %q", got, want)
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(there)).fails(http.StatusUnauthorized, "unauthenticated")
	})
}

// The last active OWNER can't leave.
func TestLastOwnerCannotLeave(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		second := acme.Join("second@acme.example", "OWNER")
		leave := "DELETE /api/v2/auth/memberships/" + acme.ID
		d.suspend(t, acme.ID, second.ID)
		d.send(t, leave, nil, as(acme.Owner.Token())).fails(http.StatusConflict, "last_owner")
		d.send(t, "GET /api/v2/auth/session", nil, as(acme.Owner.Token())).ok(http.StatusOK)
		third := acme.Join("third@acme.example", "OWNER")
		d.send(t, leave, nil, as(acme.Owner.Token())).ok(http.StatusNoContent)
		d.send(t, leave, nil, as(third.Token())).fails(http.StatusConflict, "last_owner")
	})
}

// The list has the person's sessions in all tenants, and no other person's.
func TestOwnSessions(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		d.addMember(t, globex, ann, "USER")
		there := d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK).text("token")
		own := func(token string) (ids []string, current int) {
			t.Helper()
			items, _ := d.send(t, "GET /api/v2/sessions", nil, as(token)).ok(http.StatusOK).members("", "items", "total").at("items").([]any)
			for _, item := range items {
				ids = append(ids, item.(m)["id"].(string))
				if item.(m)["current"] == true {
					current++
				}
			}
			return ids, current
		}
		ids, current := own(there)
		if len(ids) != 2 || current != 1 {
			t.Fatalf("sessions %q, %d of them current", ids, current)
		}
		bobs, _ := own(bob.Token())
		d.send(t, "DELETE /api/v2/sessions/"+bobs[0], nil, as(there)).fails(http.StatusNotFound, "not_found")
		for _, unknown := range []string{"ses_x", "x", "tnt_x", "ses_%00"} {
			d.send(t, "DELETE /api/v2/sessions/"+unknown, nil, as(there)).fails(http.StatusNotFound, "not_found")
		}
		more := d.token(t, ann.Email)
		d.send(t, "DELETE /api/v2/sessions", nil, as(there)).ok(http.StatusNoContent)
		for token, status := range map[string]int{there: 200, ann.Token(): 401, more: 401, bob.Token(): 200} {
			d.send(t, "GET /api/v2/auth/session", nil, as(token)).ok(status)
		}
		ids, _ = own(there)
		a := d.send(t, "DELETE /api/v2/sessions/"+ids[0], nil, as(there)).ok(http.StatusNoContent)
		if got, want := cookieNamed(a, "JSESSIONID"), "JSESSIONID=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"; got != want {
			t.Errorf("the cookie is %q, want %q", got, want)
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(there)).fails(http.StatusUnauthorized, "unauthenticated")
	})
}
