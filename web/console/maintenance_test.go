package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/doorward/doorward"
)

// While changes are paused, pages say so and why, and a refused form keeps what was
// written.
func TestPagesWhileChangesArePaused(t *testing.T) {
	h := newFixture(t)
	if err := h.Node.App.Installation.PauseChanges(t.Context(), doorward.OperatorAtTerminal(), "We <move>."); err != nil {
		t.Fatal(err)
	}
	b := h.browserOf(t, "OWNER")
	b.get("/console/people", http.StatusOK, "The operator has paused changes: We &lt;move&gt;.")
	b.post("/console/invitations/new", url.Values{"people": {"cid@acme.example"}, "role": {"USER"}, "expiresInDays": {"7"}, "locale": {"en"}}, http.StatusServiceUnavailable,
		"The operator has paused changes: We &lt;move&gt;.", "cid@acme.example</textarea>")
	b.get("/console/people?lang=de", http.StatusOK, "Der Betreiber hat Änderungen angehalten: We &lt;move&gt;.")
}

// The overview says how many people the operator allows, and counts them as an invitation does: with those who are
// invited. Who invites nobody doesn't see it.
func TestOverviewShowsTheQuota(t *testing.T) {
	h := newFixture(t)
	if _, err := h.Node.App.Tenants.SetQuotas(t.Context(), doorward.OperatorAtTerminal(), h.tenant.ID, map[doorward.Quota]int64{doorward.QuotaPeople: 5}); err != nil {
		t.Fatal(err)
	}
	b := h.browserOf(t, "ADMIN")
	b.get("/console", http.StatusOK, `<h2 id="quotas-title">Quotas</h2>`, `People</a> <strong>4 <span class="soft">/ 5</span>`)
	b.submit("/console/invitations/new", url.Values{"people": {"cid@acme.example"}, "role": {"USER"}, "expiresInDays": {"7"}, "locale": {"en"}})
	b.get("/console", http.StatusOK, `People</a> <strong>5 <span class="soft">/ 5</span>`, `class="high"`)
	b.get("/console?lang=de", http.StatusOK, `Personen</a> <strong>5 <span class="soft">/ 5</span>`)
	b.post("/console/invitations/new", url.Values{"people": {"dan@acme.example"}, "role": {"USER"}, "expiresInDays": {"7"}, "locale": {"en"}}, http.StatusUnprocessableEntity)
	lacks(t, h.browserOf(t, "VIEWER").get("/console", http.StatusOK), "quotas-title")
}

// With a quota of events a day the overview says how much was changed today. A form that it
// refuses says when changes go on, and keeps what was written.
func TestPagesWithoutChangesLeft(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "OWNER")
	lacks(t, b.get("/console", http.StatusOK), "quotas-title")
	if _, err := h.Node.App.Tenants.SetQuotas(t.Context(), doorward.OperatorAtTerminal(), h.tenant.ID, map[doorward.Quota]int64{doorward.QuotaEventsPerDay: 0}); err != nil {
		t.Fatal(err)
	}
	b.get("/console", http.StatusOK, `Changes today</a> <strong>`, `<span class="soft">/ 0</span>`, `class="high"`)
	b.get("/console?lang=de", http.StatusOK, "Änderungen heute</a>")
	b.post("/console/people/"+h.people["USER"].ID+"/role", url.Values{"role": {"ADMIN"}}, http.StatusConflict, "Try again tomorrow")
	b.post("/console/invitations/new", url.Values{"people": {"cid@acme.example"}, "role": {"USER"}, "expiresInDays": {"7"}, "locale": {"en"}}, http.StatusUnprocessableEntity,
		"the operator allows no more changes today", `value="cid@acme.example"`)
}
