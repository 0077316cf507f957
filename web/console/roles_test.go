package console_test

import (
	"net/http"
	"testing"
)

// makeRole creates a role of the tenant that may read messages.
func makeRole(t *testing.T, h fixture, name, about string) {
	t.Helper()
	status, body := h.tenant.Owner.Post("/api/v2/roles", map[string]any{"name": name, "about": about, "permissions": []string{"message.read"}})
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
}

// A role that the tenant has made is offered wherever a role is chosen, with what the
// tenant says about it.
func TestOwnRolesAreOffered(t *testing.T) {
	h := build(t)
	makeRole(t, h, "READER", "Reads <only>")
	makeRole(t, h, "PLAIN", "")
	b := h.as(t, "OWNER")
	b.get("/console/people/invite", http.StatusOK, `value="READER"`, "Reads &lt;only&gt;", `value="PLAIN"`)
	person := "/console/people/" + h.people["VIEWER"].ID
	b.get(person, http.StatusOK, `value="READER"`, "Reads &lt;only&gt;", `value="PLAIN"`)
	b.get(person+"/role?role=READER", http.StatusOK, "READER")
	b.get("/console/people?role=READER", http.StatusOK, `<option value="READER" selected>READER</option>`)
	b.get("/console/keys/new?role=READER", http.StatusOK, "READER", `value="message.read"`)
}
