package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
)

// stepUp proves the session again, by the password, and returns its new token.
func (s *server) stepUp(t *testing.T, token string) string {
	t.Helper()
	begun := s.send(t, "POST /api/v2/auth/step-up/begin", nil, as(token)).ok(http.StatusOK)
	return s.send(t, "POST /api/v2/auth/step-up/finish", m{"challenge": begun.text("challenge"), "password": password}, as(token)).ok(http.StatusOK).text("token")
}

// TestStepUp: from ten minutes after the login, sensitive actions are refused until the session
// is proved again; all others still work.
func TestStepUp(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		bob := acme.Join("bob@acme.example", "USER")
		keyID, _ := d.newKey(t, acme.Owner, m{"permissions": []string{"user.read"}, "perSecond": 10})
		d.send(t, "POST "+keysPath+"/"+keyID+"/rotate", m{}, as(acme.Owner.Token())).ok(201)
		role := d.send(t, "POST /api/v2/roles", m{"name": "CLERK", "permissions": []string{"user.read", "tenant.read"}}, as(acme.Owner.Token())).ok(201).text("id")
		owner, other := acme.Owner.Token(), d.token(t, acme.Owner.Email)
		hookID, _ := d.newHook(t, "http://localhost:9/", as(owner), nil)
		sensitive := []struct {
			route string
			body  m
		}{
			{"POST " + keysPath, m{"name": "sync", "permissions": []string{"user.read"}}},
			{"POST " + keysPath + "/" + keyID + "/rotate", m{}},
			{"POST " + keysPath + "/" + keyID + "/rotate", m{"grace": "one day"}}, // the proof is checked before the body, and before the key is looked up
			{"POST " + keysPath + "/key_none/rotate", m{}},
			{"POST /api/v2/roles", m{"nom": 1}},
			{"PATCH " + hooksPath + "/whk_none", m{"about": "another"}},
			{"PATCH " + keysPath + "/" + keyID, m{"permissions": []string{"user.read", "message.read"}}},
			{"PATCH " + keysPath + "/" + keyID, m{"expiresInDays": 365}},
			{"PATCH " + keysPath + "/" + keyID, m{"perSecond": 11}},
			{"POST /api/v2/roles", m{"name": "OTHER", "permissions": []string{"user.read"}}},
			{"PATCH /api/v2/roles/" + role, m{"name": "CLERKS"}},
			{"DELETE /api/v2/roles/" + role, nil},
			{"PUT /api/v2/policy", m{"text": "", "mode": "enforce"}},
			{"POST /api/v2/auth/factors/totp", m{}},
			{"POST /api/v2/auth/factors/totp", m{"name": strings.Repeat("x", 101)}}, // the proof is checked before the name
			{"POST /api/v2/auth/change-email", m{"email": "new@acme.example"}},
			{"POST /api/v2/auth/change-email", m{"email": "nowhere"}},
			{"POST " + hooksPath, m{"url": "http://localhost:9/", "events": []string{"*"}}},
			{"PATCH " + hooksPath + "/" + hookID, m{"about": "another"}},
			{"POST " + hooksPath + "/" + hookID + "/rotate-secret", m{}},
			{"DELETE " + hooksPath + "/" + hookID, nil},
			{"PATCH /api/v2/tenant", m{"settings": m{"stepUpMinutes": 60}}}, // would make all of these possible
		}
		ordinary := []struct {
			route string
			body  m
		}{
			{"GET " + keysPath, nil},
			{"PATCH " + keysPath + "/" + keyID, m{"name": "another name"}},
			{"PATCH " + keysPath + "/" + keyID, m{"perSecond": 9}},
			{"PATCH " + keysPath + "/" + keyID, m{"status": "disabled"}},
			{"DELETE " + keysPath + "/" + keyID + "/previous", nil},
			{"POST /api/v2/auth/invite", m{"email": "ann@acme.example", "role": "ADMIN"}}, // sensitive only for people with a factor
			{"PATCH /api/v2/users/" + bob.ID, m{"role": "ADMIN"}},
			{"PATCH /api/v2/tenant", m{"settings": m{"stepUpMinutes": 10}}},
			{"PATCH /api/v2/tenant", m{"settings": m{"stepUpMinutes": 5, "invitationDays": 3}}},
			{"DELETE /api/v2/sessions", nil},
		}
		d.Advance(9*time.Minute + 50*time.Second)
		d.send(t, "POST "+keysPath, m{"name": "in time", "permissions": []string{"user.read"}}, as(owner)).ok(201)
		d.Advance(11 * time.Second)
		for _, r := range sensitive {
			a := d.send(t, r.route, r.body, as(owner), with("If-Match", "*")).fails(http.StatusForbidden, "step_up_required")
			a.is("acr", "aal1").is("maxAge", 600.0)
			if got := a.at("methods"); !has(got, "password") {
				t.Errorf("%s: the methods are %v", r.route, got)
			}
			if h := a.header.Get("WWW-Authenticate"); !strings.Contains(h, `acr_values="aal1", max_age="600"`) {
				t.Errorf("%s: WWW-Authenticate is %s", r.route, h)
			}
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(owner)).ok(200) // the refusals leave the session valid
		fresh := d.stepUp(t, owner)
		d.send(t, "GET /api/v2/auth/session", nil, as(owner)).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "POST "+keysPath, m{"name": "sync", "permissions": []string{"user.read"}}, as(other)).fails(http.StatusForbidden, "step_up_required")
		d.send(t, "POST "+keysPath, m{"name": "sync", "permissions": []string{"user.read"}}, as(fresh)).ok(201)
		d.Advance(11 * time.Minute)
		for _, r := range ordinary {
			if a := d.send(t, r.route, r.body, as(fresh)); a.status >= 300 {
				t.Errorf("%s: %d %s", r.route, a.status, a.body)
			}
		}
	}, masterKey(t))
}

// TestLiftingADemandNeedsAProof: a caller with an old session of an OWNER without a factor can't
// lift the tenant's demand for one, and then close the tenant.
func TestLiftingADemandNeedsAProof(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := acme.Owner.Token()
		edit := func(settings m) answer {
			return d.send(t, "PATCH /api/v2/tenant", m{"settings": settings}, as(owner))
		}
		edit(m{"mfa": "required", "mfaRoles": []string{"OWNER", "ADMIN"}, "mfaGraceDays": 30}).ok(200)
		d.Advance(10*time.Minute + time.Second)
		edit(m{"mfa": "optional"}).fails(http.StatusForbidden, "step_up_required").is("acr", "aal1")
		edit(m{"mfaRoles": []string{"ADMIN"}}).fails(http.StatusForbidden, "step_up_required")
		edit(m{"mfaRoles": []string{}}).ok(200) // all roles
		edit(m{"mfaRoles": []string{"OWNER"}}).fails(http.StatusForbidden, "step_up_required")
		d.send(t, "DELETE /api/v2/tenant", m{"confirm": "Acme"}, as(owner)).fails(http.StatusForbidden, "step_up_required")
		owner = d.stepUp(t, owner)
		edit(m{"mfa": "optional"}).ok(200)
		d.Advance(11 * time.Minute)
		edit(m{"mfa": "required"}).ok(200)
	}, masterKey(t))
}

// TestCheckAsksForAProof: an access check requires a recent proof with maxAge, a second factor
// with aal=2, and a recent proof for actions that the model marks with stepUp.
func TestCheckAsksForAProof(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		operator := bearer(d.operatorKey(t))
		d.send(t, "PUT "+modelPath, m{"text": "actions:\n  invoice.read: {roles: [OWNER]}\n  invoice.pay: {roles: [OWNER, ADMIN], stepUp: true}\n"}, operator, with("If-Match", "*")).ok(200)
		_, key := d.newKey(t, acme.Owner, m{"role": "ADMIN", "permissions": []string{"user.read", "invoice.pay"}})
		check := func(query string, who opt, want string) {
			t.Helper()
			a := d.send(t, "GET /api/v2/access/check"+query, nil, who)
			got := a.text("code")
			if a.status == 200 {
				got = "200 " + a.header.Get("X-Auth-Aal")
			}
			if got != want {
				t.Errorf("a check%s is answered %s, want %s", query, got, want)
			}
		}
		owner := as(acme.Owner.Token())
		d.send(t, "GET /api/v2/access/check?aal=2", nil, owner).fails(http.StatusForbidden, "step_up_required").members("", "type", "title", "status", "detail", "instance", "code", "requestId", "acr", "methods").is("acr", "aal2")
		check("?action=invoice.pay", owner, "200 1")
		check("?maxAge=600", owner, "200 1")
		check("?action=invoice.read&maxAge=600&aal=1", owner, "200 1")
		check("?action=invoice.read&aal=2", owner, "step_up_required")
		d.Advance(10*time.Minute + time.Second)
		check("?action=invoice.pay", owner, "step_up_required")
		check("?action=invoice.read", owner, "200 1")
		check("?action=invoice.read&maxAge=600", owner, "step_up_required")
		check("?action=invoice.read&maxAge=900", owner, "200 1")
		check("?maxAge=0", owner, "step_up_required")
		check("?action=invoice.pay&maxAge=3600", owner, "step_up_required")
		for _, bad := range []string{"?maxAge=", "?maxAge=-1", "?maxAge=1.5", "?maxAge=1&maxAge=2", "?aal=3", "?aal=", "?aal=1&aal=2", "?maxage=600", "?action=invoice.read&AAL=2", "?maxAge=99999999999"} {
			check(bad, owner, "invalid_query")
		}
		check("?action=invoice.pay&maxAge=0&aal=2", bearer(key), "200 ") // keys are never asked
		introspect := func(want bool) {
			t.Helper()
			d.send(t, "POST /api/v2/access/introspect", m{"credential": acme.Owner.Token(), "action": "invoice.pay"}, operator).ok(200).is("allowed", want)
		}
		evaluate := func() answer {
			t.Helper()
			return d.send(t, evaluationPath, question(entity("session", acme.Owner.Token()), "invoice.pay", entity("tenant", acme.ID)), operator).ok(200)
		}
		introspect(false)
		evaluate().is("decision", false).is("context.reason", "The role allows this, but the person proved who they are too long ago, or not with a second factor that they have.").
			members("context.stepUp", "acr", "maxAge", "methods").is("context.stepUp.acr", "aal1").is("context.stepUp.maxAge", 600.0)
		acme.Owner.Login()
		introspect(true)
		evaluate().is("decision", true)
		check("?action=invoice.pay", as(acme.Owner.Token()), "200 1")
	})
}

// TestStepUpFaults: a wrong proof is 422, never 401, since the session is valid.
func TestStepUpFaults(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		bob := acme.Join("bob@acme.example", "USER")
		begin := func(p *doorwardtest.Person) string {
			return d.send(t, "POST /api/v2/auth/step-up/begin", nil, as(p.Token())).ok(200).text("challenge")
		}
		finish := func(p *doorwardtest.Person, body m) answer {
			return d.send(t, "POST /api/v2/auth/step-up/finish", body, as(p.Token()))
		}
		challenge := begin(acme.Owner)
		finish(acme.Owner, m{"challenge": challenge, "password": "two green trees"}).invalid("/password", "wrong")
		finish(acme.Owner, m{"challenge": challenge, "code": "123456"}).invalid("/code", "wrong")
		finish(bob, m{"challenge": challenge, "password": password}).fails(http.StatusGone, "challenge_over")
		finish(acme.Owner, m{"challenge": challenge, "password": password}).ok(200)
		acme.Owner.Login()
		finish(acme.Owner, m{"challenge": challenge, "password": password}).fails(http.StatusGone, "challenge_over")
		late := begin(acme.Owner)
		d.Advance(5 * time.Minute)
		finish(acme.Owner, m{"challenge": late, "password": password}).fails(http.StatusGone, "challenge_over")
	})
}
