package console_test

import (
	"net/http"
	"strings"
	"testing"
)

// The header leads to the person's other tenants, if there are any, and not to the present one.
func TestSwitcher(t *testing.T) {
	h := newFixture(t)
	lacks(t, h.browserOf(t, "OWNER").get("/console", http.StatusOK), `class="switcher"`)
	globex := h.Tenant("Globex & Co")
	if status, body := globex.Owner.Post("/api/v2/auth/invite", map[string]string{"email": "owner@acme.example", "role": "VIEWER"}); status != http.StatusCreated {
		t.Fatal(status, string(body))
	}
	accepted := map[string]string{"token": h.Code("owner@acme.example")}
	if status, body := h.people["OWNER"].Post("/api/v2/auth/accept-invitation", accepted); status != http.StatusOK {
		t.Fatal(status, string(body))
	}
	owner := h.browserOf(t, "OWNER")
	page := owner.get("/console/people", http.StatusOK, `class="switcher"`, `value="`+globex.ID+`"><bdi>Globex &amp; Co</bdi>`)
	if strings.Contains(page, `name="tenantId" value="`+h.tenant.ID) {
		t.Error("the switcher offers the present tenant")
	}
}

// A theme is chosen without scripts, and kept.
func TestTheme(t *testing.T) {
	owner := newFixture(t).browserOf(t, "OWNER")
	owner.get("/console", http.StatusOK, `content="light dark"`, `<span aria-current="true">System</span>`, `href="?theme=dark"`)
	res, page := owner.ask("GET", "/console/people?q=a&theme=dark", nil)
	if !strings.HasPrefix(res.Header.Get("Set-Cookie"), "doorward_theme=dark;") {
		t.Errorf("the choice isn't kept: %q", res.Header["Set-Cookie"])
	}
	owner.shows("in the dark", res, page, http.StatusOK, []string{`content="dark"`, `<span aria-current="true">Dark</span>`, "/assets/ui-dark.", "/assets/console-dark.", `href="?q=a&amp;theme=light"`})
	_, page = owner.ask("GET", "/console", nil, "Cookie", "JSESSIONID="+owner.token+"; doorward_theme=light")
	if !strings.Contains(page, "/assets/ui-light.") {
		t.Error("the cookie chooses no theme")
	}
}
