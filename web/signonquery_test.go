package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestUnknownParametersOfSignOn: every route by which a tenant manages its sign-on, and every list, refuses query
// parameters that it doesn't know, before it does anything.
func TestUnknownParametersOfSignOn(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		callers, tried := d.callers(t, d.Tenant("Acme").Owner), 0
		for _, o := range d.operations(t) {
			isSignOn := strings.HasPrefix(o.route.Path, "/api/v2/sso/") || strings.HasPrefix(o.route.Path, "/api/v2/domains")
			if isSignOn && !o.route.RefusesUnknownParameters() {
				t.Errorf("%s %s takes any query", o.route.Method, o.route.Path)
			}
			if !o.route.RefusesUnknownParameters() {
				continue
			}
			tried++
			for _, query := range []string{"unknown=1", "DryRun=true"} {
				d.send(t, o.Method()+" "+o.Path()+"?"+query, o.Body, callers[o.Who]).fails(http.StatusBadRequest, "invalid_query")
			}
		}
		if tried < 30 {
			t.Errorf("only %d routes refuse unknown parameters", tried)
		}
	})
}

// TestFinalDots: a domain with the dot of an absolute name, as DNS consoles show it, is taken without the dot.
func TestFinalDots(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		owner := as(d.Tenant("Acme").Owner.Token())
		d.send(t, "POST /api/v2/domains", m{"domain": "Acme.Example."}, owner).ok(http.StatusCreated).is("domain", "acme.example")
		d.send(t, "POST /api/v2/domains", m{"domain": "acme.example"}, owner).fails(http.StatusConflict, "domain_exists")
		d.send(t, "POST /api/v2/domains", m{"domain": "acme.example.."}, owner).invalid("/domain", "invalid")
		d.send(t, "POST /api/v2/domains", m{"domain": "co.uk."}, owner).invalid("/domain", "public_domain")
		settings := m{"settings": m{"allowedEmailDomains": []string{"other.example.", "other.example"}}}
		if got := d.send(t, "PATCH /api/v2/tenant", settings, owner).ok(http.StatusOK).at("settings.allowedEmailDomains"); fmt.Sprint(got) != "[other.example]" {
			t.Errorf("the domains are %v", got)
		}
	})
}
