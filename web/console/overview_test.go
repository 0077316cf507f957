package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// People who manage a new tenant are shown the first steps, until all are done or the tenant
// is older than 30 days.
func TestFirstSteps(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	owner.get("/console", http.StatusOK, `id="step-invite" class="done"`, `id="step-settings"><a href="/console/settings">`, `id="step-owner"><a`, `id="step-factor"><a`)
	lacks(t, h.browserOf(t, "VIEWER").get("/console", http.StatusOK), "steps-title")
	page := owner.get("/console/settings", http.StatusOK)
	owner.submit("/console/settings/accent", url.Values{"version": {owner.version(page)}, "accent": {"#aa0000"}})
	owner.get("/console", http.StatusOK, `id="step-settings" class="done"`)
	h.Advance(31 * 24 * time.Hour)
	h.people["OWNER"].Login()
	lacks(t, h.browserOf(t, "OWNER").get("/console", http.StatusOK), "steps-title")
}

func TestRangeOfTheChart(t *testing.T) {
	owner := newFixture(t).browserOf(t, "OWNER")
	for query, want := range map[string]string{"": "30 days", "?days=7": "7 days", "?days=90": "90 days", "?days=5000": "30 days", "?days=x": "30 days"} {
		page := owner.get("/console"+query, http.StatusOK, "sign-ins in "+want, `aria-current="true">`+want)
		// A day is ten units wide.
		if days, _, _ := strings.Cut(want, " "); !strings.Contains(page, `viewBox="0 0 `+days+`0 100"`) {
			t.Errorf("%q: the chart doesn't show %s", query, want)
		}
	}
}

// What happened last is on the overview and on the person's page as on the trail, for those who may
// read it: the same rows, which open there, and lead to the trail.
func TestRecentActivity(t *testing.T) {
	h := newFixture(t)
	owner, user := h.browserOf(t, "OWNER"), h.people["USER"]
	page := owner.get("/console/people/"+user.ID, http.StatusOK)
	owner.submit("/console/people/"+user.ID+"/name", url.Values{"name": {"Uma"}, "version": {owner.version(page)}})
	of := "/console/people/" + user.ID + "?tab=activity"
	for _, path := range []string{"/console?days=7", of} {
		page = owner.get(path, http.StatusOK, `class="list events"`, "Name changed</a>", `<a href="/console/people/`+user.ID+`" title="Uma, user@acme.example"><bdi>Uma</bdi></a>`,
			`<a href="/console/audit?actor=`+h.people["OWNER"].ID+`"`)
		owner.get(path+"&event="+owner.findOn(eventRow, page), http.StatusOK, `<aside id="event"`, `<a href="/console/audit?request=req_`)
	}
	owner.get(of, http.StatusOK, "Signed in</a>")
	lacks(t, h.browserOf(t, "VIEWER").get(of, http.StatusOK), "Recent activity")
}
