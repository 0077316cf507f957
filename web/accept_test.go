package web_test

import (
	"net/http"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/passkey/passkeytest"
)

// A person with an account accepts with a session of the invited address or with
// the account's password.
func TestAcceptInvitation(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, initech := d.Tenant("Acme"), d.Tenant("Globex"), d.Tenant("Initech")
		ann := acme.Join("ann@acme.example", "USER")

		bySession := d.accept(t, d.invite(t, globex.Owner, ann.Email, "ADMIN"), m{}, as(ann.Token())).ok(http.StatusOK)
		bySession.members("", "user").members("user", "id", "email", "name", "role", "status", "tenantId", "tenantName", "permissions", "createdAt")
		bySession.is("user.id", ann.ID).is("user.email", ann.Email).is("user.role", "ADMIN").is("user.tenantId", globex.ID).is("user.tenantName", "Globex")
		byPassword := d.accept(t, d.invite(t, initech.Owner, ann.Email, "VIEWER"), m{"password": password}).ok(http.StatusOK)
		byPassword.is("user.id", ann.ID).is("user.role", "VIEWER").is("user.tenantId", initech.ID)
		for _, a := range []answer{bySession, byPassword} {
			if len(a.cookies()) > 0 {
				t.Errorf("a session was opened: %q", a.cookies())
			}
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).ok(http.StatusOK).is("user.tenantId", acme.ID).is("session.tenantId", acme.ID)
		if items, _ := d.send(t, "GET /api/v2/auth/memberships", nil, as(ann.Token())).at("items").([]any); len(items) != 3 {
			t.Errorf("memberships are %v, want 3", items)
		}
	})
}

func TestAcceptInvitationRefusals(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		code := d.invite(t, globex.Owner, ann.Email, "USER")
		dead := d.token(t, ann.Email)
		d.send(t, "POST /api/v2/auth/logout", nil, as(dead)).ok(http.StatusNoContent)

		d.accept(t, code, m{}).fails(http.StatusUnauthorized, "unauthenticated")
		d.accept(t, code, m{}, as(dead)).fails(http.StatusUnauthorized, "unauthenticated")
		d.accept(t, code, m{}, as(ann.Token()), as(bob.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		d.accept(t, code, m{}, as(ann.Token()), bearer(d.operatorKey(t))).fails(http.StatusUnauthorized, "unauthenticated")
		d.accept(t, code, m{}, bearer(d.operatorKey(t))).fails(http.StatusUnauthorized, "unauthenticated")
		d.accept(t, code, m{}, as(bob.Token())).fails(http.StatusForbidden, "wrong_account")
		d.accept(t, code, m{}, as(globex.Owner.Token())).fails(http.StatusForbidden, "wrong_account")
		d.accept(t, code, m{"password": "wrong password"}).fails(http.StatusUnauthorized, "invalid_credentials")
		d.accept(t, forged, m{"password": password}).fails(http.StatusNotFound, "invitation_not_found")
		d.accept(t, "", m{"password": password}).invalid("/token", "required")
		d.accept(t, "", m{}, as(ann.Token())).invalid("/token", "required")

		d.accept(t, code, m{}, as(ann.Token())).ok(http.StatusOK)
		d.accept(t, code, m{}, as(ann.Token())).fails(http.StatusGone, "invitation_used")
		d.accept(t, code, m{"password": password}).fails(http.StatusGone, "invitation_used")
		d.complete(t, code, password).fails(http.StatusGone, "invitation_used")
	})
}

// The password of the invited account is sufficient proof, even in another person's
// session.
func TestAcceptInvitationAsSomebodyElse(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		code := d.invite(t, globex.Owner, ann.Email, "USER")
		d.accept(t, code, m{"password": password}, as(bob.Token())).ok(http.StatusOK).is("user.id", ann.ID)
	})
}

// Without an account, accepting with any password gets the answer for a wrong password.
func TestAcceptInvitationWithoutAccount(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		stranger := d.accept(t, d.invite(t, acme.Owner, "new@acme.example", "USER"), m{"password": password})
		known := d.accept(t, d.invite(t, acme.Owner, globex.Owner.Email, "USER"), m{"password": "wrong password"})
		stranger.fails(http.StatusUnauthorized, "invalid_credentials")
		if stranger.withoutIDs() != known.fails(http.StatusUnauthorized, "invalid_credentials").withoutIDs() {
			t.Errorf("without an account:\n%s\nwith a wrong password:\n%s", stranger.body, known.body)
		}
	})
}

// An account with a second factor is accepted for with it: by the password and an answer to the
// challenge, or by a session in which the factor was proved.
func TestAcceptInvitationWithSecondFactor(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := acme.Join("ann@acme.example", "USER")
		weak := d.token(t, ann.Email)
		key := passkeytest.New(passkeyOrigin)
		d.addPasskey(t, ann.Token(), key)
		code := d.invite(t, globex.Owner, ann.Email, "ADMIN")

		d.accept(t, code, m{}, as(weak)).fails(http.StatusForbidden, "step_up_required").is("acr", "aal2").text("challenge")
		asked := d.accept(t, code, m{"password": password}).fails(http.StatusForbidden, "mfa_required")
		asked.members("", "type", "title", "status", "detail", "instance", "code", "requestId", "challenge", "methods", "expiresAt", "publicKey")
		if len(asked.cookies()) > 0 {
			t.Errorf("the challenge sets the cookies %q", asked.cookies())
		}
		const path = "POST /api/v2/auth/accept-invitation/second"
		second := func(code string, answer m) answer {
			t.Helper()
			answer["token"], answer["challenge"] = code, asked.text("challenge")
			return d.send(t, path, answer)
		}
		second(code, m{}).invalid("/code", "required")
		second("", m{"code": "000000"}).invalid("/token", "required")
		second(forged, m{"code": "000000"}).fails(http.StatusNotFound, "invitation_not_found")
		second(code, m{"recoveryCode": wrongRecovery}).fails(http.StatusUnauthorized, "invalid_code")
		done := second(code, m{"credential": getCredential(t, key, asked)}).ok(http.StatusOK).members("", "user")
		done.is("user.id", ann.ID).is("user.role", "ADMIN").is("user.tenantId", globex.ID)
		if len(done.cookies()) > 0 {
			t.Errorf("a session was opened: %q", done.cookies())
		}
		second(code, m{"code": "000000"}).fails(http.StatusGone, "invitation_used")

		again := d.invite(t, d.Tenant("Initech").Owner, ann.Email, "USER")
		d.send(t, path, m{"token": again, "challenge": asked.text("challenge"), "code": "000000"}).fails(http.StatusGone, "challenge_over")
		d.accept(t, again, m{}, as(ann.Token())).ok(http.StatusOK)

		// The tenant's quota and the limit of attempts hold here, too.
		hooli := d.Tenant("Hooli")
		offered := d.invite(t, hooli.Owner, ann.Email, "USER")
		d.setQuotas(t, hooli.ID, m{"people": 1})
		ask := func() {
			asked = d.accept(t, offered, m{"password": password}).fails(http.StatusForbidden, "mfa_required")
		}
		ask()
		second(offered, m{"credential": getCredential(t, key, asked)}).fails(http.StatusConflict, "quota_exceeded").is("quota", "people")
		ask()
		for range 3 {
			second(offered, m{"recoveryCode": wrongRecovery})
		}
		second(offered, m{"recoveryCode": wrongRecovery}).fails(http.StatusTooManyRequests, "too_many_attempts")
	}, withPasskeys(), doorwardtest.LoginLimits(3, 1000))
}
