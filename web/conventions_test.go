package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/doorwardtest"
)

// faults returns the violations of the rules that hold for every answer.
func (s *server) faults(req *http.Request, a answer) (all []string) {
	if strings.HasPrefix(req.URL.Path, "/scim/") { // of another specification, which the OpenAPI document doesn't have
		return nil
	}
	all = append(all, s.headerFaults(a)...)
	all = append(all, s.sharingFaults(req, a)...)
	if a.status >= 400 && req.Method != http.MethodHead {
		all = append(all, s.problemFaults(req, a)...)
	}
	for _, secret := range secretsOf(req, a.sent) {
		if strings.Contains(string(a.body)+fmt.Sprint(a.header), secret) {
			all = append(all, "the answer repeats a secret of the request")
		}
	}
	if err := s.spec.check(req, s.path, a); err != nil {
		all = append(all, "not as the document says: "+err.Error())
	}
	return all
}

// isDocument reports whether the route serves a public text, which may be cached if it is
// revalidated by its ETag.
func isDocument(route string) bool {
	return strings.HasSuffix(route, "/openapi.json") || strings.Contains(route, " /problems") || strings.Contains(route, " /docs")
}

func (s *server) headerFaults(a answer) (all []string) {
	want := map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
	}
	if (strings.Contains(a.route, "/.well-known/") || strings.HasSuffix(a.route, "/jwks") || strings.HasSuffix(a.route, "/metadata")) && a.status == http.StatusOK {
		want["Cache-Control"] = "max-age=300"
	}
	if isDocument(a.route) && a.status == http.StatusOK {
		want["Cache-Control"] = "no-cache"
	}
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		want["Referrer-Policy"] = "same-origin" // so that forms have an Origin
	}
	for name, value := range want {
		if got := a.header.Values(name); len(got) != 1 || got[0] != value {
			all = append(all, fmt.Sprintf("%s is %q, want %q", name, got, value))
		}
	}
	if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") {
		all = append(all, fmt.Sprintf("Content-Security-Policy is %q", policy))
	}
	if id := a.header.Values("X-Request-Id"); len(id) != 1 || !requestIDForm.MatchString(id[0]) {
		all = append(all, fmt.Sprintf("X-Request-Id is %q", id))
	}
	if has := a.header.Get("Strict-Transport-Security") != ""; has != strings.HasPrefix(s.base, "https:") {
		all = append(all, fmt.Sprintf("Strict-Transport-Security is sent: %v, with base URL %s", has, s.base))
	}
	return append(all, statusFaults(a)...)
}

// sharingFaults checks that answers of the API, and no others, are shared with pages of the allowed origin.
func (s *server) sharingFaults(req *http.Request, a answer) (all []string) {
	path := strings.TrimPrefix(req.URL.Path, s.path)
	isAPI := s.sharedWith != "" && strings.HasPrefix(path, "/api/")
	if varies := strings.Contains(strings.Join(a.header.Values("Vary"), ","), "Origin"); varies != isAPI {
		all = append(all, fmt.Sprintf("Vary is %q", a.header.Values("Vary")))
	}
	origin, credentials := "", ""
	if isAPI && slices.Equal(req.Header.Values("Origin"), []string{s.sharedWith}) {
		origin, credentials = s.sharedWith, "true"
	}
	for name, want := range map[string]string{"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": credentials} {
		if got := a.header.Get(name); got != want {
			all = append(all, fmt.Sprintf("%s is %q, want %q", name, got, want))
		}
	}
	return all
}

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// statusFaults checks the headers that belong to a status.
func statusFaults(a answer) (all []string) {
	got, want := a.header.Get("WWW-Authenticate"), ""
	if a.status == http.StatusUnauthorized {
		want = `Bearer realm="doorward"`
	}
	if a.status == http.StatusForbidden && a.text("code") == "step_up_required" { // RFC 9470
		want = `Bearer realm="doorward", error="insufficient_user_authentication", error_description=`
		got = got[:min(len(got), len(want))] // without the values
	}
	if got != want {
		all = append(all, fmt.Sprintf("WWW-Authenticate is %q, want %q", got, want))
	}
	wait, err := strconv.Atoi(a.header.Get("Retry-After"))
	if mustWait := a.status == 429 || a.status == 503; mustWait && (err != nil || wait < 1) {
		all = append(all, fmt.Sprintf("Retry-After is %q", a.header.Get("Retry-After")))
	}
	if (a.header.Get("Allow") != "") != (a.status == http.StatusMethodNotAllowed) {
		all = append(all, fmt.Sprintf("Allow is %q", a.header.Get("Allow")))
	}
	if a.status == http.StatusInternalServerError {
		all = append(all, "an internal error, which is a defect")
	}
	return all
}

// problemFaults checks the body of an error (RFC 9457), or that of a faulty logout, which has the form of OAuth.
func (s *server) problemFaults(req *http.Request, a answer) (all []string) {
	if a.status == http.StatusBadRequest && strings.HasSuffix(req.URL.Path, "/backchannel-logout") && a.at("error") == "invalid_request" {
		return nil
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		return []string{fmt.Sprintf("Content-Type is %q", got)}
	}
	code, title := a.text("code"), a.text("title")
	want := m{
		"type": s.base + "/problems/" + code, "status": float64(a.status),
		"instance": req.URL.EscapedPath(), "requestId": a.header.Get("X-Request-Id"),
	}
	for name, value := range want {
		if got := a.at(name); got != value {
			all = append(all, fmt.Sprintf("%s is %v, want %v", name, got, value))
		}
	}
	if first, _ := titles.LoadOrStore(code, title); first != title || title == "" {
		all = append(all, fmt.Sprintf("the title of %q is %q here and %q elsewhere", code, title, first))
	}
	if a.text("detail") == "" {
		all = append(all, "no detail")
	}
	faults, _ := a.at("errors").([]any)
	for _, f := range faults {
		if f, _ := f.(m); f["code"] == "" || f["message"] == "" {
			all = append(all, fmt.Sprintf("a fault without code or message: %v", f))
		}
	}
	return all
}

// titles are the titles of problems seen so far, by code.
var titles sync.Map

// secretMember finds the values of a body that no answer may repeat. Short values
// may occur in an answer by chance.
var secretMember = regexp.MustCompile(`(?i)"(?:password|currentPassword|confirmPassword|token|key)"\s*:\s*"([^"\\]{12,})"`)

// secretsOf returns the secrets of a request: those of its body, and its session tokens.
func secretsOf(req *http.Request, sent string) (all []string) {
	for _, found := range secretMember.FindAllStringSubmatch(sent, -1) {
		all = append(all, found[1])
	}
	for _, c := range req.CookiesNamed("JSESSIONID") {
		if len(c.Value) >= 12 {
			all = append(all, c.Value)
		}
	}
	return all
}

func TestMethods(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		all := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"}
		allowed := map[string][]string{}
		for _, e := range d.operations(t, checkPath) {
			methods := append(allowed[e.Path()], e.Method())
			if e.Method() == "GET" {
				methods = append(methods, "HEAD")
			}
			slices.Sort(methods)
			allowed[e.Path()] = methods
		}
		for path, methods := range allowed {
			for _, method := range all {
				if slices.Contains(methods, method) {
					continue
				}
				a := d.send(t, method+" "+path, nil).ok(http.StatusMethodNotAllowed)
				if allow := a.header.Get("Allow"); allow != strings.Join(methods, ", ") {
					t.Errorf("%s: Allow is %q, want %q", a.route, allow, methods)
				}
				if method != "HEAD" {
					a.fails(http.StatusMethodNotAllowed, "method_not_allowed")
				}
			}
		}
	})
}

func TestHeadIsGetWithoutBody(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		for _, path := range []string{"/api/v2/auth/session", "/api/v2/auth/memberships", "/openapi.json", "/healthz", "/readyz"} {
			get := d.send(t, "GET "+path, nil, as(owner.Token())).ok(http.StatusOK)
			head := d.send(t, "HEAD "+path, nil, as(owner.Token())).ok(http.StatusOK)
			if len(head.body) > 0 || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
				t.Errorf("%s: %v with %d bytes, GET has %v", head.route, head.header, len(head.body), get.header)
			}
		}
		d.send(t, "HEAD /api/v2/auth/session", nil).ok(http.StatusUnauthorized)
	})
}

func TestUnknownPaths(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		paths := []string{
			"/api", "/api/v2", "/api/v2/", "/api/v2/auth", "/api/v2/auth/", "/api/v2/auth/logins", "/API/v2/auth/login",
			"/api/v2/auth/login/", "/api/v2/auth/session/", "/api/v2//auth/session", "//api/v2/auth/session", "/api/v2/auth/./session",
			"/api/v2/auth/x/../session", "/api/v2/auth/%2e%2e/auth/session", "/api/v2/auth%2Fsession", "/api/v1/auth/session",
			"/api/v2/auth/memberships/", "/api/v2/auth/session%00", "/api/v2/auth/session%20", "/a%20b%22", "/%C3%A4", "/%FF",
		}
		for _, path := range paths {
			for _, method := range []string{"GET", "POST", "OPTIONS"} {
				d.send(t, method+" "+path, nil, as(owner.Token()), with("Origin", "https://evil.example")).fails(http.StatusNotFound, "not_found")
			}
		}
	})
}

// If a request has several faults, the answer is the first in the documented order.
func TestOrderOfRefusals(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		admin, viewer := acme.Join("admin@acme.example", "ADMIN"), acme.Join("viewer@acme.example", "VIEWER")
		d.invite(t, acme.Owner, "pending@acme.example", "USER")
		big, cross, plain := strings.Repeat("x", 64<<10+1), with("Origin", "https://evil.example"), typed("text/plain")
		const invite, garbage = "POST /api/v2/auth/invite", `{"email":`
		member := m{"email": viewer.Email, "role": "USER", "expiresInDays": 99}

		d.send(t, "POST /api/v2/auth/nothing", big, cross, plain).fails(http.StatusNotFound, "not_found")
		d.send(t, "PUT /api/v2/auth/invite", big, cross, plain).fails(http.StatusMethodNotAllowed, "method_not_allowed")
		d.send(t, invite, big, cross, plain).fails(http.StatusForbidden, "cross_origin")
		d.send(t, invite, big, plain).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, invite, big, plain, as(viewer.Token())).fails(http.StatusForbidden, "forbidden")
		d.send(t, invite, big, plain, as(admin.Token())).fails(http.StatusRequestEntityTooLarge, "body_too_large")
		d.send(t, invite, garbage, plain, as(admin.Token())).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		d.send(t, invite, garbage, as(admin.Token())).fails(http.StatusBadRequest, "invalid_body")
		d.send(t, invite, m{"email": viewer.Email, "role": "OWNER", "expiresInDays": 99}, as(admin.Token())).fails(http.StatusForbidden, "forbidden")
		d.send(t, invite, m{"email": "none", "role": "OWNER"}, as(admin.Token())).fails(http.StatusForbidden, "forbidden")
		d.send(t, invite, member, as(admin.Token())).fails(http.StatusConflict, "already_member")
		d.send(t, invite, m{"email": "pending@acme.example", "role": "NONE"}, as(admin.Token())).fails(http.StatusConflict, "invitation_pending")
		d.send(t, invite, m{"email": "new@acme.example", "role": "NONE"}, as(admin.Token())).invalid("/role", "invalid")

		d.send(t, "POST /api/v2/auth/complete-registration", m{"token": forged, "more": 1}).fails(http.StatusBadRequest, "invalid_body")
		d.send(t, "POST /api/v2/auth/complete-registration", m{"token": forged}).fails(http.StatusNotFound, "invitation_not_found")
		d.send(t, "POST /api/v2/auth/reset-password", m{"token": forged, "password": 1}).fails(http.StatusBadRequest, "invalid_body")
		d.send(t, "POST /api/v2/auth/reset-password", m{"token": forged, "password": ""}).fails(http.StatusNotFound, "reset_not_found")
		d.send(t, "DELETE /api/v2/auth/memberships/tnt_x", nil, cross).fails(http.StatusForbidden, "cross_origin")
		d.send(t, "DELETE /api/v2/auth/memberships/tnt_x", nil).fails(http.StatusUnauthorized, "unauthenticated")
	})
}

// The type of a problem is the address of a page that describes it.
func TestProblemTypesHavePages(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		for _, p := range doorward.Problems() {
			page := d.send(t, "GET /problems/"+string(p.Code), nil).ok(http.StatusOK)
			if !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || !strings.Contains(string(page.body), p.Title) {
				t.Errorf("%s: %v %.200s", page.route, page.header, page.body)
			}
		}
		d.send(t, "GET /problems/none", nil).fails(http.StatusNotFound, "not_found")
	})
}

func TestRequestID(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		for _, id := range []string{"a", "7", "A.b_c-d", "..", strings.Repeat("x", 128)} {
			a := d.send(t, "GET /api/v2/auth/session", nil, with("X-Request-Id", id))
			if got := a.header.Get("X-Request-Id"); got != id {
				t.Errorf("X-Request-Id %q became %q", id, got)
			}
		}
		for _, id := range []string{"", " ", strings.Repeat("x", 129), "a b", "a/b", "ä", "a,b", `"a"`, "a\tb", "a:b", "<a>"} {
			a := d.send(t, "GET /api/v2/auth/session", nil, with("X-Request-Id", id))
			if got := a.header.Get("X-Request-Id"); got == id || len(got) < 16 {
				t.Errorf("X-Request-Id %q became %q, want a new one", id, got)
			}
		}
		first, second := d.send(t, "GET /healthz", nil), d.send(t, "GET /healthz", nil)
		if first.header.Get("X-Request-Id") == second.header.Get("X-Request-Id") {
			t.Error("two requests have one id")
		}
	})
}

// An Accept header is ignored, and so are unknown query parameters of most endpoints.
func TestAcceptAndUnknownParametersAreIgnored(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		want := d.send(t, "GET /api/v2/tenant", nil, as(owner.Token())).ok(http.StatusOK)
		for _, accept := range []string{"text/html", "image/png", "application/xml;q=1", "nonsense", "application/json;q=0"} {
			got := d.send(t, "GET /api/v2/tenant?unknown=1&limit=-5&unknown=%FF;x", nil, as(owner.Token()), with("Accept", accept)).ok(http.StatusOK)
			if string(got.body) != string(want.body) || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("Accept %q: %v %s", accept, got.header, got.body)
			}
		}
		d.send(t, "POST /api/v2/auth/login?tenantId=tnt_x", m{"email": owner.Email, "password": password}, with("Accept", "text/html")).ok(http.StatusOK)
	})
}

// If the base URL has a path, the server answers with and without that path.
func TestBasePath(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		for _, prefix := range []string{"", "/platform", "/platfor%6D"} {
			d.send(t, "GET "+prefix+"/api/v2/auth/session", nil, as(acme.Owner.Token())).ok(http.StatusOK)
			d.send(t, "POST "+prefix+"/api/v2/auth/login", m{"email": acme.Owner.Email, "password": password}).ok(http.StatusOK)
			d.send(t, "GET "+prefix+"/api/v2/auth/session", nil).fails(http.StatusUnauthorized, "unauthenticated")
			d.send(t, "PUT "+prefix+"/api/v2/auth/session", nil).fails(http.StatusMethodNotAllowed, "method_not_allowed")
			d.send(t, "GET "+prefix+"/openapi.json", nil).ok(http.StatusOK)
			d.send(t, "DELETE "+prefix+"/api/v2/auth/memberships/a%2Fb", nil, as(acme.Owner.Token())).fails(http.StatusNotFound, "not_found")
		}
		for _, path := range []string{"/platforms/api/v2/auth/session", "/platform/platform/api/v2/auth/session", "/platform//api/v2/auth/session"} {
			d.send(t, "GET "+path, nil).fails(http.StatusNotFound, "not_found")
		}
		a := d.login(t, acme.Owner.Email, password)
		if got := a.cookies(); !slices.ContainsFunc(got, func(c string) bool { return strings.HasPrefix(c, "JSESSIONID=") && strings.Contains(c, "; Path=/;") }) {
			t.Errorf("the cookie is not for all paths: %q", got)
		}
		code := d.invite(t, acme.Owner, "ann@acme.example", "USER")
		if text := d.Mails("ann@acme.example")[0].Text; !strings.Contains(text, "\nhttp://localhost:9999/platform/accept#token="+code+"\n") {
			t.Errorf("no link below the base URL in\n%s", text)
		}
	}, doorwardtest.BaseURL("http://localhost:9999/platform"))
}

// A base path such as /api may also be the beginning of routes: paths with and without it are
// answered.
func TestBasePathLikeARoute(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		d.send(t, "GET /api/v2/auth/session", nil).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "GET /api/api/v2/auth/session", nil).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "GET /api/api/api/v2/auth/session", nil).fails(http.StatusNotFound, "not_found")
	}, doorwardtest.BaseURL("http://localhost:9999/api/"))
}

func TestHTTPSBaseURL(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		a := d.login(t, owner.Email, password).ok(http.StatusOK)
		if got, want := cookieNamed(a, "JSESSIONID"), "JSESSIONID="+a.text("token")+"; Path=/; HttpOnly; SameSite=Lax; Secure"; got != want {
			t.Errorf("the cookie is %q, want %q", got, want)
		}
		device := cookieNamed(a, "__Host-doorward_device")
		if !strings.HasSuffix(device, "; Path=/; HttpOnly; SameSite=Lax; Max-Age=34560000; Secure") {
			t.Errorf("the device cookie is %q", device)
		}
		// A sibling host can set the name without the prefix, which says nothing.
		pair, _, _ := strings.Cut(device, ";")
		if again := d.login(t, owner.Email, password, cookie(strings.TrimPrefix(pair, "__Host-"))); cookieNamed(again, "__Host-doorward_device") == "" {
			t.Error("a device cookie without the prefix was believed")
		}
		if again := d.login(t, owner.Email, password, cookie(pair)); cookieNamed(again, "__Host-doorward_device") != "" {
			t.Error("the device cookie was not believed")
		}
		page := d.send(t, "GET /login?theme=dark&lang=de", nil).ok(http.StatusOK)
		if len(page.cookies()) != 2 {
			t.Errorf("the page sets %q", page.cookies())
		}
		for _, c := range page.cookies() {
			if !strings.HasPrefix(c, "__Host-doorward_") {
				t.Errorf("the page sets %q", c)
			}
		}
		out := d.send(t, "POST /api/v2/auth/logout", nil, as(a.text("token")), with("Origin", "https://door.example")).ok(http.StatusNoContent)
		if got, want := out.cookies(), "JSESSIONID=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"; len(got) != 1 || got[0] != want {
			t.Errorf("logout sets %q, want %q", got, want)
		}
		d.send(t, "GET /nothing", nil).fails(http.StatusNotFound, "not_found")
	}, doorwardtest.BaseURL("https://door.example"))
}

// With a path the prefix is impossible, since such a cookie is for the whole host.
func TestCookiesUnderAPath(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		if a := d.login(t, d.Tenant("Acme").Owner.Email, password).ok(http.StatusOK); cookieNamed(a, "doorward_device") == "" {
			t.Errorf("the cookies are %q", a.cookies())
		}
	}, doorwardtest.BaseURL("https://door.example/platform"))
}

// Cookies lack Secure only with plain HTTP at a loopback name.
func TestSecureCookies(t *testing.T) {
	for base, secure := range map[string]bool{
		"http://localhost": false, "http://127.0.0.1:8080": false, "http://[::1]:8080": false, "http://door.localhost": false,
		"http://door.example": true, "http://192.0.2.1": true, "https://localhost": true, "http://localhost.example": true,
	} {
		t.Run(base, func(t *testing.T) {
			t.Parallel()
			d := start(t, doorwardtest.BaseURL(base))
			a := d.login(t, d.Tenant("Acme").Owner.Email, password).ok(http.StatusOK)
			for _, c := range a.cookies() {
				if strings.HasSuffix(c, "; Secure") != secure {
					t.Errorf("%q, want Secure %v", c, secure)
				}
			}
		})
	}
}

// cookieNamed returns the Set-Cookie header for the name, or "".
func cookieNamed(a answer, name string) string {
	for _, c := range a.cookies() {
		if strings.HasPrefix(c, name+"=") {
			return c
		}
	}
	return ""
}

// Sec-Fetch-Site decides or, without it, Origin. A request with neither isn't from a browser.
func TestOrigins(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		own, err := url.Parse(d.base)
		if err != nil {
			t.Fatal(err)
		}
		const absent = "(absent)"
		sites := []string{absent, "same-origin", "none", "same-site", "cross-site", "other"}
		origins := []string{
			absent, d.base, "http://" + own.Hostname() + ".:" + own.Port(), "https://" + own.Host, "http://localhost:1", "http://localhost",
			"http://evil.example", "http://" + own.Host + ".evil.example", d.base + "/", "null", "", "http://evil.example@" + own.Host,
		}
		for _, site := range sites {
			for i, origin := range origins {
				// Without Sec-Fetch-Site the first three pass: no origin, and the server's own.
				allowed := site == "same-origin" || site == "none" || site == absent && i <= 2
				var opts []opt
				if site != absent {
					opts = append(opts, with("Sec-Fetch-Site", site))
				}
				if origin != absent {
					opts = append(opts, with("Origin", origin))
				}
				d.tryOrigin(t, allowed, opts...)
			}
		}
	})
}

// Every endpoint that changes something refuses other origins before it checks the body.
func TestOtherOriginsEverywhere(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		for _, e := range d.operations(t) {
			if e.Method() == "GET" || e.Request == "POST /api/v2/auth/sso/con_absent/acs" { // providers' pages send that one
				continue
			}
			for _, otherOrigin := range []opt{with("Origin", "https://evil.example"), with("Sec-Fetch-Site", "cross-site")} {
				d.send(t, e.Request, "{", otherOrigin, typed("text/plain"), as(owner.Token())).fails(http.StatusForbidden, "cross_origin")
			}
		}
		d.send(t, "GET /api/v2/auth/session", nil, as(owner.Token())).ok(http.StatusOK)
	})
}

func (s *server) tryOrigin(t *testing.T, allowed bool, opts ...opt) {
	t.Helper()
	logout := s.send(t, "POST /api/v2/auth/logout", nil, opts...)
	leave := s.send(t, "DELETE /api/v2/auth/memberships/tnt_x", nil, opts...)
	read := s.send(t, "GET /api/v2/auth/session", nil, opts...)
	read.fails(http.StatusUnauthorized, "unauthenticated")
	if allowed {
		logout.ok(http.StatusNoContent)
		leave.fails(http.StatusUnauthorized, "unauthenticated")
		return
	}
	logout.fails(http.StatusForbidden, "cross_origin")
	leave.fails(http.StatusForbidden, "cross_origin")
}
