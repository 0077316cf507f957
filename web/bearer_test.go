package web_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/secret"
)

// A session token in quotes isn't one, which the answer says.
func TestQuotedCookie(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		token := d.Tenant("Acme").Owner.Token()
		a := d.send(t, "GET /api/v2/auth/session", nil, cookie(`JSESSIONID="`+token+`"`)).fails(http.StatusUnauthorized, "unauthenticated")
		if !strings.Contains(a.text("detail"), "JSESSIONID is in quotes") {
			t.Errorf("the answer is %s", a.body)
		}
		a = d.send(t, "GET /api/v2/auth/session", nil, cookie(`JSESSIONID="of a Tomcat"`)).fails(http.StatusUnauthorized, "unauthenticated")
		if strings.Contains(a.text("detail"), "quotes") {
			t.Errorf("the answer is about another program's cookie: %s", a.body)
		}
		d.send(t, "GET /api/v2/auth/session", nil, cookie(`JSESSIONID="`+token+`"; JSESSIONID=`+token)).ok(http.StatusOK)
	})
}

// A session token gives the same access as a bearer credential and as a cookie.
func TestBearerSession(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		for role, p := range map[string]*doorwardtest.Person{"OWNER": acme.Owner, "VIEWER": acme.Join("vera@acme.example", "VIEWER")} {
			for _, path := range []string{
				"GET /api/v2/auth/session", "GET /api/v2/auth/memberships", "GET /api/v2/sessions", "GET /api/v2/users", "GET /api/v2/tenant",
				"GET /api/v2/invitations", "GET /api/v2/audit-events", "GET /api/v2/tenants", "POST /api/v2/access/introspect", "PATCH /api/v2/tenant",
			} {
				byCookie, byBearer := d.send(t, path, nil, as(p.Token())), d.send(t, path, nil, bearer(p.Token()))
				if byBearer.status != byCookie.status || byBearer.status == http.StatusUnauthorized {
					t.Errorf("%s of %s: %d by bearer, %d by cookie", path, role, byBearer.status, byCookie.status)
				}
			}
		}
		d.send(t, "GET /api/v2/auth/session", nil, with("Authorization", "bEARER  "+acme.Owner.Token())).ok(http.StatusOK).is("user.id", acme.Owner.ID)
		if a := d.send(t, "GET /api/v2/sessions", nil, bearer(acme.Owner.Token())).ok(http.StatusOK); !strings.Contains(string(a.body), `"current":true`) {
			t.Errorf("none of the sessions is the current one: %s", a.body)
		}
		d.send(t, "PATCH /api/v2/tenant", map[string]string{"name": "Umbra"}, bearer(acme.Owner.Token())).ok(http.StatusOK).is("name", "Umbra")
		// The origin check applies to every unsafe method, with any credential.
		d.send(t, "PATCH /api/v2/tenant", map[string]string{"name": "Other"}, bearer(acme.Owner.Token()), with("Origin", "https://other.example")).fails(http.StatusForbidden, "cross_origin")
	})
}

// Logout ends the session of every token it gets: 204 means signed out.
func TestLogoutByBearer(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		ann := d.Tenant("Acme").Join("ann@acme.example", "USER")
		for name, sent := range map[string]func(a, b string) []opt{
			"one":               func(a, _ string) []opt { return []opt{bearer(a)} },
			"in both places":    func(a, _ string) []opt { return []opt{bearer(a), as(a)} },
			"beside a cookie":   func(a, b string) []opt { return []opt{bearer(a), as(b)} },
			"two headers":       func(a, b string) []opt { return []opt{bearer(a), bearer(b)} },
			"beside nonsense":   func(a, _ string) []opt { return []opt{bearer("nonsense"), bearer(a), cookie("JSESSIONID=nonsense")} },
			"beside a password": func(a, _ string) []opt { return []opt{with("Authorization", "Basic eDp4"), bearer(a)} },
		} {
			first, second := d.token(t, ann.Email), d.token(t, ann.Email)
			d.send(t, "POST /api/v2/auth/logout", nil, sent(first, second)...).ok(http.StatusNoContent)
			d.send(t, "GET /api/v2/auth/session", nil, bearer(first)).fails(http.StatusUnauthorized, "unauthenticated")
			d.send(t, "GET /api/v2/auth/session", nil, as(first)).fails(http.StatusUnauthorized, "unauthenticated")
			if both := name == "beside a cookie" || name == "two headers"; both {
				d.send(t, "GET /api/v2/auth/session", nil, as(second)).fails(http.StatusUnauthorized, "unauthenticated")
			} else {
				d.send(t, "GET /api/v2/auth/session", nil, as(second)).ok(http.StatusOK)
			}
		}
		d.send(t, "POST /api/v2/auth/logout", nil, bearer(d.operatorKey(t))).ok(http.StatusNoContent)
		d.send(t, "GET /api/v2/auth/session", nil, as(ann.Token())).ok(http.StatusOK)
	})
}

// Pages ignore a bearer credential.
func TestPagesTakeTheCookieOnly(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := d.Tenant("Acme").Owner
		for _, path := range []string{"/account", "/console", "/console/people", "/login"} {
			byCookie, byBearer, byNone := pageStatus(t, d, path, as(owner.Token())), pageStatus(t, d, path, bearer(owner.Token())), pageStatus(t, d, path)
			if byBearer != byNone {
				t.Errorf("%s: %s by bearer, %s with nothing", path, byBearer, byNone)
			}
			if byCookie == byNone {
				t.Errorf("%s is %s both with and without a session", path, byCookie)
			}
		}
	})
}

// pageStatus returns the status of a page and where it redirects to.
func pageStatus(t *testing.T, d *server, path string, opts ...opt) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range opts {
		change(req)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.Status + " " + res.Header.Get("Location")
}

// One token in 16 million begins like an operator key. It is still a session token.
func TestBearerLikeAnOperatorKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "doorward.db")
	d := start(t, doorwardtest.Database("sqlite:"+file))
	owner := d.Tenant("Acme").Owner
	const text = "dwo_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	token, err := secret.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	current, err := secret.Parse(d.token(t, owner.Email))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(30000)") // the server writes, too
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	before, after := current.Hash(), token.Hash()
	if _, err := db.ExecContext(t.Context(), "UPDATE sessions SET token_hash = ? WHERE token_hash = ?", after[:], before[:]); err != nil {
		t.Fatal(err)
	}
	d.send(t, "GET /api/v2/auth/session", nil, bearer(text)).ok(http.StatusOK).is("user.id", owner.ID)
	d.send(t, "GET /api/v2/auth/session", nil, as(text)).ok(http.StatusOK)
}
