package web_test

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// besideApplication starts Doorward below /auth of a gateway whose other paths are those of an application,
// which has a /login and /assets of its own. strip: the gateway removes the prefix.
func besideApplication(t *testing.T, strip bool) (*doorwardtest.Server, string) {
	t.Helper()
	var doorward http.Handler
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/auth" || strings.HasPrefix(r.URL.Path, "/auth/") {
			doorward.ServeHTTP(w, r)
			return
		}
		_, _ = io.WriteString(w, "the application")
	}))
	t.Cleanup(gateway.Close)
	s := doorwardtest.Start(t, doorwardtest.BaseURL(gateway.URL+"/auth"))
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	doorward = httputil.NewSingleHostReverseProxy(target)
	if strip {
		doorward = http.StripPrefix("/auth", doorward)
	}
	return s, gateway.URL
}

var linked = regexp.MustCompile(`(?:href|src|action|data-begin)="(/[^"]*)"`)

// With a path in the base URL, no page needs a path of the application: docs/protect-a-service.md.
func TestBesidePathsOfAnApplication(t *testing.T) {
	t.Parallel()
	for _, strip := range []bool{false, true} {
		s, site := besideApplication(t, strip)
		owner := s.Tenant("Acme").Owner
		browser := s.Client()
		browser.CheckRedirect = nil
		form := url.Values{"email": {owner.Email}, "password": {password}}
		read := func(res *http.Response, err error) string {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil || res.Header.Get("X-Request-Id") == "" || res.StatusCode != http.StatusOK {
				t.Errorf("%s isn't a page of Doorward: %d %.80s %v", res.Request.URL, res.StatusCode, text, err)
			}
			return string(text)
		}
		seen := map[string]bool{}
		follow := func(page string) {
			for _, found := range linked.FindAllStringSubmatch(page, -1) {
				path := html.UnescapeString(found[1])
				if path != "/auth" && !strings.HasPrefix(path, "/auth/") {
					t.Errorf("a page links to %s, which is the application's", path)
				}
				if isAsset := strings.HasPrefix(path, "/auth/assets/"); isAsset && !seen[path] {
					seen[path] = true
					read(browser.Get(site + path))
				}
			}
		}
		follow(read(browser.Get(site + "/auth/login")))
		follow(read(browser.PostForm(site+"/auth/login", form))) // leads to the account
		for _, path := range []string{"/auth", "/auth/account/security", "/auth/console", "/auth/docs", "/auth/docs/api", "/auth/problems/not_found"} {
			follow(read(browser.Get(site + path)))
		}
		read(browser.Get(site + "/auth/api/v2/access/check"))
		if len(seen) < 3 {
			t.Errorf("only these assets were found: %v", seen)
		}
	}
}
