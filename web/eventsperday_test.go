package web_test

import (
	"fmt"
	"image/color"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
)

// exhaustedTenant is a tenant that has used up its quota of events a day, with the ids of the
// objects that it made before.
type exhaustedTenant struct {
	*server
	t     *testing.T
	acme  *doorwardtest.Tenant
	owner opt

	// By what happens to them; "waits" is suspended, and waits to be resumed.
	people map[string]*doorwardtest.Person

	key, hook, delivery, role, invitation string
	joinCode                              string // of another invitation
}

// useUpEvents makes a tenant with one object of each kind, then sets its quota to 0.
func (s *server) useUpEvents(t *testing.T) *exhaustedTenant {
	t.Helper()
	f := &exhaustedTenant{server: s, t: t, acme: s.Tenant("Acme"), people: map[string]*doorwardtest.Person{}}
	f.owner = as(f.acme.Owner.Token())
	for name, role := range map[string]string{
		"high": "ADMIN", "low": "USER", "waits": "USER", "suspended": "USER", "removed": "USER", "leaves": "USER", "erases": "USER", "factor": "USER", "forgets": "USER",
	} {
		f.people[name] = f.acme.Join(name+"@acme.example", role)
	}
	f.key, _ = s.newKey(t, f.acme.Owner, m{})
	f.hook = f.ask("POST "+hooksPath, m{"url": "http://localhost:1/", "events": []string{"*"}}, 201).text("webhook.id")
	f.setLogo(t, f.acme.Owner.Token(), "image/png", dot)
	f.ask("PUT "+policyPath, m{"text": `@id("a") forbid(principal, action == Action::"report.read", resource);`}, 200, f.owner, with("If-Match", "*"))
	f.delivery = f.deliveriesOf(t, f.hook, "", f.owner)[0]["id"].(string)
	f.role = f.ask("POST "+rolesPath, m{"name": "DESK", "permissions": []string{"user.read"}}, 201).text("id")
	f.invitation = f.ask(invitePath, m{"email": "sent@acme.example", "role": "USER"}, 201).text("id")
	f.joinCode = s.invite(t, f.acme.Owner, "joins@acme.example", "USER")
	f.patch("waits", m{"status": "suspended"}, 200)
	s.Advance(2 * time.Minute) // so that the invitation can be sent again
	s.setQuotas(t, f.acme.ID, m{"eventsPerDay": 0})
	return f
}

// anonymous is an option that adds nothing to a request: it has no credentials.
func anonymous(*http.Request) {}

// ask requires the status. Without options the caller is the OWNER.
func (f *exhaustedTenant) ask(route string, body any, status int, opts ...opt) answer {
	f.t.Helper()
	if len(opts) == 0 {
		opts = []opt{f.owner}
	}
	return f.send(f.t, route, body, opts...).ok(status)
}

func (f *exhaustedTenant) patch(name string, body m, status int) answer {
	f.t.Helper()
	return f.ask("PATCH /api/v2/users/"+f.people[name].ID, body, status)
}

// checkChangesRefused requires that changes are refused, that each answer names the quota, and
// that no event is recorded.
func (f *exhaustedTenant) checkChangesRefused() {
	low, key, hook := "PATCH /api/v2/users/"+f.people["low"].ID, keysPath+"/"+f.key, hooksPath+"/"+f.hook
	before := len(f.trail(f.t, f.acme.Owner, ""))
	for _, c := range []struct {
		route string
		body  any
	}{
		{invitePath, m{"email": "new@acme.example", "role": "USER"}},
		{"POST /api/v2/invitations/" + f.invitation + "/resend", nil},
		{logoPath, string(painted(2, 1, color.Black))},
		{low, m{"role": "ADMIN"}},
		{low, m{"name": "Low"}},
		{"PATCH /api/v2/users/" + f.people["waits"].ID, m{"status": "active"}},
		{"PATCH /api/v2/tenant", m{"name": "Acme II"}},
		{"POST " + keysPath, m{"name": "Reports", "permissions": []string{"report.read"}}},
		{"PATCH " + key, m{"name": "Other"}},
		{"POST " + hooksPath, m{"url": "http://localhost:1/other", "events": []string{"*"}}},
		{"PATCH " + hook, m{"events": []string{"user.*"}}},
		{"POST " + hooksPath + "/" + f.hook + "/replay", m{}},
		{"POST " + hooksPath + "/deliveries/" + f.delivery + "/retry", nil},
		{"POST " + rolesPath, m{"name": "SHOP", "permissions": []string{"user.read"}}},
		{"PATCH " + rolesPath + "/" + f.role, m{"about": "answers"}},
		{"PUT " + policyPath, m{"text": `@id("a") forbid(principal, action == Action::"audit.read", resource);`}},
		{"DELETE /api/v2/tenant/logo", nil},
		{"POST /api/v2/auth/complete-registration", m{"token": f.joinCode, "password": password, "confirmPassword": password}},
	} {
		mediaType := "application/json"
		if c.route == logoPath {
			mediaType = "image/png"
		}
		a := f.send(f.t, c.route, c.body, f.owner, typed(mediaType), with("If-Match", "*")).fails(http.StatusConflict, "quota_exceeded").is("quota", "eventsPerDay")
		next := f.clock.now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Format(time.RFC3339)
		a.is("detail", "The operator limits this tenant to 0 events of changes a day (eventsPerDay). The next day begins at "+next+".")
	}
	f.ask(low, m{"name": ""}, 200) // changes nothing
	if after := len(f.trail(f.t, f.acme.Owner, "")); after != before {
		f.t.Errorf("refused changes are recorded in %d events", after-before)
	}
}

// checkAccessEnds requires that access can be reduced and ended, secrets rotated and a webhook
// tested.
func (f *exhaustedTenant) checkAccessEnds() {
	id := func(name string) string { return "/api/v2/users/" + f.people[name].ID }
	f.patch("high", m{"role": "USER"}, 200)
	f.patch("suspended", m{"status": "suspended"}, 200)
	f.ask("DELETE "+id("low")+"/sessions", nil, 200)
	f.ask("DELETE "+id("removed"), nil, 200)
	f.ask("DELETE /api/v2/invitations/"+f.invitation, nil, 204)
	f.ask("POST "+policyPath+"/versions/1/restore", nil, 200)
	f.ask("POST "+hooksPath+"/"+f.hook+"/test", nil, 200)
	f.ask("PATCH "+hooksPath+"/"+f.hook, m{"enabled": false}, 200)
	f.ask("POST "+hooksPath+"/"+f.hook+"/rotate-secret", m{}, 201)
	f.ask("DELETE "+hooksPath+"/"+f.hook, nil, 204)
	f.ask("POST "+keysPath+"/"+f.key+"/rotate", m{}, 201)
	f.ask("DELETE "+keysPath+"/"+f.key+"/previous", nil, 204)
	f.ask("PATCH "+keysPath+"/"+f.key, m{"status": "disabled"}, 200)
	f.ask("DELETE "+keysPath+"/"+f.key, nil, 204)
	f.ask("DELETE "+rolesPath+"/"+f.role, nil, 204)
}

// checkAccounts requires that people can sign in and out, change and reset passwords and
// factors, leave, and erase their accounts.
func (f *exhaustedTenant) checkAccounts() {
	low := f.people["low"]
	f.login(f.t, low.Email, "wrong "+password).fails(401, "invalid_credentials")
	other, token := f.token(f.t, low.Email), f.token(f.t, low.Email)
	f.ask("DELETE /api/v2/sessions", nil, 204, as(token))
	f.send(f.t, sessionPath, nil, as(other)).fails(401, "unauthenticated")
	f.ask(changePath, m{"currentPassword": password, "password": "five quiet green llamas", "confirmPassword": "five quiet green llamas"}, 204, as(token))
	f.ask("POST /api/v2/auth/logout", nil, 204, as(token))

	factor := f.people["factor"]
	f.enrolTOTP(f.t, factor.Token())
	f.login(f.t, factor.Email, password).fails(403, "mfa_required")
	f.ask("POST /api/v2/users/"+factor.ID+"/mfa/reset", nil, 202)
	f.ask(resetFactorsPath, m{"token": f.code(f.t, factor.Email), "password": password}, 204, anonymous)
	f.reset(f.t, f.forgot(f.t, f.people["forgets"].Email), "six quiet green llamas").ok(204)

	f.ask("DELETE /api/v2/auth/memberships/"+f.acme.ID, nil, 204, as(f.people["leaves"].Token()))
	f.ask(erasePath, m{"confirm": f.people["erases"].Email}, 204, as(f.token(f.t, f.people["erases"].Email)))
}

// checkOperator requires that the operator is never refused, and that a service is refused
// until the quota is raised.
func (f *exhaustedTenant) checkOperator() {
	key, path := bearer(f.operatorKey(f.t)), "PATCH /api/v2/tenants/"+f.acme.ID
	invitation := m{"email": "new@acme.example", "role": "USER"}
	service := bearer(f.serviceKey(f.t, []doorward.Action{doorward.UserInvite}))
	f.send(f.t, invitePath, invitation, service, inTenant(f.acme.ID)).fails(http.StatusConflict, "quota_exceeded")
	f.suspend(f.t, f.acme.ID, f.people["low"].ID)
	f.ask(path, m{"status": "frozen"}, 200, key)
	f.ask(path, m{"status": "active"}, 200, key)
	f.ask(path, m{"quotas": m{"eventsPerDay": -2}}, 422, key)
	f.ask(path, m{"quotas": m{"eventsPerDay": 200}}, 200, key).is("quotas.eventsPerDay", 200.0)
	f.send(f.t, invitePath, invitation, service, inTenant(f.acme.ID)).ok(201)
}

// Once its quota of events a day is used up, a tenant is refused changes. Signing in, ending
// access and protecting accounts still work.
func TestEventsPerDay(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.useUpEvents(t)
		f.checkChangesRefused()
		f.checkAccessEnds()
		f.checkAccounts()
		f.checkOperator()
		d.setQuotas(t, f.acme.ID, m{"eventsPerDay": 0})
		d.closeTenant(t, f.acme.Owner, f.acme.ID, "Acme")
		f.ask("POST /api/v2/tenant/restore", nil, 200, as(d.token(t, f.acme.Owner.Email)))
	}, masterKey(t))
}

// nextDay moves the clock to a minute after the next midnight UTC, so that the day lasts as
// long as the test. It returns a new session of the person.
func (s *server) nextDay(t *testing.T, p *doorwardtest.Person) opt {
	t.Helper()
	now := s.clock.now()
	s.Advance(now.UTC().Truncate(24 * time.Hour).Add(24*time.Hour + time.Minute).Sub(now))
	return as(s.token(t, p.Email))
}

// Changes made before the quota was set count. Refused and repeated requests don't. The next day
// begins at 0. A bulk request invites as many people as the quota allows.
func TestEventsOfADay(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := d.nextDay(t, acme.Owner)
		rename := func(name string) answer {
			return d.send(t, "PATCH /api/v2/tenant", m{"name": name}, owner)
		}
		rename("One").ok(200)
		d.setQuotas(t, acme.ID, m{"eventsPerDay": 3})
		for range 3 {
			d.send(t, "POST "+rolesPath, m{"name": "DESK", "permissions": []string{"user.read"}}, owner, with("Idempotency-Key", "once")).ok(201)
			d.send(t, invitePath, m{"email": "x@acme.example", "role": "NONE"}, owner).ok(422)
		}
		rename("Two").ok(200)
		rename("Three").fails(http.StatusConflict, "quota_exceeded")
		d.send(t, "POST "+rolesPath, m{"name": "SHOP", "permissions": []string{"user.read"}}, owner, with("Idempotency-Key", "again")).fails(http.StatusConflict, "quota_exceeded")
		d.send(t, "DELETE /api/v2/auth/memberships/"+acme.ID, nil, owner).fails(http.StatusConflict, "last_owner")

		owner = d.nextDay(t, acme.Owner)
		d.send(t, "POST "+rolesPath, m{"name": "SHOP", "permissions": []string{"user.read"}}, owner, with("Idempotency-Key", "again")).ok(201)
		var people []m
		for n := range 4 {
			people = append(people, m{"email": fmt.Sprintf("p%d@acme.example", n), "role": "USER"})
		}
		var got []any
		for _, row := range d.send(t, bulkPath, m{"invitations": people}, owner).ok(200).at("items").([]any) {
			got = append(got, row.(map[string]any)["status"])
		}
		if diff := cmp.Diff([]any{201.0, 201.0, 409.0, 409.0}, got); diff != "" {
			t.Errorf("the statuses of the rows (-want +got):\n%s", diff)
		}
		rename("Four").fails(http.StatusConflict, "quota_exceeded")
	})
}
