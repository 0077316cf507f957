package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/doorwardtest"
)

const loginPath = "POST /api/v2/auth/login"

var (
	sessionCookie = regexp.MustCompile(`^JSESSIONID=([A-Za-z0-9_-]{43}); Path=/; HttpOnly; SameSite=Lax$`)
	deviceCookie  = regexp.MustCompile(`^doorward_device=[A-Za-z0-9_-]{43}; Path=/; HttpOnly; SameSite=Lax; Max-Age=34560000$`)
)

func TestLogin(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "ADMIN")
		a := d.send(t, loginPath, m{"email": "Ann@ACME.example", "password": password}).ok(http.StatusOK)
		a.members("", "token", "expiresAt", "idleExpiresAt", "user")
		a.members("user", "id", "email", "name", "role", "status", "tenantId", "tenantName", "permissions", "createdAt", "lastLoginAt")
		a.is("user.id", ann.ID).is("user.email", ann.Email).is("user.role", "ADMIN").is("user.status", "active").is("user.tenantId", acme.ID).is("user.tenantName", "Acme")
		permissions, _ := a.at("user.permissions").([]any)
		want := []any{
			"apikey.manage", "audit.read", "message.read", "message.send", "policy.read", "report.read", "role.manage", "settings.manage",
			"tenant.read", "user.invite", "user.manage", "user.read", "webhook.manage",
		}
		if !slices.Equal(permissions, want) {
			t.Errorf("permissions are %v, want %v", permissions, want)
		}
		match := sessionCookie.FindStringSubmatch(cookieNamed(a, "JSESSIONID"))
		if match == nil || match[1] != a.text("token") || !deviceCookie.MatchString(cookieNamed(a, "doorward_device")) || len(a.cookies()) != 2 {
			t.Errorf("the cookies are %q, with the token %s", a.cookies(), a.text("token"))
		}
		if got := a.instant("expiresAt").Sub(a.instant("user.lastLoginAt")); got != 24*time.Hour {
			t.Errorf("the session lasts %v, want 24 h", got)
		}
		if got := a.instant("idleExpiresAt").Sub(a.instant("user.lastLoginAt")); got != time.Hour {
			t.Errorf("the session may idle for %v, want 1 h", got)
		}
		again := d.login(t, ann.Email, password, as(a.text("token"))).ok(http.StatusOK)
		if again.text("token") == a.text("token") {
			t.Error("a second login has the same identifier")
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(a.text("token"))).ok(http.StatusOK)
	})
}

// A known browser keeps its device cookie and gets no new one.
func TestLoginFromAKnownDevice(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		device, _, _ := strings.Cut(cookieNamed(d.login(t, ann.Email, password), "doorward_device"), ";")
		if a := d.login(t, ann.Email, password, cookie(device)); len(a.cookies()) != 1 {
			t.Errorf("a known device gets %q", a.cookies())
		}
		for _, other := range []answer{d.login(t, bob.Email, password, cookie(device)), d.login(t, ann.Email, password, cookie("doorward_device="+forged))} {
			if cookieNamed(other, "doorward_device") == "" {
				t.Errorf("an unknown device gets %q", other.cookies())
			}
		}
		d.Advance(400 * 24 * time.Hour)
		if a := d.login(t, ann.Email, password, cookie(device)); cookieNamed(a, "doorward_device") == "" {
			t.Error("a device is still known after 400 days")
		}
	})
}

// A login without a tenantId signs in to the tenant used last. If that isn't possible, it signs in
// to the tenant of the oldest active membership.
func TestLoginChoosesTheTenant(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, initech := d.Tenant("Acme"), d.Tenant("Globex"), d.Tenant("Initech")
		code := d.invite(t, acme.Owner, "ann@acme.example", "USER")
		ann := d.complete(t, code, password).ok(http.StatusOK).text("user.id")
		for _, other := range []string{d.invite(t, globex.Owner, "ann@acme.example", "USER"), d.invite(t, initech.Owner, "ann@acme.example", "USER")} {
			d.accept(t, other, m{"password": password}).ok(http.StatusOK)
		}
		login := func(tenantID string) answer {
			t.Helper()
			body := m{"email": "ann@acme.example", "password": password}
			if tenantID != "" {
				body["tenantId"] = tenantID
			}
			return d.send(t, loginPath, body)
		}
		login("").ok(http.StatusOK).is("user.tenantId", acme.ID) // none was used yet: the oldest
		login(initech.ID).ok(http.StatusOK).is("user.tenantId", initech.ID)
		token := login("").ok(http.StatusOK).is("user.tenantId", initech.ID).text("token")
		d.send(t, "POST /api/v2/auth/switch-tenant", m{"tenantId": globex.ID}, as(token)).ok(http.StatusOK)
		login("").ok(http.StatusOK).is("user.tenantId", globex.ID) // a switch is a use

		d.suspend(t, globex.ID, ann)
		login("").ok(http.StatusOK).is("user.tenantId", acme.ID)
		login(globex.ID).fails(http.StatusForbidden, "membership_suspended")
		d.freeze(t, acme.ID)
		login("").ok(http.StatusOK).is("user.tenantId", initech.ID)
		login(acme.ID).fails(http.StatusForbidden, "tenant_frozen")
		for _, unknown := range []string{"tnt_x", forged, d.Tenant("Umbrella").ID, "'; DROP TABLE users; --", strings.Repeat("x", 5000)} {
			login(unknown).fails(http.StatusUnauthorized, "invalid_credentials")
		}
	})
}

// Only a correct password reveals why a person can't sign in.
func TestLoginWithoutAccess(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := acme.Join("ann@acme.example", "USER")
		refused := func(code string) {
			t.Helper()
			d.login(t, ann.Email, password).fails(http.StatusForbidden, code)
			d.login(t, ann.Email, "wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
			d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.setTenantStatus(t, acme, "closing")
		refused("tenant_closing")
		d.setTenantStatus(t, acme, "frozen")
		refused("tenant_frozen")
		d.setTenantStatus(t, acme, "active")
		d.suspend(t, acme.ID, ann.ID)
		refused("membership_suspended")

		bob := globex.Join("bob@globex.example", "USER") // and leaves: no membership left
		d.send(t, "DELETE /api/v2/auth/memberships/"+globex.ID, nil, as(bob.Token())).ok(http.StatusNoContent)
		former := d.login(t, bob.Email, password).fails(http.StatusUnauthorized, "invalid_credentials")
		if unknown := d.login(t, "nobody@globex.example", password); unknown.withoutIDs() != former.withoutIDs() {
			t.Errorf("without an account:\n%s\nwithout a membership:\n%s", unknown.body, former.body)
		}
	})
}

// Every refusal with invalid_credentials has the same status, headers, body and length.
func TestLoginRefusalsRevealNothing(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		want := d.login(t, acme.Owner.Email, "wrong password").fails(http.StatusUnauthorized, "invalid_credentials")
		causes := map[string]m{
			"no account": {"email": "nobody@acme.example", "password": password}, "no address": {"email": "nobody", "password": password},
			"an over-long address":  {"email": strings.Repeat("a", 30000) + "@acme.example", "password": password},
			"an over-long password": {"email": acme.Owner.Email, "password": strings.Repeat("a", 60000)},
			"the password and more": {"email": acme.Owner.Email, "password": password + strings.Repeat(" ", 1024)},
			"another letter case":   {"email": acme.Owner.Email, "password": strings.ToUpper(password)},
			"a blank after":         {"email": acme.Owner.Email, "password": password + " "},
			"a blank before":        {"email": " " + acme.Owner.Email, "password": password},
			"no such tenant":        {"email": acme.Owner.Email, "password": password, "tenantId": "tnt_x"},
			"a display name":        {"email": "O <" + acme.Owner.Email + ">", "password": password},
			"SQL":                   {"email": "' OR 1=1 --", "password": "' OR 1=1 --"},
			"one character":         {"email": acme.Owner.Email, "password": "x"},
		}
		for cause, body := range causes {
			got := d.send(t, loginPath, body).fails(http.StatusUnauthorized, "invalid_credentials")
			if got.withoutIDs() != want.withoutIDs() || len(got.body) != len(want.body) {
				t.Errorf("%s is answered %s\na wrong password %s", cause, got.body, want.body)
			}
			for _, a := range []answer{got, want} {
				a.header.Del("Date")
				a.header.Set("X-Request-Id", requestIDs.ReplaceAllString(a.header.Get("X-Request-Id"), "ID"))
			}
			if diff := cmp.Diff(want.header, got.header); diff != "" {
				t.Errorf("%s has other headers:\n%s", cause, diff)
			}
		}
	})
}

// Only the password decides a login; other credentials in the request are ignored.
func TestLoginWithOtherCredentials(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		for _, more := range [][]opt{
			{as(acme.Owner.Token())},
			{as(forged)},
			{as(ann.Token()), as(acme.Owner.Token())},
			{bearer("nonsense")},
			{bearer(d.operatorKey(t))},
			{cookie("doorward_device=nonsense")},
			{cookie("JSESSIONID=0123456789ABCDEF.node1")},
		} {
			d.login(t, ann.Email, password, more...).ok(http.StatusOK).is("user.id", ann.ID)
			d.login(t, ann.Email, "wrong password", more...).fails(http.StatusUnauthorized, "invalid_credentials")
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(acme.Owner.Token())).ok(http.StatusOK)
	})
}

// The token works only in the cookie and as a bearer credential.
func TestTokenInOtherPlaces(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		token := d.Tenant("Acme").Owner.Token()
		for _, path := range []string{"?JSESSIONID=" + token, ";jsessionid=" + token, "?token=" + token, "/" + token} {
			if a := d.send(t, "GET /api/v2/auth/session"+path, nil); a.status != http.StatusUnauthorized && a.status != http.StatusNotFound {
				t.Errorf("%s: %d", path, a.status)
			}
		}
		for _, header := range []opt{with("Authorization", token), with("Authorization", "Basic "+token), with("Proxy-Authorization", "Bearer "+token), with("X-Auth-Token", token), with("JSESSIONID", token), cookie("jsessionid=" + token), cookie("session=" + token), cookie("$JSESSIONID=" + token)} {
			d.send(t, "GET /api/v2/auth/session", nil, header).fails(http.StatusUnauthorized, "unauthenticated")
		}
	})
}

func TestLogout(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		first, second, third := d.token(t, ann.Email), d.token(t, ann.Email), d.token(t, ann.Email)
		logout := func(opts ...opt) {
			t.Helper()
			a := d.send(t, "POST /api/v2/auth/logout", nil, opts...).ok(http.StatusNoContent)
			if want := []string{"JSESSIONID=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"}; !slices.Equal(a.cookies(), want) {
				t.Errorf("cookies %q, want %q", a.cookies(), want)
			}
		}
		logout()
		logout(as(first))
		d.send(t, "GET /api/v2/auth/session", nil, as(first)).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "GET /api/v2/auth/session", nil, as(second)).ok(http.StatusOK)
		logout(as(first))
		logout(as(forged))
		logout(cookie("JSESSIONID=nonsense"), bearer("nonsense"))
		logout(as(second), as(forged), as(third), as(second), cookie("JSESSIONID=nonsense"))
		for _, token := range []string{second, third} {
			d.send(t, "GET /api/v2/auth/session", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).ok(http.StatusOK)
		d.send(t, "POST /api/v2/auth/logout", nil, as(ann.Token()), with("Origin", "https://evil.example")).fails(http.StatusForbidden, "cross_origin")
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).ok(http.StatusOK)
		d.Advance(2 * time.Hour)
		logout(as(ann.Token())) // idled out
	})
}

// Signing out redirects only to allowed addresses.
func TestLogoutReturns(t *testing.T) {
	d := start(t, doorwardtest.ReturnTo("https://app.example/inbox"))
	ann := d.Tenant("Acme").Owner
	for address, to := range map[string]string{
		"https://app.example/inbox/bye": "https://app.example/inbox/bye", d.base + "/docs": "/docs", "/docs": "/docs",
		"https://app.example/": "", "https://app.example.evil/inbox": "", "//evil.example": "", "https:evil.example": "", "": "",
	} {
		status := http.StatusNoContent
		if to != "" {
			status = http.StatusSeeOther
		}
		token := d.token(t, ann.Email)
		a := d.send(t, "POST /api/v2/auth/logout?return="+url.QueryEscape(address), nil, as(token)).ok(status)
		if got := a.header.Get("Location"); got != to || len(a.cookies()) != 1 {
			t.Errorf("return=%s leads to %q, with the cookies %q", address, got, a.cookies())
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
	}
	a := d.send(t, "POST /api/v2/auth/logout?return=%2Fdocs", nil, with("Origin", "https://evil.example")).fails(http.StatusForbidden, "cross_origin")
	if got := a.header.Get("Location"); got != "" {
		t.Errorf("a page of another origin is redirected to %s", got)
	}
}

func TestSession(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		login := d.login(t, acme.Owner.Email, password, with("User-Agent", "test/1 (ä)")).ok(http.StatusOK)
		a := d.send(t, "GET /api/v2/auth/session", nil, as(login.text("token"))).ok(http.StatusOK)
		a.members("", "session", "user").members("session", "id", "current", "tenantId", "createdAt", "lastSeenAt", "expiresAt", "idleExpiresAt", "ip", "userAgent", "aal", "amr", "authAt")
		a.is("session.aal", 1.0).is("session.authAt", a.text("session.createdAt"))
		a.is("session.current", true).is("session.tenantId", acme.ID).is("session.userAgent", "test/1 (ä)").is("session.ip", "127.0.0.1")
		if diff := cmp.Diff(login.at("user"), a.at("user")); diff != "" {
			t.Errorf("the user differs from the login's:\n%s", diff)
		}
		if !strings.HasPrefix(a.text("session.id"), "ses_") || a.text("session.expiresAt") != login.text("expiresAt") {
			t.Errorf("the session is %v, the login's was %s", a.at("session"), login.body)
		}
		if strings.Contains(string(a.body), login.text("token")) {
			t.Error("the token is shown again")
		}
		for _, path := range []string{"GET /api/v2/auth/session", "GET /api/v2/auth/memberships"} {
			d.send(t, path, nil).fails(http.StatusUnauthorized, "unauthenticated")
		}
	})
}

// A session expires an hour after its last use, to the second. It also expires a day after its
// login, regardless of use and of tenant switches.
func TestSessionEnds(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		check := func(token string) answer { return d.send(t, "GET /api/v2/auth/session", nil, as(token)) }
		unused, used := d.token(t, acme.Owner.Email), d.token(t, acme.Owner.Email)
		d.Advance(30 * time.Minute)
		a := check(used).ok(http.StatusOK)
		if got := a.instant("session.idleExpiresAt").Sub(a.instant("session.lastSeenAt")); got != time.Hour {
			t.Errorf("idleExpiresAt is %v after the last use", got)
		}
		d.Advance(30*time.Minute - time.Second)
		check(unused).ok(http.StatusOK)
		check(used).ok(http.StatusOK)
		d.Advance(time.Hour - time.Second)
		check(used).ok(http.StatusOK)
		check(unused).ok(http.StatusOK)
		d.Advance(time.Hour)
		check(unused).fails(http.StatusUnauthorized, "unauthenticated")
		check(used).fails(http.StatusUnauthorized, "unauthenticated")

		globex := d.Tenant("Globex")
		d.addMember(t, globex, acme.Owner, "USER")
		token := d.token(t, acme.Owner.Email)
		end := check(token).ok(http.StatusOK).instant("session.expiresAt")
		for i := range 47 {
			d.Advance(30 * time.Minute)
			to := []string{globex.ID, globex.ID, acme.ID}[i%3]
			moved := d.send(t, switchPath, m{"tenantId": to}, as(token)).ok(http.StatusOK)
			if got := moved.instant("expiresAt"); !got.Equal(end) {
				t.Fatalf("a session that is to end at %v ends at %v after a switch", end, got)
			}
			token = moved.text("token")
			a = check(token).ok(http.StatusOK)
		}
		if a.text("session.idleExpiresAt") != a.text("session.expiresAt") {
			t.Errorf("half an hour before its end: %v", a.at("session"))
		}
		d.Advance(30*time.Minute - time.Second)
		check(token).ok(http.StatusOK)
		d.Advance(time.Second)
		check(token).fails(http.StatusUnauthorized, "unauthenticated")
	})
}

// The eleventh session of a user ends the oldest before the login is answered, even
// if the sessions are in several tenants.
func TestTenSessions(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := acme.Join("ann@acme.example", "USER") // has one session
		d.addMember(t, globex, ann, "USER")
		tokens := []string{ann.Token()}
		for range 9 {
			tokens = append(tokens, d.token(t, ann.Email))
		}
		alive := func() (n int) {
			for _, token := range tokens {
				if d.send(t, "GET /api/v2/auth/session", nil, as(token)).status == http.StatusOK {
					n++
				}
			}
			return n
		}
		if n := alive(); n != 10 {
			t.Fatalf("%d sessions of 10 are alive", n)
		}
		// The oldest session switches its tenant: there are still ten, and no other ends.
		moved := d.send(t, "POST /api/v2/auth/switch-tenant", m{"tenantId": globex.ID}, as(tokens[0])).ok(http.StatusOK).text("token")
		tokens[0] = moved
		if n := alive(); n != 10 {
			t.Errorf("%d sessions of 10 are alive after a switch", n)
		}
		// The switched session is still the oldest, by its login. The next logins are to the tenant
		// used last. Each tenant's trail has the sessions that ended in it.
		for i, want := range [][]string{{"session.end []", "session.open [1]"}, {"session.end [1]", "session.open []"}} {
			tokens = append(tokens, d.token(t, ann.Email))
			if n := alive(); n != 10 || d.send(t, "GET /api/v2/auth/session", nil, as(tokens[i])).status == http.StatusOK {
				t.Errorf("%d of %d sessions are alive, or the oldest one is: want 10 without it", n, 11+i)
			}
			got := []string{d.newestEvent(t, acme.Owner), d.newestEvent(t, globex.Owner)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the newest events of both tenants (-want +got):\n%s", diff)
			}
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(acme.Owner.Token())).ok(http.StatusOK) // somebody else
	})
}

// newestEvent returns the action of the newest event of a trail, and how many sessions it ended.
func (s *server) newestEvent(t *testing.T, by *doorwardtest.Person) string {
	t.Helper()
	newest, ended := s.trail(t, by, "?limit=1")[0], []any{}
	changes, _ := newest["changes"].([]any)
	for _, c := range changes {
		if c.(m)["field"] == "sessionsEnded" {
			ended = append(ended, c.(m)["to"])
		}
	}
	return fmt.Sprint(newest["action"], " ", ended)
}

// A cookie JSESSIONID without the format of a token is ignored: a Tomcat on the same host uses
// the same name.
func TestCookieCandidates(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		token, other := acme.Owner.Token(), acme.Join("ann@acme.example", "USER").Token()
		get := func(opts ...opt) answer { return d.send(t, "GET /api/v2/auth/session", nil, opts...) }
		junk := []string{
			"0123456789ABCDEF0123456789ABCDEF", "0123456789ABCDEF0123456789ABCDEF.node1", "", "x", token[:42], token + "A", token + ".node1", token + "=",
			token[:42] + "!", "%" + token[:42], token[:42] + lastWithUnusedBit(token), " ", "a b", "\t",
		}
		for _, value := range junk {
			get(cookie("JSESSIONID="+value), as(token)).ok(http.StatusOK)
			get(as(token), cookie("JSESSIONID="+value)).ok(http.StatusOK)
			get(cookie("JSESSIONID="+value)).fails(http.StatusUnauthorized, "unauthenticated")
		}
		get(as(token), as(token), as(token)).ok(http.StatusOK)
		get(as(token), with("Cookie", "JSESSIONID="+token)).ok(http.StatusOK)
		get(cookie("a=b"), as(token), cookie("c=d")).ok(http.StatusOK)
		get(cookie("JSESSIONIDX="+forged), as(token)).ok(http.StatusOK)
		get(as(token), as(other)).fails(http.StatusUnauthorized, "unauthenticated")
		get(as(token), as(forged)).fails(http.StatusUnauthorized, "unauthenticated")
		get(as(token), with("Cookie", "JSESSIONID="+other)).fails(http.StatusUnauthorized, "unauthenticated")
		get(cookie(`JSESSIONID="`+token+`"`)).fails(http.StatusUnauthorized, "unauthenticated")
		get(cookie(`JSESSIONID="`+other+`"`), as(token)).ok(http.StatusOK)
		get(as(forged)).fails(http.StatusUnauthorized, "unauthenticated")
		get(as(strings.ToLower(token))).fails(http.StatusUnauthorized, "unauthenticated")
	})
}

// lastWithUnusedBit returns the token's last character with an unused bit set: a lenient
// decoder reads the same token.
func lastWithUnusedBit(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, token[42])|1])
}

// Two credentials in one request are answered 401, even equal ones. An operator key alone is
// answered 403, unless the endpoint also serves the operator.
func TestOneCredentialAtATime(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		token, key := d.Tenant("Acme").Owner.Token(), d.operatorKey(t)
		for _, e := range d.operations(t, checkPath) {
			if e.isPublic() || e.Who != "OWNER" {
				continue
			}
			path := e.Request
			d.Advance(time.Minute) // unknown keys are limited
			d.send(t, sessionPath, nil, as(token)).ok(http.StatusOK)
			for _, second := range []string{key, "nonsense", "", token} {
				d.send(t, path, nil, as(token), bearer(second)).fails(http.StatusUnauthorized, "unauthenticated")
			}
			if !e.route.Guard.TakesOperatorKeys() {
				d.send(t, path, nil, bearer(key)).fails(http.StatusForbidden, "forbidden")
				d.send(t, path, nil, bearer(key), cookie("JSESSIONID=nonsense")).fails(http.StatusForbidden, "forbidden")
			}
			d.send(t, path, nil, bearer(key), bearer(key)).fails(http.StatusUnauthorized, "unauthenticated")
			d.send(t, path, nil, bearer(token), bearer(token)).fails(http.StatusUnauthorized, "unauthenticated")
			d.send(t, path, nil, bearer(token), with("Authorization", "Basic eDp4")).fails(http.StatusUnauthorized, "unauthenticated")
			d.send(t, path, nil, as(token), with("Authorization", "Bearer\t"+token)).fails(http.StatusUnauthorized, "unauthenticated")
			for _, invalid := range []string{"nonsense", "dwo_nonsense", "dwo_" + forged, strings.TrimPrefix(key, "dwo_"), strings.ToUpper(key), key + "x", forged, token + "=", token[:42], token + "A", token + ", Bearer " + token, "\"" + token + "\"", token[:42] + lastWithUnusedBit(token)} {
				d.send(t, path, nil, bearer(invalid)).fails(http.StatusUnauthorized, "unauthenticated")
			}
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(token), with("Authorization", "Basic eDp4")).ok(http.StatusOK)
		d.send(t, "GET /api/v2/auth/session", nil, with("Authorization", "bEARER "+key)).fails(http.StatusForbidden, "forbidden")
	})
}

// Any User-Agent is accepted, and stored as text of at most 256 bytes.
func TestAnyUserAgent(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		for _, agent := range []string{"", strings.Repeat("ä", 500), "\xff\xfe", "'; DROP TABLE sessions; --", "<script>", "\u202e"} {
			token := d.token(t, owner.Email, with("User-Agent", agent), with("X-Request-Id", "a.b"), with("X-Forwarded-For", "203.0.113.9"))
			a := d.send(t, "GET /api/v2/auth/session", nil, as(token)).ok(http.StatusOK).is("session.ip", "127.0.0.1")
			if got := a.text("session.userAgent"); len(got) > 256 || !strings.HasPrefix(agent, got) && got != "" {
				t.Errorf("user agent %q became %q", agent, got)
			}
		}
		token := d.token(t, owner.Email, with("User-Agent", "a\u009b2J\u202eb\tc d")) // what a terminal or a line would obey
		d.send(t, "GET /api/v2/auth/session", nil, as(token)).ok(http.StatusOK).is("session.userAgent", "a2Jbc d")
		if got := fmt.Sprint(d.send(t, "GET /api/v2/sessions", nil, as(owner.Token())).ok(http.StatusOK).at("items")); !strings.Contains(got, "DROP TABLE") {
			t.Errorf("sessions are %s", got)
		}
	})
}
