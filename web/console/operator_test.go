package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
)

// operatorLink makes a link to the operator's page and returns its code.
func operatorLink(t *testing.T, s *doorwardtest.Server) string {
	t.Helper()
	token, _, err := s.Node.App.Installation.MakeLink(t.Context(), doorward.OperatorAtTerminal())
	if err != nil {
		t.Fatal(err)
	}
	return token.Reveal()
}

// enter opens the page with a code, or with a link that has one, and returns the page's cookie,
// as the header of a request.
func (b *browser) enter(code string) []string {
	b.Helper()
	res, body := b.ask("POST", "/operator/open", url.Values{"token": {code}})
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/operator" {
		b.Fatalf("the link answers %d\n%s", res.StatusCode, body)
	}
	for _, c := range res.Cookies() {
		if c.Name == "doorward_operator" {
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/operator" || c.MaxAge != 0 || c.Value == code {
				b.Errorf("the cookie is %+v", c)
			}
			return []string{"Cookie", c.Name + "=" + c.Value}
		}
	}
	b.Fatal("no cookie")
	return nil
}

// A link opens the operator's page once. The page shows the trail of the installation, and
// neither cookie nor link can do anything else.
func TestOperatorPage(t *testing.T) {
	h := newFixture(t)
	b := &browser{T: t, server: h.Server}
	b.get("/operator", http.StatusOK, "doorward audit link")
	if _, err := h.Node.App.Keys.CreateOperator(t.Context(), doorward.OperatorAtTerminal(), "billing <sync>"); err != nil {
		t.Fatal(err)
	}
	code := operatorLink(t, h.Server)
	cookie := b.enter("http://localhost:8080/operator#token=" + code)
	b.post("/operator/open", url.Values{"token": {code}}, http.StatusUnauthorized, "This link is not valid, or not any more.")

	show := func(path string, want ...string) string {
		t.Helper()
		res, body := b.ask("GET", path, nil, cookie...)
		b.shows("GET "+path, res, body, http.StatusOK, want)
		if policy := res.Header.Get("Cache-Control"); policy != "no-store" {
			t.Errorf("%s may be cached: %q", path, policy)
		}
		return body
	}
	page := show("/operator", "operator’s page made", "Operator’s page opened", "Close the page")
	lacks(t, page, "@acme.example", h.tenant.ID)
	made := show("/operator?action=key.create", `class="opens"`)
	lacks(t, made, "page opened</a>")
	show("/operator?action=key.create&event="+b.findOn(regexp.MustCompile(`id="(evt_[a-z0-9]+)"`), made), "billing &lt;sync&gt;", "key.create")
	show("/operator?actor=usr_nobody", "Nothing matches.")
	for _, wrong := range []string{"from=never", "actor=nobody"} {
		if res, body := b.ask("GET", "/operator?"+wrong, nil, cookie...); res.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d\n%s", wrong, res.StatusCode, body)
		}
	}
	for _, path := range []string{"/console", "/account"} {
		if res, _ := b.ask("GET", path, nil, cookie...); res.StatusCode != http.StatusSeeOther {
			t.Errorf("%s with the operator's cookie: %d", path, res.StatusCode)
		}
	}
	_, token, _ := strings.Cut(cookie[1], "=")
	for _, text := range []string{token, code} {
		if res, _ := b.ask("GET", "/api/v2/installation/audit-events", nil, "Authorization", "Bearer "+text); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("a code of the page as a bearer credential: %d", res.StatusCode)
		}
	}
	res, _ := b.ask("POST", "/operator/leave", url.Values{}, append(cookie, "Sec-Fetch-Site", "cross-site")...)
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("another site closes the page: %d", res.StatusCode)
	}
	if res, _ = b.ask("POST", "/operator/leave", url.Values{}, cookie...); res.StatusCode != http.StatusSeeOther {
		t.Errorf("leaving: %d", res.StatusCode)
	}
	lacks(t, show("/operator", "doorward audit link"), "billing")
}

// The operator ends all pages and links at once. The caller of a page can change nothing.
func TestOperatorPagesEnd(t *testing.T) {
	h := newFixture(t)
	b := &browser{T: t, server: h.Server}
	cookie, unused := b.enter(operatorLink(t, h.Server)), operatorLink(t, h.Server)
	installation := h.Node.App.Installation
	_, text, _ := strings.Cut(cookie[1], "=")
	token, err := secret.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	by, _, err := installation.Page(t.Context(), doorward.Caller{}, token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Node.App.Tenants.Freeze(t.Context(), by, h.tenant.ID); !doorward.HasCode(err, doorward.CodeForbidden) {
		t.Errorf("the page's caller freezes: %v", err)
	}
	by.Limits = nil // as if the first check had allowed it
	if _, err := h.Node.App.Tenants.Freeze(t.Context(), by, h.tenant.ID); !doorward.HasCode(err, doorward.CodeUnauthenticated) {
		t.Errorf("the page's caller without limits freezes: %v", err)
	}
	if n, err := installation.EndPages(t.Context(), doorward.OperatorAtTerminal()); err != nil || n != 2 {
		t.Errorf("ended %d, %v; want the page and the link", n, err)
	}
	if res, body := b.ask("GET", "/operator", nil, cookie...); !strings.Contains(body, "doorward audit link") {
		t.Errorf("the page is still open: %d\n%s", res.StatusCode, body)
	}
	b.post("/operator/open", url.Values{"token": {unused}}, http.StatusUnauthorized, "not any more")
}

// Guessing codes is limited as guessing keys is: 30 unknown ones from a network. A valid link
// still opens the page.
func TestOperatorLinksAreNotGuessed(t *testing.T) {
	s := doorwardtest.Start(t)
	b := &browser{T: t, server: s}
	for range 30 {
		b.post("/operator/open", url.Values{"token": {secret.New().Reveal()}}, http.StatusUnauthorized)
	}
	b.post("/operator/open", url.Values{"token": {"guessed"}}, http.StatusTooManyRequests, "Try again in")
	b.enter(operatorLink(t, s))
}
