package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// The trail is searched by people's names; of several people that match, one can be chosen.
func TestTrailOfAPersonByName(t *testing.T) {
	h := newFixture(t)
	owner, user := h.browserOf(t, "OWNER"), h.people["USER"]
	page := owner.get("/console/people/"+user.ID, http.StatusOK)
	owner.submit("/console/people/"+user.ID+"/name", url.Values{"name": {"Élodie Haddad"}, "version": {owner.version(page)}})
	for _, typed := range []string{"haddad elodie", "user@acme.example", user.ID} {
		owner.get("/console/audit?target="+url.QueryEscape(typed), http.StatusOK,
			"Name changed", "<strong><bdi>Élodie Haddad</bdi></strong>", "target="+user.ID, `value="`+typed+`"`)
	}
	owner.get("/console/audit?actor=acme", http.StatusOK, "Several people match “acme”", "?actor="+h.people["ADMIN"].ID, "Nothing matches.")
	owner.get("/console/audit?actor=nobody", http.StatusOK, "Nobody matches “nobody”", "Nothing matches.")
	lacks(t, owner.get("/console/audit?actor=operator&action=tenant.create", http.StatusOK), "Nothing matches.")
	owner.get("/console/audit?actor=operator&action=user.rename", http.StatusOK, "Nothing matches.")
	owner.get("/console/audit?actor=root@db1", http.StatusUnprocessableEntity, "Nothing matches.")
}

// An address is found also if it is part of many others.
func TestTrailOfAnAddressWithinOthers(t *testing.T) {
	h := newFixture(t)
	for n := range 9 {
		h.tenant.Join(fmt.Sprintf("jo%dann@acme.example", n), "USER")
	}
	h.tenant.Join("ann@acme.example", "USER")
	h.browserOf(t, "OWNER").get("/console/audit?actor=Ann@acme.example", http.StatusOK, "<strong><bdi>ann@acme.example</bdi></strong>")
}

// The folded filters in use are shown, each with a link to the trail without it.
func TestUsedFiltersOfTheTrail(t *testing.T) {
	owner := newFixture(t).browserOf(t, "OWNER")
	page := owner.get("/console/audit?from=2026-01-02&to=2026-01-03T04:05:06&request=req_1&outcome=done", http.StatusOK, "3 in use",
		`From (UTC): <strong><bdi>2 January 2026</bdi></strong></span> <a href="?outcome=done&amp;request=req_1&amp;to=2026-01-03T04%3A05%3A06" aria-label="Remove the filter: From (UTC)">`,
		"<strong><bdi>3 January 2026, 04:05 UTC</bdi></strong>", "<strong><bdi>req_1</bdi></strong>")
	lacks(t, page, `<details class="fold always" open`)
	lacks(t, owner.get("/console/audit?outcome=done", http.StatusOK), "in use")
}

func TestPresetsOfTheTrail(t *testing.T) {
	owner := newFixture(t).browserOf(t, "OWNER")
	owner.get("/console/audit?outcome=refused", http.StatusOK, `href="?" aria-current="true">Refusals`, "&amp;outcome=refused\">Today")
	page := owner.get("/console/audit?action=session.open&from=2026-01-01", http.StatusOK, `href="?from=2026-01-01" aria-current="true">Sign-ins`)
	if strings.Count(page, `aria-current="true">`) != 3 { // and the language, and the theme
		t.Errorf("more than one preset is the current one on\n%s", page)
	}
}

// An action on several people at once is one entry of the page, with all of them in it.
func TestTrailGroupsActionsOnSeveralPeople(t *testing.T) {
	h := newFixture(t)
	owner := h.browserOf(t, "OWNER")
	owner.post("/console/people/chosen/do", url.Values{"act": {"suspend"}, "id": {h.people["USER"].ID, h.people["VIEWER"].ID}}, http.StatusOK, "Suspended.", "2 suspended")
	const path = "/console/audit?action=user.suspend"
	page := owner.get(path, http.StatusOK, "× 2", "2 events")
	if n := len(eventRow.FindAllString(page, -1)); n != 1 {
		t.Errorf("%d rows, want one", n)
	}
	owner.get(path+"&event="+owner.findOn(eventRow, page), http.StatusOK, "user@acme.example", "viewer@acme.example")
}

// A change of role says from what to what.
func TestTrailShowsChangesOfRoles(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	bob := acme.Join("bob@acme.example", "USER")
	owner := open(t, s, acme.Owner)
	owner.submit("/console/people/"+bob.ID+"/role", url.Values{"role": {"VIEWER"}}, "role")
	owner.get("/console/audit?action=user.role", http.StatusOK, `<span class="soft"><bdi>User</bdi> → <bdi>Viewer</bdi></span>`)
}

// The trail shows removed people by name.
func TestTrailNamesRemovedPeople(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	bob := acme.Join("bob@acme.example", "USER")
	owner := open(t, s, acme.Owner)
	owner.submit("/console/people/"+bob.ID+"/remove", url.Values{}, "removed")
	page := owner.get("/console/audit?action=user.remove", http.StatusOK, "<bdi>bob@acme.example</bdi>")
	lacks(t, page, "<bdi>"+bob.ID+"</bdi>")
}

// Who acted is named like what was acted on: by name, with the address in the title.
func TestActorsByName(t *testing.T) {
	h := newFixture(t)
	status, answer := h.tenant.Owner.Do("PATCH", "/api/v2/users/"+h.people["ADMIN"].ID, []byte(`{"name":"Ann <Lee>"}`))
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	b := h.browserOf(t, "ADMIN")
	b.submit("/console/invitations/new", url.Values{"people": {"x@acme.example"}, "role": {"USER"}, "expiresInDays": {"7"}}, "1 invitation is on its way.")
	b.get("/console/audit?action=user.invite", http.StatusOK, `title="Ann &lt;Lee&gt;, admin@acme.example"><bdi>Ann &lt;Lee&gt;</bdi></a>`)
}

// The first steps name only what the person may do.
func TestFirstStepsOfRoles(t *testing.T) {
	h := newFixture(t)
	h.browserOf(t, "OWNER").get("/console", http.StatusOK, `id="step-owner"`)
	lacks(t, h.browserOf(t, "ADMIN").get("/console", http.StatusOK, `id="step-factor"`), "step-owner")
}
