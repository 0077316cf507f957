package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward"
)

// applyModel replaces the platform's model.
func applyModel(t *testing.T, h fixture, text string) {
	t.Helper()
	const force = false
	if _, err := h.Node.App.Models.Apply(t.Context(), doorward.OperatorAtTerminal(), text, nil, force); err != nil {
		t.Fatal(err)
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
	lacks(t, page, "message.send", "invoice.sign")
	lacks(t, b.get("/console/keys/new?role=USER", http.StatusOK, `value="invoice.read"`), "invoice.pay")
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
	page := b.get(path, http.StatusOK, "invoice.read", `value="user.read" checked`)
	lacks(t, page, `value="invoice.read"`)
	b.submit(path+"/edit", url.Values{"name": {"Shop 2"}, "permissions": {"user.read"}, "version": {b.version(page)}}, "The key is saved", "Shop 2")
	applyModel(t, h, invoiceModel)
	page = b.get(path, http.StatusOK, `value="invoice.read" checked`)
	if !strings.Contains(page, "Shop 2") {
		t.Error("the name isn't saved")
	}
	b.get(path+"?action=invoice.read", http.StatusOK, "It would pass.")
}
