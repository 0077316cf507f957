package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/dev"
)

// The first page of "doorward dev" leads a person who needs a second factor to the login.
func TestDevSignInWithASecondFactor(t *testing.T) {
	page := &dev.Start{Mailbox: &dev.Mailbox{}, Password: password}
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		ann := acme.Join("ann@acme.example", "USER")
		if to := signInOnStart(t, d, ann.Email); to != "/?done=signed-in" {
			t.Errorf("without a second factor the page leads to %q", to)
		}
		d.patchTenant(t, acme.Owner.Token(), m{"settings": m{"mfa": "required"}}).ok(http.StatusOK)
		if to := signInOnStart(t, d, ann.Email); to != "/login" {
			t.Errorf("with a second factor the page leads to %q", to)
		}
	}, masterKey(t), func(c *node.Config) { c.Extra = page.Routes() })
}

// The server of dev answers under its own names only, on each path: a page of another site whose name
// resolves to loopback would be of the same origin.
func TestOnlyOwnHosts(t *testing.T) {
	page := &dev.Start{Mailbox: &dev.Mailbox{}, Password: password}
	onSQLite(t, func(t *testing.T, d *server) {
		host := func(name string) opt { return func(r *http.Request) { r.Host = name } }
		for _, path := range []string{"/dev/mail", "/", "/login", "/docs", "/api/v2/access/check", "/healthz"} {
			for _, name := range []string{"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1", "[::1].evil.example"} {
				d.send(t, "GET "+path, nil, host(name)).fails(http.StatusForbidden, "cross_origin")
			}
			for _, name := range []string{"localhost", "localhost:8080", "LOCALHOST", "127.0.0.1", "[::1]:9", "door.example:8443", "tenant.localhost", "localhost.:8080", "door.example."} {
				if a := d.send(t, "GET "+path, nil, host(name)); a.status == http.StatusForbidden {
					t.Errorf("%s at %s: %s", path, name, a.body)
				}
			}
		}
	}, func(c *node.Config) {
		c.Extra, c.OwnHostsOnly = page.Routes(), true
		c.BaseURL = &url.URL{Scheme: "http", Host: "door.example"}
	})
}

// signInOnStart sends the form of the start page and returns where it leads to.
func signInOnStart(t *testing.T, d *server, email string) (to string) {
	t.Helper()
	form := url.Values{"as": {email}}
	req, err := http.NewRequestWithContext(t.Context(), "POST", d.base+"/dev/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := d.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("the form is answered %s", res.Status)
	}
	return res.Header.Get("Location")
}
