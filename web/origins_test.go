package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/node"
)

// allowedOrigin is the origin of an application beside https://auth.example.com, of the same site.
const allowedOrigin = "https://app.example.com"

func onAllowedOrigin(t *testing.T, test func(t *testing.T, d *server), options ...doorwardtest.Option) {
	t.Helper()
	onSQLite(t, func(t *testing.T, d *server) {
		d.sharedWith = allowedOrigin
		test(t, d)
	}, append(options, doorwardtest.AllowedOrigins(allowedOrigin))...)
}

// fromApp makes it a request of a page of the allowed origin.
func fromApp(r *http.Request) {
	r.Header.Set("Origin", allowedOrigin)
	r.Header.Set("Sec-Fetch-Site", "same-site")
}

// A page of an allowed origin signs in, uses the session by its cookie, gets an assertion for its own
// API, and signs out.
func TestAllowedOrigin(t *testing.T) {
	onAllowedOrigin(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		a := d.login(t, owner.Email, password, fromApp).ok(http.StatusOK)
		pair, _, _ := strings.Cut(cookieNamed(a, "JSESSIONID"), ";")
		d.send(t, "GET /api/v2/auth/session", nil, cookie(pair), fromApp).ok(http.StatusOK).is("user.id", owner.ID)
		d.send(t, "POST /api/v2/auth/token", m{"audience": "https://api.example.com"}, cookie(pair), fromApp).ok(http.StatusOK)
		d.send(t, "POST /api/v2/auth/login", m{"email": owner.Email, "password": "wrong wrong wrong"}, fromApp).fails(http.StatusUnauthorized, "invalid_credentials")
		d.send(t, "GET /api/v2/nothing", nil, fromApp).fails(http.StatusNotFound, "not_found")
		d.send(t, "PUT /api/v2/auth/login", nil, fromApp).fails(http.StatusMethodNotAllowed, "method_not_allowed")
		d.send(t, "POST /api/v2/auth/logout", nil, cookie(pair), with("Origin", allowedOrigin), with("Sec-Fetch-Site", "cross-site")).ok(http.StatusNoContent)

		exposed := d.send(t, "GET /api/v2/auth/session", nil, fromApp).header.Get("Access-Control-Expose-Headers")
		for _, name := range []string{"X-Request-Id", "ETag", "Retry-After", "WWW-Authenticate", "X-Revocation-Nodes", "X-Revocation-Ms", "RateLimit", "RateLimit-Policy"} {
			if !slices.Contains(strings.Split(exposed, ", "), name) {
				t.Errorf("scripts may not read %s: %q", name, exposed)
			}
		}
	}, doorwardtest.BaseURL("https://auth.example.com/platform"), doorwardtest.Audiences("https://api.example.com"))
}

// Origins are compared exactly, and no page may be used from elsewhere.
func TestOnlyAllowedOrigins(t *testing.T) {
	onAllowedOrigin(t, func(t *testing.T, d *server) {
		for _, origin := range []string{
			"http://app.example.com", "https://app.example.com:8443", "https://app.example.com.evil.example", "https://evil.example", "https://x.app.example.com",
			"https://APP.example.com", "https://app.example.com/", "null", "",
		} {
			d.tryOrigin(t, false, with("Origin", origin), with("Sec-Fetch-Site", "same-site"))
			d.send(t, "OPTIONS /api/v2/auth/login", nil, with("Origin", origin), with("Access-Control-Request-Method", "POST")).fails(http.StatusMethodNotAllowed, "method_not_allowed")
		}
		d.send(t, "POST /api/v2/auth/logout", nil, with("Origin", allowedOrigin), with("Origin", "https://evil.example")).fails(http.StatusForbidden, "cross_origin")
		d.send(t, "POST /access/v1/evaluation", nil, fromApp).fails(http.StatusForbidden, "cross_origin")
		for _, path := range []string{"/login", "/account", "/logout", "/access/v1/evaluation", "/openapi.json"} {
			d.send(t, "OPTIONS "+path, nil, fromApp, with("Access-Control-Request-Method", "POST")).fails(http.StatusMethodNotAllowed, "method_not_allowed")
		}
		d.send(t, "GET /login", nil, fromApp).ok(http.StatusOK)
		d.send(t, "GET /openapi.json", nil, fromApp).ok(http.StatusOK)
	}, doorwardtest.BaseURL("https://auth.example.com"))
}

// The browser asks before it sends most requests (a preflight), without a credential.
func TestPreflights(t *testing.T) {
	onAllowedOrigin(t, func(t *testing.T, d *server) {
		for _, e := range d.operations(t, checkPath, "/access/v1", "/.well-known") {
			a := d.send(t, "OPTIONS "+e.Path(), nil, fromApp, with("Access-Control-Request-Method", e.Method()), with("Access-Control-Request-Headers", "authorization,content-type,idempotency-key")).ok(http.StatusNoContent)
			if methods := a.header.Get("Access-Control-Allow-Methods"); !slices.Contains(strings.Split(methods, ", "), e.Method()) || a.header.Get("Access-Control-Allow-Headers") != "authorization,content-type,idempotency-key" {
				t.Errorf("%s %s: %v", e.Method(), e.Path(), a.header)
			}
		}
		d.send(t, "OPTIONS /api/v2/nothing", nil, fromApp, with("Access-Control-Request-Method", "GET")).fails(http.StatusNotFound, "not_found")
	}, doorwardtest.BaseURL("https://auth.example.com"))
}

// A gateway's check takes the allowed origin as Doorward's own, for unsafe methods and WebSockets.
func TestChecksFromAllowedOrigin(t *testing.T) {
	onAllowedOrigin(t, func(t *testing.T, d *server) {
		who := as(d.Tenant("Acme").Owner.Token())
		post, socket := with("X-Forwarded-Method", "POST"), with("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
		for _, asked := range []opt{post, socket} {
			d.send(t, "GET "+checkPath, nil, who, asked, fromApp).ok(http.StatusOK)
			d.send(t, "GET "+checkPath, nil, who, asked, with("Origin", "https://other.example.com"), with("Sec-Fetch-Site", "same-site")).fails(http.StatusForbidden, "cross_origin")
		}
		d.send(t, "OPTIONS "+checkPath, nil, fromApp, with("Access-Control-Request-Method", "GET")).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "OPTIONS "+checkPath, nil, who, fromApp).ok(http.StatusOK)
	}, doorwardtest.BaseURL("https://auth.example.com"))
}

// A refusal names the origin that was sent and the one expected, to the caller and in the log.
func TestRefusedOriginsAreNamed(t *testing.T) {
	log := &logtest.Journal{}
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		for origin, advice := range map[string]string{
			"https://app.example.com": "--allowed-origins", "http://127.0.0.1:8080": "Open this server's pages at its own origin", "null": "hides the origin",
			"https://a b": "another origin", "": "another origin", "http://localhost:8080": "Sec-Fetch-Site says otherwise",
		} {
			opts := []opt{with("Origin", origin), with("Sec-Fetch-Site", "same-site"), with("Access-Control-Request-Method", "POST")}
			for _, a := range []answer{
				d.send(t, "POST /api/v2/auth/login", nil, opts...).fails(http.StatusForbidden, "cross_origin"),
				d.send(t, "OPTIONS /api/v2/auth/login", nil, opts...).fails(http.StatusMethodNotAllowed, "method_not_allowed"),
				d.send(t, "GET "+checkPath, nil, append(opts, as(owner.Token()), with("X-Forwarded-Method", "POST"))...).fails(http.StatusForbidden, "cross_origin"),
			} {
				named := strings.Contains(origin, "://") && !strings.Contains(origin, " ")
				if detail := a.text("detail"); !strings.Contains(detail, advice) || !strings.Contains(detail, "http://localhost:8080 (--base-url)") || named && !strings.Contains(detail, "page of "+origin+",") {
					t.Errorf("%s from %q: %s", a.route, origin, detail)
				}
			}
		}
		if text := log.String(); strings.Count(text, `"origin":"http://127.0.0.1:8080","expectedOrigin":"http://localhost:8080"`) != 3 || strings.Contains(text, "https://a b") {
			t.Errorf("the log says\n%s", text)
		}
		page := d.send(t, "GET /problems/cross_origin", nil).ok(http.StatusOK)
		for _, part := range []string{"page of https://app.example.com, and this server is http://localhost:8080", "--allowed-origins"} {
			if !strings.Contains(string(page.body), part) {
				t.Errorf("the page of the code doesn't say %q", part)
			}
		}
	}, doorwardtest.BaseURL("http://localhost:8080"), doorwardtest.Log(log))
}

// A return address that isn't allowed is dropped, which page and log say.
func TestDroppedReturn(t *testing.T) {
	log := &logtest.Journal{}
	onSQLite(t, func(t *testing.T, d *server) {
		const words = "none that this site leads back to"
		for _, path := range []string{"/login", "/forgot"} {
			if page := d.send(t, "GET "+path+"?return=http://127.0.0.1:8080/inbox%3Fcode=abc", nil).ok(http.StatusOK); !strings.Contains(string(page.body), words) {
				t.Errorf("%s doesn't say that it drops the return address", path)
			}
			if page := d.send(t, "GET "+path+"?return=http://localhost:8080/account", nil).ok(http.StatusOK); strings.Contains(string(page.body), words) {
				t.Errorf("%s says that it drops an allowed address", path)
			}
		}
		d.send(t, "POST /api/v2/auth/logout?return=https://app.example.com/bye", nil).ok(http.StatusNoContent)
		text := log.String()
		for _, line := range []string{`"origin":"http://127.0.0.1:8080","expectedOrigin":"http://localhost:8080"`, `"origin":"https://app.example.com"`} {
			if !strings.Contains(text, line) {
				t.Errorf("the log doesn't say %s:\n%s", line, text)
			}
		}
		if strings.Contains(text, "code=abc") || strings.Contains(text, "/inbox") {
			t.Errorf("the log repeats a path:\n%s", text)
		}
	}, doorwardtest.BaseURL("http://localhost:8080"), doorwardtest.Log(log))
}

// With --session-cookie persistent browsers keep the cookie until the session's absolute limit, which a tenant
// may shorten, and which a switch or a step-up doesn't move.
func TestPersistentCookie(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme, _, ann := d.inTwoTenants(t, "ADMIN", "USER")
		lives := func(a answer, want string) string {
			t.Helper()
			line := cookieNamed(a, "JSESSIONID")
			if !strings.HasSuffix(line, "; Path=/; HttpOnly; SameSite=Lax; Max-Age="+want+"; Secure") {
				t.Errorf("the cookie is %q, want Max-Age=%s", line, want)
			}
			return a.text("token")
		}
		token := lives(d.login(t, ann.Email, password).ok(http.StatusOK), "86400")
		d.Advance(time.Hour / 2)
		token = lives(d.send(t, "POST /api/v2/auth/switch-tenant", m{"tenantId": acme.ID}, as(token)).ok(http.StatusOK), "84600")
		begun := d.send(t, "POST /api/v2/auth/step-up/begin", nil, as(token)).ok(http.StatusOK)
		lives(d.send(t, "POST /api/v2/auth/step-up/finish", m{"challenge": begun.text("challenge"), "password": password}, as(token)).ok(http.StatusOK), "84600")
		d.send(t, "PATCH /api/v2/tenant", m{"settings": m{"sessionAbsoluteMinutes": 120}}, as(acme.Owner.Token())).ok(http.StatusOK)
		lives(d.login(t, acme.Owner.Email, password).ok(http.StatusOK), "7200")
	}, doorwardtest.BaseURL("https://door.example"), func(c *node.Config) { c.SessionCookie = node.OutlastsBrowser })
}
