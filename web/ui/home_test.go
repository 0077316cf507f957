package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/returnto"
	"github.com/doorward/doorward/web/ui"
)

func TestParseHome(t *testing.T) {
	inbox, err := returnto.Parse("https://app.example.com/inbox/")
	if err != nil {
		t.Fatal(err)
	}
	const refused = "refused"
	for _, c := range []struct{ base, home, want string }{
		{"https://auth.example.com", "/", "/"},
		{"https://auth.example.com", "/inbox?a=b#c", "/inbox?a=b#c"},
		{"https://auth.example.com/", "https://auth.example.com/inbox", "/inbox"},
		{"https://auth.example.com", "https://APP.example.com:443/inbox", "https://app.example.com/inbox"},
		{"https://auth.example.com", "/account", ""},
		{"https://auth.example.com", "/logins", "/logins"},
		{"https://auth.example.com/platform", "/platform/", "/platform/"},
		{"https://auth.example.com/platform/", "https://auth.example.com/platform/account", ""},
		{"https://auth.example.com/platform", "/inbox", refused},
		{"https://auth.example.com/platform", "/platform/login?return=/platform/x", refused},
		{"https://auth.example.com", "/login", refused},
		{"https://auth.example.com", "/%6cogin", refused},
		{"https://auth.example.com", "/login/tenant", refused},
		{"https://auth.example.com", "inbox", refused},
		{"https://auth.example.com", "//app.example.com/inbox/", refused},
		{"https://auth.example.com", "/\\app.example.com/inbox/", refused},
		{"https://auth.example.com", "https://app.example.com/inboxes", refused},
		{"https://auth.example.com", "https://app.example.com/inbox/%2e%2e/", refused},
		{"https://auth.example.com", "https://auth.example.com@evil.example/", refused},
		{"https://auth.example.com", "javascript:alert(1)", refused},
	} {
		base, err := url.Parse(c.base)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ui.ParseHome(base, returnto.List{inbox}, c.home)
		if err != nil {
			got = refused
		}
		if got != c.want {
			t.Errorf("at %s %q is read as %q, %v, want %q", c.base, c.home, got, err, c.want)
		}
	}
}

// Without an allowed return address, the redirect leads home.
func TestHome(t *testing.T) {
	const home = "https://app.example.com/inbox?new"
	server := doorwardtest.Start(t, doorwardtest.ReturnTo("https://app.example.com/inbox", "http://localhost:3000"), doorwardtest.Home(home))
	ann := "JSESSIONID=" + server.Tenant("Acme").Join("ann@acme.example", "USER").Token()
	for _, c := range []struct{ requested, want, formAction string }{
		{"", home, "'self' https://app.example.com;"},
		{"https://evil.example/", home, "'self' https://app.example.com;"},
		{"//evil.example/", home, "'self' https://app.example.com;"},
		{"/account", "/account", "'self';"},
		{"http://localhost:3000", "http://localhost:3000/", "'self' http://localhost:3000;"},
	} {
		requested, want := c.requested, c.want
		path := "/login?return=" + url.QueryEscape(requested)
		res, _ := ask(t, server.Client(), "GET", server.URL+path, nil, "Cookie", ann)
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("signed in, return=%q: %d to %q, want %q", requested, res.StatusCode, got, want)
		}
		form := url.Values{"email": {"ann@acme.example"}, "password": {doorwardtest.Password}, "return": {requested}}
		res, _ = ask(t, server.Client(), "POST", server.URL+"/login", form)
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("return=%q: %d to %q, want %q", requested, res.StatusCode, got, want)
		}
		policy := "form-action " + c.formAction // browsers check the redirect after the form against it
		res, _ = ask(t, server.Client(), "GET", server.URL+path, nil)
		if got := res.Header.Get("Content-Security-Policy"); !strings.Contains(got, policy) {
			t.Errorf("return=%q: the policy is %q, want %q", requested, got, policy)
		}
	}
	res, body := ask(t, server.Client(), "GET", server.URL+"/account", nil, "Cookie", ann)
	if !strings.Contains(body, `<a href="`+home+`">Back to Doorward</a>`) || !strings.Contains(res.Header.Get("Content-Security-Policy"), "form-action 'self';") {
		t.Errorf("the account: the policy is %q, or there is no link home on\n%s", res.Header.Get("Content-Security-Policy"), body)
	}
}
