package web_test

import (
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/doorward/doorward/web/console"
	"github.com/doorward/doorward/web/hosted"
)

var pathWildcard = regexp.MustCompile(`\{[^}]+\}`)

// TestLoadingTheAddressOfAForm: a browser that loads the address of a form, by a reload or a bookmark, is led to a page,
// and never told that the method is wrong.
func TestLoadingTheAddressOfAForm(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		token := d.Tenant("Acme").Owner.Token()
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		load := func(method, path string) (status int, to string) {
			req, err := http.NewRequestWithContext(t.Context(), method, d.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Cookie", "JSESSIONID="+token)
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			return res.StatusCode, res.Header.Get("Location")
		}
		routes := slices.Concat(hosted.Routes(nil), console.Routes(nil))
		shown := map[string]bool{}
		for _, r := range routes {
			shown[r.Path] = shown[r.Path] || r.Method == "GET"
		}
		forms := 0
		for _, r := range routes {
			if shown[r.Path] || r.Path == "/recovery-codes.txt" { // the codes are in the form alone
				continue
			}
			forms++
			path := pathWildcard.ReplaceAllString(r.Path, "x")
			status, to := load("GET", path)
			if after, _ := load("GET", to); status != http.StatusSeeOther || after == http.StatusMethodNotAllowed {
				t.Errorf("%s: %d to %s, which answers %d", path, status, to, after)
			}
		}
		if forms < 60 {
			t.Errorf("there are %d forms", forms)
		}
		for path, want := range map[string]string{
			"/setup/domains/dom_x/verify":                    "/setup/domains",
			"/setup/begin":                                   "/setup",
			"/account/sessions/end?tab=sessions":             "/account?tab=sessions",
			"/logout":                                        "/login",
			"/console/sso/domains/dom_x/verify":              "/console/sso/domains/dom_x",
			"/console/sso/connections/con_x/test?tab=test":   "/console/sso/connections/con_x?tab=test",
			"/console/sso/connections/con_%3Cx/edit?x=%0d%0a": "/console/sso/connections/con_%3Cx?x=%0d%0a",
		} {
			if status, to := load("GET", path); status != http.StatusSeeOther || to != want {
				t.Errorf("%s: %d to %q, want %q", path, status, to, want)
			}
			if status, _ := load("PUT", path); status != http.StatusMethodNotAllowed {
				t.Errorf("PUT %s: %d", path, status)
			}
		}
		if status, _ := load("GET", "/recovery-codes.txt"); status != http.StatusMethodNotAllowed {
			t.Errorf("a file of codes without a form: %d", status)
		}
	})
}
