package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
)

// Before a demand for second factors is saved, a page says whom it concerns: people in the
// chosen roles. Nothing is saved yet. A change that concerns nobody new is saved at once.
func TestDemandIsPreviewed(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	acme.Join("ann@acme.example", "USER")
	acme.Join("vera@acme.example", "VIEWER")
	owner := open(t, s, acme.Owner)
	form := url.Values{
		"mfa": {"required"}, "mfaRoles": {"USER"}, "mfaGraceDays": {"7"}, "mfaRememberDays": {"0"}, "stepUpMinutes": {"10"},
	}
	send := func(status int, words ...string) string {
		t.Helper()
		return owner.post("/console/settings?tab=factors", form, status, words...)
	}
	isDemanded := func() bool {
		_, body := acme.Owner.Get("/api/v2/tenant")
		return strings.Contains(string(body), `"mfa":"required"`)
	}
	page := send(http.StatusOK, "Demand a second factor?", "1 member that this covers", "User: 1", "ann@acme.example", "without one until", "People who join later have 7 days.", "1 session without a second factor ends then", `name="mfaGraceDays" value="7"`)
	if strings.Contains(page, "vera@") || isDemanded() {
		t.Error("the page shows others, or has saved the demand")
	}
	form.Set("mfaGraceDays", "0")
	send(http.StatusOK, "no days of grace", "when they first sign in", "1 session without a second factor ends at once")
	form.Set("confirmed", "1")
	send(http.StatusSeeOther)
	if !isDemanded() {
		t.Error("the demand is not saved")
	}
	form.Del("confirmed")
	send(http.StatusSeeOther) // the same again
	form.Add("mfaRoles", "VIEWER")
	send(http.StatusOK, "2 members that this covers", "Viewer: 1")
}

// Administrators see who has no second factor, list them, and reset factors on a page that
// says what comes of it.
func TestFactorsOfPeople(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	ann := acme.Join("ann@acme.example", "USER")
	owner := open(t, s, acme.Owner)
	owner.get("/console/people", http.StatusOK, "No second factor", `name="factor"`)
	owner.get("/console/people?factor=none", http.StatusOK, "ann@acme.example")
	if strings.Contains(owner.get("/console/people?factor=any", http.StatusOK), "ann@acme.example") {
		t.Error("ann has no factor")
	}
	if page := open(t, s, ann).get("/console/people", http.StatusOK); strings.Contains(page, "No second factor") || strings.Contains(page, `name="factor"`) {
		t.Error("everybody sees who has no factor")
	}
	path := "/console/people/" + ann.ID
	if page := owner.get(path+"?tab=security", http.StatusOK, "No second factor."); strings.Contains(page, path+"/reset-factors") {
		t.Error("a reset is offered without anything to reset")
	}
	owner.get(path+"/reset-factors", http.StatusOK, "Reset second factors?", "1 session ends", "valid for 24 hours")
	owner.post(path+"/reset-factors", url.Values{}, http.StatusSeeOther)
	s.Code(ann.Email)
	owner.get(path+"?tab=security", http.StatusOK, `<p class="notice warn">This organisation has asked for a reset. That holds until`, "now has to enter the code")
	owner.get("/console/people/"+acme.Owner.ID+"/reset-factors", http.StatusNotFound)
}

// People whose days of grace run see it on the pages of the console and of their account; others
// aren't. A reader sees of which roles a factor is demanded.
func TestDemandIsShownToThoseConcerned(t *testing.T) {
	s := doorwardtest.Start(t)
	acme := s.Tenant("Acme")
	ann, vera := open(t, s, acme.Join("ann@acme.example", "USER")), open(t, s, acme.Join("vera@acme.example", "VIEWER"))
	const banner = "Acme asks for a second factor from you, from "
	lacks(t, ann.get("/console", http.StatusOK), banner)
	settings := `{"settings":{"mfa":"required","mfaRoles":["USER","ADMIN"],"mfaGraceDays":7}}`
	if status, answer := acme.Owner.Do("PATCH", "/api/v2/tenant", []byte(settings)); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	for _, path := range []string{"/console", "/console/people", "/console/nowhere", "/account", "/account/security"} {
		status := http.StatusOK
		if path == "/console/nowhere" {
			status = http.StatusNotFound
		}
		ann.get(path, status, banner, `href="/account/security#factors"`)
		if path != "/console/nowhere" {
			lacks(t, vera.get(path, http.StatusOK), banner)
		}
	}
	vera.get("/console/settings", http.StatusOK, "Members with these roles need a second factor:", "<bdi>Administrator</bdi>, <bdi>User</bdi>")
	if status, answer := acme.Owner.Do("PATCH", "/api/v2/tenant", []byte(`{"settings":{"mfaRoles":[]}}`)); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	vera.get("/console/settings", http.StatusOK, "All members need a second factor", banner)
}
