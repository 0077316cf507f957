package ui_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/doorwardtest"
)

// ask sends a request as a browser on one of our pages does.
func ask(t *testing.T, c *http.Client, method, address string, form url.Values, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Accept", "text/html")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// A link to the login must never lead to another site afterwards.
func TestReturnsStayBelowTheBaseURL(t *testing.T) {
	server := doorwardtest.Start(t, doorwardtest.BaseURL("http://localhost:9999/platform"))
	server.Tenant("Acme").Join("ann@acme.example", "USER")
	for requested, want := range map[string]string{
		"/platform/account":                         "/platform/account",
		"/platform/account?a=b#c":                   "/platform/account?a=b#c",
		"http://localhost:9999/platform/docs":       "/platform/docs",
		"":                                          "",
		"/account":                                  "",
		"/platform":                                 "",
		"//evil.example/platform/":                  "",
		"/\\evil.example/platform/":                 "",
		"\t//evil.example":                          "",
		"/platform/\r\nSet-Cookie: a=b":             "",
		"https://evil.example/platform/":            "",
		"http://localhost:9999.evil.example/":       "",
		"http://localhost:9999@evil.example/":       "",
		"https://localhost:9999/platform/account":   "",
		"javascript:alert(1)":                       "",
		"/platform/../evil":                         "",
		"/platform/%2e%2e/evil":                     "",
		"/platform/..":                              "",
		"/platform//evil.example":                   "",
		"/platform/%5cevil.example":                 "",
		"platform/account":                          "",
		"/platformevil/":                            "",
		"/platform/%zz":                             "",
		"http:/platform/account":                    "",
		"///evil.example/platform/":                 "",
		"http://localhost:9999/platform/..//evil/x": "",
	} {
		if want == "" {
			want = "/platform/account"
		}
		form := url.Values{"email": {"ann@acme.example"}, "password": {doorwardtest.Password}, "return": {requested}}
		res, _ := ask(t, server.Client(), "POST", server.URL+"/login", form)
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("return=%q: %d to %q, want %q", requested, res.StatusCode, got, want)
		}
	}
}

// The login redirects only to return addresses that the operator allows; package returnto
// tests more look-alikes.
func TestReturnsToAllowedAddresses(t *testing.T) {
	server := doorwardtest.Start(t, doorwardtest.BaseURL("https://auth.example.com/platform"),
		doorwardtest.ReturnTo("https://app.example.com/inbox/", "https://auth.example.com/shop", "http://localhost:3000"))
	ann := server.Tenant("Acme").Join("ann@acme.example", "USER").Token()
	for requested, want := range map[string]string{
		"https://app.example.com/inbox/42?a=b#c":       "https://app.example.com/inbox/42?a=b#c",
		"https://APP.example.com:443/inbox":            "https://app.example.com/inbox",
		"https://auth.example.com/shop/1":              "https://auth.example.com/shop/1",
		"https://auth.example.com/platform/docs":       "/platform/docs",
		"/platform/docs":                               "/platform/docs",
		"http://localhost:3000":                        "http://localhost:3000/",
		"/shop/1":                                      "",
		"//app.example.com/inbox/":                     "",
		"/inbox/42":                                    "",
		"https://auth.example.com/other":               "",
		"https://auth.example.com/platform/../other":   "",
		"https://app.example.com/":                     "",
		"https://app.example.com/inboxes":              "",
		"https://app.example.com/inbox/%2e%2e/admin":   "",
		"https://app.example.com/inbox/..%2fadmin":     "",
		"https://app.example.com.evil.example/inbox":   "",
		"https://app.example.com@evil.example/inbox":   "",
		"https://evil.example\\@app.example.com/inbox": "",
		"https:/\\app.example.com/inbox":               "",
		"http://app.example.com/inbox":                 "",
		"https://app.example.com:8443/inbox":           "",
		"http://localhost:30001/":                      "",
	} {
		fallback := want == ""
		if fallback {
			want = "/platform/account"
		}
		// People who are signed in are redirected at once.
		res, _ := ask(t, server.Client(), "GET", server.URL+"/login?return="+url.QueryEscape(requested), nil, "Cookie", "JSESSIONID="+ann)
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("signed in, return=%q: %d to %q, want %q", requested, res.StatusCode, got, want)
		}
		if fallback {
			continue
		}
		form := url.Values{"email": {"ann@acme.example"}, "password": {doorwardtest.Password}, "return": {requested}}
		res, _ = ask(t, server.Client(), "POST", server.URL+"/login", form)
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("return=%q: %d to %q, want %q", requested, res.StatusCode, got, want)
		}
		if token := sessionOf(res); token == "" || strings.Contains(res.Header.Get("Location"), token) {
			t.Errorf("return=%q: the session token is %q, the redirect leads to %q", requested, token, res.Header.Get("Location"))
		}
	}
}

func sessionOf(res *http.Response) string {
	for _, cookie := range res.Cookies() {
		if cookie.Name == "JSESSIONID" {
			return cookie.Value
		}
	}
	return ""
}

func TestFormsAreTakenFromOurPagesOnly(t *testing.T) {
	server := doorwardtest.Start(t)
	server.Tenant("Acme").Join("ann@acme.example", "USER")
	form := url.Values{"email": {"ann@acme.example"}, "password": {doorwardtest.Password}}
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		res, body := ask(t, server.Client(), "POST", server.URL+"/login", form, header...)
		if res.StatusCode != http.StatusForbidden || len(res.Cookies()) > 0 || !strings.Contains(body, "Sent from another site") {
			t.Errorf("%s: %d with cookies %v", header, res.StatusCode, res.Cookies())
		}
	}
}

// A browser with two session cookies isn't signed in; page and login would redirect
// to each other forever if the login didn't delete the cookies.
func TestSeveralSessionCookies(t *testing.T) {
	server := doorwardtest.Start(t, doorwardtest.BaseURL("http://auth.acme.localhost:9999/platform"))
	live := server.Tenant("Acme").Join("ann@acme.example", "OWNER").Token()
	several := "JSESSIONID=" + live + "; JSESSIONID=" + strings.Repeat("A", 43)
	res, _ := ask(t, server.Client(), "GET", server.URL+"/platform/console/people", nil, "Cookie", several)
	if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != "/platform/login?return=%2Fplatform%2Fconsole%2Fpeople&several=1" {
		t.Errorf("several session cookies: %d to %q", res.StatusCode, got)
	}
	want := []string{
		"JSESSIONID=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0",
		"JSESSIONID=; Path=/platform; Max-Age=0", "JSESSIONID=; Path=/platform/; Max-Age=0",
		"JSESSIONID=; Path=/platform/console; Max-Age=0", "JSESSIONID=; Path=/platform/console/; Max-Age=0",
		"JSESSIONID=; Path=/platform/console/people; Max-Age=0", "JSESSIONID=; Path=/platform/console/people/; Max-Age=0",
		"JSESSIONID=; Path=/; Domain=auth.acme.localhost; Max-Age=0", "JSESSIONID=; Path=/; Domain=acme.localhost; Max-Age=0",
	}
	if diff := cmp.Diff(want, res.Header.Values("Set-Cookie")); diff != "" {
		t.Errorf("the cookies (-want +got):\n%s", diff)
	}
	for _, path := range []string{"/login", "/login?several=1"} {
		res, _ = ask(t, server.Client(), "GET", server.URL+path, nil, "Cookie", several)
		if got := res.Header.Values("Set-Cookie"); res.StatusCode != http.StatusOK || len(got) < 3 {
			t.Errorf("%s answered %d with the cookies %q", path, res.StatusCode, got)
		}
	}
	// No part of the address becomes a part of the cookie.
	res, _ = ask(t, server.Client(), "GET", server.URL+"/console/people/a;Domain=localhost", nil, "Cookie", several)
	for _, cookie := range res.Header.Values("Set-Cookie") {
		if strings.Contains(cookie, "people/a") {
			t.Errorf("the cookie %q", cookie)
		}
	}
	// One cookie alone works, and the API deletes none.
	res, _ = ask(t, server.Client(), "GET", server.URL+"/console/people", nil, "Cookie", "JSESSIONID="+live)
	if res.StatusCode != http.StatusOK || len(res.Header.Values("Set-Cookie")) > 0 {
		t.Errorf("with one cookie: %d %q", res.StatusCode, res.Header.Values("Set-Cookie"))
	}
	res, _ = ask(t, server.Client(), "GET", server.URL+"/api/v2/auth/session", nil, "Cookie", several)
	if res.StatusCode != http.StatusUnauthorized || len(res.Header.Values("Set-Cookie")) > 0 {
		t.Errorf("the API: %d %q", res.StatusCode, res.Header.Values("Set-Cookie"))
	}
}

func TestFormMediaTypes(t *testing.T) {
	server := doorwardtest.Start(t)
	for _, c := range []struct {
		contentType, body string
		status            int
	}{
		{"application/json", `{"email":"a"}`, 415},
		{"multipart/form-data; boundary=x", "--x--", 415},
		{"", "email=a", 415},
		{"application/x-www-form-urlencoded", "email=%ff", 400},
		{"application/x-www-form-urlencoded", "email=%00", 400},
		{"application/x-www-form-urlencoded", "email=%zz", 400},
		{"application/x-www-form-urlencoded", "email=" + strings.Repeat("a", 64<<10), 413},
		{"application/x-www-form-urlencoded; charset=UTF-8", "email=a", 422},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/login", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", c.contentType)
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status || res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%.60s as %q: %d %s, want %d", c.body, c.contentType, res.StatusCode, res.Header.Get("Content-Type"), c.status)
		}
	}
}

func TestLanguageIsNegotiatedAndRemembered(t *testing.T) {
	server := doorwardtest.Start(t)
	client := server.Client()
	checkLanguage := func(path, accept, lang string) {
		t.Helper()
		res, body := ask(t, client, "GET", server.URL+path, nil, "Accept-Language", accept)
		if !strings.Contains(body, `<html lang="`+lang+`"`) || res.Header.Get("Content-Language") != lang {
			t.Errorf("%s with %q is not in %s", path, accept, lang)
		}
	}
	checkLanguage("/login", "", "en")
	checkLanguage("/login", "fr, de-AT;q=0.8, en;q=0.5", "de")
	checkLanguage("/login", "fr", "en")
	checkLanguage("/login", "nonsense;;q=x", "en")
	checkLanguage("/login?lang=de", "en", "de")
	checkLanguage("/login", "en", "de")
	checkLanguage("/login?lang=tlh", "en", "de")
	checkLanguage("/login?lang=en", "de", "en")
	checkLanguage("/nowhere", "de", "en")
}

// Programs get problems; people who follow a broken link get a page.
func TestErrorPagesAreForPeople(t *testing.T) {
	server := doorwardtest.Start(t)
	for _, c := range []struct {
		method, path, accept, want string
		status                     int
	}{
		{"GET", "/nowhere", "text/html,*/*;q=0.8", "text/html; charset=utf-8", 404},
		{"GET", "/nowhere", "*/*", "application/problem+json", 404},
		{"GET", "/api/v2/nowhere", "text/html", "application/problem+json", 404},
		{"GET", "/api/v2/auth/session", "text/html", "application/problem+json", 401},
		{"POST", "/docs", "text/html", "text/html; charset=utf-8", 405},
		{"GET", "/assets/nowhere.js", "text/html", "application/problem+json", 404},
	} {
		res, _ := ask(t, server.Client(), c.method, server.URL+c.path, nil, "Accept", c.accept)
		if got := res.Header.Get("Content-Type"); res.StatusCode != c.status || got != c.want {
			t.Errorf("%s %s for %s: %d %s, want %d %s", c.method, c.path, c.accept, res.StatusCode, got, c.status, c.want)
		}
	}
}

// The content security policy allows another origin only on pages whose form may redirect to
// it.
func TestPolicyOfPages(t *testing.T) {
	server := doorwardtest.Start(t, doorwardtest.ReturnTo("https://app.example.com/inbox/", "http://localhost:3000"))
	ann := "JSESSIONID=" + server.Tenant("Acme").Join("ann@acme.example", "USER").Token()
	for path, elsewhere := range map[string]string{
		"/login":                                             "",
		"/login?return=/docs":                                "",
		"/login?return=//evil/":                              "",
		"/login?return=https://evil.example/":                "",
		"/login?return=https://app.example.com/":             "",
		"/login?return=https://app.example.com/inbox/42":     " https://app.example.com",
		"/login?return=http://localhost:3000/%3B*":           " http://localhost:3000",
		"/login/tenant":                                      "",
		"/login/tenant?return=https://app.example.com/inbox": " https://app.example.com",
		"/nowhere?return=https://app.example.com/inbox/":     "",
		"/account?return=https://app.example.com/inbox/":     " https://app.example.com", // signing out
		"/console?return=https://app.example.com/inbox/":     "",
	} {
		login := path == "/login" || strings.HasPrefix(path, "/login?")
		var header []string
		if !login {
			header = []string{"Cookie", ann}
		}
		res, body := ask(t, server.Client(), "GET", server.URL+path, nil, header...)
		want := "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; form-action 'self'" + elsewhere + "; base-uri 'none'; frame-ancestors 'none'"
		got := res.Header.Values("Content-Security-Policy")
		// The login asks for the challenge of a passkey, the console's lists refresh themselves.
		if login || strings.HasPrefix(path, "/console") {
			want += "; connect-src 'self'"
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: the policy is %q, want %q", path, got, want)
		}
		if field := strings.Contains(body, `name="return" value="http`); field != (elsewhere != "") {
			t.Errorf("%s: it has a field with an external return address: %v", path, field)
		}
		if got := res.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control is %q", path, got)
		}
	}
	// Pages that lead to another page here keep the address and don't redirect to it.
	for _, page := range []string{"/forgot", "/reset", "/accept"} {
		res, body := ask(t, server.Client(), "GET", server.URL+page+"?return=https://app.example.com/inbox/", nil)
		if got := res.Header.Get("Content-Security-Policy"); !strings.Contains(got, "form-action 'self';") || !strings.Contains(body, `name="return" value="https://app.example.com/inbox/"`) {
			t.Errorf("%s: the policy is %q, the page\n%s", page, got, body)
		}
	}
	// The page of a refused login allows the other origin, too.
	form := url.Values{"email": {"ann@acme.example"}, "password": {"wrong"}, "return": {"https://app.example.com/inbox/42"}}
	res, body := ask(t, server.Client(), "POST", server.URL+"/login", form)
	if got := res.Header.Get("Content-Security-Policy"); !strings.Contains(got, "form-action 'self' https://app.example.com;") || !strings.Contains(body, `name="return" value="https://app.example.com/inbox/42"`) {
		t.Errorf("after a refusal: %d, the policy is %q", res.StatusCode, got)
	}
}
