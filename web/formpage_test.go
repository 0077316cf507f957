package web_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
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
			"/setup/domains/dom_x/verify":                     "/setup/domains",
			"/setup/begin":                                    "/setup",
			"/account/sessions/end?tab=sessions":              "/account?tab=sessions",
			"/logout":                                         "/login",
			"/console/sso/domains/dom_x/verify":               "/console/sso/domains/dom_x",
			"/console/sso/connections/con_x/test?tab=test":    "/console/sso/connections/con_x?tab=test",
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

// TestErasureInASessionOfAConnection: the page of one's data doesn't offer what the session can't do, and says who decides
// and what to do; so does the refusal.
func TestErasureInASessionOfAConnection(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		load := func(who *doorwardtest.Person, path string) string {
			_, text := d.load(t, d.enterFrom(t, who, acme.ID, "con_acme"), path)
			return text
		}
		ann, nia := acme.Join("ann@acme.example", "USER"), d.managed(t, acme.ID, "nia@acme.example")
		for _, c := range []struct {
			page, want string
		}{
			{load(ann, "/account?tab=data"), "sign in with your password or a passkey"},
			{load(ann, "/account?tab=data"), "To have the file, sign out"},
			{load(nia, "/account?tab=data"), ">Download</a>"},
			{load(nia, "/account?tab=data"), "ask an administrator there to remove you"},
			{load(nia, "/account?tab=data"), "Forgot your password?"},
			{load(ann, "/account/erase"), "Sign out, and sign in with your password or a passkey"},
			{load(nia, "/account/erase"), "ask for a password with “Forgot your password?”"},
		} {
			if !strings.Contains(c.page, c.want) || strings.Contains(c.page, "/account/erase\"") {
				t.Errorf("the page doesn't say %q, or offers to erase:\n%s", c.want, c.page)
			}
		}
		if _, page := d.load(t, acme.Owner.Token(), "/account?tab=data"); !strings.Contains(page, "/account/erase\"") {
			t.Errorf("a session of Doorward's own isn't offered to erase:\n%s", page)
		}
	})
}

// load loads a page in the session, and returns its status and its text.
func (s *server) load(t *testing.T, token, path string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", "JSESSIONID="+token)
	req.Header.Set("Accept", "text/html")
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}
