package web_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

const (
	forgotPath = "POST /api/v2/auth/forgot-password"
	resetPath  = "POST /api/v2/auth/reset-password"
	changePath = "POST /api/v2/auth/change-password"
)

func (s *server) reset(t *testing.T, code, password string) answer {
	t.Helper()
	return s.send(t, resetPath, m{"token": code, "password": password, "confirmPassword": password})
}

// forgot requests a reset and returns the code in its mail.
func (s *server) forgot(t *testing.T, email string) string {
	t.Helper()
	s.send(t, forgotPath, m{"email": email}).ok(http.StatusAccepted)
	return s.code(t, email)
}

// Every well-formed address gets 202 three times an hour, then 429. Only accounts get
// mail, including those that are suspended or no longer in a tenant.
func TestForgotPassword(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		suspended, removed := acme.Join("suspended@acme.example", "USER"), acme.Join("removed@acme.example", "USER")
		d.suspend(t, acme.ID, suspended.ID)
		d.send(t, "DELETE /api/v2/users/"+removed.ID, nil, as(acme.Owner.Token())).ok(http.StatusOK)
		wantMails := map[string]int{acme.Owner.Email: 3, "nobody@acme.example": 0, suspended.Email: 3, removed.Email: 3}
		for email := range wantMails {
			d.deliver(t) // the notice of the suspension
			before := len(d.Mails(email))
			for range 3 {
				a := d.send(t, forgotPath, m{"email": email}).ok(http.StatusAccepted)
				if len(a.body) > 0 || len(a.cookies()) > 0 {
					t.Errorf("the answer for %s has content: %v %s", email, a.header, a.body)
				}
				d.Advance(10 * time.Minute)
			}
			d.deliver(t)
			if got := len(d.Mails(email)) - before; got != wantMails[email] {
				t.Errorf("%d mails to %s, want %d", got, email, wantMails[email])
			}
			a := d.send(t, forgotPath, m{"email": email}).fails(http.StatusTooManyRequests, "too_many_attempts")
			if got := a.header.Get("Retry-After"); got != "1800" {
				t.Errorf("Retry-After for %s is %s, want the 1800 s that are left of the hour", email, got)
			}
			d.send(t, forgotPath, m{"email": "+" + email}).ok(http.StatusAccepted) // another address
			d.Advance(30*time.Minute - time.Second)
			d.send(t, forgotPath, m{"email": email}).fails(http.StatusTooManyRequests, "too_many_attempts")
			d.Advance(time.Second)
			d.send(t, forgotPath, m{"email": email}).ok(http.StatusAccepted)
		}
	})
}

// The answers for an address with an account and for one without differ only in
// their ids.
func TestForgotPasswordRevealsNothing(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		for n := range 5 {
			known := d.send(t, forgotPath, m{"email": owner.Email})
			unknown := d.send(t, forgotPath, m{"email": "other@acme.example"})
			if known.status != unknown.status || known.withoutIDs() != unknown.withoutIDs() || len(known.body) != len(unknown.body) {
				t.Errorf("%d: %d %s\nfor the unknown address %d %s", n, known.status, known.body, unknown.status, unknown.body)
			}
			if a, b := fmt.Sprint(headerNames(known)), fmt.Sprint(headerNames(unknown)); a != b {
				t.Errorf("headers %s, for the unknown address %s", a, b)
			}
		}
	})
}

func TestResetPassword(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, ann := d.inTwoTenants(t, "USER", "USER")
		here := d.token(t, ann.Email)
		there := d.send(t, "POST /api/v2/auth/login", m{"email": ann.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK).text("token")
		code := d.forgot(t, ann.Email)
		d.send(t, "GET /api/v2/auth/session", nil, as(here)).ok(http.StatusOK) // the request ends nothing

		a := d.send(t, resetPath, m{"token": code, "password": "three old paper boats", "confirmPassword": "three old paper boats"}, as(here)).ok(http.StatusNoContent)
		if len(a.cookies()) > 0 {
			t.Errorf("a session was opened: %q", a.cookies())
		}
		for _, token := range []string{here, there, ann.Token()} {
			d.send(t, "GET /api/v2/auth/session", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.login(t, ann.Email, password).fails(http.StatusUnauthorized, "invalid_credentials")
		d.login(t, ann.Email, "three old paper boats").ok(http.StatusOK)
		d.send(t, "GET /api/v2/auth/session", nil, as(acme.Owner.Token())).ok(http.StatusOK) // somebody else
	})
}

func TestResetPasswordRefusals(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		invitation := d.invite(t, owner, "x@acme.example", "USER")
		for _, unknown := range []string{forged, "x", invitation, owner.Token()} {
			d.reset(t, unknown, "short").fails(http.StatusNotFound, "reset_not_found")
		}
		earlier := d.forgot(t, owner.Email)
		d.complete(t, earlier, password).fails(http.StatusNotFound, "invitation_not_found")
		code := d.forgot(t, owner.Email)
		d.reset(t, earlier, "short").fails(http.StatusGone, "reset_expired")
		d.reset(t, code, "short").invalid("/password", "too_short")
		d.send(t, resetPath, m{"token": code}).invalid("/password", "required", "/confirmPassword", "required")
		d.send(t, resetPath, m{"token": code, "password": "four quiet mice", "confirmPassword": "four quiet rats"}).invalid("/confirmPassword", "mismatch")
		d.reset(t, code, "four quiet mice").ok(http.StatusNoContent)
		d.reset(t, code, "short").fails(http.StatusGone, "reset_used")
		d.reset(t, earlier, "short").fails(http.StatusGone, "reset_expired")
		d.Advance(time.Hour)
		d.reset(t, code, "short").fails(http.StatusGone, "reset_used")
	})
}

// A reset is valid for 30 minutes after its mail.
func TestResetPasswordExpiry(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		code := d.forgot(t, owner.Email)
		d.Advance(30*time.Minute - time.Second)
		d.reset(t, code, "short").invalid("/password", "too_short")
		d.Advance(time.Second)
		d.reset(t, code, "short").fails(http.StatusGone, "reset_expired")
		d.login(t, owner.Email, password).ok(http.StatusOK)
	})
}

// A password change invalidates open resets, and so does the suspension of the only membership.
func TestOpenResetsAreInvalidated(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		code := d.forgot(t, ann.Email)
		d.send(t, changePath, m{"currentPassword": password, "password": "four quiet mice", "confirmPassword": "four quiet mice"}, as(ann.Token())).ok(http.StatusNoContent)
		d.reset(t, code, "two green kettles").fails(http.StatusGone, "reset_expired")

		code = d.forgot(t, bob.Email)
		d.suspend(t, acme.ID, bob.ID)
		d.reset(t, code, "two green kettles").fails(http.StatusGone, "reset_expired")
	})
}

// A person removed from the only tenant loses the password. The next invitation asks for a new
// one, unless a reset has set one. A reset alone gives no access.
func TestResetWithoutMembership(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		remove := func() {
			t.Helper()
			d.send(t, "DELETE /api/v2/users/"+ann.ID, nil, as(acme.Owner.Token())).ok(http.StatusOK)
		}
		remove()
		invitation := d.invite(t, acme.Owner, ann.Email, "VIEWER")
		d.accept(t, invitation, m{"password": password}).fails(http.StatusUnauthorized, "invalid_credentials")
		d.complete(t, invitation, "short").invalid("/password", "too_short")
		d.complete(t, invitation, password).ok(http.StatusOK).is("user.id", ann.ID).is("user.role", "VIEWER")
		d.login(t, ann.Email, password).ok(http.StatusOK)

		remove()
		invitation = d.invite(t, acme.Owner, ann.Email, "VIEWER")
		const next = "three old paper boats"
		d.reset(t, d.forgot(t, ann.Email), next).ok(http.StatusNoContent)
		d.login(t, ann.Email, next).fails(http.StatusUnauthorized, "invalid_credentials")
		d.complete(t, invitation, password).fails(http.StatusConflict, "account_exists")
		d.accept(t, invitation, m{"password": password}).fails(http.StatusUnauthorized, "invalid_credentials")
		d.accept(t, invitation, m{"password": next}).ok(http.StatusOK).is("user.id", ann.ID).is("user.role", "VIEWER")
		d.login(t, ann.Email, next).ok(http.StatusOK)

		d.suspend(t, acme.ID, ann.ID)
		d.reset(t, d.forgot(t, ann.Email), password).ok(http.StatusNoContent)
		d.login(t, ann.Email, password).fails(http.StatusForbidden, "membership_suspended")
	})
}

func TestChangePassword(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		_, globex, ann := d.inTwoTenants(t, "USER", "USER")
		there := d.send(t, "POST /api/v2/auth/login", m{"email": ann.Email, "password": password, "tenantId": globex.ID}).ok(http.StatusOK).text("token")
		own := d.token(t, ann.Email)
		change := func(current, password, confirm string) answer {
			t.Helper()
			return d.send(t, changePath, m{"currentPassword": current, "password": password, "confirmPassword": confirm}, as(own))
		}
		change("wrong password", "three old boats", "three old boats").invalid("/currentPassword", "wrong")
		change(password, "short", "other").invalid("/password", "too_short", "/confirmPassword", "mismatch")
		change("wrong password", "short", "short").invalid("/password", "too_short")
		change(password, "xx ann@acme.example", "xx ann@acme.example").invalid("/password", "contains_identity")
		change(password, "I work at Globex", "I work at Globex").invalid("/password", "contains_identity")
		d.Advance(11 * time.Minute) // without a second factor the current password is proof enough
		change(password, password, password).invalid("/password", "unchanged")
		change("three old boats", "three old boats", "three old boats").invalid("/currentPassword", "wrong")
		for _, token := range []string{there, own, ann.Token()} {
			d.send(t, "GET /api/v2/auth/session", nil, as(token)).ok(http.StatusOK)
		}
		a := change(password, "three old boats", "three old boats").ok(http.StatusNoContent)
		if len(a.cookies()) > 0 {
			t.Errorf("cookies are set: %q", a.cookies())
		}
		for _, token := range []string{there, ann.Token()} {
			d.send(t, "GET /api/v2/auth/session", nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(own)).ok(http.StatusOK)
		d.login(t, ann.Email, password).fails(http.StatusUnauthorized, "invalid_credentials")
		d.login(t, ann.Email, "three old boats").ok(http.StatusOK)
		change(password, "four old boats", "four old boats").invalid("/currentPassword", "wrong")
	})
}
