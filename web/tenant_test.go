package web_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/routetest"
)

const sessionPath = "GET /api/v2/auth/session"

func (s *server) patchTenant(t *testing.T, token string, body any, opts ...opt) answer {
	t.Helper()
	return s.send(t, "PATCH /api/v2/tenant", body, append(opts, as(token))...)
}

func settings(name string, value any) m { return m{"settings": m{name: value}} }

func TestTenantShowsSettingsInForce(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		viewer := acme.Join("viewer@acme.example", "VIEWER")
		a := d.send(t, "GET /api/v2/tenant", nil, as(viewer.Token())).ok(http.StatusOK).members("", "id", "name", "status", "createdAt", "settings")
		a.is("id", acme.ID).is("name", "Acme").is("status", "active")
		want := m{
			"sessionIdleMinutes": 60.0, "sessionAbsoluteMinutes": 1440.0, "invitationDays": 30.0, "allowedEmailDomains": []any{}, "accent": "",
			"mfa": "optional", "mfaRoles": []any{}, "mfaGraceDays": 0.0, "mfaRememberDays": 0.0, "stepUpMinutes": 10.0, "keepEventsDays": 0.0,
		}
		if diff := cmp.Diff(want, a.at("settings")); diff != "" || a.header.Get("ETag") == "" {
			t.Errorf("the settings, with the headers %v:\n%s", a.header, diff)
		}
	})
}

func TestEditTenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		admin := acme.Join("admin@acme.example", "ADMIN").Token()
		for name, values := range map[string][]any{
			"sessionIdleMinutes": {1.0, 59.0, 60.0}, "sessionAbsoluteMinutes": {60.0, 1440.0}, "invitationDays": {1.0, 30.0},
			"allowedEmailDomains": {[]any{"acme.example"}, []any{}}, "accent": {"#ffd400", ""},
			"mfaRoles": {[]any{"OWNER"}, []any{"ADMIN", "USER"}, []any{}}, "mfaGraceDays": {1.0, 30.0, 0.0}, "mfaRememberDays": {30.0, 0.0}, "stepUpMinutes": {1.0, 60.0, 10.0}, "keepEventsDays": {3650.0, 30.0, 0.0},
		} {
			for _, value := range values {
				a := d.patchTenant(t, admin, settings(name, value)).ok(http.StatusOK)
				if diff := cmp.Diff(value, a.at("settings."+name)); diff != "" {
					t.Errorf("%s:\n%s", name, diff)
				}
				if diff := cmp.Diff(a.at(""), d.send(t, "GET /api/v2/tenant", nil, as(admin)).at("")); diff != "" {
					t.Errorf("the answer and what is stored:\n%s", diff)
				}
			}
		}
		for name, values := range map[string][]any{
			"sessionIdleMinutes": {0, -1, 61, 1e15}, "sessionAbsoluteMinutes": {0, -1, 1441}, "invitationDays": {0, -1, 31},
			"mfaGraceDays": {-1, 31}, "mfaRememberDays": {-1, 31}, "stepUpMinutes": {0, -1, 61}, "keepEventsDays": {-1, 1, 29, 3651},
		} {
			for _, value := range values {
				d.patchTenant(t, admin, fmt.Sprintf(`{"name":"No","settings":{%q:%.0f}}`, name, number(value))).invalid("/settings/"+name, "out_of_range")
			}
		}
		d.patchTenant(t, admin, m{"name": "", "settings": m{"sessionIdleMinutes": 0, "invitationDays": 99}}).invalid(
			"/name", "required", "/settings/sessionIdleMinutes", "out_of_range", "/settings/invitationDays", "out_of_range")
		for _, invisible := range []string{"  ", "\u200b", "\u00a0\u0301\u00ad", "\u3164\u115f\uffa0", "\u2800", "\ue000"} {
			d.patchTenant(t, admin, m{"name": invisible}).invalid("/name", "required")
		}
		d.patchTenant(t, admin, m{"name": strings.Repeat("x", 101)}).invalid("/name", "out_of_range")
		both := func(idle, absolute int) m {
			return m{"settings": m{"sessionIdleMinutes": idle, "sessionAbsoluteMinutes": absolute}}
		}
		other := d.Tenant("Globex").Owner.Token()
		d.patchTenant(t, other, both(31, 30)).invalid("/settings/sessionIdleMinutes", "out_of_range")
		d.patchTenant(t, other, settings("sessionAbsoluteMinutes", 30)).ok(http.StatusOK) // bounds the idle limit, too
		d.patchTenant(t, other, settings("sessionIdleMinutes", 31)).invalid("/settings/sessionIdleMinutes", "out_of_range")
		d.patchTenant(t, other, settings("sessionIdleMinutes", 30)).ok(http.StatusOK)
		d.patchTenant(t, other, settings("sessionAbsoluteMinutes", 29)).ok(http.StatusOK)
		d.patchTenant(t, other, both(29, 29)).ok(http.StatusOK)
		for _, form := range []string{`{"settings":null}`, `{"settings":[]}`, `{"settings":{"x":1}}`, `{"settings":{"invitationDays":"7"}}`, `{"settings":{"allowedEmailDomains":"x"}}`, `{"settings":{"allowedEmailDomains":[1]}}`, `{"status":"active"}`} {
			d.patchTenant(t, admin, form).fails(http.StatusBadRequest, "invalid_body")
		}
		d.send(t, "GET /api/v2/tenant", nil, as(admin)).ok(http.StatusOK).is("name", "Acme")
		d.patchTenant(t, admin, m{"name": "Acme Ltd"}).ok(http.StatusOK).is("name", "Acme Ltd").is("settings.invitationDays", 30.0)
		d.send(t, sessionPath, nil, as(admin)).ok(http.StatusOK).is("user.tenantName", "Acme Ltd")
		for _, role := range []string{"USER", "VIEWER"} {
			who := acme.Join(strings.ToLower(role)+"@acme.example", role)
			d.patchTenant(t, who.Token(), m{"name": "x"}).fails(http.StatusForbidden, "forbidden")
		}
	})
}

func number(v any) float64 {
	if n, isInt := v.(int); isInt {
		return float64(n)
	}
	return v.(float64)
}

func TestEditTenantIfMatch(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner.Token()
		first := d.send(t, "GET /api/v2/tenant", nil, as(owner)).header.Get("ETag")
		second := d.patchTenant(t, owner, settings("invitationDays", 3), with("If-Match", first)).ok(http.StatusOK).header.Get("ETag")
		d.patchTenant(t, owner, settings("invitationDays", 4), with("If-Match", first)).fails(http.StatusPreconditionFailed, "precondition_failed")
		d.patchTenant(t, owner, settings("allowedEmailDomains", []string{"x.example"}), with("If-Match", first+", "+second)).ok(http.StatusOK)
		d.patchTenant(t, owner, settings("allowedEmailDomains", []string{}), with("If-Match", "*")).ok(http.StatusOK)
		if got := d.send(t, "GET /api/v2/tenant", nil, as(owner)).header.Get("ETag"); got != second {
			t.Errorf("one state has the versions %s and %s", second, got)
		}
	})
}

func TestAllowedEmailDomains(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := acme.Owner.Token()
		pending := d.invite(t, acme.Owner, "before@else.example", "USER")
		const pointer = "/settings/allowedEmailDomains"
		for _, garbage := range []string{"", "localhost", "x@acme.example", " acme.example", "acme.example ", "acme..example", "[192.0.2.1]", "acme.example/x", "*.acme.example", "-.example", "a b.example", strings.Repeat("x", 64) + ".example", "acme.example\x7f", "xn--\u00fc.example"} {
			d.patchTenant(t, owner, settings("allowedEmailDomains", []string{"good.example", garbage})).invalid(pointer+"/1", "invalid")
		}
		many := make([]string, 101)
		for i := range many {
			many[i] = fmt.Sprintf("d%03d.example", i)
		}
		d.patchTenant(t, owner, settings("allowedEmailDomains", many)).invalid(pointer, "out_of_range")
		d.patchTenant(t, owner, settings("allowedEmailDomains", many[:100])).ok(http.StatusOK)
		a := d.patchTenant(t, owner, settings("allowedEmailDomains", []string{"Bücher.example", "ACME.example", "xn--bcher-kva.example", "acme.example"})).ok(http.StatusOK)
		if diff := cmp.Diff([]any{"acme.example", "xn--bcher-kva.example"}, a.at("settings.allowedEmailDomains")); diff != "" {
			t.Errorf("the domains:\n%s", diff)
		}
		for email, allowed := range map[string]bool{
			"a@acme.example": true, "b@ACME.EXAMPLE": true, "c@bücher.example": true, "d@xn--bcher-kva.example": true,
			"e@else.example": false, "f@sub.acme.example": false, "g@acme.example.else.example": false, "h@buecher.example": false,
		} {
			a := d.send(t, invitePath, m{"email": email, "role": "USER"}, as(owner))
			if allowed {
				a.ok(http.StatusCreated)
			} else {
				a.invalid("/email", "domain_not_allowed")
			}
		}
		// The current settings apply to earlier invitations, too.
		d.complete(t, pending, password).fails(http.StatusGone, "invitation_revoked")
		ids, _ := d.page(t, "/api/v2/invitations?limit=200", "id", as(owner))
		d.Advance(time.Minute)
		for _, id := range ids {
			if one := d.send(t, "GET /api/v2/invitations/"+id, nil, as(owner)); one.text("email") == "before@else.example" {
				d.resend(t, owner, id).fails(http.StatusForbidden, "forbidden")
			}
		}
		d.patchTenant(t, owner, settings("allowedEmailDomains", []string{})).ok(http.StatusOK)
		d.complete(t, pending, password).ok(http.StatusOK)
	})
}

func TestInvitationDays(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		long := d.sendInvitation(t, acme.Owner, "long@x.example", "USER", 30)
		d.patchTenant(t, acme.Owner.Token(), settings("invitationDays", 3)).ok(http.StatusOK)
		days := func(a answer) float64 {
			return a.instant("expiresAt").Sub(a.instant("createdAt")).Round(time.Minute).Hours() / 24
		}
		if got := days(d.send(t, invitePath, m{"email": "ann@x.example", "role": "USER"}, as(acme.Owner.Token())).ok(http.StatusCreated)); got != 3 {
			t.Errorf("by default an invitation is valid for %v days, want 3", got)
		}
		d.send(t, invitePath, m{"email": "bob@x.example", "role": "USER", "expiresInDays": 4}, as(acme.Owner.Token())).invalid("/expiresInDays", "out_of_range")
		d.send(t, invitePath, m{"email": "bob@x.example", "role": "USER", "expiresInDays": 31}, as(acme.Owner.Token())).invalid("/expiresInDays", "out_of_range")
		d.sendInvitation(t, acme.Owner, "bob@x.example", "USER", 3)
		d.patchTenant(t, acme.Owner.Token(), settings("invitationDays", 20)).ok(http.StatusOK)
		if got := days(d.send(t, invitePath, m{"email": "cat@x.example", "role": "USER"}, as(acme.Owner.Token())).ok(http.StatusCreated)); got != 7 {
			t.Errorf("by default an invitation is valid for %v days, want 7", got)
		}
		d.Advance(time.Minute)
		if got := days(d.resend(t, acme.Owner.Token(), long.text("id")).ok(http.StatusOK)); got < 20 || got > 20.001 {
			t.Errorf("a resent invitation is valid for %v days, want 20", got)
		}
	})
}

// Tighter limits of a tenant end its sessions beyond them, at once and on every node. Looser
// limits restore none.
func TestTighterLimitsEndSessionsEverywhere(t *testing.T) {
	t.Parallel()
	here := start(t, doorwardtest.Database(dbtest.Postgres(t)))
	there := start(t, doorwardtest.NodeOf(here.Server))
	acme, globex := here.Tenant("Acme"), here.Tenant("Globex")
	ann := acme.Join("ann@acme.example", "USER")
	here.addMember(t, globex, ann, "USER")
	elsewhere := here.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK).text("token")
	check := func(d *server, token string, want int) {
		t.Helper()
		d.send(t, "GET /api/v2/access/check", nil, as(token)).ok(want)
	}
	advance := func(by time.Duration) { here.Advance(by); there.Advance(by) }
	nodes := []*server{here, there}
	for _, d := range nodes {
		check(d, ann.Token(), http.StatusOK)
	}
	advance(10 * time.Minute)
	check(there, ann.Token(), http.StatusOK) // both nodes have the session cached
	advance(10 * time.Minute)
	young := here.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).ok(http.StatusOK).text("token")
	owner := acme.Owner.Login()
	here.patchTenant(t, owner, settings("sessionIdleMinutes", 5)).ok(http.StatusOK)
	for _, d := range nodes {
		check(d, ann.Token(), http.StatusUnauthorized)
		check(d, young, http.StatusOK)
		check(d, elsewhere, http.StatusOK)
	}
	here.patchTenant(t, owner, settings("sessionIdleMinutes", 60)).ok(http.StatusOK)
	for _, d := range nodes {
		check(d, ann.Token(), http.StatusUnauthorized)
	}

	advance(15 * time.Minute)
	owner = acme.Owner.Login()
	here.patchTenant(t, owner, settings("sessionAbsoluteMinutes", 15)).ok(http.StatusOK)
	fresh := there.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).ok(http.StatusOK)
	if life := fresh.instant("expiresAt").Sub(there.clock.advance(0)).Round(time.Second); life != 15*time.Minute {
		t.Errorf("a session opened now expires in %v", life)
	}
	if fresh.at("idleExpiresAt") != fresh.at("expiresAt") {
		t.Errorf("idle %v, absolute %v", fresh.at("idleExpiresAt"), fresh.at("expiresAt"))
	}
	shown := here.send(t, sessionPath, nil, as(fresh.text("token"))).ok(http.StatusOK)
	if shown.at("session.expiresAt") != fresh.at("expiresAt") {
		t.Errorf("shown as %v, answered as %v", shown.at("session.expiresAt"), fresh.at("expiresAt"))
	}
	for _, d := range nodes {
		check(d, young, http.StatusUnauthorized)
		check(d, elsewhere, http.StatusOK)
		check(d, fresh.text("token"), http.StatusOK)
	}
	ids, _ := here.page(t, "/api/v2/sessions", "id", as(elsewhere))
	if len(ids) != 2 {
		t.Errorf("the caller's sessions are %q", ids)
	}
	advance(16 * time.Minute) // the clocks of the two differ a little
	for _, d := range nodes {
		check(d, fresh.text("token"), http.StatusUnauthorized)
	}
	owner = acme.Owner.Login()
	here.patchTenant(t, owner, settings("sessionAbsoluteMinutes", 1440)).ok(http.StatusOK)
	for _, d := range nodes {
		for _, token := range []string{young, fresh.text("token")} {
			check(d, token, http.StatusUnauthorized)
		}
	}
}

// A session that has expired by its tenant's limits doesn't count towards the ten that a
// person may have.
func TestSessionsExpiredByTenantLimitsAreNotCounted(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := globex.Join("ann@x.example", "USER")
		d.addMember(t, acme, ann, "USER")
		d.patchTenant(t, acme.Owner.Token(), settings("sessionAbsoluteMinutes", 15)).ok(http.StatusOK)
		login := m{"email": ann.Email, "password": password, "tenantId": acme.ID}
		for range 9 {
			d.send(t, loginPath, login).ok(http.StatusOK)
		}
		d.Advance(15 * time.Minute)
		for range 9 {
			d.send(t, loginPath, login).ok(http.StatusOK)
			d.send(t, sessionPath, nil, as(ann.Token())).ok(http.StatusOK)
		}
		d.send(t, loginPath, login).ok(http.StatusOK)
		d.send(t, sessionPath, nil, as(ann.Token())).fails(http.StatusUnauthorized, "unauthenticated")
	})
}

// TestNamesHaveOneForm: what is typed or pasted as a name is stored in one form, and compared in it.
func TestNamesHaveOneForm(t *testing.T) {
	const typed, stored = " Jose\u0301\u00a0 &\u2003Co\u200b. ", "José & Co."
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		d.send(t, "POST /api/v2/auth/invite", m{"email": "new@acme.example", "role": "USER", "name": typed}, owner).ok(http.StatusCreated).is("name", stored)
		d.send(t, "PATCH /api/v2/users/"+acme.Join("ann@acme.example", "USER").ID, m{"name": typed}, owner).ok(http.StatusOK).is("user.name", stored)
		d.send(t, "POST "+keysPath, m{"name": typed, "permissions": []string{"user.read"}}, owner).ok(http.StatusCreated).is("apiKey.name", stored)
		d.send(t, totpPath, m{"name": typed}, owner).ok(http.StatusCreated)
		operator := bearer(d.operatorKey(t))
		d.send(t, "POST /api/v2/tenants", m{"name": typed, "ownerEmail": "o@other.example"}, operator).ok(http.StatusCreated).is("tenant.name", stored)
		d.patchTenant(t, acme.Owner.Token(), m{"name": typed}).ok(http.StatusOK).is("name", stored)
		d.send(t, "DELETE /api/v2/tenant", m{"confirm": "Jose & Co."}, owner).invalid("/confirm", "mismatch")
		d.send(t, "DELETE /api/v2/tenant", m{"confirm": "Jose\u0301 &\u00a0Co."}, owner).ok(http.StatusAccepted)
	})
}

// Closing a tenant ends all its sessions at once. An OWNER may sign in again to read and restore.
func TestCloseTenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		owner, second := acme.Owner, acme.Join("second@acme.example", "OWNER")
		admin, ann := acme.Join("admin@acme.example", "ADMIN"), acme.Join("ann@acme.example", "USER")
		d.addMember(t, globex, ann, "USER")
		there := d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK).text("token")
		pending := d.invite(t, owner, "pending@x.example", "USER")
		key := d.operatorKey(t)
		closeAs := func(by *doorwardtest.Person, confirm string) answer {
			t.Helper()
			return d.send(t, "DELETE /api/v2/tenant", m{"confirm": confirm}, as(by.Token()))
		}
		closeAs(admin, "Acme").fails(http.StatusForbidden, "forbidden")
		for _, wrong := range []string{"acme", "Acm e", "Globex", acme.ID} {
			closeAs(owner, wrong).invalid("/confirm", "mismatch")
		}
		closeAs(owner, "").invalid("/confirm", "required")
		d.send(t, sessionPath, nil, as(ann.Token())).ok(http.StatusOK)

		a := closeAs(owner, "Acme").ok(http.StatusAccepted).is("status", "closing").is("id", acme.ID)
		a.members("", "id", "name", "status", "createdAt", "destroyedAt", "settings", "ended")
		if diff := cmp.Diff(m{"sessions": 4.0, "apiKeys": 0.0, "invitations": 0.0}, a.at("ended")); diff != "" {
			t.Errorf("has ended:\n%s", diff)
		}
		if hold := a.instant("destroyedAt").Sub(d.clock.advance(0)).Round(time.Minute); hold != 14*24*time.Hour {
			t.Errorf("destroyed in %v", hold)
		}
		if got := cookieNamed(a, "JSESSIONID"); !strings.Contains(got, "Max-Age=0") || a.header.Get("X-Revocation-Nodes") != "1" {
			t.Errorf("the cookie is %q, the headers are %v", got, a.header)
		}
		for _, p := range []*doorwardtest.Person{owner, second, admin, ann} {
			d.send(t, sessionPath, nil, as(p.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.send(t, sessionPath, nil, as(there)).ok(http.StatusOK)
		for _, p := range []*doorwardtest.Person{admin, ann} {
			d.send(t, loginPath, m{"email": p.Email, "password": password, "tenantId": acme.ID}).fails(http.StatusForbidden, "tenant_closing")
		}
		d.login(t, ann.Email, password).ok(http.StatusOK).is("user.tenantId", globex.ID)
		d.send(t, switchPath, m{"tenantId": acme.ID}, as(there)).fails(http.StatusForbidden, "tenant_closing")
		d.complete(t, pending, password).fails(http.StatusForbidden, "tenant_closing")
		d.send(t, "PATCH /api/v2/tenants/"+acme.ID, m{"status": "active"}, bearer(key)).fails(http.StatusForbidden, "tenant_closing")
		d.checkFrozenWhileClosing(t, acme, second, key)

		token := second.Login()
		d.checkWhileClosing(t, token, key)
		restored := d.send(t, "POST /api/v2/tenant/restore", nil, as(token)).ok(http.StatusOK).is("status", "active").members("", "id", "name", "status", "createdAt", "settings")
		if len(restored.cookies()) > 0 {
			t.Errorf("restoring sets %q", restored.cookies())
		}
		d.send(t, "POST /api/v2/tenant/restore", nil, as(token)).fails(http.StatusConflict, "tenant_not_closing")
		d.send(t, "GET /api/v2/users", nil, as(token)).ok(http.StatusOK)
		d.send(t, "GET /api/v2/access/check", nil, as(token)).ok(http.StatusOK)
		for _, p := range []*doorwardtest.Person{owner, admin, ann} {
			d.send(t, sessionPath, nil, as(p.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		}
		admin.Login()
		d.complete(t, pending, password).ok(http.StatusOK)
	})
}

// checkFrozenWhileClosing requires that nobody can restore a closing tenant while the operator
// has frozen it, and that thawing it doesn't restore it.
func (s *server) checkFrozenWhileClosing(t *testing.T, acme *doorwardtest.Tenant, owner *doorwardtest.Person, key string) {
	t.Helper()
	status := func(to string) answer {
		t.Helper()
		return s.send(t, "PATCH /api/v2/tenants/"+acme.ID, m{"status": to}, bearer(key)).ok(http.StatusOK)
	}
	token := owner.Login()
	destroyed := s.send(t, "GET /api/v2/tenant", nil, as(token)).ok(http.StatusOK).instant("destroyedAt")
	frozen := status("frozen").is("status", "frozen").is("ended.sessions", 1.0)
	if at := frozen.instant("destroyedAt"); !at.Equal(destroyed) {
		t.Errorf("the freeze has moved the destruction to %v from %v", at, destroyed)
	}
	s.send(t, "POST /api/v2/tenant/restore", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
	s.send(t, loginPath, m{"email": owner.Email, "password": password, "tenantId": acme.ID}).fails(http.StatusForbidden, "tenant_frozen")
	status("active").is("status", "closing").instant("destroyedAt")
	s.send(t, "PATCH /api/v2/tenants/"+acme.ID, m{"status": "active"}, bearer(key)).fails(http.StatusForbidden, "tenant_closing")
}

// checkWhileClosing requires that in a closing tenant an OWNER's session can read itself and the
// tenant, restore the tenant and sign out. All else that uses the session is refused.
func (s *server) checkWhileClosing(t *testing.T, token, key string) {
	t.Helper()
	s.send(t, sessionPath, nil, as(token)).ok(http.StatusOK)
	s.send(t, "HEAD /api/v2/auth/session", nil, as(token)).ok(http.StatusOK)
	s.send(t, "GET /api/v2/tenant", nil, as(token)).ok(http.StatusOK).is("status", "closing").instant("destroyedAt")
	allowed := []string{
		"GET /api/v2/auth/session", "GET /api/v2/tenant", "POST /api/v2/tenant/restore",
		"DELETE /api/v2/auth/account", "DELETE /api/v2/auth/memberships/tnt_absent", // a closing tenant holds nobody back
	}
	for _, e := range s.operations(t) {
		ignoresSessions := e.route.Guard.Name() == front.Public().Name() || e.Who == routetest.Operator
		if !ignoresSessions && !slices.Contains(allowed, e.Request) {
			s.send(t, e.Request, nil, as(token)).fails(http.StatusForbidden, "tenant_closing")
		}
	}
	for _, action := range []string{"", "?action=message.read", "?action=none"} {
		a := s.send(t, "GET /api/v2/access/check"+action, nil, as(token)).fails(http.StatusForbidden, "tenant_closing")
		if a.header.Get("X-Auth-User") != "" {
			t.Errorf("a refused check has the headers %v", a.header)
		}
	}
	s.send(t, "POST /api/v2/access/introspect", m{"credential": token}, bearer(key)).ok(http.StatusOK).members("", "active").is("active", false)
	another := s.send(t, "POST /api/v2/auth/login", m{"email": "owner@acme.example", "password": password}).ok(http.StatusOK).text("token")
	s.send(t, "POST /api/v2/auth/logout", nil, as(another)).ok(http.StatusNoContent)
	s.send(t, sessionPath, nil, as(another)).fails(http.StatusUnauthorized, "unauthenticated")
}

func TestRestoreAfterTheHold(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		closeAcme := func() {
			t.Helper()
			d.send(t, "DELETE /api/v2/tenant", m{"confirm": "Acme"}, as(acme.Owner.Token())).ok(http.StatusAccepted)
		}
		closeAcme()
		d.Advance(14*24*time.Hour - time.Second)
		d.send(t, "POST /api/v2/tenant/restore", nil, as(acme.Owner.Login())).ok(http.StatusOK)
		closeAcme()
		d.Advance(14 * 24 * time.Hour)
		d.send(t, "POST /api/v2/tenant/restore", nil, as(acme.Owner.Login())).fails(http.StatusConflict, "tenant_not_closing")
	})
}

func TestOperatorsManageTenants(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		key := bearer(d.operatorKey(t))
		a := d.send(t, "POST /api/v2/tenants", m{"name": "Acme", "ownerEmail": "Ann@Acme.example"}, key).ok(http.StatusCreated).members("", "tenant", "invitation")
		a.is("tenant.name", "Acme").is("tenant.status", "active").is("invitation.email", "ann@acme.example").is("invitation.role", "OWNER")
		a.is("invitation.invitedBy", nil).is("invitation.delivery", "queued").is("invitation.tenantId", a.text("tenant.id"))
		id := a.text("tenant.id")
		d.complete(t, d.code(t, "ann@acme.example"), password).ok(http.StatusOK).is("user.role", "OWNER").is("user.tenantId", id)
		owner := d.token(t, "ann@acme.example")
		d.send(t, "POST /api/v2/tenants", m{"name": "\u200b", "ownerEmail": "none", "locale": "deutsch!"}, key).invalid("/name", "required", "/ownerEmail", "invalid", "/locale", "invalid")

		globex := d.Tenant("Globex")
		list := d.send(t, "GET /api/v2/tenants", nil, key).ok(http.StatusOK).members("", "items", "total")
		items := list.at("items").([]any)
		if len(items) != 2 || items[0].(m)["id"] != id || items[1].(m)["id"] != globex.ID {
			t.Errorf("the tenants are %s", list.body)
		}
		if got := d.allPages(t, "/api/v2/tenants", "id", 1, func(int) {}, key); !slices.Equal(got, []string{id, globex.ID}) {
			t.Errorf("page by page: %q", got)
		}
		for query, want := range map[string]string{"q=ACME": id, "q=" + globex.ID: globex.ID, "q=acme&status=frozen": "", "status=closing": ""} {
			found := d.send(t, "GET /api/v2/tenants?"+query, nil, key).ok(http.StatusOK)
			if items := found.at("items").([]any); want == "" && len(items) > 0 || want != "" && (len(items) != 1 || items[0].(m)["id"] != want) {
				t.Errorf("%s finds %s, want %q", query, found.body, want)
			}
		}
		d.send(t, "GET /api/v2/tenants?status=asleep", nil, key).fails(http.StatusUnprocessableEntity, "validation_failed")
		d.send(t, "GET /api/v2/tenants?name=acme", nil, key).fails(http.StatusBadRequest, "invalid_query")

		set := func(status any) answer {
			t.Helper()
			return d.send(t, "PATCH /api/v2/tenants/"+id, m{"status": status}, key)
		}
		frozen := set("frozen").ok(http.StatusOK).is("status", "frozen").is("ended.sessions", 1.0)
		if frozen.header.Get("X-Revocation-Nodes") != "1" {
			t.Errorf("the headers are %v", frozen.header)
		}
		d.send(t, sessionPath, nil, as(owner)).fails(http.StatusUnauthorized, "unauthenticated")
		d.login(t, "ann@acme.example", password).fails(http.StatusForbidden, "tenant_frozen")
		d.send(t, "GET /api/v2/tenants/"+id, nil, key).ok(http.StatusOK).is("id", id).is("name", "Acme").is("status", "frozen")
		set("frozen").ok(http.StatusOK).is("ended.sessions", 0.0)
		set("active").ok(http.StatusOK).is("status", "active").is("ended.sessions", 0.0)
		d.send(t, sessionPath, nil, as(owner)).fails(http.StatusUnauthorized, "unauthenticated")
		owner = d.token(t, "ann@acme.example")
		for _, wrong := range []string{"Frozen", "none"} {
			set(wrong).invalid("/status", "invalid")
		}
		set("").invalid("/status", "required")
		for _, absent := range []string{"tnt_aaaaaaaaaaaaaaaaaaaaaaaaaa", "usr_x", "x"} {
			d.send(t, "GET /api/v2/tenants/"+absent, nil, key).fails(http.StatusNotFound, "not_found")
			for _, status := range []string{"frozen", "none", ""} {
				d.send(t, "PATCH /api/v2/tenants/"+absent, m{"status": status}, key).fails(http.StatusNotFound, "not_found")
			}
		}
		for _, route := range []string{"POST /api/v2/tenants", "GET /api/v2/tenants", "GET /api/v2/tenants/" + id, "PATCH /api/v2/tenants/" + id} {
			d.send(t, route, nil, as(owner)).fails(http.StatusForbidden, "forbidden")
			d.send(t, route, nil).fails(http.StatusUnauthorized, "unauthenticated")
			d.send(t, route, nil, key, as(owner)).fails(http.StatusUnauthorized, "unauthenticated")
		}
	})
}

// A node takes all turns of sweeps that are due when it starts, such as that which destroys tenants.
func TestDestroyedWhenANodeStarts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "doorward.db")
	options := []doorwardtest.Option{
		doorwardtest.Database("sqlite:" + file),
		func(c *node.Config) { c.TenantHold = 0 },
	}
	d := start(t, options...)
	acme := d.Tenant("Acme")
	d.closeTenant(t, acme.Owner, acme.ID, "Acme")
	makeTurnsDue(t, file)
	again := start(t, options...)
	waittest.Until(t, "the end of the tenant", func() bool {
		_, err := again.Node.DB.Read().Tenant(t.Context(), acme.ID)
		return errors.Is(err, store.ErrNone)
	})
}

// makeTurnsDue makes every sweep in the file due now.
func makeTurnsDue(t *testing.T, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(30000)") // the server writes, too
	if err == nil {
		_, err = db.ExecContext(t.Context(), `DELETE FROM turns`)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
