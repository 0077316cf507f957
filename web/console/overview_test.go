package console_test

import (
	"fmt"
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
		days, _, _ := strings.Cut(want, " ")
		_, table, _ := strings.Cut(page, `id="chart-title-table"`)
		table, _, _ = strings.Cut(table, "</table>")
		if rows := strings.Count(table, `<th role="rowheader" scope="row">`); fmt.Sprint(rows) != days {
			t.Errorf("%q: the chart shows %d days, want %s", query, rows, days)
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

// The pages of keys, webhooks and roles have the same tab, for those who may read the trail.
func TestActivityOfEachObject(t *testing.T) {
	h := newFixture(t)
	makeRole(t, h, "MAKER", "", "role.manage", "apikey.manage", "webhook.manage", "user.read", "message.send")
	setRole(t, h, "USER", "MAKER")
	owner, maker := h.browserOf(t, "OWNER"), h.browserOf(t, "USER")
	hooked := owner.post("/console/webhooks/new", url.Values{"url": {newReceiver(t).URL}, "events": {"user.*"}}, http.StatusOK)
	made := map[string]string{ // a path and what the trail says of it
		"/console/keys/" + makeKey(t, h, nil):                                                  "API key created",
		"/console/webhooks/" + owner.findOn(hookLink, hooked[strings.Index(hooked, "<main"):]): "Webhook created",
		"/console/roles/" + makeRole(t, h, "IDLE", "", "message.read"):                         "Role created",
	}
	for path, event := range made {
		page := owner.get(path+"?tab=activity", http.StatusOK, `class="list events"`, event+"</a>", `<a href="`+path+`" title="`, `<a href="/console/audit?target=`)
		owner.get(path+"?tab=activity&event="+owner.findOn(eventRow, page), http.StatusOK, `<aside id="event"`)
		lacks(t, owner.get(path, http.StatusOK, `?tab=activity">Activity</a>`), "/console/audit?target=")
		lacks(t, maker.get(path+"?tab=activity", http.StatusOK), event, ">Activity</a>")
	}
}
