package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/passkey/passkeytest"
)

const (
	passkeyOrigin          = "http://localhost:8080"
	beginPasskeyPath       = "POST /api/v2/auth/factors/passkey/begin"
	finishPasskeyPath      = "POST /api/v2/auth/factors/passkey/finish"
	beginPasskeyLoginPath  = "POST /api/v2/auth/passkey/begin"
	finishPasskeyLoginPath = "POST /api/v2/auth/passkey/finish"
	beginStepUpPath        = "POST /api/v2/auth/step-up/begin"
	finishStepUpPath       = "POST /api/v2/auth/step-up/finish"
)

// withPasskeys gives the server a base URL at which browsers allow passkeys.
func withPasskeys() doorwardtest.Option { return doorwardtest.BaseURL(passkeyOrigin) }

// webauthnOptions returns WebAuthn's options in an answer.
func webauthnOptions(t *testing.T, begun answer) []byte {
	t.Helper()
	text, err := json.Marshal(begun.at("publicKey"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// createCredential makes a passkey for the options of an answer.
func createCredential(t *testing.T, a *passkeytest.Authenticator, begun answer) m {
	t.Helper()
	made, err := a.Create(webauthnOptions(t, begun))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// getCredential uses a passkey for the options of an answer.
func getCredential(t *testing.T, a *passkeytest.Authenticator, begun answer) m {
	t.Helper()
	got, err := a.Get(webauthnOptions(t, begun))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// addPasskey sets up a passkey for the person of a session, and returns its factor.
func (s *server) addPasskey(t *testing.T, token string, a *passkeytest.Authenticator) answer {
	t.Helper()
	begun := s.send(t, beginPasskeyPath, nil, as(token)).ok(http.StatusOK).members("", "challenge", "methods", "expiresAt", "publicKey")
	return s.send(t, finishPasskeyPath, m{"challenge": begun.text("challenge"), "credential": createCredential(t, a, begun)}, as(token)).ok(http.StatusOK).follow(token)
}

// signInWithPasskey signs in with a passkey alone, without a password.
func (s *server) signInWithPasskey(t *testing.T, a *passkeytest.Authenticator) answer {
	t.Helper()
	begun := s.send(t, beginPasskeyLoginPath, nil).ok(http.StatusOK).members("", "challenge", "methods", "expiresAt", "publicKey")
	return s.send(t, finishPasskeyLoginPath, m{"challenge": begun.text("challenge"), "credential": getCredential(t, a, begun)})
}

// beginSecondStep signs in with the password and returns the answer that asks for the second
// factor.
func (s *server) beginSecondStep(t *testing.T, p *doorwardtest.Person) answer {
	t.Helper()
	return s.login(t, p.Email, password).fails(http.StatusForbidden, "mfa_required")
}

// A passkey is set up, signs in alone and as a second factor, proves a session again, and is
// renamed and removed.
func TestPasskey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "ADMIN")
		mails := d.newMails(t, ann.Email)
		a := passkeytest.New(passkeyOrigin)
		done := d.addPasskey(t, ann.Token(), a)
		if codes := done.at("recoveryCodes").([]any); len(codes) != 10 || done.at("factor.type") != "passkey" || done.at("factor.synced") != false || done.text("factor.name") == "" {
			t.Errorf("a new passkey is answered %s", done.body)
		}
		d.send(t, sessionPath, nil, as(ann.Token())).is("session.aal", 2.0)
		id := done.text("factor.id")

		signedIn := d.signInWithPasskey(t, a).ok(http.StatusOK).members("", "token", "expiresAt", "idleExpiresAt", "user", "aal").is("aal", 2.0).is("user.email", ann.Email)
		if cookieNamed(signedIn, "JSESSIONID") == "" || cookieNamed(signedIn, "doorward_device") == "" {
			t.Errorf("the cookies are %q", signedIn.cookies())
		}
		session := d.send(t, sessionPath, nil, as(signedIn.text("token"))).is("session.aal", 2.0)
		if amr := session.at("session.amr"); !has(amr, "hwk") || !has(amr, "mfa") || has(amr, "pwd") {
			t.Errorf("amr is %v", amr)
		}

		asked := d.beginSecondStep(t, ann)
		if !has(asked.at("methods"), "passkey") || !has(asked.at("methods"), "recovery") {
			t.Errorf("the methods are %v", asked.at("methods"))
		}
		answered := getCredential(t, a, asked)
		answered["authenticatorAttachment"] = nil // some browser extensions send null for what is absent
		answered["response"].(m)["userHandle"] = nil
		second := d.send(t, secondPath, m{"challenge": asked.text("challenge"), "credential": answered}).ok(http.StatusOK).is("aal", 2.0)
		if amr := d.send(t, sessionPath, nil, as(second.text("token"))).at("session.amr"); !has(amr, "hwk") || !has(amr, "pwd") {
			t.Errorf("amr is %v", amr)
		}

		d.Advance(11 * time.Minute)
		token := second.text("token")
		refused := d.send(t, beginPasskeyPath, nil, as(token)).fails(http.StatusForbidden, "step_up_required").is("acr", "aal2").is("maxAge", 600.0)
		if methods := refused.at("methods").([]any); len(methods) != 1 || methods[0] != "passkey" || refused.instant("expiresAt").IsZero() {
			t.Errorf("the step-up is asked for with %s", refused.body)
		}
		for _, asked := range []answer{refused, d.send(t, beginStepUpPath, nil, as(token)).ok(http.StatusOK)} {
			proved := d.send(t, finishStepUpPath, m{"challenge": asked.text("challenge"), "credential": getCredential(t, a, asked)}, as(token)).ok(http.StatusOK).is("session.aal", 2.0)
			d.send(t, sessionPath, nil, as(token)).fails(http.StatusUnauthorized, "unauthenticated")
			token = proved.text("token")
		}
		d.send(t, "PATCH /api/v2/auth/factors/"+id, m{"name": "Laptop"}, as(token)).ok(http.StatusOK).is("name", "Laptop").is("synced", false)
		d.patchTenant(t, acme.Owner.Login(), m{"settings": m{"mfa": "required", "mfaRoles": []string{"ADMIN"}}}).ok(http.StatusOK)
		d.send(t, "DELETE /api/v2/auth/factors/"+id, nil, as(token)).fails(http.StatusConflict, "mfa_required_here")
		d.patchTenant(t, acme.Owner.Login(), m{"settings": m{"mfa": "optional"}}).ok(http.StatusOK)
		d.send(t, "DELETE /api/v2/auth/factors/"+id, nil, as(token)).ok(http.StatusNoContent)
		d.signInWithPasskey(t, a).fails(http.StatusUnauthorized, "invalid_code")
		d.login(t, ann.Email, password).ok(http.StatusOK)
		d.deliver(t)
		var text strings.Builder
		for _, mail := range mails() {
			text.WriteString(mail.Subject + "\n" + mail.Text)
		}
		if n := strings.Count(text.String(), "A passkey was"); n != 2 {
			t.Errorf("%d mails are about the passkey, want 2:\n%s", n, text.String())
		}
	}, masterKey(t), withPasskeys())
}

// An authenticator makes one passkey for an account. A challenge is valid for one passkey, in the
// session that requested it, and ends when the person adds another factor.
func TestPasskeyTwice(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		a := passkeytest.New(passkeyOrigin)
		begun := d.send(t, beginPasskeyPath, m{}, as(ann.Token())).ok(http.StatusOK)
		made := createCredential(t, a, begun)
		d.send(t, finishPasskeyPath, m{"challenge": begun.text("challenge"), "credential": made, "name": "Key"}, as(bob.Token())).fails(http.StatusGone, "challenge_over")
		d.send(t, finishPasskeyPath, m{"challenge": begun.text("challenge"), "credential": made, "name": "Key"}, as(ann.Token())).ok(http.StatusOK).is("factor.name", "Key").follow(ann.Token())
		d.send(t, finishPasskeyPath, m{"challenge": begun.text("challenge"), "credential": made}, as(ann.Token())).fails(http.StatusGone, "challenge_over")
		again := d.send(t, beginPasskeyPath, m{}, as(ann.Token())).ok(http.StatusOK)
		if _, err := a.Create(webauthnOptions(t, again)); err != passkeytest.ErrExcluded {
			t.Errorf("a second passkey of the authenticator: %v", err)
		}
		other := d.send(t, beginPasskeyPath, m{}, as(ann.Token())).ok(http.StatusOK)
		credential := createCredential(t, passkeytest.New(passkeyOrigin), other)
		if again := d.addPasskey(t, ann.Token(), passkeytest.New(passkeyOrigin)); again.at("recoveryCodes") != nil {
			t.Error("the second factor makes recovery codes")
		}
		d.send(t, finishPasskeyPath, m{"challenge": other.text("challenge"), "credential": credential}, as(ann.Token())).fails(http.StatusGone, "challenge_over")
		if items := d.send(t, "GET /api/v2/auth/factors", nil, as(ann.Token())).at("items").([]any); len(items) != 2 {
			t.Errorf("the factors are %v", items)
		}
	}, withPasskeys())
}

// Each endpoint that takes an authenticator's answer refuses one with a wrong origin, relying
// party, verification or user handle.
func TestWrongPasskeyAnswers(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, eve := acme.Join("ann@acme.example", "USER"), acme.Join("eve@acme.example", "USER")
		a, other := passkeytest.New(passkeyOrigin), passkeytest.New(passkeyOrigin)
		d.addPasskey(t, ann.Token(), a)
		d.addPasskey(t, eve.Token(), other)
		for name, spoil := range map[string]func(*passkeytest.Authenticator){
			"origin":        func(a *passkeytest.Authenticator) { a.Origin = "http://localhost:8081" },
			"relying party": func(a *passkeytest.Authenticator) { a.RPID = "example.com" },
			"verification":  func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Present },
			"user handle":   func(a *passkeytest.Authenticator) { a.Keys[0].Handle = []byte(eve.ID) },
		} {
			spoilt := a.Copy()
			spoilt.Counter += 100
			spoil(spoilt)
			if got := d.signInWithPasskey(t, spoilt); got.text("code") != "invalid_code" || got.status != http.StatusUnauthorized {
				t.Errorf("alone with a wrong %s: %d %s", name, got.status, got.body)
			}
			asked := d.beginSecondStep(t, ann)
			d.send(t, secondPath, m{"challenge": asked.text("challenge"), "credential": getCredential(t, spoilt, asked)}).fails(http.StatusUnauthorized, "invalid_code")
			stepUp := d.send(t, beginStepUpPath, nil, as(ann.Token())).ok(http.StatusOK)
			d.send(t, finishStepUpPath, m{"challenge": stepUp.text("challenge"), "credential": getCredential(t, spoilt, stepUp)}, as(ann.Token())).invalid("/credential", "wrong")
			begun := d.send(t, beginPasskeyPath, nil, as(ann.Token())).ok(http.StatusOK)
			if name != "user handle" { // an answer with a new passkey has none
				made := passkeytest.New(passkeyOrigin)
				spoil(made)
				d.send(t, finishPasskeyPath, m{"challenge": begun.text("challenge"), "credential": createCredential(t, made, begun)}, as(ann.Token())).invalid("/credential", "wrong")
			}
		}
		asked := d.beginSecondStep(t, ann)
		d.send(t, secondPath, m{"challenge": asked.text("challenge"), "credential": getCredential(t, other, d.beginSecondStep(t, eve))}).fails(http.StatusUnauthorized, "invalid_code")
		d.send(t, secondPath, m{"challenge": asked.text("challenge"), "credential": m{}}).fails(http.StatusUnauthorized, "invalid_code")
		d.send(t, secondPath, m{"challenge": asked.text("challenge"), "credential": m{"id": "AAAA", "rawId": "AAAA", "type": "public-key", "response": m{"userHandle": "AA"}}}).fails(http.StatusUnauthorized, "invalid_code")
		d.send(t, secondPath, m{"challenge": asked.text("challenge"), "credential": getCredential(t, a, asked), "code": "123456"}).invalid("/code", "invalid")
		begun := d.send(t, beginPasskeyLoginPath, nil).ok(http.StatusOK)
		credential := getCredential(t, a, begun)
		d.send(t, secondPath, m{"challenge": begun.text("challenge"), "credential": credential}).fails(http.StatusGone, "challenge_over")
		d.send(t, finishPasskeyLoginPath, m{"challenge": asked.text("challenge"), "credential": getCredential(t, a, asked)}).fails(http.StatusGone, "challenge_over")
		d.Advance(5 * time.Minute)
		d.send(t, finishPasskeyLoginPath, m{"challenge": begun.text("challenge"), "credential": credential}).fails(http.StatusGone, "challenge_over")
		d.signInWithPasskey(t, a).ok(http.StatusOK)
	}, withPasskeys(), doorwardtest.LoginLimits(1000, 1000))
}

// When the signature counter hasn't increased, the login is refused, the passkey disabled and the
// person notified. The account still needs a second factor.
func TestCopiedPasskey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		mails := d.newMails(t, ann.Email)
		a := passkeytest.New(passkeyOrigin)
		added := d.addPasskey(t, ann.Token(), a)
		codes := added.at("recoveryCodes").([]any)
		stolen := a.Copy()
		d.signInWithPasskey(t, a).ok(http.StatusOK)
		d.signInWithPasskey(t, stolen).fails(http.StatusUnauthorized, "invalid_code")
		stolen.Counter += 10
		d.signInWithPasskey(t, stolen).fails(http.StatusUnauthorized, "invalid_code")
		d.signInWithPasskey(t, a).fails(http.StatusUnauthorized, "invalid_code")
		list := d.send(t, "GET /api/v2/auth/factors", nil, as(ann.Token())).ok(http.StatusOK)
		if one := list.at("items").([]any)[0].(m); one["disabledAt"] == nil {
			t.Errorf("the copied passkey is listed as %v", one)
		}
		d.deliver(t)
		notified := false
		for _, mail := range mails() {
			notified = notified || strings.Contains(mail.Subject, "there may be a copy")
		}
		if !notified {
			t.Error("the person was not notified")
		}
		asked := d.beginSecondStep(t, ann)
		if methods := asked.at("methods").([]any); len(methods) != 1 || methods[0] != "recovery" || asked.at("publicKey") != nil {
			t.Errorf("the login asks for a factor with %s", asked.body)
		}
		token := d.send(t, secondPath, m{"challenge": asked.text("challenge"), "recoveryCode": codes[0]}).ok(http.StatusOK).text("token")
		d.Advance(11 * time.Minute)
		for _, session := range []string{token, ann.Token()} { // an older session, too
			check := d.send(t, "GET /api/v2/access/check?maxAge=600", nil, as(session)).fails(http.StatusForbidden, "step_up_required").is("acr", "aal2")
			if got := fmt.Sprint(check.at("methods")); got != "[recovery]" {
				t.Errorf("a check names the methods %s", got)
			}
		}
		d.send(t, changePath, m{"currentPassword": password, "password": "three old boats", "confirmPassword": "three old boats"}, as(token)).fails(http.StatusForbidden, "step_up_required")
		stepUp := d.send(t, beginPasskeyPath, nil, as(token)).fails(http.StatusForbidden, "step_up_required").is("acr", "aal2")
		d.send(t, finishStepUpPath, m{"challenge": stepUp.text("challenge"), "password": password}, as(token)).invalid("/password", "wrong")
		token = d.send(t, finishStepUpPath, m{"challenge": stepUp.text("challenge"), "recoveryCode": codes[1]}, as(token)).ok(http.StatusOK).text("token")
		b := passkeytest.New(passkeyOrigin)
		d.addPasskey(t, token, b)
		d.send(t, "DELETE /api/v2/auth/factors/"+added.text("factor.id"), nil, as(token)).ok(http.StatusNoContent)
		d.signInWithPasskey(t, b).ok(http.StatusOK)
		stepUp = d.send(t, beginStepUpPath, nil, as(token)).ok(http.StatusOK)
		// A step-up takes no recovery code while another factor works, here the new passkey.
		d.send(t, finishStepUpPath, m{"challenge": stepUp.text("challenge"), "recoveryCode": codes[2]}, as(token)).invalid("/recoveryCode", "wrong")
	}, withPasskeys())
}

// A passkey that becomes synced still works and is listed as synced. After that, an answer without
// the flag BackupEligible is refused. A passkey without a counter is never taken for a copy.
func TestSyncedPasskey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
		a := passkeytest.New(passkeyOrigin)
		a.Counter = 0
		d.addPasskey(t, ann.Token(), a)
		d.signInWithPasskey(t, a).ok(http.StatusOK)
		a.Flags |= passkeytest.BackupEligible | passkeytest.BackedUp
		token := d.signInWithPasskey(t, a).ok(http.StatusOK).text("token")
		if amr := d.send(t, sessionPath, nil, as(token)).at("session.amr"); !has(amr, "swk") {
			t.Errorf("amr is %v", amr)
		}
		if one := d.send(t, "GET /api/v2/auth/factors", nil, as(token)).at("items").([]any)[0].(m); one["synced"] != true || one["lastUsedAt"] == nil {
			t.Errorf("the passkey is listed as %v", one)
		}
		a.Flags = passkeytest.Present | passkeytest.Verified
		d.signInWithPasskey(t, a).fails(http.StatusUnauthorized, "invalid_code")
		a.Flags |= passkeytest.BackupEligible
		d.signInWithPasskey(t, a).ok(http.StatusOK)
	}, withPasskeys())
}

// Where a tenant requires a factor, a passkey can be the first one. It is added after the password
// and before the session starts.
func TestFirstPasskey(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfa": "required", "mfaRoles": []string{"USER"}}}).ok(http.StatusOK)
		asked := d.login(t, ann.Email, password).fails(http.StatusForbidden, "mfa_enrolment_required")
		if !has(asked.at("methods"), "passkey") || asked.at("publicKey") != nil {
			t.Errorf("the login asks for a factor with %s", asked.body)
		}
		challenge := asked.text("challenge")
		a := passkeytest.New(passkeyOrigin)
		begun := d.send(t, beginPasskeyPath, m{"challenge": challenge}).ok(http.StatusOK).is("challenge", challenge)
		wrong := passkeytest.New("http://localhost:1")
		d.send(t, finishPasskeyPath, m{"challenge": challenge, "credential": createCredential(t, wrong, begun)}).fails(http.StatusUnauthorized, "invalid_code")
		signedIn := d.send(t, finishPasskeyPath, m{"challenge": challenge, "credential": createCredential(t, a, begun)}).ok(http.StatusOK).is("aal", 2.0).is("user.email", ann.Email)
		if len(signedIn.cookies()) == 0 || len(signedIn.at("recoveryCodes").([]any)) != 10 {
			t.Errorf("the first passkey is answered with the cookies %q: %s", signedIn.cookies(), signedIn.body)
		}
		d.send(t, sessionPath, nil, as(signedIn.text("token"))).is("session.aal", 2.0)
		d.send(t, finishPasskeyPath, m{"challenge": challenge, "credential": createCredential(t, passkeytest.New(passkeyOrigin), begun)}).fails(http.StatusGone, "challenge_over")
		d.send(t, beginPasskeyPath, m{"challenge": challenge}).fails(http.StatusGone, "challenge_over")
		d.signInWithPasskey(t, a).ok(http.StatusOK)
	}, masterKey(t), withPasskeys())
}

// A login with a valid passkey is refused in an unknown, frozen or closing tenant, and where the
// membership is suspended.
func TestPasskeyLoginIsRefused(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex := d.Tenant("Acme"), d.Tenant("Globex")
		ann := acme.Join("ann@acme.example", "USER")
		a := passkeytest.New(passkeyOrigin)
		d.addMember(t, globex, ann, "VIEWER")
		d.addPasskey(t, ann.Token(), a)
		signInTo := func(tenantID string) answer {
			begun := d.send(t, beginPasskeyLoginPath, nil).ok(http.StatusOK)
			return d.send(t, finishPasskeyLoginPath, m{"challenge": begun.text("challenge"), "credential": getCredential(t, a, begun), "tenantId": tenantID})
		}
		signInTo(globex.ID).ok(http.StatusOK).is("user.tenantId", globex.ID)
		signInTo(acme.ID).ok(http.StatusOK).is("user.tenantId", acme.ID)
		signInTo("tnt_absent").fails(http.StatusUnauthorized, "invalid_credentials")
		d.suspend(t, acme.ID, ann.ID)
		signInTo(acme.ID).fails(http.StatusForbidden, "membership_suspended")
		d.setTenantStatus(t, globex, "frozen")
		signInTo(globex.ID).fails(http.StatusForbidden, "tenant_frozen")
		d.setTenantStatus(t, globex, "closing")
		signInTo(globex.ID).fails(http.StatusForbidden, "tenant_closing")
	}, withPasskeys())
}

// A valid new passkey is refused from another session, beyond 20 factors, in a frozen or closing tenant, and over the limit of attempts.
func TestPasskeyIsNotAdded(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, ben, cat := acme.Join("ann@acme.example", "ADMIN"), acme.Join("ben@acme.example", "USER"), acme.Join("cat@acme.example", "USER")
		begun := d.send(t, beginPasskeyPath, nil, as(ann.Token())).ok(http.StatusOK)
		made := m{"challenge": begun.text("challenge"), "credential": createCredential(t, passkeytest.New(passkeyOrigin), begun)}
		other := d.login(t, ann.Email, password).ok(http.StatusOK).text("token")
		d.send(t, finishPasskeyPath, made, as(other)).fails(http.StatusGone, "challenge_over")
		d.Advance(4*time.Minute + 50*time.Second)
		fresh := d.send(t, loginPath, m{"email": cat.Email, "password": password}).ok(http.StatusOK).text("token")
		d.Advance(5*time.Minute + 20*time.Second)
		begun = d.send(t, beginPasskeyPath, nil, as(fresh)).ok(http.StatusOK)
		made = m{"challenge": begun.text("challenge"), "credential": createCredential(t, passkeytest.New(passkeyOrigin), begun)}
		d.Advance(4*time.Minute + 50*time.Second)
		// The proof of the session is now over 10 minutes old, but wasn't when the enrolment began.
		d.send(t, finishPasskeyPath, made, as(fresh)).ok(http.StatusOK)
		token := ann.Login()
		for range 20 {
			d.addPasskey(t, token, passkeytest.New(passkeyOrigin))
		}
		d.send(t, beginPasskeyPath, nil, as(token)).fails(http.StatusConflict, "too_many_factors")

		d.patchTenant(t, acme.Owner.Login(), m{"settings": m{"mfa": "required", "mfaRoles": []string{"USER"}}}).ok(http.StatusOK)
		challenge := d.login(t, ben.Email, password).fails(http.StatusForbidden, "mfa_enrolment_required").text("challenge")
		begun = d.send(t, beginPasskeyPath, m{"challenge": challenge}).ok(http.StatusOK)
		first := m{"challenge": challenge, "credential": createCredential(t, passkeytest.New(passkeyOrigin), begun)}
		for status, code := range map[doorward.TenantStatus]string{doorward.TenantFrozen: "tenant_frozen", doorward.TenantClosing: "tenant_closing"} {
			d.setTenantStatus(t, acme, status)
			d.send(t, finishPasskeyPath, first).fails(http.StatusForbidden, code)
		}
		d.setTenantStatus(t, acme, doorward.TenantActive)
		first["credential"] = m{"id": "x"}
		d.send(t, finishPasskeyPath, first).fails(http.StatusUnauthorized, "invalid_code")
		d.send(t, finishPasskeyPath, first).fails(http.StatusTooManyRequests, "too_many_attempts")
	}, masterKey(t), withPasskeys(), doorwardtest.LoginLimits(3, 1000))
}

// In a login with a passkey alone, wrong answers and requests to begin are limited by client
// network only, so they can't lock an account.
func TestPasskeyLimits(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
		a := passkeytest.New(passkeyOrigin)
		d.addPasskey(t, ann.Token(), a)
		spoilt := a.Copy()
		spoilt.Flags = passkeytest.Present
		for range 6 {
			d.signInWithPasskey(t, spoilt).fails(http.StatusUnauthorized, "invalid_code")
		}
		d.signInWithPasskey(t, spoilt).fails(http.StatusTooManyRequests, "too_many_attempts")
		asked := d.login(t, ann.Email, password, from("192.0.2.7")).fails(http.StatusForbidden, "mfa_required")
		d.send(t, secondPath, m{"challenge": asked.text("challenge"), "credential": getCredential(t, a, asked)}, from("192.0.2.7")).ok(http.StatusOK)
		for range 1000 {
			d.send(t, beginPasskeyLoginPath, nil, from("192.0.2.9")).ok(http.StatusOK)
		}
		d.send(t, beginPasskeyLoginPath, nil, from("192.0.2.9")).fails(http.StatusTooManyRequests, "too_many_attempts")
		d.send(t, beginPasskeyLoginPath, nil, from("192.0.2.10")).ok(http.StatusOK)
	}, withPasskeys(), doorwardtest.LoginLimits(3, 6), doorwardtest.TrustLoopback())
}

// Browsers allow no passkeys at an IP address, nor over plain HTTP except at localhost.
func TestNoPasskeys(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"http://127.0.0.1:8080", "http://id.example.com"} {
		t.Run(base, func(t *testing.T) {
			onSQLite(t, func(t *testing.T, d *server) {
				acme := d.Tenant("Acme")
				ann := acme.Join("ann@acme.example", "USER")
				d.send(t, beginPasskeyLoginPath, nil).fails(http.StatusConflict, "passkeys_unavailable")
				d.send(t, beginPasskeyPath, nil, as(ann.Token())).fails(http.StatusConflict, "passkeys_unavailable")
				d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfa": "required"}}).ok(http.StatusOK)
				asked := d.login(t, ann.Email, password).fails(http.StatusForbidden, "mfa_enrolment_required")
				if has(asked.at("methods"), "passkey") {
					t.Errorf("the login asks for a factor with %s", asked.body)
				}
				d.send(t, finishPasskeyPath, m{"challenge": asked.text("challenge"), "credential": m{"id": "x"}}).fails(http.StatusConflict, "passkeys_unavailable")
			}, masterKey(t), doorwardtest.BaseURL(base))
		})
	}
}
