package rules

import (
	"slices"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/store"
)

const invoices = `
actions:
  invoice.read: {roles: [OWNER, ADMIN, USER], about: See invoices}
  invoice.approve: {roles: [OWNER], resource: invoice, stepUp: true, keys: false}
resources: {invoice: {amount: long}}
`

func TestCompilesModelAndRoles(t *testing.T) {
	var c Compiler
	source := store.RulesSource{
		Version: doorward.RulesVersion{Model: 7, Tenant: 3}, Model: invoices,
		Roles: []doorward.CustomRole{{Name: "CLERK", Permissions: []doorward.Action{"invoice.approve", doorward.MessageSend}}},
	}
	r, err := c.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != source.Version || !slices.Equal(r.Grant("CLERK").Actions, []doorward.Action{"invoice.approve"}) {
		t.Errorf("CLERK is %+v in %v", r.Grant("CLERK"), r.Version)
	}
	approve, _ := r.Model().Lookup("invoice.approve")
	read, _ := r.Model().Lookup("invoice.read")
	if approve.Resource != "invoice" || approve.Proof != doorward.ProofAlways || !approve.NoKeys || !approve.Platform || read.About != "See invoices" || read.NoKeys {
		t.Errorf("the actions are %+v and %+v", approve, read)
	}
	if r.Grant(doorward.RoleUser).Permissions.Allow(approve) || !r.Grant(doorward.RoleUser).Permissions.Allow(read) || r.Grant(doorward.RoleViewer).Permissions.Allow(read) {
		t.Error("the four roles don't grant what the model says")
	}
	source.Version.Tenant = 4
	again, err := c.Compile(source)
	if err != nil || again.Model() != r.Model() {
		t.Errorf("the tenants don't share the model: %v", err)
	}
	source.Version.Model, source.Model = 8, "actions: {}"
	if next, err := c.Compile(source); err != nil || next.Model().IsPermission("invoice.read") {
		t.Errorf("the next model has the actions of the last one: %v", err)
	}
	source.Version.Model, source.Model = 0, ""
	if none, err := c.Compile(source); err != nil || none.Model() != doorward.BuiltIn() {
		t.Errorf("without a model the rules don't have the built-in one: %v", err)
	}
}

// A model that can't be read is an error, not a model that grants less or more.
func TestUnreadableModelIsAnError(t *testing.T) {
	var c Compiler
	if r, err := c.Compile(store.RulesSource{Version: doorward.RulesVersion{Model: 1}, Model: "["}); err == nil {
		t.Errorf("compiled to %+v", r)
	}
}

// No action of a model can have the name of one of Doorward's own.
func TestOwnActionsAreReserved(t *testing.T) {
	for _, v := range doorward.BuiltIn().Verbs() {
		if modelfile.IsReserved(string(v.Action)) == v.Platform {
			t.Errorf("%s: platform %v, and the name is reserved: %v", v.Action, v.Platform, !v.Platform)
		}
	}
}
