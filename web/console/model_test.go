package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

// applyModel replaces the platform's model.
func applyModel(t *testing.T, h fixture, text string) {
	t.Helper()
	const force = false
	if _, err := h.Node.App.Models.Apply(t.Context(), doorward.OperatorAtTerminal(), text, nil, force); err != nil {
		t.Fatal(err)
	}
}

// No page says a word of the built-in model when another one is in force.
func TestPagesOfAnotherModel(t *testing.T) {
	h := newFixture(t)
	applyModel(t, h, invoiceModel)
	b := h.browserOf(t, "OWNER")
	key := "/console/keys/" + makeKey(t, h, map[string]any{"permissions": []string{"invoice.read"}})
	role := "/console/roles/" + makeRole(t, h, "READER", "", "invoice.read")
	person := "/console/people/" + h.people["USER"].ID
	invitation := "/console/invitations/" + makeInvitation(t, h)
	putPolicy(t, h, "// none\n")
	for _, path := range []string{
		"/console", "/console/people", person, person + "/role?role=VIEWER", person + "/role?role=ADMIN", person + "/suspend", person + "/remove", person + "/sign-out",
		"/console/invitations", "/console/invitations/new", invitation,
		"/console/roles", "/console/roles/new", role, role + "/edit", role + "/delete", "/console/roles/rol_owner", "/console/roles/rol_admin", "/console/roles/rol_user", "/console/roles/rol_viewer",
		"/console/keys", "/console/keys/new", "/console/keys/new?role=ADMIN", key, key + "/revoke", key + "?action=invoice.read",
		"/console/policy", "/console/policy/versions", "/console/policy/versions/1", "/console/policy/versions/1/restore",
		"/console/explain", "/console/explain?who=user@acme.example&action=invoice.read", "/console/explain?who=user@acme.example&action=message.none",
		"/console/webhooks", "/console/webhooks/new", "/console/audit", "/console/settings", "/console/close",
	} {
		for _, language := range ui.Languages {
			separator := "?"
			if strings.Contains(path, "?") {
				separator = "&"
			}
			page := strings.ReplaceAll(uitest.Text(b.get(path+separator+"lang="+language.Tag, http.StatusOK)), "message.none", "")
			if found := uitest.BuiltInWords.FindString(page); found != "" {
				t.Errorf("%s in %s says %q", path, language.Tag, found)
			}
		}
	}
}

const invoiceModel = `actions:
  invoice.read: {roles: [OWNER, ADMIN, USER], about: "See <all> invoices"}
  invoice.pay: {roles: [OWNER, ADMIN]}
  invoice.sign: {roles: [OWNER, ADMIN, USER], keys: false}
`

// The platform's own actions are shown wherever permissions are, as its model describes
// them.
func TestActionsOfModel(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "OWNER")
	applyModel(t, h, invoiceModel)
	page := b.get("/console/keys/new?role=ADMIN", http.StatusOK, "See &lt;all&gt; invoices", `value="invoice.read"`, `value="invoice.pay"`)
	lacks(t, page, `value="message.send"`, `value="invoice.sign"`)
	lacks(t, b.get("/console/keys/new?role=USER", http.StatusOK, `value="invoice.read"`), `value="invoice.pay"`)
	key := "/console/keys/" + makeKey(t, h, map[string]any{"permissions": []string{"invoice.read"}})
	b.get(key+"?action=invoice.read", http.StatusOK, "It would pass.")
	b.get(key+"?action=invoice.pay", http.StatusOK, "was not given this permission")
	b.get("/console/people/"+h.people["VIEWER"].ID+"/role?role=ADMIN", http.StatusOK, "See &lt;all&gt; invoices", "invoice.pay")
}

// A key that is edited while the model lacks a permission keeps it.
func TestKeyKeepsPermissionsThatTheModelLacks(t *testing.T) {
	h := newFixture(t)
	b := h.browserOf(t, "OWNER")
	applyModel(t, h, invoiceModel)
	path := "/console/keys/" + makeKey(t, h, map[string]any{"permissions": []string{"invoice.read", "user.read"}})
	applyModel(t, h, "actions: {}")
	page := b.get(path+"?tab=settings", http.StatusOK, `value="user.read" checked`)
	lacks(t, page, `value="invoice.read"`)
	b.submit(path+"/edit?tab=settings", url.Values{"name": {"Shop 2"}, "permissions": {"user.read"}, "version": {b.version(page)}}, "The key is saved", "Shop 2")
	applyModel(t, h, invoiceModel)
	page = b.get(path+"?tab=settings", http.StatusOK, `value="invoice.read" checked`)
	if !strings.Contains(page, "Shop 2") {
		t.Error("the name isn't saved")
	}
	b.get(path+"?action=invoice.read", http.StatusOK, "It would pass.")
}
