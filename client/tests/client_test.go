package client_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/client"
	"github.com/doorward/doorward/doorwardtest"
)

// silent keeps the log of expected faults out of the test's output.
var silent = client.Logger(slog.New(slog.DiscardHandler))

func newClient(t testing.TB, baseURL string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(baseURL, append([]client.Option{silent}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startService starts a service that answers at /ACTION with the caller, as the handler sees it.
func startService(t testing.TB, auth *client.Client) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for _, action := range actions {
		mux.Handle("/"+action, auth.Require(action)(http.HandlerFunc(whoAmI)))
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

var actions = []string{"", "message.send", "report.read", "user.manage", "billing.read", "message.eat"}

func whoAmI(w http.ResponseWriter, r *http.Request) {
	id, ok := client.From(r.Context())
	if !ok {
		http.Error(w, "Require let a caller pass without an identity", http.StatusTeapot)
		return
	}
	_ = json.NewEncoder(w).Encode(seen{id, r.Header})
}

// seen is what the handler behind Require receives.
type seen struct {
	client.Identity
	Header http.Header
}

// get sends the header and returns the answer with its body.
func get(t testing.TB, url string, h http.Header) (*http.Response, []byte) {
	t.Helper()
	return send(t, http.MethodGet, url, h)
}

func send(t testing.TB, method, url string, h http.Header) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range h {
		req.Header[name] = values
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

func session(token string) http.Header { return http.Header{"Cookie": {"JSESSIONID=" + token}} }

func TestRolesGetWhatTheyMay(t *testing.T) {
	s := startService(t, newClient(t, running().URL))
	want := map[string]map[string]int{ // statuses by role and action, as in docs/permissions.md
		"OWNER":  {"": 200, "message.send": 200, "report.read": 200, "user.manage": 200, "billing.read": 200, "message.eat": 403},
		"ADMIN":  {"": 200, "message.send": 200, "report.read": 200, "user.manage": 200, "billing.read": 403, "message.eat": 403},
		"USER":   {"": 200, "message.send": 200, "report.read": 200, "user.manage": 403, "billing.read": 403, "message.eat": 403},
		"VIEWER": {"": 200, "message.send": 403, "report.read": 200, "user.manage": 403, "billing.read": 403, "message.eat": 403},
		"nobody": {"": 401, "message.send": 401, "report.read": 401, "user.manage": 401, "billing.read": 401, "message.eat": 401},
	}
	tokens := map[string]string{"nobody": strings.Repeat("A", 43), "OWNER": newTenant().Owner.Token()}
	for _, role := range []string{"ADMIN", "USER", "VIEWER"} {
		tokens[role] = person(role).Token()
	}
	for role, token := range tokens {
		got := map[string]int{}
		for _, action := range actions {
			res, _ := get(t, s.URL+"/"+action, session(token))
			got[action] = res.StatusCode
		}
		if diff := cmp.Diff(want[role], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}

func TestHandlerLearnsWhoIsCalling(t *testing.T) {
	server, acme := running(), newTenant()
	ann := acme.Join("ann@acme.example", "USER")
	_, body := ann.Get("/api/v2/auth/session")
	var mine struct{ Session struct{ ID string } }
	if err := json.Unmarshal(body, &mine); err != nil {
		t.Fatal(err)
	}
	want := client.Identity{UserID: ann.ID, TenantID: acme.ID, Role: client.User, Email: ann.Email, SessionID: mine.Session.ID, AAL: 1}

	h := session(ann.Token())
	forged := http.Header{
		"X-Auth-User": {"usr_root"}, "X-Auth-Tenant": {"tnt_other", "tnt_more"}, "X-Auth-Role": {"OWNER"}, "X-Auth-Key": {"key_1"},
		"X_Auth_User": {"usr_root"}, "x-auth_email": {"root@acme.example"},
	}
	for name, values := range forged {
		h[name] = values
	}
	h.Set("X-Other", "kept")
	_, body = get(t, startService(t, newClient(t, server.URL)).URL+"/", h)
	var got seen
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if diff := cmp.Diff(want, got.Identity); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	for name := range got.Header {
		if strings.HasPrefix(strings.ToLower(strings.ReplaceAll(name, "_", "-")), "x-auth-") {
			t.Errorf("the handler sees %s from outside", name)
		}
	}
	if got.Header.Get("X-Other") != "kept" || got.Header.Get("Cookie") == "" {
		t.Errorf("the handler lacks other headers: %v", got.Header)
	}
}

// Once a revocation is answered, the next request is refused, since the client has no
// cache.
func TestRevocationTakesEffectAtOnce(t *testing.T) {
	server := doorwardtest.Start(t)
	acme := server.Tenant("Acme")
	ann := acme.Join("ann@acme.example", "USER")
	s := startService(t, newClient(t, server.URL))
	status := func(action string) int {
		res, _ := get(t, s.URL+"/"+action, session(ann.Token()))
		return res.StatusCode
	}
	operator, users := doorward.OperatorAtTerminal(), server.Node.App.Users
	find := func() doorward.User {
		found, err := users.Find(t.Context(), ann.Email, acme.ID)
		if err != nil || len(found) != 1 {
			t.Fatalf("find ann: %v %v", found, err)
		}
		return found[0]
	}
	steps := []struct {
		name   string
		do     func() error
		action string
		want   int
	}{
		{"a member", func() error { return nil }, "message.send", 200},
		{"made a viewer", func() error { return users.SetRole(t.Context(), operator, find(), doorward.RoleViewer) }, "message.send", 403},
		{"the same session", func() error { return nil }, "report.read", 200},
		{"made a user again", func() error { return users.SetRole(t.Context(), operator, find(), doorward.RoleUser) }, "message.send", 200},
		{"logged out", func() error { return logout(ann) }, "message.send", 401},
		{"logged in", func() error { ann.Login(); return nil }, "message.send", 200},
		{"suspended", func() error { _, err := users.Suspend(t.Context(), operator, find()); return err }, "report.read", 401},
		{"resumed", func() error { return users.Resume(t.Context(), operator, find()) }, "report.read", 401},
		{"logged in again", func() error { ann.Login(); return nil }, "report.read", 200},
		{"idle for too long", func() error { server.Advance(time.Hour + time.Second); return nil }, "report.read", 401},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := status(step.action); got != step.want {
			t.Errorf("%s: %s is answered %d, want %d", step.name, step.action, got, step.want)
		}
	}
}

// A service uses the cookie name that Doorward is configured with.
func TestCookieName(t *testing.T) {
	server := doorwardtest.Start(t, doorwardtest.CookieName("platform_session"))
	token := server.Tenant("Acme").Owner.Token()
	byDefault := startService(t, newClient(t, server.URL))
	named := startService(t, newClient(t, server.URL, client.CookieName("platform_session")))
	for name, tt := range map[string]struct {
		url, cookie string
		want        int
	}{
		"its name":                    {named.URL, "platform_session", 200},
		"the default":                 {named.URL, "JSESSIONID", 401},
		"not configured, its name":    {byDefault.URL, "platform_session", 401},
		"not configured, the default": {byDefault.URL, "JSESSIONID", 401},
		"begins like its name":        {named.URL, "platform_session2", 401},
		"ends like its name":          {named.URL, "my_platform_session", 401},
		"in another letter case":      {named.URL, "Platform_Session", 401},
	} {
		if got, body := get(t, tt.url+"/", cookies(tt.cookie+"="+token)); got.StatusCode != tt.want {
			t.Errorf("%s: %d %s, want %d", name, got.StatusCode, body, tt.want)
		}
	}
}

func logout(p *doorwardtest.Person) error {
	if status, body := p.Post("/api/v2/auth/logout", nil); status != http.StatusNoContent {
		return fmt.Errorf("logout: %d %s", status, body)
	}
	return nil
}

// Only Doorward decides whether a credential is valid: with the same headers, the answer
// through a service is that of Doorward itself.
func TestSameVerdictAsDoorward(t *testing.T) {
	server, ann := running(), person("USER")
	first := ann.Token()
	second := ann.Login()
	key := newOperatorKey(server)
	unknown, malformed := strings.Repeat("A", 43), first[:42]+"B" // the unused bits of the last character aren't zero
	s := startService(t, newClient(t, server.URL))
	tests := map[string]struct {
		header http.Header
		want   int
	}{
		"nothing":                    {nil, 401},
		"session":                    {session(first), 200},
		"session twice":              {cookies("JSESSIONID="+first, "JSESSIONID="+first), 200},
		"on two lines":               {http.Header{"Cookie": {"JSESSIONID=" + first, "JSESSIONID=" + second}}, 401},
		"two sessions":               {cookies("JSESSIONID="+first, "JSESSIONID="+second), 401},
		"unknown and valid":          {cookies("JSESSIONID="+unknown, "JSESSIONID="+first), 401},
		"beside Tomcat's":            {cookies("JSESSIONID=0A1B2C3D4E5F.node1", "JSESSIONID="+first), 200},
		"after three malformed ones": {cookies("JSESSIONID="+malformed, "JSESSIONID=x", "JSESSIONID=", "JSESSIONID="+first), 200},
		"three different":            {cookies("JSESSIONID="+unknown, "JSESSIONID="+first, "JSESSIONID="+second), 401},
		"in quotes":                  {cookies(`JSESSIONID="` + first + `"`), 401},
		"other letter case":          {cookies("jsessionid=" + first), 401},
		"space inside":               {cookies("JSESSIONID= " + first), 401},
		"in another cookie":          {cookies("x=JSESSIONID=" + first), 401},
		"many neighbours":            {cookies(strings.Repeat("a=b; ", 5000), "JSESSIONID="+first), 200},
		"operator key":               {http.Header{"Authorization": {"Bearer " + key}}, 401},
		"wrong key":                  {http.Header{"Authorization": {"Bearer dwo_" + unknown}}, 401},
		"session and key":            {withHeader(session(first), "Authorization", "Bearer "+key), 401},
		"session and long key":       {withHeader(session(first), "Authorization", "bearer "+strings.Repeat("x", 60_000)), 401},
		"session and no key":         {withHeader(session(first), "Authorization", "Bearer"), 401},
		"two keys":                   {http.Header{"Authorization": {"Bearer " + key, "Bearer " + key}}, 401},
		"session and Basic":          {withHeader(session(first), "Authorization", "Basic YTpi"), 200},
		"bearer":                     {http.Header{"Authorization": {"Bearer " + first}}, 200},
		"bearer, other letter case":  {http.Header{"Authorization": {"bEARER " + first}}, 200},
		"unknown bearer":             {http.Header{"Authorization": {"Bearer " + unknown}}, 401},
		"malformed bearer":           {http.Header{"Authorization": {"Bearer " + malformed}}, 401},
		"bearer and session":         {withHeader(session(first), "Authorization", "Bearer "+first), 401},
		"bearer with a tab":          {withHeader(session(first), "Authorization", "Bearer\t"+first), 401},
		"bearer and Basic":           {http.Header{"Authorization": {"Bearer " + first, "Basic YTpi"}}, 401},
		"Basic and bearer":           {http.Header{"Authorization": {"Basic YTpi", "Bearer " + first}}, 401},
		"two bearers":                {http.Header{"Authorization": {"Bearer " + first, "Bearer " + second}}, 401},
		"foreign page's bearer":      {http.Header{"Authorization": {"Bearer " + first}, "Origin": {"https://other.example"}, "X-Forwarded-Method": {"POST"}}, 200},
		"long request id":            {withHeader(session(first), "X-Request-Id", strings.Repeat("x", 60_000)), 200},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			through, body := get(t, s.URL+"/", tt.header)
			if through.StatusCode != tt.want {
				t.Errorf("through the service: %d %s, want %d", through.StatusCode, body, tt.want)
			}
			if size(tt.header) > 30_000 {
				return // Doorward takes no headers over 32 KiB
			}
			if direct, _ := get(t, server.URL+"/api/v2/access/check", tt.header); direct.StatusCode != tt.want {
				t.Errorf("asked directly: %d, want %d", direct.StatusCode, tt.want)
			}
		})
	}
}

// A header that didn't come by HTTP may contain what HTTP would refuse.
func TestLineBreakInATokenIsNoFault(t *testing.T) {
	token := newTenant().Owner.Token()
	_, err := newClient(t, running().URL).Check(t.Context(), client.Request{Header: session(token[:20] + "\n" + token[20:])})
	if !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("Check = %v, want ErrUnauthenticated", err)
	}
}

func cookies(pairs ...string) http.Header { return http.Header{"Cookie": {strings.Join(pairs, "; ")}} }

func withHeader(h http.Header, name, value string) http.Header {
	h.Set(name, value)
	return h
}

func size(h http.Header) (bytes int) {
	for _, values := range h {
		bytes += len(strings.Join(values, ""))
	}
	return bytes
}

func newOperatorKey(server *doorwardtest.Server) string {
	key, err := server.Node.App.Keys.CreateOperator(context.Background(), doorward.OperatorAtTerminal(), "test "+rand.Text())
	if err != nil {
		panic(err)
	}
	return key
}

func TestOtherOriginsAreRefused(t *testing.T) {
	server, token := running(), newTenant().Owner.Token()
	s := startService(t, newClient(t, server.URL))
	evil, own := "https://evil.example", server.URL
	tests := []struct {
		name, method, origin, site string
		want                       int
	}{
		{"no browser", "POST", "", "", 200},
		{"own page", "POST", own, "same-origin", 200},
		{"own page of an old browser", "POST", own, "", 200},
		{"other page", "POST", evil, "cross-site", 403},
		{"other page of an old browser", "DELETE", evil, "", 403},
		{"sandboxed page", "POST", "null", "", 403},
		{"long origin that begins like ours", "POST", own + strings.Repeat("x", 60_000), "", 403},
		{"neighbouring page", "PATCH", own, "same-site", 403},
		{"reading", "GET", evil, "cross-site", 200},
		{"unknown method", "BREW", evil, "cross-site", 403},
		{"handshake of a WebSocket", "GET", evil, "", 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := session(token)
			// The service must ignore headers that only a gateway may set.
			h.Set("X-Forwarded-Method", "GET")
			h.Set("X-Original-Method", "GET")
			if tt.origin != "" {
				h.Set("Origin", tt.origin)
			}
			if tt.site != "" {
				h.Set("Sec-Fetch-Site", tt.site)
			}
			if tt.name == "handshake of a WebSocket" {
				h.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
			}
			res, body := send(t, tt.method, s.URL+"/message.send", h)
			if res.StatusCode != tt.want {
				t.Errorf("%d %s, want %d", res.StatusCode, body, tt.want)
			}
			if tt.want == 403 && !bytes.Contains(body, []byte(`"code":"cross_origin"`)) {
				t.Errorf("not cross_origin: %s", body)
			}
		})
	}
}

func TestCheckWithoutMethodCountsAsUnsafe(t *testing.T) {
	c := newClient(t, running().URL)
	h := withHeader(session(newTenant().Owner.Token()), "Origin", "https://evil.example")
	_, err := c.Check(t.Context(), client.Request{Header: h})
	var e *client.Error
	if !errors.As(err, &e) || e.Code != "cross_origin" {
		t.Errorf("Check = %v, want cross_origin", err)
	}
}

func TestRefusalsAreProblems(t *testing.T) {
	server, viewer := running(), person("VIEWER")
	s := startService(t, newClient(t, server.URL))
	tests := []struct {
		token, code, challenge string
		status                 int
	}{
		{"", "unauthenticated", `Bearer realm="doorward"`, 401},
		{viewer.Token(), "forbidden", "", 403},
	}
	for _, tt := range tests {
		res, body := get(t, s.URL+"/message.send", withHeader(session(tt.token), "X-Request-Id", "from-outside.1"))
		var p map[string]any
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		got := []any{
			res.StatusCode, res.Header.Get("Content-Type"), res.Header.Get("WWW-Authenticate"), res.Header.Get("Retry-After"),
			res.Header.Get("Cache-Control"), res.Header.Get("X-Request-Id"), p["status"], p["code"], p["type"], p["instance"], p["requestId"],
		}
		want := []any{
			tt.status, "application/problem+json", tt.challenge, "", "no-store", "from-outside.1",
			float64(tt.status), tt.code, server.URL + "/problems/" + tt.code, "/message.send", "from-outside.1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.code, diff)
		}
		if p["title"] == "" || p["detail"] == "" {
			t.Errorf("%s has no title or detail: %s", tt.code, body)
		}
	}
}

func TestErrorsAreDistinct(t *testing.T) {
	server := doorwardtest.Start(t)
	viewer := server.Tenant("Acme").Join("v@acme.example", "VIEWER")
	kinds := []error{client.ErrUnauthenticated, client.ErrForbidden, client.ErrUnavailable}
	c := newClient(t, server.URL)
	check := func(token string) error {
		_, err := c.Check(t.Context(), client.Request{Action: "message.send", Header: session(token)})
		return err
	}
	errs := []error{check("none"), check(viewer.Token())}
	server.Stop()
	errs = append(errs, check(viewer.Token()))
	for i, err := range errs {
		for j, kind := range kinds {
			if errors.Is(err, kind) != (i == j) {
				t.Errorf("errors.Is(%v, %v) = %t", err, kind, i != j)
			}
		}
		var e *client.Error
		if !errors.As(err, &e) || (e.RetryAfter > 0) != (i == 2) || e.RequestID == "" {
			t.Errorf("unexpected fields in %#v", e)
		}
	}
}

// TestRateLimitedKey: an API key above its requests per second is answered 429, with
// Retry-After.
func TestRateLimitedKey(t *testing.T) {
	server := doorwardtest.Start(t)
	var made struct{ Key string }
	status, body := server.Tenant("Acme").Owner.Post("/api/v2/api-keys", map[string]any{
		"name": "Shop", "permissions": []string{"message.send"}, "perSecond": 1,
	})
	if err := json.Unmarshal(body, &made); err != nil || status != http.StatusCreated {
		t.Fatal(status, err)
	}
	s := startService(t, newClient(t, server.URL))
	for range 100 { // the limit refills while a slow machine asks
		res, body := get(t, s.URL+"/message.send", http.Header{"Authorization": {"Bearer " + made.Key}})
		if res.StatusCode == http.StatusOK {
			continue
		}
		if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "1" || !bytes.Contains(body, []byte(`"rate_limited"`)) {
			t.Errorf("above the limit: %d, Retry-After %q, %s", res.StatusCode, res.Header.Get("Retry-After"), body)
		}
		return
	}
	t.Error("the limit of the key was never reached")
}

func TestErrorHandlerAnswersInstead(t *testing.T) {
	s := startService(t, newClient(t, running().URL, client.OnError(func(w http.ResponseWriter, r *http.Request, e *client.Error) {
		if !errors.Is(e, client.ErrUnauthenticated) {
			client.WriteError(w, r, e)
			return
		}
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	})))
	res, _ := get(t, s.URL+"/message.send", nil)
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/login" {
		t.Errorf("answer %d to %q, want a redirect to /login", res.StatusCode, res.Header.Get("Location"))
	}
}

func TestBaseURL(t *testing.T) {
	for _, bad := range []string{"", "localhost:8080", "ftp://x", "http://", "http://:80", "http://u:hunter2@x", "http://x?a=b", "http://x#f", "http://u:hunter2@x:bad"} {
		c, err := client.New(bad)
		if err == nil {
			t.Errorf("New(%q) = %v, want an error", bad, c)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New(%q) repeats the password: %v", bad, err)
		}
	}
	// With a path, and with a slash at the end, as people write them.
	server := doorwardtest.Start(t, doorwardtest.BaseURL("http://localhost/platform"))
	token := server.Tenant("Acme").Owner.Token()
	for _, base := range []string{server.URL, server.URL + "/", server.URL + "/platform", server.URL + "/platform/"} {
		if _, err := newClient(t, base).Check(t.Context(), client.Request{Header: session(token)}); err != nil {
			t.Errorf("a check at %s: %v", base, err)
		}
	}
}

// No formatting of a client contains the key, even as an unexported field, whose methods
// package fmt doesn't call.
func TestOperatorKeyIsNeverPrinted(t *testing.T) {
	c := newClient(t, "http://localhost:1", client.OperatorKey("dwo_hunter2"))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q"} {
		if got := fmt.Sprintf(verb, c); got != "doorward at http://localhost:1" {
			t.Errorf("%s prints %s", verb, got)
		}
		for _, holder := range []any{*c, struct{ c client.Client }{*c}, struct{ c *client.Client }{c}} {
			got := fmt.Sprintf(verb, holder)
			for _, form := range []string{"hunter2", hex.EncodeToString([]byte("hunter2")), "104 117 110"} {
				if strings.Contains(got, form) {
					t.Errorf("%s of %T prints %s", verb, holder, got)
				}
			}
		}
	}
}

func TestContextCarriesIdentity(t *testing.T) {
	if id, ok := client.From(context.Background()); ok {
		t.Errorf("From an empty context = %v, true", id)
	}
	want := client.Identity{UserID: "usr_1", Role: client.Admin}
	if got, ok := client.From(client.NewContext(t.Context(), want)); !ok || got != want {
		t.Errorf("From = %v, %t, want %v", got, ok, want)
	}
}

func TestGatewayHeadersAreAllOrNothing(t *testing.T) {
	full := http.Header{
		"X-Auth-User": {"usr_1"}, "X-Auth-Tenant": {"tnt_1"}, "X-Auth-Role": {"USER"},
		"X-Auth-Email": {"a@acme.example"}, "X-Auth-Session": {"ses_1"}, "X-Auth-Key": {""},
	}
	want := client.Identity{UserID: "usr_1", TenantID: "tnt_1", Role: client.User, Email: "a@acme.example", SessionID: "ses_1"}
	if got, ok := client.FromGateway(&http.Request{Header: full}); !ok || got != want {
		t.Errorf("FromGateway = %v, %t, want %v", got, ok, want)
	}
	server := http.Header{"X-Auth-User": {""}, "X-Auth-Tenant": {"tnt_1"}, "X-Auth-Role": {"USER"}, "X-Auth-Email": {""}, "X-Auth-Key": {"key_1"}}
	if got, ok := client.FromGateway(&http.Request{Header: server}); !ok || got != (client.Identity{TenantID: "tnt_1", Role: client.User, KeyID: "key_1"}) {
		t.Errorf("of a server: FromGateway = %v, %t", got, ok)
	}
	for name, values := range map[string][]string{
		"X-Auth-User": {"usr_1"}, "X-Auth-Email": {"a@acme.example"}, "X-Auth-Session": {"ses_1"}, "X-Auth-Tenant": {""}, "X-Auth-Role": nil, "X-Auth-Key": {"a", "a"},
	} {
		h := server.Clone()
		h[name] = values
		if got, ok := client.FromGateway(&http.Request{Header: h}); ok || got != (client.Identity{}) {
			t.Errorf("of a server: FromGateway with %s %q = %v, %t, want no identity", name, values, got, ok)
		}
	}
	both := full.Clone()
	both["X-Auth-Key"] = []string{"key_1"}
	if got, ok := client.FromGateway(&http.Request{Header: both}); ok {
		t.Errorf("of a person and a server: FromGateway = %v", got)
	}
	for name := range full {
		if name == "X-Auth-Key" {
			continue
		}
		for _, values := range [][]string{nil, {""}, {"a", "a"}} {
			h := full.Clone()
			h[name] = values
			if got, ok := client.FromGateway(&http.Request{Header: h}); ok || got != (client.Identity{}) {
				t.Errorf("FromGateway with %s %q = %v, %t, want no identity", name, values, got, ok)
			}
		}
	}
}
