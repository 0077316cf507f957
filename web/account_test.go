package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
)

const (
	emailPath        = "POST /api/v2/auth/change-email"
	confirmEmailPath = "POST /api/v2/auth/change-email/confirm"
	undoPath         = "POST /api/v2/auth/undo-email"
)

func TestChangeEmail(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		token := ann.Token()
		const to = "lee@acme.example"
		d.send(t, emailPath, m{"email": "Lee@ACME.example"}, as(token)).ok(http.StatusAccepted)
		confirm, undo := d.code(t, to), d.code(t, ann.Email)
		d.send(t, undoPath, m{"token": confirm}).fails(http.StatusNotFound, "email_change_not_found")
		d.send(t, confirmEmailPath, m{"token": undo}, as(token)).fails(http.StatusNotFound, "email_change_not_found")
		text := d.Mails(to)[0].Text
		if !strings.Contains(text, ann.Email) || !strings.Contains(text, "sign in with this address") {
			t.Errorf("the mail doesn't name the account, or what confirming does:\n%s", text)
		}
		d.send(t, confirmEmailPath, m{"token": confirm}).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, confirmEmailPath, m{"token": confirm}, as(acme.Owner.Token())).fails(http.StatusForbidden, "wrong_account")
		d.Advance(20 * time.Minute) // the code lives for 30 minutes, a proof of identity for 10
		d.send(t, confirmEmailPath, m{"token": confirm}, as(token)).ok(http.StatusNoContent)
		d.send(t, confirmEmailPath, m{"token": confirm}, as(token)).fails(http.StatusGone, "email_change_over")
		if got := d.send(t, "GET /api/v2/auth/session", nil, as(token)).ok(http.StatusOK).text("user.email"); got != to {
			t.Errorf("the session is of %s", got)
		}
		d.login(t, ann.Email, password).fails(http.StatusUnauthorized, "invalid_credentials")
		d.login(t, to, password).ok(http.StatusOK)
		found := d.send(t, "GET /api/v2/users?q=lee@", nil, as(acme.Owner.Token())).ok(http.StatusOK)
		if !strings.Contains(string(found.body), to) {
			t.Errorf("the list of people lacks the new address: %s", found.body)
		}

		undo = d.code(t, ann.Email)
		if !strings.Contains(d.Mails(ann.Email)[0].Text, "/undo-email#token=") {
			t.Error("the old address has no link that undoes the change")
		}
		d.Advance(7*24*time.Hour - time.Second)
		token = d.token(t, to)
		d.send(t, undoPath, m{"token": undo}).ok(http.StatusNoContent)
		d.send(t, undoPath, m{"token": undo}).fails(http.StatusGone, "email_change_over")
		d.send(t, "GET /api/v2/auth/session", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
		d.login(t, to, password).fails(http.StatusUnauthorized, "invalid_credentials")
		const next = "three old paper boats"
		d.reset(t, d.code(t, ann.Email), next).ok(http.StatusNoContent)
		d.login(t, ann.Email, next).ok(http.StatusOK)
	})
}

// The answer is the same for a free address, one with an account and one's own. That an
// address is taken shows only when the change is confirmed.
func TestChangeEmailRevealsNothing(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		var first string
		for _, to := range []string{"free@acme.example", bob.Email, ann.Email} {
			d.deliver(t)
			a := d.send(t, emailPath, m{"email": to}, as(ann.Token())).ok(http.StatusAccepted)
			if got := a.withoutIDs(); first == "" {
				first = got
			} else if got != first {
				t.Errorf("%s: %s, for a free address %s", to, got, first)
			}
		}
		d.send(t, emailPath, m{"email": bob.Email}, as(ann.Token())).ok(http.StatusAccepted)
		d.send(t, confirmEmailPath, m{"token": d.code(t, bob.Email)}, as(ann.Token())).fails(http.StatusConflict, "account_exists")
		d.send(t, emailPath, m{"email": bob.Email}, as(ann.Token())).ok(http.StatusAccepted)
		d.send(t, emailPath, m{"email": bob.Email}, as(ann.Token())).fails(http.StatusTooManyRequests, "too_many_attempts")
		d.login(t, bob.Email, password).ok(http.StatusOK)
	})
}

// An account can request 10 changes of its address an hour, whatever the new addresses are.
func TestEmailChangesOfAnAccountAreLimited(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		token := d.Tenant("Acme").Join("ann@acme.example", "USER").Token()
		for n := range 10 {
			d.send(t, emailPath, m{"email": string(rune('a'+n)) + "@new.example"}, as(token)).ok(http.StatusAccepted)
		}
		d.send(t, emailPath, m{"email": "k@new.example"}, as(token)).fails(http.StatusTooManyRequests, "too_many_attempts")
	})
}

// Tenants that don't allow the new domain never stop a change: the person says whether these memberships
// may be suspended, and confirming judges again.
func TestChangeEmailOutOfTheDomains(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, ann := d.inTwoTenants(t, "USER", "ADMIN")
		domains := func(names ...string) {
			t.Helper()
			d.send(t, "PATCH /api/v2/tenant", m{"settings": m{"allowedEmailDomains": append([]string{}, names...)}}, as(acme.Owner.Login())).ok(http.StatusOK)
		}
		affects := func(a answer) {
			t.Helper()
			tenants, _ := a.fails(http.StatusConflict, "memberships_affected").at("tenants").([]any)
			if len(tenants) != 1 || tenants[0].(m)["tenantId"] != acme.ID || tenants[0].(m)["tenantName"] != "Acme" {
				t.Errorf("the answer names %v", tenants)
			}
		}
		domains("acme.example")
		const to = "ann@elsewhere.example"
		for _, address := range []string{to, "owner@elsewhere.example"} {
			affects(d.send(t, emailPath, m{"email": address}, as(ann.Token())))
		}
		domains()
		d.send(t, emailPath, m{"email": to}, as(ann.Token())).ok(http.StatusAccepted)
		code := d.code(t, to)
		domains("acme.example")
		affects(d.send(t, confirmEmailPath, m{"token": code}, as(ann.Token())))
		d.send(t, emailPath, m{"email": to, "suspend": true}, as(ann.Token())).ok(http.StatusAccepted)
		d.send(t, confirmEmailPath, m{"token": d.code(t, to)}, as(ann.Token())).ok(http.StatusNoContent)
		owner := as(acme.Owner.Login())
		d.send(t, "GET /api/v2/users/"+ann.ID, nil, owner).ok(http.StatusOK).is("status", "suspended").is("email", to)
		d.send(t, loginPath, m{"email": to, "password": password, "tenantId": acme.ID}).fails(http.StatusForbidden, "membership_suspended")
		d.send(t, loginPath, m{"email": to, "password": password, "tenantId": globex.ID}).ok(http.StatusOK)

		const away = "owner@elsewhere.example"
		d.send(t, emailPath, m{"email": away, "suspend": true}, owner).ok(http.StatusAccepted)
		d.send(t, confirmEmailPath, m{"token": d.code(t, away)}, owner).fails(http.StatusConflict, "last_owner")
		d.send(t, "GET /api/v2/auth/session", nil, owner).ok(http.StatusOK).is("user.email", acme.Owner.Email)
	})
}

// An undo that suspends the only OWNER of a tenant tells the operator.
func TestUndoLeavesATenantOwnerless(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := acme.Owner
		d.send(t, emailPath, m{"email": "owner@other.example"}, as(owner.Token())).ok(http.StatusAccepted)
		d.send(t, confirmEmailPath, m{"token": d.code(t, "owner@other.example")}, as(owner.Token())).ok(http.StatusNoContent)
		d.send(t, "PATCH /api/v2/tenant", m{"settings": m{"allowedEmailDomains": []string{"other.example"}}}, as(owner.Token())).ok(http.StatusOK)
		newMails := d.newMails(t, doorwardtest.OperatorAddress)
		d.send(t, undoPath, m{"token": d.code(t, owner.Email)}).ok(http.StatusNoContent)
		if mails := newMails(); len(mails) != 1 || !strings.Contains(mails[0].Text, acme.ID) || !strings.Contains(mails[0].Text, "user set-role") {
			t.Errorf("the operator got %d mails: %v", len(mails), mails)
		}
		d.reset(t, d.code(t, owner.Email), "three old paper boats").ok(http.StatusNoContent)
		d.login(t, owner.Email, "three old paper boats").fails(http.StatusForbidden, "membership_suspended")
	})
}

// A change can't be undone once another account has the old address.
func TestUndoWhenTheOldAddressIsTaken(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		d.send(t, emailPath, m{"email": "lee@acme.example"}, as(ann.Token())).ok(http.StatusAccepted)
		d.send(t, confirmEmailPath, m{"token": d.code(t, "lee@acme.example")}, as(ann.Token())).ok(http.StatusNoContent)
		undo := d.code(t, ann.Email)
		acme.Join(ann.Email, "USER")
		d.send(t, undoPath, m{"token": undo}).fails(http.StatusConflict, "account_exists")
		d.login(t, "lee@acme.example", password).ok(http.StatusOK)
	})
}

// The export needs a proof of identity that is recent for the strictest of the person's tenants. The pages
// lead to it and back.
func TestExportAccountNeedsAProof(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, zeta := d.Tenant("Acme"), d.Tenant("Zeta")
		ann := acme.Join("ann@acme.example", "USER")
		d.addMember(t, zeta, ann, "USER")
		token := d.token(t, ann.Email)
		const path, direct = "/api/v2/auth/account/export", `href="/api/v2/auth/account/export"`
		shows := func(page, text string) {
			t.Helper()
			if a := d.send(t, "GET "+page, nil, as(token)); a.status != http.StatusOK || !strings.Contains(string(a.body), text) {
				t.Errorf("%s: %d, without %s", page, a.status, text)
			}
		}
		d.Advance(6 * time.Minute)
		d.send(t, "GET "+path, nil, as(token)).ok(http.StatusOK)
		shows("/account?tab=data", direct)
		shows("/account/erase", direct)
		d.send(t, "PATCH /api/v2/tenant", m{"settings": m{"stepUpMinutes": 5}}, as(d.token(t, zeta.Owner.Email))).ok(http.StatusOK)
		d.send(t, "GET "+path, nil, as(token)).fails(http.StatusForbidden, "step_up_required").is("maxAge", 300.0)
		shows("/account?tab=data", `href="/step-up?return=/account%3Ftab%3Ddata"`)
		shows("/account/erase", `href="/step-up?return=/account/erase"`)
		token = d.stepUp(t, token)
		d.send(t, "GET "+path, nil, as(token)).ok(http.StatusOK)
		shows("/account?tab=data", direct)
	})
}

// The export has what is held about the person and nothing of others, and no secrets.
func TestExportAccount(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "ADMIN"), acme.Join("bob@acme.example", "USER")
		token := d.login(t, ann.Email, password, from("192.0.2.1")).ok(http.StatusOK).text("token")
		d.send(t, "POST /api/v2/api-keys", m{"name": "Reports", "permissions": []string{"report.read"}}, as(token)).ok(http.StatusCreated)
		d.send(t, "PATCH /api/v2/users/"+ann.ID, m{"name": "Ann Lee"}, as(acme.Owner.Token()), from("198.51.100.7")).ok(http.StatusOK)
		for range 260 { // more than one batch
			d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"name": "Bob"}, as(token)).ok(http.StatusOK)
			d.send(t, "PATCH /api/v2/users/"+bob.ID, m{"name": "Robert"}, as(token)).ok(http.StatusOK)
		}
		a := d.send(t, "GET /api/v2/auth/account/export", nil, as(token)).ok(http.StatusOK)
		if got := a.header.Get("Content-Disposition"); got != `attachment; filename="account.json"` {
			t.Errorf("Content-Disposition is %q", got)
		}
		a.is("account.id", ann.ID).is("account.email", ann.Email)
		counts := map[string]int{"memberships": 1, "sessions": 2, "browsers": 2, "factors": 0, "apiKeys": 1, "challenges": 0, "emailChanges": 0, "resets": 0}
		for name, want := range counts {
			if got, _ := a.at(name).([]any); len(got) != want {
				t.Errorf("%d %s, want %d: %v", len(got), name, want, got)
			}
		}
		if s := a.at("sessions").([]any)[0].(m); s["aal"] != 1.0 || !has(s["amr"], "pwd") || s["authAt"] == nil {
			t.Errorf("a session is %v", s)
		}
		if _, isList := a.at("decisions").([]any); !isList { // their number is random: one in 1,024 permits is kept
			t.Errorf("no decisions: %s", a.body[:200])
		}
		events, _ := a.at("auditEvents").([]any)
		seen := map[any]bool{}
		for _, e := range events {
			seen[e.(m)["id"]] = true
		}
		if len(seen) != len(events) || len(events) < 520 {
			t.Errorf("%d events, %d of them different", len(events), len(seen))
		}
		for _, other := range []string{bob.Email, acme.Owner.Email, "198.51.100.7", token, "$argon2", "dwk_"} {
			if strings.Contains(string(a.body), other) {
				t.Errorf("the export has %q", other)
			}
		}
		if !strings.Contains(string(a.body), `"to":"Ann Lee"`) {
			t.Error("the export lacks the events of others about the person")
		}
	})
}

// A tenant that closes keeps nobody: its only OWNER can be erased from a session there.
func TestOnlyOwnerOfAClosingTenantIsErased(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		d.closeTenant(t, acme.Owner, acme.ID, "Acme")
		d.send(t, erasePath, m{"confirm": acme.Owner.Email}, as(d.token(t, acme.Owner.Email))).ok(http.StatusNoContent)
		d.login(t, acme.Owner.Email, password).fails(http.StatusUnauthorized, "invalid_credentials")
	})
}

const erasePath = "DELETE /api/v2/auth/account"

// Only its person can erase an account, with a recent proof of identity, by typing the
// address.
func TestEraseAccount(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "ADMIN")
		token, second := d.token(t, ann.Email), d.token(t, ann.Email)
		owner := acme.Owner.Token()
		inv := d.send(t, "POST /api/v2/auth/invite", m{"email": "bob@acme.example", "role": "USER"}, as(token)).ok(http.StatusCreated).text("id")
		d.send(t, erasePath, m{"confirm": "bob@acme.example"}, as(token)).invalid("/confirm", "mismatch")
		d.send(t, erasePath, m{"confirm": ""}, as(token)).invalid("/confirm", "required")
		last := d.send(t, erasePath, m{"confirm": acme.Owner.Email}, as(owner)).fails(http.StatusConflict, "last_owner")
		if !strings.Contains(string(last.body), "Acme") || !strings.Contains(string(last.body), acme.ID) {
			t.Errorf("the refusal doesn't name the tenant: %s", last.body)
		}
		d.Advance(11 * time.Minute)
		d.send(t, erasePath, m{"confirm": ann.Email}, as(token)).fails(http.StatusForbidden, "step_up_required")
		token = d.token(t, ann.Email)

		erased := d.send(t, erasePath, m{"confirm": "Ann@ACME.example"}, as(token)).ok(http.StatusNoContent)
		if erased.header.Get("X-Revocation-Nodes") == "" || !strings.Contains(erased.header.Get("Set-Cookie"), "JSESSIONID=; ") {
			t.Errorf("the answer has %v", erased.header)
		}
		for _, old := range []string{token, second} {
			d.send(t, "GET /api/v2/auth/session", nil, as(old)).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.login(t, ann.Email, password).fails(http.StatusUnauthorized, "invalid_credentials")
		d.send(t, "GET /api/v2/users/"+ann.ID, nil, as(owner)).fails(http.StatusNotFound, "not_found")
		d.send(t, "GET /api/v2/invitations/"+inv, nil, as(owner)).ok(http.StatusOK).is("status", "REVOKED")
		for _, path := range []string{"GET /api/v2/audit-events?limit=200", "GET /api/v2/invitations", "GET /api/v2/users"} {
			if a := d.send(t, path, nil, as(owner)).ok(http.StatusOK); strings.Contains(string(a.body), ann.Email) {
				t.Errorf("%s has the address: %s", path, a.body)
			}
		}
		events := d.send(t, "GET /api/v2/audit-events?action=account.erase&outcome=done", nil, as(owner)).ok(http.StatusOK)
		if items, _ := events.at("items").([]any); len(items) != 1 || items[0].(m)["target"].(m)["id"] != ann.ID || items[0].(m)["ip"] != "" {
			t.Errorf("the event of the erasure is %s", events.body)
		}
		if n, err := d.Node.App.Audit.VerifyAll(t.Context()); n != 0 || err != nil {
			t.Errorf("the trails have %d faults, %v", n, err)
		}

		// The address is free again.
		d.send(t, "POST /api/v2/auth/invite", m{"email": ann.Email, "role": "USER"}, as(d.token(t, acme.Owner.Email))).ok(http.StatusCreated)
	})
}
