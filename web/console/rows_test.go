package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The link to the file of a list leads to the proof that the file needs, and back to the list,
// when the last proof is too old.
func TestFilesOfListsNeedProof(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	for _, list := range []string{"people", "invitations", "audit"} {
		owner.get("/console/"+list, http.StatusOK, `format=spreadsheet`)
	}
	h.Advance(11 * time.Minute)
	for _, list := range []string{"people", "invitations", "audit"} {
		page := owner.get("/console/"+list+"?limit=5", http.StatusOK, `/step-up?return=%2Fconsole%2F`+list+`%3F`)
		lacks(t, page, "format=spreadsheet")
	}
}

// The menu of a row, which a script makes of the page's template, offers only actions that the caller may
// perform, as the object's own page does, and returns to the list with its filter.
func TestMenusOfRows(t *testing.T) {
	h := newFixture(t)
	suspend := func(role string) string {
		return `"/console/people/` + h.people[role].ID + `" aria-label="Actions: ` + strings.ToLower(role) + `@acme.example" data-kind="active"`
	}
	owner, admin := h.browserOf(t, "OWNER"), h.browserOf(t, "ADMIN")
	owner.get("/console/people", http.StatusOK, suspend("ADMIN"), suspend("VIEWER"), `data-for="active" href="/console/people/row-id/suspend"`)
	lacks(t, admin.get("/console/people", http.StatusOK, suspend("VIEWER")), suspend("OWNER"), suspend("ADMIN"))
	lacks(t, h.browserOf(t, "VIEWER").get("/console/people", http.StatusOK), "/suspend", "audit?actor=")

	inv := "/console/invitations/" + makeInvitation(t, h)
	row := func(state string) string {
		return inv + `?list=status%3D` + state + `" aria-label="Actions: new@acme.example" data-kind="` + state + `"`
	}
	owner.get("/console/invitations?status=PENDING", http.StatusOK, row("PENDING"), `data-for="PENDING" method="post" action="/console/invitations/row-id/resend"`, `data-for="PENDING" method="post" action="/console/invitations/row-id/revoke"`, `/api/v2/invitations?format=spreadsheet&amp;status=PENDING"`)
	owner.submit(inv+"/revoke", url.Values{"list": {"status=PENDING"}}, "The invitation is revoked.", `/console/invitations?status=PENDING`)
	owner.get("/console/invitations?status=REVOKED", http.StatusOK, row("REVOKED"), `data-for="REVOKED EXPIRED"`)
}
