package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// The session cookie has the configured name wherever it is set, read, cleared and
// documented; a cookie with the default name is then ignored.
func TestCookieName(t *testing.T) {
	for _, name := range []string{"platform_session", "__Host-session", "__Secure-session"} {
		t.Run(name, func(t *testing.T) {
			onSQLite(t, func(t *testing.T, d *server) { testCookieName(t, d, name) },
				doorwardtest.CookieName(name), doorwardtest.BaseURL("https://platform.example"))
		})
	}
}

func testCookieName(t *testing.T, d *server, name string) {
	ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
	login := d.login(t, ann.Email, password).ok(http.StatusOK)
	token := login.text("token")
	if got, want := cookieNamed(login, name), name+"="+token+"; Path=/; HttpOnly; SameSite=Lax; Secure"; got != want {
		t.Errorf("login sets %q, want %q", got, want)
	}
	if got := cookieNamed(login, "JSESSIONID"); got != "" {
		t.Errorf("login sets %q", got)
	}
	for _, path := range []string{"GET /api/v2/auth/session", "GET /api/v2/access/check"} {
		d.send(t, path, nil, cookie(name+"="+token)).ok(http.StatusOK)
		d.send(t, path, nil, bearer(token)).ok(http.StatusOK)
		d.send(t, path, nil, cookie(name+"="+token), as(forged)).ok(http.StatusOK) // a cookie of another application
		for _, other := range []string{"JSESSIONID", strings.ToLower(name) + "x", "x" + name, strings.ToUpper(name), name[:len(name)-1]} {
			d.send(t, path, nil, cookie(other+"="+token)).fails(http.StatusUnauthorized, "unauthenticated")
		}
		d.send(t, path, nil, cookie(name+"="+token), bearer(token)).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, path, nil, cookie(name+"="+token), cookie(name+"="+forged)).fails(http.StatusUnauthorized, "unauthenticated")
	}
	if got := pageStatus(t, d, "/account", cookie(name+"="+token)); !strings.HasPrefix(got, "200") {
		t.Errorf("with the cookie the account page is %s", got)
	}
	if got := pageStatus(t, d, "/account", as(token)); strings.HasPrefix(got, "200") {
		t.Errorf("with the default cookie name the account page is %s", got)
	}
	document := d.send(t, "GET /openapi.json", nil)
	if !strings.Contains(string(document.body), `"`+name+`"`) || strings.Contains(string(document.body), `"name": "JSESSIONID"`) || !strings.Contains(string(document.body), name+"=<token>") && !strings.Contains(string(document.body), name+`=\u003ctoken`) {
		t.Error("the OpenAPI document has another cookie name")
	}
	// Browsers ignore a deletion of a prefixed name unless it is Secure.
	want := name + "=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"
	if strings.HasPrefix(name, "__") {
		want += "; Secure"
	}
	out := d.send(t, "POST /api/v2/auth/logout", nil, cookie(name+"="+token)).ok(http.StatusNoContent)
	if got := out.cookies(); !slices.Equal(got, []string{want}) {
		t.Errorf("logout sets %q, want %q", got, want)
	}
	d.send(t, "GET /api/v2/auth/session", nil, cookie(name+"="+token)).fails(http.StatusUnauthorized, "unauthenticated")
}
