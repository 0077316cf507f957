package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// The menu of a row offers only actions that the caller may perform, as the object's own page
// does, and returns to the list with its filter.
func TestMenusOfRows(t *testing.T) {
	h := newFixture(t)
	suspend := func(role string) string { return `/console/people/` + h.people[role].ID + `/suspend"` }
	owner, admin := h.browserOf(t, "OWNER"), h.browserOf(t, "ADMIN")
	owner.get("/console/people", http.StatusOK, suspend("ADMIN"), suspend("VIEWER"), `aria-label="Actions: user@acme.example"`)
	lacks(t, admin.get("/console/people", http.StatusOK, suspend("VIEWER")), suspend("OWNER"), suspend("ADMIN"))
	lacks(t, h.browserOf(t, "VIEWER").get("/console/people", http.StatusOK), "/suspend", "/console/audit?actor=")

	inv := "/console/invitations/" + makeInvitation(t, h)
	owner.get("/console/invitations?status=PENDING", http.StatusOK, inv+`/revoke"`, inv+`/resend"`, `/api/v2/invitations?format=csv&amp;status=PENDING"`)
	owner.submit(inv+"/revoke", url.Values{"list": {"status=PENDING"}}, "The invitation is revoked.", `/console/invitations?status=PENDING`)
	page := owner.get("/console/invitations?status=REVOKED", http.StatusOK, inv)
	if strings.Contains(page, inv+"/revoke") {
		t.Error("a revoked invitation can be revoked from its row")
	}
}
