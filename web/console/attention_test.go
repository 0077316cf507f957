package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// The overview says that nothing is wrong, then what is, with the page to act on; and each person sees only what
// they may act on.
func TestAttention(t *testing.T) {
	h := newFixture(t)
	makeRole(t, h, "READER", "", "user.read")
	setRole(t, h, "USER", "READER")
	owner, reader := h.browserOf(t, "OWNER"), h.browserOf(t, "USER")
	owner.get("/console?lang=en", http.StatusOK, "Nothing needs attention.")
	owner.get("/console?lang=de", http.StatusOK, "Nichts braucht Aufmerksamkeit.")
	for _, name := range []string{"Far", "Near", "Nearer", "Nearest", "Tomorrow"} {
		makeKey(t, h, map[string]any{"name": name, "expiresInDays": map[string]int{"Far": 60, "Near": 9, "Nearer": 8, "Nearest": 7, "Tomorrow": 1}[name]})
	}
	page := owner.get("/console?lang=en", http.StatusOK, "The API key Tomorrow ends on", "The API key Nearer ends on", "1 more", `href="/console/keys?sort=expiresAt&amp;status=active"`)
	lacks(t, page, "The API key Near ends", "The API key Far ends", "Nothing needs attention")

	endpoint := newReceiver(t)
	endpoint.status.Store(http.StatusInternalServerError)
	made := owner.post("/console/webhooks/new", url.Values{"url": {endpoint.URL}, "events": {"user.*"}}, http.StatusOK)
	path := "/console/webhooks/" + owner.findOn(hookLink, made[strings.Index(made, "<main"):])
	person := "/console/people/" + h.people["USER"].ID
	owner.submit(person+"/name", url.Values{"name": {"Uma"}, "version": {owner.version(owner.get(person, http.StatusOK))}})
	page = owner.waitFor("/console?lang=en", "has taken no event since")
	if !strings.Contains(page, `href="`+path+`" aria-label="Open webhook: `) || !strings.Contains(page, `Last failure: <strong class="bad">500</strong>`) {
		t.Errorf("the webhook's row lacks its page or its last failure:\n%s", page)
	}
	if strings.Index(page, "has taken no event") > strings.Index(page, "The API key Tomorrow") {
		t.Error("what is grave isn't first")
	}
	owner.get(path, http.StatusOK, ">1 error answer<")
	owner.get("/console/webhooks", http.StatusOK, `aria-label="The last 24 hours: 1 error answer"`)
	lacks(t, reader.get("/console?lang=en", http.StatusOK), `class="attention"`, "ends on", "has taken no event")
	lacks(t, h.browserOf(t, "VIEWER").get("/console?lang=en", http.StatusOK), `class="attention"`)
}
