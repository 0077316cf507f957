package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web/ui"
)

// begunLink makes a set-up link for the site's connection, begins by it, and returns the cookie of the browser
// and the caller.
func (f *signOnSite) begunLink() (pair string, by doorward.Caller) {
	f.t.Helper()
	return beginLink(f.t, f.Node, tokenOf(f.ask("POST "+f.path+"/setup-link", nil).ok(http.StatusCreated)))
}

// beginLink begins by the token of a set-up link, and returns the cookie of the browser and the caller.
func beginLink(t *testing.T, n *node.Node, token string) (pair string, by doorward.Caller) {
	t.Helper()
	links, anonymous := n.App.SetupLinks, doorward.Caller{Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: "127.0.0.1"}
	browser, err := links.Begin(t.Context(), anonymous, token)
	if err != nil {
		t.Fatal(err)
	}
	if by, _, err = links.Caller(t.Context(), anonymous, browser.Reveal()); err != nil {
		t.Fatal(err)
	}
	return ui.SetupCookie + "=" + browser.Reveal(), by
}

// A set-up link is made for 1 to 7 days, of which 7 are the default, and ended.
func TestSetupLink(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		acme := d.Tenant("Acme")
		owner := as(acme.Owner.Token())
		path := connectionsPath + "/" + d.send(t, "POST "+connectionsPath, m{"type": "oidc", "name": "x"}, owner).ok(http.StatusCreated).text("id") + "/setup-link"
		for _, days := range []any{0, 8, -1} {
			d.send(t, "POST "+path, m{"days": days}, owner).invalid("/days", "out_of_range")
		}
		made := d.send(t, "POST "+path, nil, owner).ok(http.StatusCreated).members("", "url", "expiresAt")
		tokenOf(made)
		if days := made.instant("expiresAt").Sub(d.clock.now()).Hours() / 24; days < 6.9 || days > 7 {
			t.Errorf("the link ends in %v days", days)
		}
		again := d.send(t, "POST "+path, m{"days": 1}, owner).ok(http.StatusCreated)
		if tokenOf(again) == tokenOf(made) || again.instant("expiresAt").Sub(d.clock.now()) > 24*time.Hour {
			t.Errorf("another link is %s", again.body)
		}
		d.send(t, "POST "+path+"?day=1", nil, owner).fails(http.StatusBadRequest, "invalid_query")
		d.send(t, "DELETE "+path, nil, as(d.Tenant("Zeta").Owner.Token())).fails(http.StatusNotFound, "not_found")
		d.send(t, "DELETE "+path, nil, owner).ok(http.StatusNoContent)
		d.send(t, "DELETE "+path, nil, owner).fails(http.StatusNotFound, "not_found")
		d.Advance(20 * time.Minute)
		d.send(t, "POST "+path, nil, owner).fails(http.StatusForbidden, "step_up_required")
		d.send(t, "DELETE "+path, nil, owner).fails(http.StatusForbidden, "step_up_required")
	})
}

// A test that a link has asked for begins in the browser with the link's cookie alone, and leads to its pages. The
// cookie opens nothing else.
func TestTestBySetupLink(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		link, by := f.begunLink()
		test, err := d.Node.App.Tests.Make(t.Context(), by, f.con)
		if err != nil {
			t.Fatal(err)
		}
		start := "GET " + f.signOnPath("start") + "?test=" + test.ID
		d.send(t, start, nil).fails(http.StatusNotFound, "not_found")
		d.send(t, start, nil, f.owner).fails(http.StatusNotFound, "not_found")
		begun := d.send(t, start, nil, f.owner, cookie(link)).ok(http.StatusSeeOther)
		back, err := f.provider.SignIn(begun.header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		opts := []opt{cookie(link)}
		for _, set := range begun.cookies() {
			pair, _, _ := strings.Cut(set, ";")
			opts = append(opts, cookie(pair))
		}
		done := d.send(t, "GET "+back.RequestURI(), nil, opts...).ok(http.StatusSeeOther)
		if to := done.header.Get("Location"); to != "/setup/test?test="+test.ID {
			t.Errorf("the test leads to %s", to)
		}
		for _, request := range []string{"GET " + f.path, "GET /api/v2/auth/session", "GET " + f.path + "/tests/" + test.ID} {
			d.send(t, request, nil, cookie(link)).fails(http.StatusUnauthorized, "unauthenticated")
		}
		f.ask("DELETE "+f.path+"/setup-link", nil).ok(http.StatusNoContent)
		d.send(t, start, nil, cookie(link)).fails(http.StatusNotFound, "not_found")
	}, masterKey(t), withProviders())
}
