package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"testing"
)

var roleID = regexp.MustCompile(`rol_[a-z0-9]{20,}`)

// makeRole creates a role of the tenant and returns its id.
func makeRole(t *testing.T, h fixture, name, about string, permissions ...string) string {
	t.Helper()
	status, body := h.tenant.Owner.Post("/api/v2/roles", map[string]any{"name": name, "about": about, "permissions": permissions})
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	return roleID.FindString(string(body))
}

func setRole(t *testing.T, h fixture, who, role string) {
	t.Helper()
	if status, body := h.tenant.Owner.Do("PATCH", "/api/v2/users/"+h.people[who].ID, []byte(`{"role":"`+role+`"}`)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
}

// A role that the tenant has made is offered wherever a role is chosen, with what the
// tenant says about it.
func TestOwnRolesAreOffered(t *testing.T) {
	h := newFixture(t)
	makeRole(t, h, "READER", "Reads <only>", "message.read")
	makeRole(t, h, "PLAIN", "", "message.read")
	b := h.browserOf(t, "OWNER")
	b.get("/console/invitations/new", http.StatusOK, `value="READER"`, "Reads &lt;only&gt;", `value="PLAIN"`)
	person := "/console/people/" + h.people["VIEWER"].ID
	b.get(person+"/role?role=READER", http.StatusOK, `value="READER" checked`, "Reads &lt;only&gt;", `value="PLAIN"`)
	b.get("/console/people?role=READER", http.StatusOK, `<option value="READER" selected>READER</option>`)
	b.get("/console/keys/new?role=READER", http.StatusOK, "READER", `value="message.read"`)
}

// A role is created, shown, changed after a preview of the change, and deleted with another
// one in its place.
func TestRolesInTheConsole(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "OWNER")
	b.get("/console/roles", http.StatusOK, "Manages people, invitations and settings", ">Owner</bdi>", "Create a role")
	b.post("/console/roles/new", url.Values{"roleName": {"desk"}, "about": {"<b>"}, "permissions": {"user.read"}}, http.StatusUnprocessableEntity,
		"2 to 32 capital letters", "A name has", `value="user.read" checked`, "&lt;b&gt;")
	b.post("/console/roles/new", url.Values{"roleName": {"DESK"}}, http.StatusUnprocessableEntity, "Choose at least one", `value="DESK"`)
	page := b.submit("/console/roles/new", url.Values{"roleName": {"DESK"}, "about": {"The <desk>"}, "permissions": {"user.read", "message.read"}}, "The role is created", "The &lt;desk&gt;", "see who is in the organisation")
	path := "/console/roles/" + roleID.FindString(page)
	b.post("/console/roles/new", url.Values{"roleName": {"DESK"}, "permissions": {"user.read"}}, http.StatusUnprocessableEntity, "There is a role of this name")
	b.get(path+"?tab=members", http.StatusOK, "Nobody has it")
	setRole(t, h, "USER", "DESK")
	b.get(path+"?tab=members", http.StatusOK, `href="/console/people/`+h.people["USER"].ID+`"`, "user@acme.example")

	b.get(path, http.StatusOK, `<dd><a href="`+path+`?tab=members">1</a></dd>`, `Members <span class="soft">1</span>`)
	page = b.get(path+"/edit", http.StatusOK, `value="message.read" checked`, `value="DESK"`, `<h1 id="title"><bdi>DESK</bdi></h1>`, `href="`+path+`/edit" aria-current="page">Settings`)
	form := url.Values{"version": {b.version(page)}, "roleName": {"FRONT_DESK"}, "about": {""}, "permissions": {"message.read", "message.send"}}
	page = b.post(path+"/edit", form, http.StatusOK, "send messages.", "see who is in the organisation.", "1 person has it", "FRONT_DESK</bdi></strong>", "from <strong><bdi>Viewer</bdi></strong> to <strong><bdi>User</bdi></strong>", `name="permissions" value="message.send"`)
	lacks(t, page, "read messages", "You have this role")
	b.translate(page, path+"/edit", "de", "ändern?", "Nachrichten senden")
	b.get("/console/roles?lang=en", http.StatusOK, "DESK")
	lacks(t, b.get(path, http.StatusOK), "FRONT_DESK")
	page = b.submit(path+"/save", form, "The role is changed", "FRONT_DESK")
	lacks(t, page, "see who is in", "The &lt;desk&gt;")

	b.post(path+"/save", form, http.StatusPreconditionFailed, "Somebody else has changed this role", `value="message.send" checked`)
	b.post(path+"/edit", form, http.StatusPreconditionFailed, "Somebody else has changed this")
	form.Set("version", b.version(b.get(path+"/edit", http.StatusOK)))
	b.submit(path+"/edit", form, "Nothing is changed")

	key := makeKey(t, h, map[string]any{"role": "FRONT_DESK"})
	page = b.get(path+"/delete", http.StatusOK, "1 person has it", "1 API key has it", `value="VIEWER"`, "see reports")
	lacks(t, page, `value="OWNER"`, `value="FRONT_DESK"`)
	b.post(path+"/delete", url.Values{}, http.StatusConflict, "Choose the role that it gets")
	b.post(path+"/delete", url.Values{"replaceBy": {"OWNER"}}, http.StatusUnprocessableEntity, "can’t take its place")
	b.submit(path+"/delete", url.Values{"replaceBy": {"VIEWER"}}, "The role is deleted")
	b.get(path, http.StatusNotFound)
	b.get("/console/keys/"+key, http.StatusOK, ">Viewer<")
	b.opened("/console/audit", "en", "Role deleted", "<dt>Replaced by</dt>", "<dt>API keys</dt>")
	lacks(t, b.get("/console/roles/"+makeRole(t, h, "IDLE", "", "user.read")+"/delete", http.StatusOK, "Nothing has the role"), `name="replaceBy"`)
}

// A manager of roles can choose only permissions of their own role, and can't change roles
// that have more.
func TestRoleFormIsBounded(t *testing.T) {
	h := newFixture(t)
	makeRole(t, h, "MAKER", "", "role.manage", "user.read", "tenant.read", "message.read", "report.read")
	own := "/console/roles/" + makeRole(t, h, "READER", "", "message.read")
	higher := "/console/roles/" + makeRole(t, h, "SENDER", "", "message.send")
	setRole(t, h, "VIEWER", "MAKER")
	b := h.browserOf(t, "VIEWER")
	page := b.get("/console/roles/new", http.StatusOK, `value="message.read">`, `value="message.send" disabled>`, `value="tenant.destroy" disabled>`)
	lacks(t, page, `value="user.read" disabled`)
	b.post("/console/roles/new", url.Values{"roleName": {"MORE"}, "permissions": {"message.send"}}, http.StatusForbidden, "that you lack yourself")
	form := url.Values{"version": {b.version(b.get(own+"/edit", http.StatusOK))}, "roleName": {"READER"}, "permissions": {"message.read", "message.send"}}
	b.post(own+"/edit", form, http.StatusForbidden, "that you lack yourself")
	b.post(own+"/save", form, http.StatusForbidden, "that you lack yourself")
	lacks(t, b.get(higher, http.StatusOK, "Its rank is above yours"), "/edit", "/delete")
	for _, end := range []string{"/edit", "/save", "/delete"} {
		b.post(higher+end, form, http.StatusForbidden)
	}
	setRole(t, h, "USER", "READER")
	lacks(t, b.get(own+"/delete", http.StatusOK, `value="VIEWER"`), `value="USER"`, `value="ADMIN"`, `value="SENDER"`)
	b.post(own+"/delete", url.Values{"replaceBy": {"ADMIN"}}, http.StatusForbidden)
}

// The page of a role leads to the API keys that have it, for those who may see keys.
func TestKeysOfARole(t *testing.T) {
	h := newFixture(t)
	page := regexp.MustCompile(`href="/console/roles/([^"]+)"><bdi>User</bdi>`)
	b := h.browserOf(t, "OWNER")
	id := b.findOn(page, b.get("/console/roles", http.StatusOK))
	lacks(t, b.get("/console/roles/"+id, http.StatusOK, "<dt>API keys</dt><dd>0</dd>"), "/console/keys?")
	b.post("/console/keys/new", url.Values{"name": {"Shop"}, "role": {"USER"}, "permissions": {"message.send"}, "owner": {"owner@acme.example"}}, http.StatusOK, "it is shown only here")
	b.get("/console/roles/"+id, http.StatusOK, `<dd><a href="/console/keys?role=USER">1</a></dd>`)
	b.get("/console/keys?role=USER", http.StatusOK, "Shop", "Belongs to <bdi>owner@acme.example</bdi>")
}

// The page of a role shows who has it in pages; lists say which rows they show.
func TestHoldersArePaged(t *testing.T) {
	h := newFixture(t)
	id := makeRole(t, h, "READER", "", "message.read")
	for n := range 51 {
		h.tenant.Join(fmt.Sprintf("reader%d@acme.example", n), "READER")
	}
	b := h.browserOf(t, "OWNER")
	page := b.get("/console/roles/"+id+"?tab=members", http.StatusOK, "reader0@acme.example", "reader49@acme.example", `rel="next"`)
	lacks(t, page, "reader50@acme.example")
	next := regexp.MustCompile(`href="(\?cursor=[^"]+)" rel="next"`)
	people := b.get("/console/people", http.StatusOK, "1–50 of 55")
	last := b.get("/console/people"+b.findOn(next, people), http.StatusOK, "51–55 of 55")
	b.get("/console/people"+b.findOn(regexp.MustCompile(`href="([^"]+)" rel="prev"`), last), http.StatusOK, "1–50 of 55")
	b.get("/console/people?row=9", http.StatusOK, "1–50 of 55")
	b.get("/console/roles/"+id+b.findOn(next, page), http.StatusOK, "reader50@acme.example", `rel="prev"`)
}
