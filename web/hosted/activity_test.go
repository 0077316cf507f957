package hosted_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
)

var (
	browserOnPage = regexp.MustCompile(`name="id" value="([0-9a-f]{16})"`)
	sessionOnPage = regexp.MustCompile(`name="session" value="(ses_[a-z2-7]+)"`)
)

func idsOn(page answer, pattern *regexp.Regexp) (all []string) {
	for _, found := range pattern.FindAllStringSubmatch(page.body, -1) {
		all = append(all, found[1])
	}
	return all
}

// The page lists the browsers that aren't asked for the second step, with when and from which
// address it was done, and can make them ask again, one or all.
func TestRememberedBrowsersOnPages(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join(ann, "USER")
	setRememberDays := func(days string) {
		t.Helper()
		body := strings.NewReader(`{"settings":{"mfaRememberDays":` + days + `}}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, s.URL+"/api/v2/tenant", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+acme.Owner.Login()) // a fresh one, which may loosen
		req.Header.Set("Content-Type", "application/json")
		res, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
	}
	setRememberDays("7")
	first := open(t, s)
	first.signIn(ann)
	p := scan(t, first.send("/account/security/totp"))
	first.send("/account/security/totp/confirm", "id", p.id, "code", p.code(s)).is(t, 200, "")
	first.get("/account/security").is(t, 200, "", "Every browser is asked")
	var browsers []browser
	for range 3 {
		s.Advance(doorward.ChallengeLife) // for another code
		b := open(t, s)
		b.agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"
		b.send("/login", "email", ann, "password", secret).is(t, 303, "/login/second")
		b.send("/login/second", "code", p.code(s), "remember", "1").is(t, 303, "/account")
		browsers = append(browsers, b)
	}
	page := browsers[2].get("/account/security").is(t, 200, "", "<strong>Firefox on Linux</strong>", "Second factor used on", "127.0.0.1")
	ids := idsOn(page, browserOnPage)
	if len(ids) != 3 || strings.Count(page.body, "until <time") != 3 {
		t.Fatalf("browsers are %q", ids)
	}
	first.send("/account/security/browsers/forget", "id", "").is(t, 422, "") // and not all of them
	first.send("/account/security/browsers/forget", "id", ids[0]).is(t, 303, "/account/security?done=forgotten")
	first.send("/account/security/browsers/forget", "id", ids[0]).is(t, 303, "/account/security?done=forgotten")
	first.get("/account/security?done=forgotten").is(t, 200, "", "asked for again")
	checkAsked := func(want ...bool) {
		t.Helper()
		for i, b := range browsers {
			to := "/account"
			if want[i] {
				to = "/login/second"
			}
			b.send("/login", "email", ann, "password", secret).is(t, 303, to)
		}
	}
	checkAsked(false, false, true) // the latest is the first on the page
	setRememberDays("0")
	first.get("/account/security").is(t, 200, "", "Every browser is asked")
	setRememberDays("7")
	first.send("/account/security/browsers/forget-all").is(t, 303, "/account/security?done=forgotten")
	checkAsked(true, true, true)
}

// The tab of sessions lists them and can end them. It lists what happened to the
// account, with time, device and address, including what others did.
func TestActivityOnPages(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	user := acme.Join(ann, "USER")
	open(t, s).signIn(ann)
	b := open(t, s)
	b.agent = "Mozilla/5.0 (iPhone) Version/18.0 Mobile Safari/604.1"
	b.signIn(ann)
	p := scan(t, b.send("/account/security/totp"))
	b.send("/account/security/totp/confirm", "id", p.id, "code", p.code(s)).is(t, 200, "")
	b.send("/step-up", "code", p.code(s)).is(t, 303, "/step-up?done=proved")
	b.send("/account/security/rename", "id", p.id, "name", "Phone").is(t, 303, "/account/security?done=renamed")
	other := open(t, s)
	other.send("/login", "email", ann, "password", secret).is(t, 303, "/login/second")
	other.send("/login/second", "code", "000000").is(t, 401, "")
	s.Node.App.Inbox.RecordPending(t.Context())
	page := b.get("/account?tab=sessions").is(t, 200, "",
		"Signed in", "Authenticator app set up", "Proved again", "Second factor renamed", "Second step refused", "Safari on iPhone", "UTC</time>", "127.0.0.1")
	sessions := idsOn(page, sessionOnPage)
	if len(sessions) < 2 {
		t.Fatalf("sessions are %q", sessions)
	}
	b.send("/account/sessions/end", "session", sessions[1]).is(t, 303, "/account?tab=sessions&done=session")
	b.send("/account/sessions/end-others").is(t, 303, "/account?tab=sessions&done=sessions")
	if remaining := idsOn(b.get("/account?tab=sessions"), sessionOnPage); len(remaining) != 1 || remaining[0] != sessions[0] {
		t.Errorf("sessions are %q", remaining)
	}
	if status, body := acme.Owner.Post("/api/v2/users/"+user.ID+"/mfa/reset", nil); status != 202 {
		t.Fatal(string(body))
	}
	b = open(t, s)
	code := s.Code(ann)
	b.send("/factors/reset/confirm", "token", code, "password", secret).is(t, 303, "/login?done=factorreset")
	b.signIn(ann)
	b.get("/account?tab=sessions").is(t, 200, "", "Reset of second factors", "by an administrator or the operator", "All second factors removed, with a code from a mail")
	b.get("/account?tab=sessions&lang=de").is(t, 200, "", "Letzte Aktivitäten", " UTC</time>", "durch einen Administrator")
}
