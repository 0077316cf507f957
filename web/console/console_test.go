package console_test

import (
	"encoding/json"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/key"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/web/console"
)

// browser is a person in the console: cookies and forms, no scripts.
type browser struct {
	*testing.T
	server *doorwardtest.Server
	token  string
	notice string // value of the cookie that says what was done before a redirect
}

// open returns the browser of a signed-in person.
func open(t *testing.T, s *doorwardtest.Server, p *doorwardtest.Person) *browser {
	return &browser{T: t, server: s, token: p.Token()}
}

// ask sends a request, with the form if there is one, and follows no redirect.
func (b *browser) ask(method, path string, form url.Values, header ...string) (*http.Response, string) {
	b.Helper()
	if form != nil {
		header = append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)
	}
	return b.send(method, path, strings.NewReader(form.Encode()), header...)
}

// send sends a body as it is.
func (b *browser) send(method, path string, body io.Reader, header ...string) (*http.Response, string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.server.URL+path, body)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Cookie", "JSESSIONID="+b.token+"; doorward_notice="+b.notice)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := b.server.Client().Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	for _, c := range res.Cookies() {
		if c.Name == "doorward_notice" {
			b.notice = c.Value
		}
	}
	page, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res, string(page)
}

// get requires a page with the status and each of the texts.
func (b *browser) get(path string, status int, want ...string) string {
	b.Helper()
	res, body := b.ask("GET", path, nil)
	b.shows("GET "+path, res, body, status, want)
	return body
}

// post requires a page with the status and the texts as the answer to the form.
func (b *browser) post(path string, form url.Values, status int, want ...string) string {
	b.Helper()
	res, body := b.ask("POST", path, form)
	b.shows("POST "+path, res, body, status, want)
	return body
}

// shows requires the status and each of the texts in an answer.
func (b *browser) shows(name string, res *http.Response, body string, status int, want []string) {
	b.Helper()
	if res.StatusCode != status {
		b.Fatalf("%s: %d to %q, want %d\n%s", name, res.StatusCode, res.Header.Get("Location"), status, body)
	}
	for _, text := range want {
		if !strings.Contains(body, text) {
			b.Errorf("%s doesn't show %q:\n%s", name, text, body)
		}
	}
}

// submit sends a form that must redirect, and requires the texts on the page after the redirect.
func (b *browser) submit(path string, form url.Values, want ...string) string {
	b.Helper()
	res, body := b.ask("POST", path, form)
	if res.StatusCode != http.StatusSeeOther {
		b.Fatalf("POST %s: %d, want 303\n%s", path, res.StatusCode, body)
	}
	return b.get(res.Header.Get("Location"), http.StatusOK, want...)
}

var versionField = regexp.MustCompile(`<input type="hidden" name="version" value="([^"]+)">`)

// version returns the version in the form of the page.
func (b *browser) version(page string) string {
	b.Helper()
	m := versionField.FindStringSubmatch(page)
	if m == nil {
		b.Fatalf("no version on\n%s", page)
	}
	return m[1]
}

// translate sends the form that shows the page in another language, and requires the texts there.
func (b *browser) translate(page, path, language string, want ...string) string {
	b.Helper()
	_, foot, _ := strings.Cut(page, `<footer`)
	form := url.Values{"lang": {language}}
	for _, m := range sentField.FindAllStringSubmatch(foot, -1) {
		form.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return b.post(path, form, http.StatusOK, want...)
}

var sentField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// lacks requires that the page has none of the texts.
func lacks(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("there is %q on\n%s", text, page)
		}
	}
}

// fixture is a tenant with a person in each role, and a person of another tenant.
type fixture struct {
	*doorwardtest.Server
	tenant *doorwardtest.Tenant
	people map[string]*doorwardtest.Person
	other  *doorwardtest.Person
}

// newFixture starts a server with a fixture.
func newFixture(t *testing.T, options ...doorwardtest.Option) fixture {
	s := doorwardtest.Start(t, options...)
	acme := s.Tenant("Acme")
	h := fixture{s, acme, map[string]*doorwardtest.Person{"OWNER": acme.Owner}, s.Tenant("Zeta").Owner}
	for _, role := range []string{"ADMIN", "USER", "VIEWER"} {
		h.people[role] = acme.Join(strings.ToLower(role)+"@acme.example", role)
	}
	return h
}

func (h fixture) browserOf(t *testing.T, role string) *browser {
	return open(t, h.Server, h.people[role])
}

// pageStatus is the status of a page for each role.
type pageStatus struct {
	path                       string
	owner, admin, user, viewer int
}

// signOnPages are those of sign-on.
var signOnPages = []pageStatus{
	{"/console/sso/connections/con_absent/runs", 404, 403, 403, 403},
	{"/console/sso/connections/con_absent/runs/run_absent", 404, 403, 403, 403},
	{"/console/sso/connections/con_absent/runs/run_absent/undo", 404, 403, 403, 403},
	{"/console/sso", 200, 403, 403, 403},
	{"/console/sso/new", 200, 403, 403, 403},
	{"/console/sso/connections/con_absent", 404, 403, 403, 403},
	{"/console/sso/connections/con_absent/delete", 404, 403, 403, 403},
	{"/console/sso/connections/con_absent/setup-link", 404, 403, 403, 403},
	{"/console/sso/connections/con_absent/unlink/idn_absent", 404, 403, 403, 403},
	{"/console/sso/domains", 200, 403, 403, 403},
	{"/console/sso/domains/dom_absent", 404, 403, 403, 403},
	{"/console/sso/domains/dom_absent/delete", 404, 403, 403, 403},
	{"/console/sso/policy", 200, 403, 403, 403},
}

// The status of each page for each role, and whether it has a form.
func TestPagesByRole(t *testing.T) {
	h, paths := newFixture(t), []string{}
	inv, key := makeInvitation(t, h), makeKey(t, h, nil)
	person := "/console/people/" + h.people["USER"].ID
	role := "/console/roles/" + makeRole(t, h, "READER", "", "message.read")
	top := "/console/roles/" + makeRole(t, h, "PAYER", "", "billing.manage")
	putPolicy(t, h, "// none\n")
	for _, c := range append([]pageStatus{
		{"/console", 200, 200, 200, 200},
		{"/console/people", 200, 200, 200, 200},
		{person, 200, 200, 200, 200},
		{person + "/suspend", 200, 200, 403, 403},
		{person + "/role?role=VIEWER", 200, 200, 403, 403},
		{person + "/remove", 200, 200, 403, 403},
		{person + "/sign-out", 200, 200, 403, 403},
		{person + "/resume", 200, 200, 403, 403},
		{"/console/people/" + h.people["ADMIN"].ID + "/suspend", 200, 403, 403, 403},
		{person + "/dance", 404, 404, 403, 403},
		{"/console/people/usr_absent", 404, 404, 404, 404},
		{"/console/people/" + h.other.ID, 404, 404, 404, 404},
		{"/console/people/" + h.other.ID + "/remove", 404, 404, 403, 403},
		{"/console/people/%3Cb%3E", 404, 404, 404, 404},
		{"/console/invitations", 200, 200, 403, 403},
		{"/console/invitations/new", 200, 200, 403, 403},
		{"/console/invitations/" + inv, 200, 200, 403, 403},
		{"/console/invitations/inv_absent", 404, 404, 403, 403},
		{"/console/roles", 200, 200, 403, 403},
		{"/console/webhooks", 200, 200, 403, 403},
		{"/console/webhooks/new", 200, 200, 403, 403},
		{"/console/webhooks/whk_absent", 404, 404, 403, 403},
		{"/console/webhooks/whk_absent/delete", 404, 404, 403, 403},
		{"/console/webhooks/whk_absent/deliveries/whd_absent", 404, 404, 403, 403},
		{"/console/roles/new", 200, 200, 403, 403},
		{"/console/roles/rol_owner", 200, 200, 403, 403},
		{"/console/roles/rol_owner/edit", 403, 403, 403, 403},
		{"/console/roles/rol_owner/delete", 403, 403, 403, 403},
		{role, 200, 200, 403, 403},
		{role + "/edit", 200, 200, 403, 403},
		{role + "/delete", 200, 200, 403, 403},
		{top, 200, 200, 403, 403},
		{top + "/edit", 200, 403, 403, 403},
		{top + "/delete", 200, 403, 403, 403},
		{"/console/roles/rol_absent", 404, 404, 403, 403},
		{"/console/roles/rol_absent/edit", 404, 404, 403, 403},
		{"/console/keys", 200, 200, 403, 403},
		{"/console/keys/new", 200, 200, 403, 403},
		{"/console/keys/" + key, 200, 200, 403, 403},
		{"/console/keys/" + key + "/revoke", 200, 200, 403, 403},
		{"/console/keys/" + key + "/dance", 404, 404, 403, 403},
		{"/console/keys/key_absent", 404, 404, 403, 403},
		{"/console/policy", 200, 200, 403, 403},
		{"/console/policy/versions", 200, 200, 403, 403},
		{"/console/policy/versions/1", 200, 200, 403, 403},
		{"/console/policy/versions/1/restore", 200, 403, 403, 403},
		{"/console/policy/versions/99", 404, 404, 403, 403},
		{"/console/policy/versions/0", 404, 404, 403, 403},
		{"/console/policy/versions/one", 404, 404, 403, 403},
		{"/console/policy?from=99", 404, 404, 403, 403},
		{"/console/policy?from=1", 200, 200, 403, 403},
		{"/console/explain", 200, 200, 403, 403},
		{"/console/explain?who=user@acme.example&action=user.read", 200, 200, 403, 403},
		{"/console/find", 200, 200, 200, 200},
		{"/console/audit", 200, 200, 403, 403},
		{"/console/settings", 200, 200, 200, 200},
		{"/console/close", 200, 403, 403, 403},
	}, signOnPages...) {
		paths = append(paths, c.path)
		for role, want := range map[string]int{"OWNER": c.owner, "ADMIN": c.admin, "USER": c.user, "VIEWER": c.viewer} {
			page := h.browserOf(t, role).get(c.path, want)
			if role == "USER" || role == "VIEWER" {
				lacks(t, page, `method="post" action="/console`, "/console/invitations", "/console/roles", "/console/policy", "/console/explain", "/console/sso", "/console/keys", "/console/audit", "/console/close")
			}
			if role == "ADMIN" && strings.HasPrefix(c.path, "/console/policy") {
				lacks(t, page, `method="post" action="/console`, "/restore")
			}
		}
	}
	for _, page := range pagesWithout(paths) {
		t.Errorf("%s has no row above", page)
	}
	foreigner := open(t, h.Server, h.other)
	foreigner.get("/console/invitations/"+inv, http.StatusNotFound)
	foreigner.get(person, http.StatusNotFound)
	foreigner.get("/console/keys/"+key, http.StatusNotFound)
	foreigner.get(role, http.StatusNotFound)
	foreigner.get("/console/policy/versions/1", http.StatusNotFound)
	lacks(t, foreigner.get("/console/people", http.StatusOK), "acme.example")
	lacks(t, foreigner.get("/console/audit", http.StatusOK), "owner@acme.example", "admin@acme.example")
	const above = "Only an owner can change administrators and owners."
	lacks(t, h.browserOf(t, "ADMIN").get("/console/people/"+h.people["OWNER"].ID, http.StatusOK, above), `method="post" action="/console`, "/suspend", `/role"`)
	h.browserOf(t, "ADMIN").get("/console/people/"+h.people["ADMIN"].ID, http.StatusOK, above, `href="/account">Your name`)
	lacks(t, h.browserOf(t, "ADMIN").get("/console/people/"+h.people["USER"].ID, http.StatusOK), above, ">Your name")
	lacks(t, h.browserOf(t, "USER").get("/console/people/"+h.people["OWNER"].ID, http.StatusOK), above, ">Your name")
}

// consoleRoutes returns the paths of the console's routes with a method. One only redirects.
func consoleRoutes(method string) (all []string) {
	for _, r := range console.Routes(nil) {
		if r.Method == method && strings.HasPrefix(r.Path, "/console") && r.Path != "/console/{$}" {
			all = append(all, r.Path)
		}
	}
	return all
}

// pagesWithout returns the pages that have none of the paths.
func pagesWithout(paths []string) (all []string) {
	mux, tested := http.NewServeMux(), map[string]bool{}
	for _, route := range consoleRoutes("GET") {
		mux.Handle("GET "+route, http.NotFoundHandler())
	}
	for _, path := range paths {
		_, pattern := mux.Handler(httptest.NewRequest("GET", path, http.NoBody))
		tested[pattern] = true
	}
	for _, route := range consoleRoutes("GET") {
		if !tested["GET "+route] {
			all = append(all, "GET "+route)
		}
	}
	return all
}

// No form is for USERs and VIEWERs, for another site, or for somebody without a session, whatever
// it holds.
func TestEveryFormIsGuarded(t *testing.T) {
	h := newFixture(t)
	all := consoleRoutes("POST")
	for _, path := range all {
		path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x")
		for _, role := range []string{"USER", "VIEWER"} {
			h.browserOf(t, role).post(path, url.Values{}, http.StatusForbidden, "You may not do this")
		}
		res, _ := h.browserOf(t, "OWNER").ask("POST", path, url.Values{}, "Sec-Fetch-Site", "cross-site")
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s from another site: %d", path, res.StatusCode)
		}
		nobody := &browser{T: t, server: h.Server, token: ""}
		if res, _ := nobody.ask("POST", path, url.Values{}); res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(res.Header.Get("Location"), "/login?return=%2Fconsole") {
			t.Errorf("%s without a session: %d to %s", path, res.StatusCode, res.Header.Get("Location"))
		}
	}
	if len(all) < 30 {
		t.Errorf("of the forms of the console only these were found: %q", all)
	}
}

// A role can't send the forms that it isn't shown, about people, invitations and keys that exist.
func TestFormsByRole(t *testing.T) {
	h := newFixture(t)
	inv, key := makeInvitation(t, h), makeKey(t, h, nil)
	person := "/console/people/" + h.people["USER"].ID
	role := "/console/roles/" + makeRole(t, h, "READER", "", "message.read")
	putPolicy(t, h, "// none\n")
	for _, path := range []string{
		person + "/name", person + "/role", person + "/suspend", person + "/resume", person + "/sign-out", person + "/remove",
		"/console/invitations/new", "/console/invitations/" + inv + "/resend", "/console/invitations/" + inv + "/revoke",
		"/console/keys/new", "/console/keys/" + key + "/edit", "/console/keys/" + key + "/rotate", "/console/keys/" + key + "/previous",
		"/console/keys/" + key + "/disable", "/console/keys/" + key + "/enable", "/console/keys/" + key + "/revoke",
		"/console/roles/new", role + "/edit", role + "/save", role + "/delete",
		"/console/policy", "/console/policy/confirm", "/console/policy/versions/1/restore",
		"/console/settings", "/console/close", "/console/settings/accent", "/console/settings/logo", "/console/settings/logo/remove",
	} {
		form := url.Values{"name": {"x"}, "role": {"OWNER"}, "people": {"x@acme.example"}, "confirm": {"Acme"}, "expiresInDays": {"1"}}
		for _, role := range []string{"USER", "VIEWER"} {
			h.browserOf(t, role).post(path, form, http.StatusForbidden, "You may not do this")
		}
		if strings.HasPrefix(path, person) || strings.Contains(path, inv) || strings.Contains(path, key) || strings.HasPrefix(path, role) {
			open(t, h.Server, h.other).post(path, form, http.StatusNotFound)
		}
	}
	admin := h.browserOf(t, "ADMIN")
	admin.post("/console/close", url.Values{"confirm": {"Acme"}}, http.StatusForbidden)
	admin.post("/console/policy", url.Values{"text": {""}, "version": {"1"}}, http.StatusForbidden)
	admin.post(person+"/role", url.Values{"role": {"OWNER"}}, http.StatusForbidden)
	for _, action := range []string{"name", "role", "suspend", "sign-out", "reset-factors", "remove"} {
		admin.post("/console/people/"+h.people["OWNER"].ID+"/"+action, url.Values{"name": {"x"}, "role": {"USER"}}, http.StatusForbidden)
	}
	if status, body := h.tenant.Owner.Get("/api/v2/users"); status != http.StatusOK || strings.Count(string(body), `"id"`) != 4 || strings.Contains(string(body), `"name":"x"`) {
		t.Errorf("after all that the people are %s", body)
	}
}

// Pages name people by their ids for those who may not read people, and lead to no page about them.
func TestNamesAreForThoseWhoReadPeople(t *testing.T) {
	h := newFixture(t)
	inv, owner := makeInvitation(t, h), h.people["OWNER"]
	key := makeKey(t, h, nil)
	putPolicy(t, h, "// none\n")
	putPolicy(t, h, `@id("no-billing") forbid(principal, action == Action::"billing.manage", resource);`)
	permissions := []string{"tenant.read", "policy.read", "apikey.manage", "user.invite", "audit.read", "settings.manage"}
	makeRole(t, h, "CLERK", "", permissions...)
	makeRole(t, h, "READER", "", append(permissions, "user.read")...)
	setRole(t, h, "USER", "CLERK")
	setRole(t, h, "VIEWER", "READER")
	clerk, reader := h.browserOf(t, "USER"), h.browserOf(t, "VIEWER")
	const address, link = "owner@acme.example", "/console/people/"
	for _, path := range []string{
		"/console/policy", "/console/policy/versions", "/console/policy/versions/1", "/console/keys", "/console/keys/" + key, "/console/invitations/" + inv,
		explainPath + "action=billing.manage&who=" + owner.ID,
	} {
		reader.get(path, http.StatusOK, address)
		lacks(t, clerk.get(path, http.StatusOK, owner.ID), address, link)
	}
	reader.get(explainPath+"action=billing.manage&who="+address, http.StatusOK, "Refused")
	clerk.get(explainPath+"action=billing.manage&who="+address, http.StatusOK, "There is no such person")
	clerk.get(explainPath+"action=message.send&who="+key, http.StatusOK, ">Shop</bdi>")
	reader.get("/console/audit", http.StatusOK, address, link)
	lacks(t, clerk.get("/console/audit", http.StatusOK, address), link) // as the API has the actors' addresses

	form := url.Values{
		"mfa": {"required"}, "mfaRoles": {"OWNER"}, "mfaGraceDays": {"7"}, "mfaRememberDays": {"0"}, "stepUpMinutes": {"10"},
	}
	reader.post("/console/settings?tab=factors", form, http.StatusOK, "1 member that this covers", address)
	lacks(t, clerk.post("/console/settings?tab=factors", form, http.StatusOK, "1 member that this covers"), address)
}

// makeKey creates an API key with the values, and defaults for its name and permissions, and
// returns its id.
func makeKey(t *testing.T, h fixture, values map[string]any) string {
	t.Helper()
	body := map[string]any{"name": "Shop", "permissions": []string{"message.send"}}
	maps.Copy(body, values)
	_, answer := h.tenant.Owner.Post("/api/v2/api-keys", body)
	id := regexp.MustCompile(`key_[a-z0-9]+`).FindString(string(answer))
	if id == "" {
		t.Fatalf("no key: %s", answer)
	}
	return id
}

// makeInvitation sends an invitation to new@acme.example and returns its id.
func makeInvitation(t *testing.T, h fixture) string {
	t.Helper()
	_, body := h.tenant.Owner.Post("/api/v2/auth/invite", map[string]any{"email": "new@acme.example", "role": "USER"})
	id := regexp.MustCompile(`inv_[a-z0-9]+`).FindString(string(body))
	if id == "" {
		t.Fatalf("no invitation: %s", body)
	}
	return id
}

// An invitation that a service has sent isn't shown as the operator's.
func TestInvitationOfAService(t *testing.T) {
	h := newFixture(t)
	draft := key.ServiceDraft{Name: "router", May: []string{string(doorward.UserInvite)}}
	made, err := h.Node.App.Keys.CreateService(t.Context(), doorward.OperatorAtTerminal(), draft)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/api/v2/auth/invite", strings.NewReader(`{"email":"new@acme.example","role":"USER"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + made.Reveal()}, "Content-Type": {"application/json"}, "Doorward-Tenant": {h.tenant.ID}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var inv struct{ ID string }
	if err := json.NewDecoder(res.Body).Decode(&inv); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatal(res.StatusCode, err)
	}
	h.browserOf(t, "OWNER").get("/console/invitations/"+inv.ID, http.StatusOK, "<dd>a service of the platform</dd>")
}
