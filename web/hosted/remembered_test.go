package hosted_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

var chosenAccount = regexp.MustCompile(`action="/login/account"[^\n]*name="account" value="([^"]+)"><bdi>([^\n]*?)</bdi>`)

// accountsOn returns the accounts that the login page offers: for each address the value of its button.
func (b browser) accountsOn(page answer) map[string]string {
	all := map[string]string{}
	for _, found := range chosenAccount.FindAllStringSubmatch(page.body, -1) {
		all[strings.ReplaceAll(found[2], "<wbr>", "")] = found[1]
	}
	return all
}

// accountsCookie returns what the answer sets of the cookie; empty if it sets none.
func accountsCookie(a answer) string {
	for _, line := range a.header.Values("Set-Cookie") {
		if strings.HasPrefix(line, "doorward_accounts=") {
			return line
		}
	}
	return ""
}

// TestRememberedAccounts: a browser remembers an address only when asked at a sign-in that went on, in a cookie
// that nobody else reads; one click fills it in or forgets it.
func TestRememberedAccounts(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join(ann, "USER")
	acme.Join("ben@acme.example", "USER")
	b := open(t, s)
	signIn := func(email, password, keep string) answer {
		return b.send("/login", "email", email, "password", password, "keep", keep, "return", "/docs")
	}
	if wrong := signIn(ann, "wrong", "1").is(t, 401, "", `name="keep" value="1" checked`); accountsCookie(wrong) != "" {
		t.Error("a wrong password is remembered")
	}
	if unasked := signIn(ann, secret, "").is(t, 303, "/docs"); accountsCookie(unasked) != "" {
		t.Error("it is remembered without being asked")
	}
	set := accountsCookie(signIn("Ann@ACME.example", secret, "1").is(t, 303, "/docs"))
	if !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Lax") || !strings.Contains(set, "Max-Age=7776000") || strings.Contains(strings.ToLower(set), "acme") {
		t.Errorf("the cookie is %q", set)
	}
	signIn("ben@acme.example", secret, "1").is(t, 303, "/docs")
	b.send("/logout").is(t, 303, "/login?done=signed-out")
	page := b.get("/login?return=%2Fdocs").is(t, 200, "", "Another account", "Forget "+ann)
	accounts := b.accountsOn(page)
	if len(accounts) != 2 || strings.Index(page.body, "ben@acme.") > strings.Index(page.body, "ann@acme.") {
		t.Fatalf("the page offers %q", accounts)
	}
	b.send("/login/account", "account", accounts[ann], "return", "/docs").is(t, 200, "", `value="`+ann+`"`, `name="keep" value="1" checked`, `name="return" value="/docs"`, "Choose another account")
	b.send("/login/account", "account", "none", "return", "/docs").is(t, 303, "/login?return=%2Fdocs")
	b.send("/login/account/forget", "account", accounts[ann], "return", "/docs").is(t, 303, "/login?done=address-forgotten&return=%2Fdocs")
	b.send("/login/account/forget", "account", accounts[ann]).is(t, 303, "/login?done=address-forgotten")
	if left := b.accountsOn(b.get("/login")); len(left) != 1 || left["ben@acme.example"] == "" {
		t.Errorf("after one is forgotten: %q", left)
	}
	signIn("ben@acme.example", secret, "").is(t, 303, "/docs") // no longer asked for
	b.send("/logout")
	b.get("/login").is(t, 200, "")
	if left := b.accountsOn(b.get("/login")); len(left) != 0 {
		t.Errorf("after signing in without it: %q", left)
	}
}

// A browser remembers five addresses, the last ones. What it wasn't given here it doesn't show. An erased account is
// forgotten with the rest of it.
func TestLimitsOfRememberedAccounts(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	b := open(t, s)
	var set string
	for i := range 6 {
		email := fmt.Sprintf("%s%d@acme.example", strings.Repeat("a", 60), i)
		acme.Join(email, "USER")
		set = accountsCookie(b.send("/login", "email", email, "password", secret, "keep", "1"))
		b.send("/logout")
	}
	accounts := b.accountsOn(b.get("/login"))
	if len(accounts) != 5 || accounts[strings.Repeat("a", 60)+"0@acme.example"] != "" || len(set) > 4096 {
		t.Errorf("the page offers %q, by a cookie of %d bytes", accounts, len(set))
	}
	value, _, _ := strings.Cut(strings.TrimPrefix(set, "doorward_accounts="), ";")
	if plain, err := base64.RawURLEncoding.DecodeString(value); err == nil && strings.Contains(string(plain), "acme") {
		t.Errorf("the cookie has %q", plain)
	}
	const made = `[{"id":"1","email":"eve@acme.example"}]`
	for _, planted := range []string{"", "x", value[:len(value)-8] + "AAAAAAAA", value + "AAAA", base64.RawURLEncoding.EncodeToString([]byte(made)), base64.StdEncoding.EncodeToString([]byte(made))} {
		other := open(t, s)
		at, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		other.Jar.SetCookies(at, []*http.Cookie{{Name: "doorward_accounts", Value: planted, Path: "/"}})
		if got := other.accountsOn(other.get("/login").is(t, 200, "")); len(got) != 0 {
			t.Errorf("%q shows %q", planted, got)
		}
	}
	last := strings.Repeat("a", 60) + "5@acme.example"
	b.send("/login", "email", last, "password", secret, "keep", "1").is(t, 303, "/account")
	b.send("/account/erase", "confirm", last).is(t, 303, "/login?done=erased")
	if got := b.accountsOn(b.get("/login")); len(got) != 4 || got[last] != "" {
		t.Errorf("after erasing: %q", got)
	}
}

// A remembered account of a tenant that demands its own sign-on leads there at once, with the address; the others lead to
// the login.
func TestRememberedAccountSignsOn(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join(ann, "USER")
	s.Tenant("Globex").Join("ben@globex.example", "USER")
	b := open(t, s)
	for _, email := range []string{ann, "ben@globex.example"} {
		b.send("/login", "email", email, "password", secret, "keep", "1").is(t, 303, "/account")
		b.send("/logout")
	}
	demandSignOn(t, s, acme)
	accounts := b.accountsOn(b.get("/login").is(t, 200, ""))
	b.send("/login/account", "account", accounts[ann], "return", "/docs").is(t, 303, "/api/v2/auth/sso/con_acme/start?loginHint=ann%40acme.example&return=%2Fdocs")
	b.send("/login/account", "account", accounts["ben@globex.example"]).is(t, 200, "", `value="ben@globex.example"`)
}
