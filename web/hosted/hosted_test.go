package hosted_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/web/ui/uitest"
)

// browser is a client that keeps cookies and follows no redirect.
type browser struct {
	*testing.T
	*http.Client
	url   string
	agent string // User-Agent; empty for the client's own
	// origin is sent with forms in place of Sec-Fetch-Site, as by a browser without fetch metadata; empty: not.
	origin string
}

func open(t *testing.T, s *doorwardtest.Server) browser { return browser{t, s.Client(), s.URL, "", ""} }

type answer struct {
	status   int
	to, body string
	header   http.Header
}

func (b browser) get(path string) answer { return b.ask("GET", path, nil) }

// send sends a form, given as pairs of name and value.
func (b browser) send(path string, pairs ...string) answer {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return b.ask("POST", path, form)
}

func (b browser) ask(method, path string, form url.Values) answer {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		if b.origin != "" {
			req.Header.Del("Sec-Fetch-Site")
			req.Header.Set("Origin", b.origin)
		}
	}
	if b.agent != "" {
		req.Header.Set("User-Agent", b.agent)
	}
	res, err := b.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{status: res.StatusCode, to: res.Header.Get("Location"), body: string(body), header: res.Header}
}

// is requires a status, a redirect and words on the page.
func (a answer) is(t *testing.T, status int, to string, words ...string) answer {
	t.Helper()
	if a.status != status || a.to != to {
		t.Errorf("answered %d to %q, want %d to %q", a.status, a.to, status, to)
	}
	for _, w := range words {
		if !strings.Contains(a.body, w) {
			t.Errorf("no %q on the page:\n%s", w, a.body)
		}
	}
	return a
}

const (
	ann    = "ann@acme.example"
	secret = doorwardtest.Password
	fresh  = "three old paper boats"                       // a new password
	absent = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" // a code that was never sent
)

// privatePages are the pages that need a session.
var privatePages = []string{"/account", "/account/leave/tnt_x", "/account/erase", "/login/tenant", "/closing", "/account/security", "/account/security/remove/mfa_x", "/account/security/recovery", "/step-up"}

// privateForms are the paths of the forms on them, with the page of each.
var privateForms = map[string]string{
	"/login/tenant": "/login/tenant", "/account/name": "/account", "/account/password": "/account/security", "/account/sessions/end": "/account?tab=sessions",
	"/account/sessions/end-others": "/account?tab=sessions", "/account/leave/tnt_x": "/account?tab=organisations", "/account/erase": "/account/erase", "/closing/restore": "/closing",
	"/account/security/totp": "/account/security", "/account/security/reset/refuse": "/account/security", "/account/security/totp/confirm": "/account/security", "/account/security/recovery": "/account/security",
	"/account/security/rename": "/account/security", "/account/security/remove/mfa_x": "/account/security",
	"/account/security/browsers/forget": "/account/security", "/account/security/browsers/forget-all": "/account/security",
	"/account/security/passkey": "/account/security", "/account/security/passkey/finish": "/account/security",
	"/account/email": "/account", "/step-up": "/step-up",
}

func TestPagesOfAnAccountLeadToTheLogin(t *testing.T) {
	s := doorwardtest.Start(t)
	b := open(t, s)
	for _, path := range privatePages {
		b.get(path).is(t, 303, "/login?return="+url.QueryEscape(path))
	}
	for form, page := range privateForms {
		b.send(form).is(t, 303, "/login?return="+url.QueryEscape(page))
	}
	b.get("/account?a=b").is(t, 303, "/login?return=%2Faccount%3Fa%3Db")
}

// A database fault says nothing about the session: people keep the cookie and aren't
// redirected to the login.
func TestAFaultIsNoLogout(t *testing.T) {
	s := doorwardtest.Start(t)
	s.Tenant("Acme").Join(ann, "USER")
	b := open(t, s)
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/account")
	if err := s.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	answers := map[string]answer{"login": b.send("/login", "email", ann, "password", secret), "logout": b.send("/logout")}
	for _, path := range privatePages {
		answers[path] = b.get(path)
	}
	for form := range privateForms {
		answers[form] = b.send(form)
	}
	for name, a := range answers {
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || len(a.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: %d, Retry-After %q, cookies %q", name, a.status, a.header.Get("Retry-After"), a.header.Values("Set-Cookie"))
		}
		if !strings.Contains(a.body, "if you were signed in, you still are") || !strings.Contains(a.body, a.header.Get("X-Request-Id")) {
			t.Errorf("the page of %s is %s", name, a.body)
		}
	}
}

// The answer is the same for every cause, except for the input and the request's id.
func TestLoginPageHidesTheCause(t *testing.T) {
	s := doorwardtest.Start(t)
	s.Tenant("Acme").Join(ann, "USER")
	var first string
	for _, email := range []string{ann, "nobody@acme.example", "no address", strings.Repeat("x", 300) + "@acme.example"} {
		a := open(t, s).send("/login", "email", email, "password", "wrong")
		a.is(t, 401, "", "Address and password don’t match")
		page := strings.ReplaceAll(a.body, email, "")
		if first == "" {
			first = page
		}
		if page != first {
			t.Errorf("for %.30s the page differs:\n%s\n%s", email, page, first)
		}
		if cookies := a.header.Values("Set-Cookie"); len(cookies) > 0 {
			t.Errorf("%.30s: cookies %q", email, cookies)
		}
	}
}

func TestPasswordsNeverComeBack(t *testing.T) {
	s := doorwardtest.Start(t)
	code := invite(t, s, s.Tenant("Acme").Join(ann, "ADMIN"), "ben@acme.example")
	b := open(t, s)
	const typed = "sesame-typed-here"
	for _, a := range []answer{
		b.send("/login", "email", ann, "password", typed),
		b.send("/accept/register", "token", code, "password", typed, "confirmPassword", typed+"x"),
		b.send("/reset/password", "token", absent, "password", typed, "confirmPassword", typed),
	} {
		if a.status < 400 || strings.Contains(a.body, typed) {
			t.Errorf("answered %d with the password: %s", a.status, a.body)
		}
	}
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/account")
	if a := b.send("/account/password", "currentPassword", typed, "password", typed, "confirmPassword", "x"); strings.Contains(a.body, typed) {
		t.Errorf("answered %d with the password", a.status)
	}
}

// invite sends an invitation by the owner and returns the code of the mail.
func invite(t *testing.T, s *doorwardtest.Server, owner *doorwardtest.Person, email string) string {
	t.Helper()
	if status, body := owner.Post("/api/v2/auth/invite", map[string]string{"email": email, "role": "USER"}); status != http.StatusCreated {
		t.Fatalf("inviting %s: %d %s", email, status, body)
	}
	return s.Code(email)
}

// If the address is filled in, the password field has the focus.
func TestLoginFocusesTheEmptyField(t *testing.T) {
	b := open(t, doorwardtest.Start(t))
	focused := regexp.MustCompile(`<input id="([a-z]+)"[^>]* autofocus`)
	for name, a := range map[string]answer{
		"email":    b.get("/login"),
		"password": b.send("/login", "email", "nobody@acme.example", "password", "wrong"),
	} {
		if all := focused.FindAllStringSubmatch(a.body, -1); len(all) != 1 || all[0][1] != name {
			t.Errorf("the focus is on %q, want %q", all, name)
		}
	}
}

// The page of an invitation says what the role may do by the model in force.
func TestInvitedRoleByModel(t *testing.T) {
	s := doorwardtest.Start(t)
	code := invite(t, s, s.Tenant("Acme").Join(ann, "ADMIN"), "ben@acme.example")
	const model = `{actions: {invoice.read: {about: See invoices, roles: [OWNER, ADMIN, USER]}, invoice.pay: {roles: [OWNER, ADMIN]}}}`
	if _, err := s.Node.App.Models.Apply(t.Context(), doorward.OperatorAtTerminal(), model, nil, false); err != nil {
		t.Fatal(err)
	}
	for language, words := range map[string]string{"en": "May also: <bdi>See invoices</bdi></span>", "de": "Darf auch: <bdi>See invoices</bdi></span>"} {
		page := open(t, s).send("/accept?lang="+language, "token", code).is(t, 200, "", words)
		if found := uitest.BuiltInWords.FindString(uitest.Text(page.body)); found != "" {
			t.Errorf("the page in %s says %q", language, found)
		}
	}
}

// An invitation to a role that the tenant has made says what the role may do.
func TestInvitedToATenantsRole(t *testing.T) {
	s := doorwardtest.Start(t)
	owner := s.Tenant("Acme").Owner
	for name, about := range map[string]string{"CLERK": "", "GUIDE": "Shows <people> around"} {
		if status, body := owner.Post("/api/v2/roles", map[string]any{"name": name, "about": about, "permissions": []string{"message.read", "user.read"}}); status != http.StatusCreated {
			t.Fatalf("the role is answered %d %s", status, body)
		}
		email := strings.ToLower(name) + "@acme.example"
		if status, body := owner.Post("/api/v2/auth/invite", map[string]any{"email": email, "role": name}); status != http.StatusCreated {
			t.Fatalf("the invitation is answered %d %s", status, body)
		}
		want := map[string]string{"CLERK": "May: read messages, see who is in the organisation", "GUIDE": "Shows &lt;people&gt; around"}[name]
		open(t, s).send("/accept", "token", s.Code(email)).is(t, 200, "", name, want)
	}
}

func TestAcceptAsSomebodyNew(t *testing.T) {
	s := doorwardtest.Start(t)
	code := invite(t, s, s.Tenant("Acme").Join(ann, "ADMIN"), "ben@acme.example")
	b := open(t, s)
	b.send("/accept").is(t, 422, "", "Enter the code from the mail.")
	b.send("/accept", "token", absent).is(t, 404, "", "This code is not known.")
	b.send("/accept", "token", s.URL+"/accept#token="+code[:20]+"\r\n "+code[20:]).is(t, 200, "", "Join Acme", "ben@acme.example", "May also: send messages, read messages, see reports",
		`data-new="12" data-longest="128"`, "12 to 128 characters")
	b.send("/accept/register", "token", code, "password", "ben@acme.example", "confirmPassword", "x").
		is(t, 422, "", "contains your address", "not the same as above", `value="`+code+`"`)
	b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", fresh).is(t, 303, "/account")
	b.get("/account").is(t, 200, "", "ben@acme.example")
	b.send("/accept", "token", code).is(t, 410, "", "accepted before")
	b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", fresh).is(t, 410, "", "accepted before")
	b.send("/login", "email", "ben@acme.example", "password", fresh).is(t, 303, "/account")
}

func TestAcceptWithAnAccount(t *testing.T) {
	s := doorwardtest.Start(t)
	acme, globex := s.Tenant("Acme"), s.Tenant("Globex")
	globex.Join("ben@globex.example", "USER")
	code := invite(t, s, acme.Join(ann, "OWNER"), "ben@globex.example")

	other := open(t, s) // another person's session is no proof
	other.send("/login", "email", ann, "password", secret)
	other.send("/accept", "token", code).is(t, 200, "", "You are signed in as", ann, "Enter its password")
	other.send("/accept/join", "token", code).is(t, 422, "", "Enter a password.")
	other.send("/accept/join", "token", code, "password", "wrong").is(t, 401, "", "not the password of the invited account")
	other.send("/accept/register", "token", code, "password", fresh, "confirmPassword", fresh).is(t, 409, "", "An account with this address exists")

	self := open(t, s)
	self.send("/login", "email", "ben@globex.example", "password", secret)
	self.send("/accept/join", "token", code).is(t, 303, "/account?tab=organisations&done=entered")
	self.get("/account?tab=organisations&done=entered").is(t, 200, "", "You can switch to it below.", "Acme", "Globex")

	again := open(t, s)
	again.send("/login", "email", "ben@globex.example", "password", secret, "return", "/docs").is(t, 303, "/login/tenant?return=%2Fdocs")
	again.send("/login/tenant", "tenantId", acme.ID, "return", "/docs").is(t, 303, "/docs")
	again.get("/account").is(t, 200, "", "How people in <strong><bdi>Acme</bdi></strong> see you.")
	again.send("/login/tenant", "tenantId", "tnt_absent").is(t, 404, "")

	if status, body := globex.Owner.Do("PATCH", "/api/v2/tenant", []byte(`{"settings":{"sessionAbsoluteMinutes":5}}`)); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	s.Advance(6 * time.Minute)
	again.send("/login/tenant", "tenantId", globex.ID).is(t, 403, "", "Sign out, sign in again and then choose it.")
	again.get("/account").is(t, 200, "", "Acme")
}

// The choice of a tenant keeps a return address on another origin.
func TestReturningElsewhereByTheChoiceOfATenant(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.ReturnTo("https://app.example.com/inbox"))
	const returnAddress = "https://app.example.com/inbox/42?a=b#c"
	acme, globex := s.Tenant("Acme"), s.Tenant("Globex")
	globex.Join(ann, "USER")
	b := open(t, s)
	b.send("/accept/join", "token", invite(t, s, acme.Join("olga@acme.example", "OWNER"), ann), "password", secret).is(t, 303, "/login?done=joined")
	choice := "/login/tenant?return=" + url.QueryEscape(returnAddress)
	b.send("/login", "email", ann, "password", secret, "return", returnAddress).is(t, 303, choice)
	page := b.get(choice)
	page.is(t, 200, "", `name="return" value="`+returnAddress+`"`)
	if got := page.header.Get("Content-Security-Policy"); !strings.Contains(got, "form-action 'self' https://app.example.com;") {
		t.Errorf("the policy of the choice is %q", got)
	}
	b.send("/login/tenant", "tenantId", acme.ID, "return", returnAddress).is(t, 303, returnAddress)
	b.send("/login/tenant", "tenantId", globex.ID, "return", "https://app.example.com/inboxes").is(t, 303, "/account")
	b.get("/account?return="+url.QueryEscape(returnAddress)).is(t, 200, "", `action="/logout"><input type="hidden" name="return" value="`+returnAddress+`"`)
	b.send("/logout", "return", returnAddress+".evil").is(t, 303, returnAddress+".evil")
	b.send("/logout", "return", "https://app.example.com.evil/").is(t, 303, "/login?done=signed-out")
	b.send("/logout", "return", "//evil.example").is(t, 303, "/login?done=signed-out")
}

func TestReset(t *testing.T) {
	s := doorwardtest.Start(t)
	s.Tenant("Acme").Join(ann, "USER")
	b := open(t, s)
	b.send("/forgot", "email", "nonsense").is(t, 422, "", "This is not an e-mail address.")
	b.send("/forgot", "email", "nobody@acme.example").is(t, 303, "/forgot/sent")
	b.send("/forgot", "email", ann).is(t, 303, "/forgot/sent")
	code := s.Code(ann)
	b.send("/reset", "token", code).is(t, 200, "", ann, "Set a new password")
	b.send("/reset/password", "token", code, "password", "short", "confirmPassword", "short").is(t, 422, "", "at least 12 characters")
	b.send("/reset/password", "token", code, "password", fresh, "confirmPassword", fresh).is(t, 303, "/login?done=reset")
	b.send("/reset", "token", code).is(t, 410, "", "used before")
	b.send("/login", "email", ann, "password", fresh).is(t, 303, "/account")
	b.send("/forgot", "email", ann)
	code = s.Code(ann)
	s.Advance(31 * time.Minute)
	b.send("/reset", "token", code).is(t, 410, "", "has expired")
}

// Signing in again in one browser ends its previous session, whose token the browser no
// longer has and which would count towards the limit. Another person's session in the same
// browser continues.
func TestLoginReplaces(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.SessionLimits(doorward.SessionLimits{Idle: time.Hour, Absolute: time.Hour, PerUser: 2}))
	acme := s.Tenant("Acme")
	elsewhere, ben := acme.Join(ann, "USER").Token(), acme.Join("ben@acme.example", "USER").Token()
	b := open(t, s)
	before := b.signIn(ann)
	after := b.signIn(ann)
	b.setSession(ben)
	b.send("/login", "email", ann, "password", "wrong").is(t, 401, "")
	want := map[string]int{before: http.StatusUnauthorized, after: http.StatusOK, elsewhere: http.StatusOK, ben: http.StatusOK}
	b.check(want, "after the second login")
	b.setSession(after)
	b.send("/login", "email", ann, "password", "wrong").is(t, 401, "")
	b.check(want, "after a refused one")
	b.setSession(ben)
	b.signIn(ann)
	want[elsewhere] = http.StatusUnauthorized // the oldest of three
	b.check(want, "after somebody else's")
}

// signIn signs in and returns the token of the browser's new session.
func (b browser) signIn(email string) string {
	b.Helper()
	a := b.send("/login", "email", email, "password", secret)
	a.is(b.T, 303, "/account")
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if c.Name == "JSESSIONID" {
			return c.Value
		}
	}
	b.Fatal("the answer sets no session cookie")
	return ""
}

// setSession sets the browser's session cookie to the token.
func (b browser) setSession(token string) {
	at, err := url.Parse(b.url)
	if err != nil {
		b.Fatal(err)
	}
	b.Jar.SetCookies(at, []*http.Cookie{{Name: "JSESSIONID", Value: token, Path: "/"}})
}

// check requires the given status for the session of each token.
func (b browser) check(want map[string]int, when string) {
	b.Helper()
	got := map[string]int{}
	for token := range want {
		b.setSession(token)
		got[token] = b.get("/api/v2/auth/session").status
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestAccount(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join("ben@acme.example", "VIEWER")
	b, elsewhere := open(t, s), open(t, s)
	for _, one := range []browser{b, elsewhere} {
		one.send("/login", "email", "ben@acme.example", "password", secret).is(t, 303, "/account")
	}
	b.send("/account/name", "name", "Ben <b>").is(t, 303, "/account?done=name")
	b.get("/account?done=name").is(t, 200, "", "Your name is saved.", "Ben &lt;b&gt;")
	b.send("/account/name", "name", strings.Repeat("x", 101)).is(t, 422, "", "100 characters at most")
	b.send("/account/name", "name", "\u202eneB").is(t, 422, "", "control characters")
	b.send("/account/password", "currentPassword", "wrong", "password", fresh, "confirmPassword", fresh).is(t, 422, "", "not the password you have now")
	b.send("/account/password", "currentPassword", secret, "password", secret, "confirmPassword", secret).is(t, 422, "", "This is the password you have now.")
	b.send("/account/password", "currentPassword", secret, "password", fresh, "confirmPassword", fresh).is(t, 303, "/account/security?done=password")
	elsewhere.get("/account").is(t, 303, "/login?return=%2Faccount")
	b.send("/account/sessions/end", "session", "ses_absent").is(t, 303, "/account?tab=sessions&done=session")
	b.send("/account/sessions/end-others").is(t, 303, "/account?tab=sessions&done=sessions")
	b.get("/.well-known/change-password").is(t, 303, "/account/security?change=password#password")
	b.get("/account/leave/"+acme.ID).is(t, 200, "", "Leave Acme?")
	b.get("/account/leave/tnt_absent").is(t, 404, "")
	b.send("/account/leave/"+acme.ID).is(t, 303, "/login?done=left")
	b.send("/login", "email", "ben@acme.example", "password", fresh).is(t, 401, "")
	b.get("/.well-known/change-password").is(t, 303, "/login?return=%2Faccount%2Fsecurity%3Fchange%3Dpassword%23password")

	owner := open(t, s)
	owner.send("/login", "email", acme.Owner.Email, "password", secret)
	owner.send("/account/leave/"+acme.ID).is(t, 409, "", "at least one owner")
	owner.send("/logout").is(t, 303, "/login?done=signed-out")
	owner.send("/logout").is(t, 303, "/login?done=signed-out")
	owner.get("/account").is(t, 303, "/login?return=%2Faccount")
}

// The account is one page with tabs. Each shows its own part; an answer to a form is on the tab of the
// form; links keep the return address, and security has an address of its own.
func TestTabsOfAnAccount(t *testing.T) {
	s := doorwardtest.Start(t, doorwardtest.ReturnTo("https://app.example.com"))
	s.Tenant("Acme").Join(ann, "VIEWER")
	b := open(t, s)
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/account")
	parts := map[string]string{
		"/account": "profile email", "/account?tab=unknown": "profile email", "/account?tab=sessions": "sessions recent", "/account?tab=organisations": "tenants",
		"/account?tab=data": "data erase", "/account/security": "password factors", "/account?tab=security": "password factors",
	}
	part := regexp.MustCompile(`<section(?: class="part")? id="([a-z]+)"`)
	for path, want := range parts {
		var got []string
		for _, found := range part.FindAllStringSubmatch(b.get(path).is(t, 200, "", "<bdi>"+ann+"</bdi>").body, -1) {
			got = append(got, found[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s shows %q, want %q", path, got, want)
		}
	}
	// Profile, sessions and security come first, as on the page of a person in the console.
	var tabs []string
	nav, _, _ := strings.Cut(b.get("/account").body, "</nav>")
	for _, m := range regexp.MustCompile(`(?m)^<li><a href="[^"]*"(?: aria-current="page")?>([^<]*)</a></li>`).FindAllStringSubmatch(nav, -1) {
		tabs = append(tabs, m[1])
	}
	if diff := cmp.Diff([]string{"Profile", "Sessions", "Security", "Organisations", "Your data"}, tabs); diff != "" {
		t.Errorf("tabs (-want +got):\n%s", diff)
	}
	const query = "return=https%3A%2F%2Fapp.example.com%2Fbye"
	for _, path := range []string{"/account?" + query, "/account/security?" + query, "/account?tab=data&" + query} {
		b.get(path).is(t, 200, "", `href="/account?`+query+`"`, `href="/account/security?`+query+`"`, `href="/account?`+query+`&amp;tab=sessions"`, `value="https://app.example.com/bye"`)
	}
	b.send("/account/sessions/end-others?tab=sessions", "lang", "de").is(t, 200, "", ">Wo Sie angemeldet sind</h2>")
	b.send("/account/password?change=password", "lang", "en").is(t, 200, "", `<details class="unfold" open>`)
}

// Closing a tenant ends all its sessions. Its OWNER can sign in again, and is redirected to
// /closing from everywhere.
func TestClosing(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join(ann, "OWNER")
	acme.Join("ben@acme.example", "ADMIN")
	owner := open(t, s)
	owner.send("/login", "email", ann, "password", secret)
	owner.get("/closing").is(t, 303, "/account")
	closeTenant(t, owner, "Acme")
	owner.get("/account").is(t, 303, "/login?return=%2Faccount")
	open(t, s).send("/login", "email", "ben@acme.example", "password", secret).is(t, 403, "", "is being closed")
	owner.send("/login", "email", ann, "password", secret).is(t, 303, "/closing")
	for _, path := range []string{"/account", "/login"} {
		owner.get(path).is(t, 303, "/closing")
	}
	owner.get("/closing").is(t, 200, "", "Acme is being closed", "Restore it", "Sign out")
	owner.send("/closing/restore").is(t, 303, "/account?done=restored")
	owner.get("/account").is(t, 200, "")
	owner.send("/closing/restore").is(t, 303, "/account") // a second click
}

// closeTenant closes the tenant of the browser's session, through the API.
func closeTenant(t *testing.T, b browser, name string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "DELETE", b.url+"/api/v2/tenant", strings.NewReader(`{"confirm":"`+name+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		t.Fatalf("closing: %d", res.StatusCode)
	}
}

// A page that answers a form can be shown in the other language, with the input but
// without passwords. Showing it changes nothing.
func TestLanguageOfAnAnswer(t *testing.T) {
	s := doorwardtest.Start(t)
	code := invite(t, s, s.Tenant("Acme").Join(ann, "ADMIN"), "ben@acme.example")
	b := open(t, s)
	const german = `<button type="submit" name="lang" value="de" lang="de">Deutsch</button>`
	hidden := `<input type="hidden" name="token" value="` + code + `">`
	b.send("/accept", "token", code).is(t, 200, "", "Join Acme", german, hidden)
	a := b.send("/accept", "token", code, "lang", "de")
	a.is(t, 200, "", `<html lang="de"`, "ben@acme.example", `action="/accept/register"`, hidden)
	if got := a.header.Get("Content-Language"); got != "de" {
		t.Errorf("the page says it is in %q", got)
	}
	b.get("/login").is(t, 200, "", `<html lang="de"`) // it is remembered

	a = b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", "other", "lang", "en")
	a.is(t, 200, "", `<html lang="en"`, "Choose a password", hidden)
	refused := b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", "other")
	refused.is(t, 422, "", german, "not the same as above")
	for _, one := range []answer{a, refused} {
		if strings.Contains(one.body, fresh) {
			t.Errorf("the page repeats the password:\n%s", one.body)
		}
	}
	b.send("/login", "email", ann, "password", secret, "return", "/docs", "lang", "en").
		is(t, 200, "", `value="`+ann+`"`, `name="return" value="/docs"`)
	b.send("/login", "email", ann, "password", secret, "lang", "tlh").is(t, 303, "/account") // not a supported language
	b.send("/account/sessions/end-others", "lang", "de").is(t, 200, "", "Ihr Konto")
	b.send("/accept/register", "token", code, "password", fresh, "confirmPassword", fresh).is(t, 303, "/account")
}

// Such a page can be shown in another theme just so, and showing it changes nothing.
func TestThemeOfAnAnswer(t *testing.T) {
	s := doorwardtest.Start(t)
	s.Tenant("Acme").Join(ann, "USER")
	b := open(t, s)
	const dark = `<button type="submit" name="theme" value="dark">Dark</button>`
	b.send("/login", "email", ann, "password", "wrong").is(t, 401, "", dark, `content="light dark"`)
	b.send("/login", "email", ann, "password", secret, "theme", "dark").is(t, 200, "", `content="dark"`, `value="`+ann+`"`, `value="system">`)
	b.get("/login").is(t, 200, "", `content="dark"`) // it is remembered
	b.send("/login", "email", ann, "password", secret, "theme", "pink").is(t, 303, "/account")
}

func TestChangeOfTheAddress(t *testing.T) {
	s := doorwardtest.Start(t)
	s.Tenant("Acme").Join(ann, "USER")
	b := open(t, s)
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/account")
	b.send("/account/email", "email", "nonsense").is(t, 422, "", "This is not an e-mail address.")
	b.send("/account/email", "email", "lee@acme.example").is(t, 303, "/account?done=email-sent")
	b.get("/account?done=email-sent").is(t, 200, "", "a mail with a link is on its way")
	confirm, undo := s.Code("lee@acme.example"), s.Code(ann)
	b.send("/confirm-email", "token", absent).is(t, 404, "", "This code is not known.")
	stranger := open(t, s)
	stranger.send("/confirm-email", "token", confirm).is(t, 200, "", ann, "lee@acme.example", `href="/login?return=/confirm-email#token=`+confirm+`"`)
	stranger.send("/confirm-email/now", "token", confirm).is(t, 303, "/login?return=%2Fconfirm-email")
	stranger.get("/login?return=/confirm-email").is(t, 200, "", `/assets/fragment`, `value="`+ann+`"`)
	stranger.send("/login", "email", "owner@acme.example", "password", secret, "return", "/confirm-email").is(t, 303, "/confirm-email")
	stranger.send("/confirm-email", "token", confirm).is(t, 200, "", "You are signed in as", `action="/logout#token=`+confirm+`"`)
	stranger.send("/confirm-email/now", "token", confirm).is(t, 403, "", "You are signed in to another account")
	b.send("/confirm-email", "token", confirm).is(t, 200, "", ann, "lee@acme.example", `value="`+confirm+`"`)
	b.send("/confirm-email/now", "token", confirm).is(t, 303, "/account?done=email-changed")
	b.get("/account").is(t, 200, "", "lee@acme.example")
	b.send("/confirm-email", "token", confirm).is(t, 410, "", "no longer valid")
	other := open(t, s)
	other.send("/undo-email", "token", undo).is(t, 200, "", ann, "everybody is signed out")
	b.get("/account").is(t, 200, "", "lee@acme.example") // the link alone does nothing
	other.send("/undo-email/now", "token", undo).is(t, 303, "/login?done=email-undone")
	other.get("/login?done=email-undone").is(t, 200, "", "Your former address is back", `value="`+ann+`"`)
	other.send("/undo-email", "token", undo).is(t, 410, "", "more than 7 days old")
	b.get("/account").is(t, 303, "/login?return=%2Faccount")
}

// The page names the organisations that don't allow the new address, and asks whether they may go.
func TestChangeOfTheAddressOutOfTheDomains(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	b := open(t, s)
	b.send("/login", "email", acme.Owner.Email, "password", secret).is(t, 303, "/account")
	if status, body := acme.Owner.Do("PATCH", "/api/v2/tenant", []byte(`{"settings":{"allowedEmailDomains":["acme.example"]}}`)); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	b.send("/account/email", "email", "owner@elsewhere.example").is(t, 409, "", "you lose access to these organisations", "<bdi>Acme</bdi>", `name="suspend"`, `value="owner@elsewhere.example"`)
	b.send("/account/email", "email", "owner@elsewhere.example", "suspend", "1").is(t, 303, "/account?done=email-sent")
	code := s.Code("owner@elsewhere.example")
	b.send("/confirm-email/now", "token", code).is(t, 409, "", "You are the only owner of an organisation")
}

// The page says what an erasure ends and keeps, asks for a proof if the last one is too old,
// and for the address; the last OWNER gets no form.
func TestEraseAccount(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join(ann, "USER")
	b := open(t, s)
	b.send("/login", "email", ann, "password", secret).is(t, 303, "/account")
	b.get("/account?tab=data").is(t, 200, "", `href="/account/erase"`)
	b.get("/account/erase").is(t, 200, "", "Erase your account?", "Acme", `name="confirm"`)
	b.send("/account/erase", "confirm", "").is(t, 422, "", "Type the address of the account.")
	b.send("/account/erase", "confirm", "bob@acme.example").is(t, 422, "", "This is not the address of the account.")
	s.Advance(11 * time.Minute)
	b.send("/account/erase", "confirm", ann).is(t, 303, "/account/erase")
	page := b.get("/account/erase").is(t, 200, "", `href="/step-up?return=/account/erase"`)
	if strings.Contains(page.body, `name="confirm"`) {
		t.Error("there is a form before the proof")
	}
	b.get("/step-up?return=/account/erase").is(t, 200, "", `href="/account/security"`, // a page may need a second factor
		"Back to the account") // for those who can't, or don't want to
	b.send("/step-up", "password", secret, "return", "/account/erase").is(t, 303, "/account/erase")
	erased := b.send("/account/erase", "confirm", ann).is(t, 303, "/login?done=erased")
	for _, cookie := range []string{"JSESSIONID=;", "doorward_device=;"} {
		if !strings.Contains(strings.Join(erased.header["Set-Cookie"], "\n"), cookie) {
			t.Errorf("the answer doesn't delete the cookie: no %s", cookie)
		}
	}
	b.get("/login?done=erased").is(t, 200, "", "Your account is erased.")
	b.send("/login", "email", ann, "password", secret).is(t, 401, "")

	owner := open(t, s)
	owner.send("/login", "email", acme.Owner.Email, "password", secret)
	page = owner.get("/account/erase").is(t, 200, "", "last active owner", "Acme")
	if strings.Contains(page.body, `name="confirm"`) {
		t.Error("the last OWNER gets a form")
	}
	owner.send("/account/erase", "confirm", acme.Owner.Email).is(t, 409, "", "at least one owner")
}
