package web_test

import (
	"encoding/base32"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/passkey/passkeytest"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store/dbtest"
)

const (
	secondPath       = "POST /api/v2/auth/login/second"
	totpPath         = "POST /api/v2/auth/factors/totp"
	confirmPath      = "POST /api/v2/auth/factors/totp/confirm"
	resetFactorsPath = "POST /api/v2/auth/factors/reset"
)

// masterKey gives the server a master key.
func masterKey(t *testing.T) doorwardtest.Option {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master.key")
	if _, err := seal.Create(path); err != nil {
		t.Fatal(err)
	}
	return func(c *node.Config) { c.MasterKeyFile = path }
}

// authenticator is an authenticator app.
type authenticator struct {
	id, secret string
	recovery   []string
	now        func() time.Time
	last       int64 // time step of the last code
}

// code returns a code that it hasn't returned before, since the server accepts each code once.
// It may be ahead of the clock: the server accepts codes of the next time step, too.
func (a *authenticator) code(t *testing.T) string {
	t.Helper()
	seed, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(a.secret)
	if err != nil {
		t.Fatal(err)
	}
	a.last = max(a.last+1, totp.Step(a.now()))
	return totp.Code(seed, a.last)
}

// wrongRecovery has the form of a recovery code.
const wrongRecovery = "AAAA-BBBB-CCCC-DDDD-EEEE-FFFF"

// enrolTOTP sets up an authenticator app for the person of a session.
func (s *server) enrolTOTP(t *testing.T, token string) *authenticator {
	t.Helper()
	e := s.send(t, totpPath, nil, as(token)).ok(http.StatusCreated)
	a := &authenticator{id: e.text("id"), secret: e.text("secret"), now: s.clock.now}
	done := s.send(t, confirmPath, m{"id": a.id, "code": a.code(t)}, as(token)).ok(http.StatusOK).follow(token)
	if codes, ok := done.at("recoveryCodes").([]any); ok {
		for _, code := range codes {
			a.recovery = append(a.recovery, code.(string))
		}
	}
	return a
}

// A second factor is set up, used in logins, renamed and removed. Each change sends a mail.
func TestSecondFactor(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "ADMIN")
		mails := d.newMails(t, ann.Email)
		e := d.send(t, totpPath, m{}, as(ann.Token())).ok(http.StatusCreated)
		if uri := e.text("uri"); !strings.HasPrefix(uri, "otpauth://totp/Doorward:") || !strings.Contains(uri, "secret="+e.text("secret")) {
			t.Errorf("the address for apps is %s", uri)
		}
		d.send(t, confirmPath, m{"id": e.text("id"), "code": "000000"}, as(ann.Token())).invalid("/code", "wrong")
		a := d.enrolTOTP(t, ann.Token())
		if len(a.recovery) != 10 {
			t.Errorf("recovery codes: %q", a.recovery)
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).is("session.aal", 2.0)
		list := d.send(t, "GET /api/v2/auth/factors", nil, as(ann.Token())).ok(http.StatusOK).members("", "items", "recoveryCodes", "total").is("recoveryCodes", 10.0)
		if one := list.at("items").([]any)[0].(m); one["id"] != a.id || one["type"] != "totp" || one["name"] == "" || one["lastUsedAt"] == nil {
			t.Errorf("the factor is listed as %v", one)
		}
		if strings.Contains(string(list.body), a.secret) {
			t.Error("the secret is shown again")
		}

		asked := d.login(t, ann.Email, password).fails(http.StatusForbidden, "mfa_required")
		if left := asked.instant("expiresAt").Sub(d.clock.now()); left <= 0 || left > 5*time.Minute || len(asked.cookies()) > 0 {
			t.Errorf("%v left, cookies %q", left, asked.cookies())
		}
		challenge := asked.text("challenge")
		d.send(t, secondPath, m{"challenge": challenge, "code": "000000"}).fails(http.StatusUnauthorized, "invalid_code")
		signedIn := d.send(t, secondPath, m{"challenge": challenge, "code": a.code(t)}).ok(http.StatusOK).members("", "token", "expiresAt", "idleExpiresAt", "user", "aal").is("aal", 2.0)
		d.send(t, "GET /api/v2/auth/session", nil, as(signedIn.text("token"))).is("session.aal", 2.0).ok(http.StatusOK)
		d.send(t, secondPath, m{"challenge": challenge, "code": a.code(t)}).fails(http.StatusGone, "challenge_over")

		codes := d.send(t, "POST /api/v2/auth/factors/recovery", nil, as(signedIn.text("token"))).ok(http.StatusOK).members("", "codes")
		challenge = d.login(t, ann.Email, password).text("challenge")
		d.send(t, secondPath, m{"challenge": challenge, "recoveryCode": a.recovery[0]}).fails(http.StatusUnauthorized, "invalid_code")
		d.send(t, secondPath, m{"challenge": challenge, "recoveryCode": codes.at("codes").([]any)[0]}).ok(http.StatusOK)

		d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfa": "required", "mfaRoles": []string{"ADMIN"}}}).ok(http.StatusOK)
		d.send(t, "DELETE /api/v2/auth/factors/"+a.id, nil, as(signedIn.text("token"))).fails(http.StatusConflict, "mfa_required_here")
		d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfa": "optional"}}).ok(http.StatusOK)
		d.send(t, "PATCH /api/v2/auth/factors/"+a.id, m{"name": "Phone"}, as(signedIn.text("token"))).ok(http.StatusOK).is("name", "Phone")
		d.send(t, "DELETE /api/v2/auth/factors/"+a.id, nil, as(signedIn.text("token"))).ok(http.StatusNoContent)
		d.login(t, ann.Email, password).ok(http.StatusOK).members("", "token", "expiresAt", "idleExpiresAt", "user")
		d.deliver(t)
		var subjects []string
		for _, mail := range mails() {
			subjects = append(subjects, mail.Subject)
		}
		for _, want := range []string{"was added", "New recovery codes", "recovery code was used", "was removed"} {
			if !strings.Contains(strings.Join(subjects, "\n"), want) {
				t.Errorf("no mail says %q: %q", want, subjects)
			}
		}
	}, masterKey(t))
}

// Where a tenant requires a factor, the first one is set up at the login, also after an
// administrator's reset.
func TestDemandedFactor(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		tag := d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfa": "required", "mfaRoles": []string{"USER"}, "mfaRememberDays": 7}}).ok(http.StatusOK).header.Get("ETag")
		if now := d.send(t, "GET /api/v2/tenant", nil, as(acme.Owner.Token())).header.Get("ETag"); now != tag {
			t.Errorf("after the change the tenant has the ETag %s, the answer to the change had %s", now, tag)
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).fails(http.StatusUnauthorized, "unauthenticated")
		challenge := d.login(t, ann.Email, password).fails(http.StatusForbidden, "mfa_enrolment_required").text("challenge")
		d.send(t, secondPath, m{"challenge": challenge, "code": "000000"}).fails(http.StatusGone, "challenge_over")
		e := d.send(t, totpPath, m{"challenge": challenge}).ok(http.StatusCreated)
		a := &authenticator{id: e.text("id"), secret: e.text("secret"), now: d.clock.now}
		d.send(t, confirmPath, m{"challenge": challenge, "id": a.id, "code": "000000"}).fails(http.StatusUnauthorized, "invalid_code")
		signedIn := d.send(t, confirmPath, m{"challenge": challenge, "id": a.id, "code": a.code(t)}).ok(http.StatusOK).is("aal", 2.0).is("user.email", ann.Email)
		if len(signedIn.cookies()) == 0 || len(signedIn.at("recoveryCodes").([]any)) != 10 {
			t.Errorf("the first factor is answered with the cookies %q: %s", signedIn.cookies(), signedIn.body)
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(signedIn.text("token"))).ok(http.StatusOK)

		asked := d.login(t, ann.Email, password).fails(http.StatusForbidden, "mfa_required")
		done := d.send(t, secondPath, m{"challenge": asked.text("challenge"), "code": a.code(t), "rememberDevice": true}).ok(http.StatusOK)
		device, _, _ := strings.Cut(cookieNamed(done, "doorward_device"), ";")
		again := d.login(t, ann.Email, password, cookie(device)).ok(http.StatusOK)
		d.send(t, "GET /api/v2/auth/session", nil, as(again.text("token"))).is("session.aal", 1.0)

		d.send(t, "POST /api/v2/users/"+d.Tenant("Globex").Owner.ID+"/mfa/reset", nil, as(acme.Owner.Token())).fails(http.StatusNotFound, "not_found")
		d.send(t, "POST /api/v2/users/"+ann.ID+"/mfa/reset", nil, as(acme.Owner.Token())).ok(http.StatusAccepted)
		d.send(t, "GET /api/v2/auth/session", nil, as(again.text("token"))).fails(http.StatusUnauthorized, "unauthenticated")
		d.login(t, ann.Email, password, cookie(device)).fails(http.StatusForbidden, "mfa_required")
		token := d.code(t, ann.Email)
		d.send(t, resetFactorsPath, m{"token": token, "password": "wrong"}).fails(http.StatusUnauthorized, "invalid_credentials")
		d.send(t, resetFactorsPath, m{"token": token, "password": password}).ok(http.StatusNoContent)
		d.send(t, resetFactorsPath, m{"token": token, "password": password}).fails(http.StatusGone, "reset_used")
		d.login(t, ann.Email, password).fails(http.StatusForbidden, "mfa_enrolment_required")
	}, masterKey(t))
}

// A browser that is remembered gets a cookie of its own, and only a cookie that comes alone stands in for
// the factor: a person who knew the password before there was a factor, or has another host of the domain,
// can plant a cookie in the person's browser.
func TestPlantedDeviceIsNeverRemembered(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, bob := acme.Join("ann@acme.example", "USER"), acme.Join("bob@acme.example", "USER")
		d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfaRememberDays": 7}}).ok(http.StatusOK)
		planted := deviceOf(d.login(t, ann.Email, password))
		bobs := deviceOf(d.login(t, bob.Email, password))
		a := d.enrolTOTP(t, ann.Token())
		second := func(devices ...string) answer {
			t.Helper()
			asked := d.login(t, ann.Email, password, cookie(strings.Join(devices, "; "))).fails(http.StatusForbidden, "mfa_required")
			d.Advance(time.Minute)
			return d.send(t, secondPath, m{"challenge": asked.text("challenge"), "code": a.code(t), "rememberDevice": true}, cookie(strings.Join(devices, "; "))).ok(http.StatusOK)
		}
		own := deviceOf(second(planted))
		if own == "" || own == planted {
			t.Fatalf("the remembered browser got the cookie %q, and had %q", own, planted)
		}
		d.login(t, ann.Email, password, cookie(planted)).fails(http.StatusForbidden, "mfa_required")
		d.login(t, ann.Email, password, cookie(own)).ok(http.StatusOK)
		d.login(t, ann.Email, password, cookie(own+"; "+bobs)).fails(http.StatusForbidden, "mfa_required")
		d.login(t, ann.Email, password, cookie(bobs+"; "+own)).fails(http.StatusForbidden, "mfa_required")
		again := deviceOf(second(own, bobs))
		d.login(t, ann.Email, password, cookie(own)).fails(http.StatusForbidden, "mfa_required")
		d.login(t, ann.Email, password, cookie(again)).ok(http.StatusOK)
	}, masterKey(t))
}

// Whatever raises a session gives it a new identifier: somebody else may know the old one.
func TestRaisedSessionHasANewToken(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
		old := ann.Token()
		enrolled := d.send(t, totpPath, nil, as(old)).ok(http.StatusCreated)
		a := &authenticator{id: enrolled.text("id"), secret: enrolled.text("secret"), now: d.clock.now}
		done := d.send(t, confirmPath, m{"id": a.id, "code": a.code(t)}, as(old)).ok(http.StatusOK).is("session.aal", 2.0).is("session.current", true)
		code := done.text("token")
		if got := cookieNamed(done, "JSESSIONID"); !strings.HasPrefix(got, "JSESSIONID="+code+";") || code == old {
			t.Errorf("the cookie is %q, the token %q, and was %q", got, code, old)
		}
		key := passkeytest.New(passkeyOrigin)
		begun := d.send(t, beginPasskeyPath, nil, as(code)).ok(http.StatusOK)
		added := d.send(t, finishPasskeyPath, m{"challenge": begun.text("challenge"), "credential": createCredential(t, key, begun)}, as(code)).ok(http.StatusOK)
		for _, ended := range []string{old, code} {
			d.send(t, sessionPath, nil, as(ended)).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.send(t, sessionPath, nil, as(added.text("token"))).ok(http.StatusOK).is("session.id", done.text("session.id"))
	}, withPasskeys())
}

// Without a master key, factors, the setting that requires them and webhooks are refused with
// master_key_missing.
func TestFactorsWithoutMasterKey(t *testing.T) {
	t.Parallel()
	d := start(t, doorwardtest.Database(dbtest.Postgres(t)))
	owner := d.Tenant("Acme").Owner
	d.send(t, totpPath, m{}, as(owner.Token())).fails(http.StatusConflict, "master_key_missing")
	d.patchTenant(t, owner.Token(), m{"settings": m{"mfa": "required"}}).fails(http.StatusConflict, "master_key_missing")
	d.send(t, "POST "+hooksPath, m{"url": "http://localhost:9/", "events": []string{"*"}}, as(owner.Token())).fails(http.StatusConflict, "master_key_missing")
	d.patchTenant(t, owner.Token(), m{"settings": m{"mfa": "demanded"}}).invalid("/settings/mfa", "invalid")
	d.patchTenant(t, owner.Token(), m{"settings": m{"mfaRoles": []string{"USER", "NONE"}}}).invalid("/settings/mfaRoles/1", "invalid")
}

// A correct code is refused in a frozen or closing tenant, and when the person was suspended
// after the password was accepted. Attempts over the limit are refused, too.
func TestSecondStepIsRefused(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann, ben := acme.Join("ann@acme.example", "USER"), acme.Join("ben@acme.example", "USER")
		a := d.enrolTOTP(t, ann.Token())
		secondStep := func(code string) m {
			t.Helper()
			return m{"challenge": d.login(t, ann.Email, password).fails(http.StatusForbidden, "mfa_required").text("challenge"), "code": code}
		}
		d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfa": "required", "mfaRoles": []string{"USER"}}}).ok(http.StatusOK)
		first := d.login(t, ben.Email, password).fails(http.StatusForbidden, "mfa_enrolment_required").text("challenge")
		e := d.send(t, totpPath, m{"challenge": first}).ok(http.StatusCreated)
		b := &authenticator{id: e.text("id"), secret: e.text("secret"), now: d.clock.now}
		late := secondStep(a.code(t))
		for status, code := range map[doorward.TenantStatus]string{doorward.TenantFrozen: "tenant_frozen", doorward.TenantClosing: "tenant_closing"} {
			d.setTenantStatus(t, acme, status)
			d.send(t, secondPath, late).fails(http.StatusForbidden, code)
			d.send(t, confirmPath, m{"challenge": first, "id": b.id, "code": b.code(t)}).fails(http.StatusForbidden, code)
		}
		d.setTenantStatus(t, acme, doorward.TenantActive)
		d.suspend(t, acme.ID, ann.ID)
		d.send(t, secondPath, late).fails(http.StatusGone, "challenge_over")
		d.patchUser(t, acme.Owner, ann.ID, m{"status": "active"}).ok(http.StatusOK)
		d.Advance(time.Hour)
		late = secondStep("000000")
		d.send(t, secondPath, late).fails(http.StatusUnauthorized, "invalid_code")
		d.send(t, secondPath, late).fails(http.StatusTooManyRequests, "too_many_attempts")
		d.send(t, "POST /api/v2/users/"+ann.ID+"/mfa/reset", nil, as(acme.Owner.Login())).ok(http.StatusAccepted)
		d.send(t, resetFactorsPath, m{"token": d.code(t, ann.Email), "password": password}).fails(http.StatusTooManyRequests, "too_many_attempts")
	}, masterKey(t), doorwardtest.LoginLimits(3, 1000))
}

// A switch to a tenant that requires a factor is answered with a challenge. The session stays
// until the challenge is completed.
func TestSwitchAsksForASecondFactor(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, ann := d.inTwoTenants(t, "USER", "USER")
		weak := d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).ok(http.StatusOK).text("token")
		d.patchTenant(t, globex.Owner.Token(), m{"settings": m{"mfa": "required", "mfaRoles": []string{"USER"}}}).ok(http.StatusOK)
		asked := d.send(t, switchPath, m{"tenantId": globex.ID}, as(weak)).fails(http.StatusForbidden, "mfa_enrolment_required").text("challenge")
		d.send(t, sessionPath, nil, as(weak)).ok(http.StatusOK)
		e := d.send(t, totpPath, m{"challenge": asked}).ok(http.StatusCreated)
		a := &authenticator{id: e.text("id"), secret: e.text("secret"), now: d.clock.now}
		d.send(t, confirmPath, m{"challenge": asked, "id": a.id, "code": a.code(t)}).ok(http.StatusOK).is("user.tenantId", globex.ID)
		d.send(t, sessionPath, nil, as(weak)).fails(http.StatusUnauthorized, "unauthenticated")

		d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfaRememberDays": 7}}).ok(http.StatusOK)
		signedIn := d.send(t, secondPath, m{"challenge": d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).text("challenge"), "code": a.code(t), "rememberDevice": true}).ok(http.StatusOK)
		device, _, _ := strings.Cut(cookieNamed(signedIn, "doorward_device"), ";")
		weak = d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}, cookie(device)).ok(http.StatusOK).text("token")
		asked = d.send(t, switchPath, m{"tenantId": globex.ID}, as(weak), cookie(device)).fails(http.StatusForbidden, "mfa_required").text("challenge")
		d.Advance(time.Minute)
		d.send(t, secondPath, m{"challenge": asked, "code": a.code(t)}).ok(http.StatusOK).is("user.tenantId", globex.ID).is("aal", 2.0)
	}, masterKey(t))
}

// Setting up the first factor by a switch needs a recent proof, as it does without a switch.
func TestSwitchByAnOldSessionSetsUpNoFactor(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, globex, ann := d.inTwoTenants(t, "USER", "USER")
		old := d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).ok(http.StatusOK).text("token")
		d.patchTenant(t, globex.Owner.Token(), m{"settings": m{"mfa": "required"}}).ok(http.StatusOK)
		d.Advance(11 * time.Minute)
		d.send(t, switchPath, m{"tenantId": globex.ID}, as(old)).fails(http.StatusForbidden, "step_up_required")
		proved := d.stepUp(t, old)
		d.send(t, switchPath, m{"tenantId": globex.ID}, as(proved)).fails(http.StatusForbidden, "mfa_enrolment_required")
	}, masterKey(t))
}

// Only those who manage people can list who has no second factor.
func TestPeopleWithoutFactor(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		d.enrolTOTP(t, ann.Token())
		found := func(filter string) string { // how many, and whether ann is among them
			t.Helper()
			r := d.send(t, "GET /api/v2/users?factor="+filter, nil, as(acme.Owner.Token())).ok(http.StatusOK)
			return fmt.Sprint(strings.Count(string(r.body), `"email"`), strings.Contains(string(r.body), ann.Email))
		}
		if got := found("none") + ", " + found("any") + ", " + found(""); got != "1 false, 1 true, 2 true" {
			t.Errorf("the filters find %s", got)
		}
		d.send(t, "GET /api/v2/users?factor=some", nil, as(acme.Owner.Token())).fails(http.StatusUnprocessableEntity, "validation_failed")
		d.send(t, "GET /api/v2/users?factor=none", nil, as(ann.Token())).fails(http.StatusForbidden, "forbidden")
	}, masterKey(t))
}

func TestFactorRefusals(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
		a := d.enrolTOTP(t, ann.Token())
		d.send(t, "PATCH /api/v2/auth/factors/"+a.id, m{"name": ""}, as(ann.Token())).invalid("/name", "required")
		d.send(t, confirmPath, m{"id": a.id, "code": "123456"}, as(ann.Token())).fails(http.StatusNotFound, "not_found")
		d.send(t, confirmPath, m{"id": a.id, "code": "123456"}).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, totpPath, m{"name": strings.Repeat("x", 101)}, as(ann.Token())).invalid("/name", "out_of_range")
		for range doorward.MaxFactors - 1 {
			d.enrolTOTP(t, ann.Token())
		}
		d.send(t, totpPath, m{}, as(ann.Token())).fails(http.StatusConflict, "too_many_factors")
	}, masterKey(t))
}

// A person with a second factor must have proved it recently for each of these requests.
func TestFactorsNeedARecentProof(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		bob := acme.Join("bob@acme.example", "USER")
		owner := acme.Owner.Token()
		d.enrolTOTP(t, owner)
		pending := d.send(t, totpPath, m{}, as(owner)).ok(http.StatusCreated)
		a := &authenticator{id: pending.text("id"), secret: pending.text("secret"), now: d.clock.now}
		bobsToken := d.token(t, bob.Email)
		change := func(current, next string, who opt) answer {
			return d.send(t, changePath, m{"currentPassword": current, "password": next, "confirmPassword": next}, who)
		}
		d.Advance(11 * time.Minute)
		for route, body := range map[string]m{
			totpPath:                                 {},
			confirmPath:                              {"id": a.id, "code": a.code(t)},
			"POST /api/v2/auth/factors/recovery":     nil,
			"PATCH /api/v2/auth/factors/mfa_x":       {"name": "x"},
			"DELETE /api/v2/auth/factors/mfa_x":      nil,
			"PATCH /api/v2/users/" + bob.ID:          {"role": "ADMIN"},
			"DELETE /api/v2/tenant":                  {"confirm": "Acme"},
			"POST /api/v2/auth/invite":               {"email": "x@acme.example", "role": "ADMIN"},
			"POST /api/v2/auth/invite/bulk":          {"invitations": []m{{"email": "y@acme.example", "role": "USER"}, {"email": "x@acme.example", "role": "OWNER"}}},
			"POST /api/v2/policy/versions/1/restore": nil,
			"POST /api/v2/users/bulk":                {"ids": []string{bob.ID}, "role": "ADMIN"},
			"GET /api/v2/users?format=csv":           nil,
		} {
			d.send(t, route, body, as(owner)).fails(http.StatusForbidden, "step_up_required")
		}
		// For a person with a factor the current password is no proof: right or wrong, the answer
		// is the same.
		for _, current := range []string{password, "not the password", ""} {
			for _, next := range []string{"three old boats", "short", password} {
				asked := change(current, next, as(owner)).fails(http.StatusForbidden, "step_up_required").is("acr", "aal2").is("maxAge", 600.0)
				if !has(asked.at("methods"), "totp") || has(asked.at("methods"), "password") || asked.text("challenge") == "" {
					t.Errorf("the step-up is asked for with %s", asked.body)
				}
			}
		}
		change(password, "three old boats", as(bobsToken)).ok(http.StatusNoContent) // bob has no factor
	}, masterKey(t))
}

// A tenant's word for a reset reaches its own tenant. The factors go when all active tenants of the
// person have given theirs; the person can refuse with the factor. No tenant learns of another.
func TestResetTakesTheWordOfEachTenant(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		acme, globex, ann := d.inTwoTenants(t, "USER", "USER")
		weak := d.token(t, ann.Email)
		strong := d.send(t, loginPath, m{"email": ann.Email, "password": password, "tenantId": acme.ID}).ok(http.StatusOK).text("token")
		enrolled := d.send(t, totpPath, nil, as(strong)).ok(http.StatusCreated)
		a := &authenticator{id: enrolled.text("id"), secret: enrolled.text("secret"), now: d.clock.now}
		strong = d.send(t, confirmPath, m{"id": a.id, "code": a.code(t)}, as(strong)).ok(http.StatusOK).text("token")
		word := func(by *doorwardtest.Tenant) {
			t.Helper()
			d.send(t, "POST /api/v2/users/"+ann.ID+"/mfa/reset", nil, as(by.Owner.Token())).ok(http.StatusAccepted)
		}
		const keepPath = "DELETE /api/v2/auth/factors/reset"
		d.send(t, keepPath, nil, as(weak)).fails(http.StatusForbidden, "step_up_required").is("acr", "aal2").text("challenge")
		d.send(t, keepPath, nil, as(strong)).ok(http.StatusNoContent)
		mails := d.newMails(t, ann.Email)
		word(globex)
		d.deliver(t)
		told := mails()
		if len(told) != 1 || !strings.Contains(told[0].Text, "Acme") || strings.Contains(told[0].Text, "/factors/reset") {
			t.Fatalf("the word of one of two tenants sends %+v", told)
		}
		person := "GET /api/v2/users/" + ann.ID
		d.send(t, person, nil, as(globex.Owner.Token())).ok(http.StatusOK).members("mfaReset", "askedAt")
		if here := d.send(t, person, nil, as(acme.Owner.Token())).ok(http.StatusOK); here.at("mfaReset") != nil {
			t.Errorf("the other tenant sees the word: %s", here.body)
		}
		if list := d.send(t, "GET /api/v2/users?q=ann", nil, as(globex.Owner.Token())).ok(http.StatusOK); !strings.Contains(string(list.body), `"mfaReset"`) {
			t.Errorf("the list doesn't show the word: %s", list.body)
		}
		d.send(t, resetFactorsPath, m{"token": forged, "password": password}).fails(http.StatusNotFound, "reset_not_found")
		word(acme)
		code := d.code(t, ann.Email)
		again := d.send(t, secondPath, m{"challenge": d.login(t, ann.Email, password).text("challenge"), "code": a.code(t)}).ok(http.StatusOK).text("token")
		d.send(t, keepPath, nil, as(again)).ok(http.StatusNoContent)
		d.send(t, resetFactorsPath, m{"token": code, "password": password}).fails(http.StatusGone, "reset_expired")
		word(acme)
		word(globex)
		code = d.code(t, ann.Email)
		d.send(t, resetFactorsPath, m{"token": code, "password": password}).ok(http.StatusNoContent)
		d.send(t, sessionPath, nil, as(again)).fails(http.StatusUnauthorized, "unauthenticated")
		d.login(t, ann.Email, password).ok(http.StatusOK)
		d.send(t, person, nil, as(globex.Owner.Token())).ok(http.StatusOK).members("", "id", "email", "name", "role", "status", "tenantId", "tenantName", "permissions", "createdAt")
	}, masterKey(t))
}
