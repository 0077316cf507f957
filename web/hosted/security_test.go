package hosted_test

import (
	"encoding/base32"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/store"
)

var (
	secretOnPage = regexp.MustCompile(`<code class="secret" translate="no">([A-Z2-7 ]+)</code>`)
	idOnPage     = regexp.MustCompile(`name="id" value="(mfa_[a-z2-7]+)"`)
	codeOnPage   = regexp.MustCompile(`<li><code>([A-Z2-7-]+)</code></li>`)
)

// phone is an authenticator app that was set up from a page.
type phone struct {
	id   string
	seed []byte
	last int64 // step of the code that it returned last
}

// scan returns the authenticator app that a page sets up.
func scan(t *testing.T, page answer) *phone {
	t.Helper()
	shown, id := secretOnPage.FindStringSubmatch(page.body), idOnPage.FindStringSubmatch(page.body)
	if shown == nil || id == nil || !strings.Contains(page.body, "<svg") || !strings.Contains(page.body, `href="otpauth://totp/`) {
		t.Fatalf("no app can be set up from %s", page.body)
	}
	seed, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ReplaceAll(shown[1], " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return &phone{id: id[1], seed: seed}
}

// code returns a code that it has not returned before. At any time two codes are valid.
func (p *phone) code(s *doorwardtest.Server) string {
	p.last = max(p.last+1, totp.Step(s.Node.App.Now()))
	return totp.Code(p.seed, p.last)
}

func codesOn(page answer) (all []string) {
	for _, found := range codeOnPage.FindAllStringSubmatch(page.body, -1) {
		all = append(all, found[1])
	}
	return all
}

// Setting up an app, signing in with it and with a recovery code, and removing it, in the
// pages and without scripts.
func TestSecondFactorOnPages(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join(ann, "USER")
	if status, body := acme.Owner.Do("PATCH", "/api/v2/tenant", []byte(`{"settings":{"mfaRememberDays":7}}`)); status != 200 {
		t.Fatal(string(body))
	}
	b := open(t, s)
	b.signIn(ann)
	b.get("/account").is(t, 200, "", `href="/account/security"`)
	b.get("/account/security").is(t, 200, "", "There is none yet")
	p := scan(t, b.send("/account/security/totp").is(t, 200, "", "Set up the app"))
	again := b.send("/account/security/totp/confirm", "id", p.id, "code", "000000").is(t, 422, "", "not the code that the app shows")
	if same := scan(t, again); string(same.seed) != string(p.seed) {
		t.Error("a wrong code makes another secret")
	}
	page := b.send("/account/security/totp/confirm", "id", p.id, "code", p.code(s)).is(t, 200, "", "Your recovery codes", "without your second factor")
	recovery := codesOn(page)
	if len(recovery) != doorward.RecoveryCodes {
		t.Fatalf("recovery codes: %q", recovery)
	}
	file := b.send("/recovery-codes.txt", "codes", strings.Join(recovery, "\r\n")).is(t, 200, "")
	if file.body != strings.Join(recovery, "\n")+"\n" || !strings.HasPrefix(file.header.Get("Content-Disposition"), "attachment") || !strings.HasPrefix(file.header.Get("Content-Type"), "text/plain") {
		t.Errorf("the file is %q, with %v", file.body, file.header)
	}
	b.send("/recovery-codes.txt", "codes", "<script>").is(t, 422, "")
	b.get("/account/security").is(t, 200, "", "Authenticator app", "Codes left: 10")

	b = open(t, s)
	b.get("/login/second").is(t, 200, "", "This sign-in is over")
	b.send("/login", "email", ann, "password", secret, "return", "/docs").is(t, 303, "/login/second?return=%2Fdocs")
	b.get("/account").is(t, 303, "/login?return=%2Faccount")
	b.get("/login/second?return=%2Fdocs").is(t, 200, "", "Code from the app", "for 7 days", "with=recovery")
	b.send("/login/second", "code", "000000", "return", "/docs").is(t, 401, "", "not right")
	b.send("/login/second", "code", p.code(s), "remember", "1", "return", "/docs").is(t, 303, "/docs")
	b.get("/account/security").is(t, 200, "", "Ask again")
	b.send("/logout").is(t, 303, "/login?done=signed-out")
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/account") // the browser is remembered

	b = open(t, s)
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/login/second")
	b.get("/login/second?with=recovery").is(t, 200, "", "Recovery code")
	b.send("/login/second", "with", "recovery", "recoveryCode", strings.Repeat("a", 24)).is(t, 401, "", "Recovery code", "not right")
	b.send("/login/second", "with", "recovery", "recoveryCode", strings.ToLower(recovery[0])).is(t, 303, "/account")
	b.get("/account/security").is(t, 200, "", "Codes left: 9")
	b.send("/account/security/rename", "id", p.id, "name", "My <b>phone").is(t, 303, "/account/security?done=renamed")
	b.get("/account/security").is(t, 200, "", "My &lt;b&gt;phone")
	b.get("/account/security").is(t, 200, "", `href="/account/security/recovery"`, `href="/account/security/remove/`+p.id+`"`)
	b.get("/account/security/recovery").is(t, 200, "", "Make new recovery codes?", "stop working at once", `action="/account/security/recovery"`, `href="/account/security"`)
	if more := codesOn(b.send("/account/security/recovery").is(t, 200, "")); len(more) != doorward.RecoveryCodes || more[0] == recovery[0] {
		t.Errorf("new codes: %q", more)
	}
	s.Advance(11 * time.Minute)
	if page := b.get("/account/security").is(t, 200, "", `href="/step-up?return=/account/security%3Fchange%3Dpassword%23password"`); strings.Contains(page.body, `name="currentPassword"`) {
		t.Error("there is a form for the password before the proof")
	}
	for _, question := range []string{"/account/security/recovery", "/account/security/remove/" + p.id} {
		if page := b.get(question).is(t, 200, "", `href="/step-up?return=`+question+`"`); strings.Contains(page.body, `action="`+question) {
			t.Errorf("%s has a form before the proof", question)
		}
		b.send(question).is(t, 303, question)
	}
	b.send("/account/password", "currentPassword", "wrong", "password", fresh, "confirmPassword", fresh).is(t, 303, "/step-up?return=%2Faccount%2Fsecurity%3Fchange%3Dpassword%23password")
	b.get("/step-up?return=%2Faccount%2Fsecurity%3Fchange%3Dpassword%23password").is(t, 200, "", `value="/account/security?change=password#password"`)
	b.send("/step-up", "code", p.code(s), "return", "/account/security?change=password#password").is(t, 303, "/account/security?change=password#password")
	b.send("/account/password", "currentPassword", secret, "password", fresh, "confirmPassword", fresh).is(t, 303, "/account/security?done=password")
	b.get("/account/security/remove/"+p.id).is(t, 200, "", "Remove this second factor?", "My &lt;b&gt;phone", "It is your only one", `href="/account/security"`)
	b.send("/account/security/remove/"+p.id).is(t, 303, "/account/security?done=removed")
	b.get("/account/security/remove/"+p.id).is(t, 404, "")
	b.get("/account/security/recovery").is(t, 404, "")
	b.get("/account/security?done=removed").is(t, 200, "", "is removed", "There is none yet")
	open(t, s).send("/login", "email", ann, "password", fresh).is(t, 303, "/account")
}

// Another host of the domain can set a challenge of its own. Then none counts, so that nobody completes
// somebody else's sign-in, and all are deleted, so that the next sign-in works.
func TestSeveralChallenges(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join(ann, "USER")
	b := open(t, s)
	b.signIn(ann)
	p := scan(t, b.send("/account/security/totp"))
	b.send("/account/security/totp/confirm", "id", p.id, "code", p.code(s)).is(t, 200, "")

	b = open(t, s)
	planted := &http.Cookie{Name: "doorward_challenge", Value: absent, Path: "/login"}
	b.Jar.SetCookies(&url.URL{Scheme: "http", Host: strings.TrimPrefix(b.url, "http://"), Path: "/login"}, []*http.Cookie{planted})
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/login/second")
	b.get("/login/second").is(t, 200, "", "This sign-in is over")
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/login/second")
	b.send("/login/second", "code", p.code(s)).is(t, 303, "/account")
}

// A form about something that another tab has replaced or removed says so, rather than that the
// address may be mistyped.
func TestFormsAboutWhatNoLongerExists(t *testing.T) {
	s := doorwardtest.Start(t)
	s.Tenant("Acme").Join(ann, "USER")
	b := open(t, s)
	b.signIn(ann)
	replaced := scan(t, b.send("/account/security/totp").is(t, 200, ""))
	p := scan(t, b.send("/account/security/totp").is(t, 200, ""))
	b.send("/account/security/totp/confirm", "id", replaced.id, "code", replaced.code(s)).is(t, 404, "", "There is none yet", "removed or replaced since")
	b.send("/account/security/totp/confirm", "id", p.id, "code", p.code(s)).is(t, 200, "")
	b.send("/account/security/remove/"+replaced.id).is(t, 404, "", "removed or replaced since")
	b.send("/account/leave/tnt_aaaaaaaaaaaaaaaaaaaaaaaaaa").is(t, 404, "", "There is nothing here", "removed or replaced since")
	b.get("/account/leave/tnt_aaaaaaaaaaaaaaaaaaaaaaaaaa").is(t, 404, "", "may be mistyped")
}

// After 120 changes of one's own within an hour, the pages say when the next one is possible.
func TestOwnLimitsOnPages(t *testing.T) {
	s := doorwardtest.Start(t)
	user := s.Tenant("Acme").Join(ann, "USER")
	b := open(t, s)
	b.signIn(ann)
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) (err error) {
		for i := 0; i < 120 && err == nil; i++ {
			_, err = tx.HitThrottle(t.Context(), "changes:"+user.ID, time.Hour)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.send("/account/name", "name", "Ann").is(t, 429, "", "too many attempts. Try again in 60 minutes")
	b.send("/account/security/totp").is(t, 429, "", "too many attempts. Try again in 60 minutes")
	s.Advance(time.Hour)
	b.signIn(ann)
	b.send("/account/name", "name", "Ann").is(t, 303, "/account?done=name")
}

// After 100 wrong codes in a row waiting doesn't help, so the pages say what does. The message
// about a delay says that a reset by mail ends it.
func TestRefusedCodesOnPages(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.LoginLimits(5, 30))
	user := s.Tenant("Acme").Join(ann, "USER")
	signedIn := open(t, s)
	signedIn.signIn(ann)
	p := scan(t, signedIn.send("/account/security/totp").is(t, 200, ""))
	signedIn.send("/account/security/totp/confirm", "id", p.id, "code", p.code(s)).is(t, 200, "")
	b := open(t, s)
	err := s.Node.App.Access.Upkeep(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.HitThrottle(t.Context(), "codes:"+user.ID, time.Hour); err != nil {
			return err
		}
		return tx.DelayThrottle(t.Context(), "codes:"+user.ID, tx.Now.AddDate(1, 0, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/login/second")
	b.send("/login/second", "code", p.code(s)).is(t, 429, "", "codes from the app are not accepted any more", "with=recovery")
	s.Advance(11 * time.Minute)
	signedIn.send("/step-up", "code", p.code(s)).is(t, 429, "", "codes from the app are not accepted any more")
	for range 5 {
		b.send("/login", "email", "bob@acme.example", "password", "wrong").is(t, 401, "")
	}
	b.send("/login", "email", "bob@acme.example", "password", "wrong").is(t, 429, "", "If this comes again and again")
}

// Where a tenant demands a factor, the login leads through setting one up. It does so again
// after an administrator's reset, which the person confirms with the code of a mail.
func TestDemandedFactorOnPages(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	user := acme.Join(ann, "USER")
	if status, body := acme.Owner.Do("PATCH", "/api/v2/tenant", []byte(`{"settings":{"mfa":"required","mfaRoles":["USER"]}}`)); status != 200 {
		t.Fatal(string(body))
	}
	b := open(t, s)
	b.get("/login/enrol").is(t, 200, "", "This sign-in is over")
	b.send("/login", "email", ann, "password", secret, "return", "/docs").is(t, 303, "/login/enrol?return=%2Fdocs")
	b.get("/login/enrol?return=%2Fdocs").is(t, 200, "", "demands a second factor")
	p := scan(t, b.send("/login/enrol", "return", "/docs").is(t, 200, ""))
	if same := scan(t, b.send("/login/enrol/confirm", "id", p.id, "code", "000000", "return", "/docs").is(t, 401, "", "not right")); same.id != p.id {
		t.Error("a wrong code makes another secret")
	}
	b.send("/login/enrol/confirm", "id", p.id, "code", p.code(s), "return", "/docs").is(t, 200, "", "Your recovery codes", `href="/docs"`)
	b.get("/account/security").is(t, 200, "", "Codes left: 10")
	b.send("/account/security/remove/"+p.id).is(t, 409, "", "demands a second factor", "Remove this second factor?")

	if status, body := acme.Owner.Post(fmt.Sprintf("/api/v2/users/%s/mfa/reset", user.ID), nil); status != 202 {
		t.Fatal(status, string(body))
	}
	code := s.Code(ann)
	b = open(t, s)
	b.get("/factors/reset").is(t, 200, "", "enter the code")
	b.send("/factors/reset", "token", absent).is(t, 404, "", "not known")
	b.send("/factors/reset", "token", code).is(t, 200, "", "removes all second factors")
	b.send("/factors/reset/confirm", "token", code, "password", "wrong").is(t, 401, "", "not the password")
	b.send("/factors/reset/confirm", "token", code, "password", secret).is(t, 303, "/login?done=factorreset")
	b.get("/login?done=factorreset").is(t, 200, "", "are removed")
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/login/enrol")
	s.Advance(doorward.ChallengeLife + time.Second)
	b.get("/login/enrol").is(t, 200, "", "This sign-in is over")
}

// An invitation is accepted with the second factor, without scripts: the page of the second step takes
// the code of the app or a recovery code.
func TestAcceptWithSecondFactorOnPages(t *testing.T) {
	s := doorwardtest.Start(t)
	acme, globex := s.Tenant("Acme"), s.Tenant("Globex")
	weak := acme.Join(ann, "USER")
	b := open(t, s)
	b.signIn(ann)
	p := scan(t, b.send("/account/security/totp").is(t, 200, ""))
	recovery := codesOn(b.send("/account/security/totp/confirm", "id", p.id, "code", p.code(s)).is(t, 200, ""))
	begin := func(b browser, by *doorwardtest.Tenant) (token, challenge string) {
		t.Helper()
		if status, body := by.Owner.Post("/api/v2/auth/invite", map[string]string{"email": ann, "role": "USER"}); status != 201 {
			t.Fatal(string(body))
		}
		token = s.Code(ann)
		page := b.send("/accept/join", "token", token, "password", secret, "return", "/docs").is(t, 200, "", "Code from the app", "Join", `action="/accept/second"`)
		found := regexp.MustCompile(`name="challenge" value="([^"]+)"`).FindStringSubmatch(page.body)
		if found == nil || strings.Contains(page.body, "login/second") {
			t.Fatalf("the second step is\n%s", page.body)
		}
		return token, found[1]
	}

	b = open(t, s)
	token, challenge := begin(b, globex)
	b.send("/accept/second", "token", token, "challenge", challenge, "code", "000000", "return", "/docs").is(t, 401, "", "not right", challenge)
	b.send("/accept/second", "token", token, "challenge", challenge, "code", "").is(t, 422, "", challenge)
	b.send("/accept/second/other", "token", token, "challenge", challenge, "with", "recovery").is(t, 200, "", "Recovery code", challenge)
	b.send("/accept/second", "token", token, "challenge", absent, "code", "000000").is(t, 410, "", "Enter its password")
	b.send("/accept/second", "token", token, "challenge", challenge, "code", p.code(s), "return", "/docs").is(t, 303, "/login?done=joined&return=%2Fdocs")
	b.send("/accept/second", "token", token, "challenge", challenge, "code", "000000").is(t, 410, "", "accepted before")

	token, challenge = begin(b, s.Tenant("Initech"))
	b.send("/accept/second", "token", token, "challenge", challenge, "with", "recovery", "recoveryCode", recovery[0]).is(t, 303, "/login?done=joined")
	if status, body := s.Tenant("Umbrella").Owner.Post("/api/v2/auth/invite", map[string]string{"email": ann, "role": "USER"}); status != 201 {
		t.Fatal(string(body))
	}
	old := open(t, s)
	old.setSession(weak.Token())
	old.send("/accept/join", "token", s.Code(ann)).is(t, 403, "", "step-up")
}
