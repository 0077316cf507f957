package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/oidcrp/oidctest"
)

// TestSignOffByProvider: how the two endpoints answer a provider.
func TestSignOffByProvider(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		f.begin()().ok(http.StatusSeeOther)
		f.ask("GET "+f.path, nil).ok(http.StatusOK).is("ends", "tenant").is("endsKeys", false).
			is("revokeUrl", d.URL+f.signOnPath("revoke")).is("backchannelLogoutUrl", d.URL+f.signOnPath("backchannel-logout"))
		who := m{"format": "iss_sub", "iss": f.provider.Issuer(), "sub": "1"}
		revoke := func(token string, body m) answer {
			t.Helper()
			return d.send(t, "POST "+f.signOnPath("revoke"), body, with("Authorization", "Bearer "+token))
		}
		token := func() string { return f.provider.Revocation(d.URL+f.signOnPath("revoke"), nil) }
		used := token()
		revoke(used, m{"sub_id": who}).ok(http.StatusNoContent)
		revoke(used, m{"sub_id": who}).ok(http.StatusNoContent)
		revoke(used, m{"sub_id": m{"format": "email", "email": "ann@acme.example"}}).fails(http.StatusUnauthorized, "unauthenticated")
		revoke("x", m{"sub_id": who}).fails(http.StatusUnauthorized, "unauthenticated")
		d.send(t, "POST "+f.signOnPath("revoke"), m{"sub_id": who}).fails(http.StatusUnauthorized, "unauthenticated")
		revoke(token(), m{"subject": who}).ok(http.StatusNoContent)
		revoke(token(), m{"sub_id": m{"format": "email", "email": "ann@acme.example"}}).ok(http.StatusNoContent)
		revoke(token(), m{"sub_id": m{"format": "iss_sub", "iss": f.provider.Issuer(), "sub": "2"}, "subject": who}).fails(http.StatusNotFound, "not_found")
		revoke(token(), m{}).invalid("/sub_id/format", "invalid")
		first := func() m { return f.ask("GET "+f.path+"/attempts", nil).ok(http.StatusOK).at("items").([]any)[0].(m) }
		revoke(token(), m{"subject": m{"format": "email"}}).invalid("/subject/email", "required")
		if got := first(); got["check"] != "body" || got["seen"] != "validation_failed, /subject/email required" || got["advice"] != "revoke_body" {
			t.Errorf("a body without an address is in the protocol as %v", got)
		}
		revoke(token(), m{"more": "value"}).ok(http.StatusBadRequest)
		if got := first(); got["check"] != "body" || strings.Contains(got["seen"].(string), "value") {
			t.Errorf("a body that isn't understood is in the protocol as %v", got)
		}
		revoke("x", m{"more": "value"}).ok(http.StatusBadRequest)
		if got := first(); got["count"] != 1.0 {
			t.Errorf("a body with a wrong token is in the protocol as %v", got)
		}

		logout := func(form url.Values) answer {
			t.Helper()
			return d.send(t, "POST "+f.signOnPath("backchannel-logout"), form.Encode(), typed("application/x-www-form-urlencoded; charset=UTF-8"))
		}
		good := f.provider.Logout("doorward", m{"sub": "1"})
		if a := logout(url.Values{"logout_token": {good}, "more": {"x"}}).ok(http.StatusOK); a.header.Get("Cache-Control") != "no-store" || len(a.body) > 0 {
			t.Errorf("a logout is answered with %v %s", a.header, a.body)
		}
		logout(url.Values{"logout_token": {good}}).ok(http.StatusOK)
		for what, form := range map[string]url.Values{
			"none": {}, "two": {"logout_token": {good, good}},
			"a revocation": {"logout_token": {f.provider.Ending(oidctest.TypeRevocation, m{"aud": "doorward", "sub": "1"})}},
		} {
			if a := logout(form).ok(http.StatusBadRequest).is("error", "invalid_request"); !strings.Contains(a.text("error_description"), "refused") || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: answered with %s", what, a.body)
			}
		}
		logout(url.Values{"logout_token": {f.provider.Logout("doorward", m{"sid": "nobody's"})}}).ok(http.StatusOK)
		d.send(t, "POST "+f.signOnPath("backchannel-logout"), m{"logout_token": good}).fails(http.StatusUnsupportedMediaType, "unsupported_media_type")
		logout(url.Values{"logout_token": {strings.Repeat("x", 64<<10)}}).fails(http.StatusRequestEntityTooLarge, "body_too_large")
	}, withProviders())
}

// TestSignOffAtAFault: a provider out of reach is 503, and too many refused requests are 429.
func TestSignOffAtAFault(t *testing.T) {
	onSQLite(t, func(t *testing.T, d *server) {
		f := d.signOnSite(t)
		f.provider.Change(func(p *oidctest.Settings) {
			p.Lies.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
		})
		revoke := func(token string) answer {
			t.Helper()
			return d.send(t, "POST "+f.signOnPath("revoke"), m{"sub_id": m{"format": "email", "email": "ann@acme.example"}}, with("Authorization", "Bearer "+token))
		}
		logout := func(token string) answer {
			t.Helper()
			return d.send(t, "POST "+f.signOnPath("backchannel-logout"), url.Values{"logout_token": {token}}.Encode(), typed("application/x-www-form-urlencoded"))
		}
		revoke(f.provider.Revocation(d.URL+f.signOnPath("revoke"), nil)).fails(http.StatusServiceUnavailable, "provider_unavailable")
		logout(f.provider.Logout("doorward", m{"sub": "1"})).fails(http.StatusServiceUnavailable, "provider_unavailable")
		for range 60 {
			revoke("x").fails(http.StatusUnauthorized, "unauthenticated")
		}
		revoke("x").fails(http.StatusTooManyRequests, "too_many_attempts")
		logout("x").fails(http.StatusTooManyRequests, "too_many_attempts")
	}, withProviders())
}
