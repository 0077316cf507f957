package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
)

// byRoot is the operator at a terminal.
var byRoot = doorward.OperatorAtTerminal(doorward.Terminal{SystemUser: "root@db1", Reason: "ticket <4711>"})

// operatorLink makes a link to the operator's page, with the acts, and returns its code.
func operatorLink(t *testing.T, s *doorwardtest.Server, acts ...string) string {
	t.Helper()
	token, _, err := s.Node.App.Installation.MakeLink(t.Context(), byRoot, acts...)
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
	page := show("/operator", "Close the page", "doorward audit link --act freeze,thaw,close", h.tenant.ID, "doorward tenant create")
	lacks(t, page, "@acme.example")
	page = show("/operator/trail", "operator’s page made", "Operator’s page opened", "Close the page")
	lacks(t, page, "@acme.example", h.tenant.ID)
	made := show("/operator/trail?action=key.create", `class="opens"`)
	lacks(t, made, "page opened</a>")
	show("/operator/trail?action=key.create&event="+b.findOn(regexp.MustCompile(`id="(evt_[a-z0-9]+)"`), made), "billing &lt;sync&gt;", "key.create")
	show("/operator/trail?actor=usr_nobody", "Nothing matches.")
	show("/operator?q=nobody", "No organisation matches.")
	show("/operator?q="+h.tenant.Name, h.tenant.ID)
	for _, wrong := range []string{"/trail?from=never", "/trail?actor=nobody", "?status=lost", "/mails?state=lost", "/mails?to=nobody", "/mails?kind=lost", "/deliveries?state=lost"} {
		if res, body := b.ask("GET", "/operator"+wrong, nil, cookie...); res.StatusCode != http.StatusUnprocessableEntity {
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

// A browser in which a page is open takes another link: the script finds the code on each page, the form is shown in place
// of the page, and the page before ends, with its cookie, wherever that is. A wrong code ends nothing.
func TestAnotherOperatorLink(t *testing.T) {
	h := newFixture(t)
	b := &browser{T: t, server: h.Server}
	first := b.enter(operatorLink(t, h.Server))
	at := "/operator/tenants/" + h.tenant.ID
	for _, path := range []string{"/operator", at, "/operator/trail", "/operator/nodes", "/operator/mails", "/operator/deliveries"} {
		res, page := b.ask("GET", path, nil, first...)
		b.shows("GET "+path, res, page, http.StatusOK, []string{`src="/assets/code`})
	}
	res, page := b.ask("GET", "/operator?next", nil, first...)
	b.shows("the form", res, page, http.StatusOK, []string{`action="/operator/open" class="code"`, `src="/assets/code`})
	if res, page := b.ask("POST", "/operator/open", url.Values{"token": {secret.New().Reveal()}}, first...); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong code answers %d\n%s", res.StatusCode, page)
	}
	res, page = b.ask("POST", "/operator/open", url.Values{"token": {operatorLink(t, h.Server, "freeze")}}, first...)
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		t.Fatalf("the second link answers %d\n%s", res.StatusCode, page)
	}
	second := []string{"Cookie", res.Cookies()[0].Name + "=" + res.Cookies()[0].Value}
	res, page = b.ask("GET", at, nil, second...)
	b.shows("the second page", res, page, http.StatusOK, []string{at + "/freeze"})
	res, page = b.ask("GET", at, nil, first...)
	b.shows("the first page", res, page, http.StatusOK, []string{"doorward audit link"})
	lacks(t, page, h.tenant.ID)
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
	open, err := installation.Page(t.Context(), doorward.Caller{}, token)
	if err != nil {
		t.Fatal(err)
	}
	by := open.By
	if _, err := h.Node.App.Tenants.Freeze(t.Context(), by, h.tenant.ID); !doorward.HasCode(err, doorward.CodeForbidden) {
		t.Errorf("the page's caller freezes: %v", err)
	}
	by.Limits = nil // a page without limits may do nothing, where a key may do everything
	if _, err := h.Node.App.Tenants.Freeze(t.Context(), by, h.tenant.ID); !doorward.HasCode(err, doorward.CodeForbidden) {
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

// A link does what it was made for, and nothing else: each act once the name of the tenant is typed. The trail of the
// tenant says by which page, and who has made its link. A page that has ended does nothing.
func TestOperatorActs(t *testing.T) {
	h := newFixture(t)
	b := &browser{T: t, server: h.Server}
	at := "/operator/tenants/" + h.tenant.ID
	status := func(want doorward.TenantStatus) {
		t.Helper()
		if got, err := h.Node.App.Tenants.Get(t.Context(), h.tenant.ID); err != nil || got.Status != want {
			t.Errorf("the tenant is %s, want %s (%v)", got.Status, want, err)
		}
	}
	get := func(cookie []string, path string, status int, want ...string) string {
		t.Helper()
		res, body := b.ask("GET", path, nil, cookie...)
		b.shows("GET "+path, res, body, status, want)
		return body
	}
	do := func(cookie []string, act, name string, more ...string) (int, string) {
		t.Helper()
		res, body := b.ask("POST", at+"/"+act, url.Values{"confirm": {name}}, append(more, cookie...)...)
		return res.StatusCode, body + res.Header.Get("Location")
	}
	refused := func(cookie []string, act, name string, want int, more ...string) {
		t.Helper()
		if got, body := do(cookie, act, name, more...); got != want {
			t.Errorf("%s of %q answers %d, want %d\n%s", act, name, got, want, body)
		}
	}

	reading := b.enter(operatorLink(t, h.Server))
	lacks(t, get(reading, at, http.StatusOK, "doorward audit link --act freeze,close"), at+"/freeze")
	get(reading, at+"/freeze", http.StatusForbidden)
	refused(reading, "freeze", h.tenant.Name, http.StatusForbidden)
	status(doorward.TenantActive)

	freezing := b.enter(operatorLink(t, h.Server, "freeze"))
	get(freezing, "/operator", http.StatusOK, "This page may freeze.", "root@db1")
	lacks(t, get(freezing, at, http.StatusOK, at+"/freeze", "doorward audit link --act close"), at+"/close")
	get(freezing, at+"/freeze", http.StatusOK, `name="confirm"`, "4 sessions end at once.")
	get(freezing, at+"/destroy", http.StatusNotFound)
	get(freezing, "/operator/tenants/tnt_none", http.StatusNotFound)
	refused(freezing, "destroy", h.tenant.Name, http.StatusNotFound)
	refused(freezing, "close", h.tenant.Name, http.StatusForbidden)
	refused(freezing, "freeze", "", http.StatusUnprocessableEntity)
	refused(freezing, "freeze", h.tenant.Name+"x", http.StatusUnprocessableEntity)
	refused(freezing, "freeze", h.tenant.Name, http.StatusForbidden, "Sec-Fetch-Site", "cross-site")
	refused(nil, "freeze", h.tenant.Name, http.StatusUnauthorized)
	status(doorward.TenantActive)
	owner := h.browserOf(t, "OWNER")
	owner.get("/console", http.StatusOK)
	if code, to := do(freezing, "freeze", h.tenant.Name); code != http.StatusSeeOther || !strings.Contains(to, at+"?") || !strings.Contains(to, "sessions=4") {
		t.Errorf("freezing answers %d %s", code, to)
	}
	if res, _ := owner.ask("GET", "/console", nil); res.StatusCode != http.StatusSeeOther {
		t.Errorf("a session of the frozen tenant answers %d", res.StatusCode)
	}
	if code, to := do(freezing, "freeze", h.tenant.Name); code != http.StatusSeeOther || !strings.Contains(to, "done=operator.unchanged") {
		t.Errorf("freezing again answers %d %s", code, to)
	}
	refused(freezing, "thaw", h.tenant.Name, http.StatusForbidden)
	status(doorward.TenantFrozen)
	of := doorward.Caller{Principal: doorward.Principal{TenantID: h.tenant.ID}}
	events, err := h.Node.App.Audit.List(t.Context(), of, audit.Filter{Action: string(doorward.TenantFreeze), Outcome: "done"}, doorward.Window{Limit: 10})
	if err != nil || len(events.Items) != 1 {
		t.Fatalf("%d events of a freeze: %v", len(events.Items), err)
	}
	if event := events.Items[0]; event.ActorType != doorward.Operator || !strings.HasPrefix(event.ActorID, doorward.PrefixPage) ||
		event.Change(doorward.FieldSystemUser).To != "root@db1" || event.Change(doorward.FieldOperatorReason).To != "ticket <4711>" {
		t.Errorf("the event of the freeze is %+v", event)
	}

	all := b.enter(operatorLink(t, h.Server, "close", "thaw"))
	get(all, "/operator?status=frozen", http.StatusOK, h.tenant.ID, "This page may thaw, close.")
	for _, act := range []string{"close", "thaw"} {
		if code, to := do(all, act, h.tenant.Name); code != http.StatusSeeOther || !strings.Contains(to, "done=operator."+act) {
			t.Errorf("%s answers %d %s", act, code, to)
		}
	}
	status(doorward.TenantClosing)
	get(all, at, http.StatusOK, "doorward tenant restore "+h.tenant.ID)
	if n, err := h.Node.App.Installation.EndPages(t.Context(), byRoot); err != nil || n != 3 {
		t.Errorf("ended %d, %v; want three pages", n, err)
	}
	refused(all, "freeze", h.tenant.Name, http.StatusUnauthorized)
	status(doorward.TenantClosing)
}

// The pages show the installation: nodes, queued mails and deliveries, and what only a terminal may do.
func TestOperatorPagesShow(t *testing.T) {
	h := newFixture(t)
	b := &browser{T: t, server: h.Server}
	cookie := b.enter(operatorLink(t, h.Server))
	for path, want := range map[string][]string{
		"/operator/nodes":      {"nod_", doorward.Version, "answers this page"},
		"/operator/mails":      {"doorward mail queue retry"},
		"/operator/deliveries": {"There are none.", "doorward webhook queue pause"},
	} {
		res, body := b.ask("GET", path, nil, cookie...)
		b.shows("GET "+path, res, body, http.StatusOK, want)
		if res, body := b.ask("GET", path, nil); res.StatusCode != http.StatusOK || !strings.Contains(body, "doorward audit link") || strings.Contains(body, "nod_") {
			t.Errorf("%s without a page answers %d\n%s", path, res.StatusCode, body)
		}
	}
}

// Without the database each page and form is a page with 503, and never one that asks for a link as if the page had
// ended.
func TestOperatorPageWithoutDatabase(t *testing.T) {
	h := newFixture(t)
	b := &browser{T: t, server: h.Server}
	cookie, at := b.enter(operatorLink(t, h.Server, "freeze")), "/operator/tenants/"+h.tenant.ID
	if err := h.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/operator", at, at + "/freeze", "/operator/trail", "/operator/nodes", "/operator/mails", "/operator/deliveries"} {
		if res, body := b.ask("GET", path, nil, cookie...); res.StatusCode != http.StatusServiceUnavailable || strings.Contains(body, "doorward audit link") {
			t.Errorf("GET %s: %d\n%s", path, res.StatusCode, body)
		}
	}
	for path, form := range map[string]url.Values{at + "/freeze": {"confirm": {h.tenant.Name}}, "/operator/open": {"token": {secret.New().Reveal()}}, "/operator/leave": {}} {
		if res, body := b.ask("POST", path, form, cookie...); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("POST %s: %d\n%s", path, res.StatusCode, body)
		}
	}
}
