package rules

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/store"
)

func rulesOf(t testing.TB, text string) *doorward.Rules {
	t.Helper()
	var c Compiler
	r, err := c.Compile(store.RulesSource{Version: doorward.RulesVersion{Model: 1}, Model: text})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// If the policies or entities of a stored model can't be read, it is unknown what they refuse.
// So nobody may perform the platform's actions; Doorward's own still work.
func TestUnreadablePoliciesGrantNothing(t *testing.T) {
	for _, more := range []string{
		"policies: |\n  forbid(principal, action, resource) whenever { true };",
		"policies: |\n  permit(principal, action, resource);\n  forbid(principal, action == Action::\"gone\", resource);",
		"policies: |\n  forbid(principal in team::\"x\", action, resource);",
		"policies: [forbid]",
		"entities: [{uid: {type: invoice, id: a}, attrs: {amount: many}}]",
		"entities: [{uid: {type: a, id: b}, sealed: true}]",
		"entities: {}",
	} {
		r := rulesOf(t, invoices+more)
		u := doorward.User{ID: "usr_1", Role: doorward.RoleOwner, Status: doorward.UserActive, Rules: r}
		if p := doorward.PrincipalOf(u, doorward.Session{}); p.Policy != nil || r.Model().IsPermission("invoice.read") || !r.Model().IsPermission(doorward.UserInvite) {
			t.Errorf("%s: the model has the actions %v", more, r.Grant(doorward.RoleOwner).Actions)
		}
	}
	if r := rulesOf(t, invoices+"entities: [{uid: {type: invoice, id: a}, attrs: {amount: 1}}]"); !r.Model().IsPermission("invoice.read") || len(r.Declared("invoice")) != 1 {
		t.Error("a model without a fault has lost its actions or entities")
	}
}

// Without policies and entities a principal carries no policy.
func TestNoPolicyWithoutText(t *testing.T) {
	u := doorward.User{ID: "usr_1", Role: doorward.RoleOwner, Status: doorward.UserActive, Rules: rulesOf(t, invoices)}
	if p := doorward.PrincipalOf(u, doorward.Session{}); p.Policy != nil {
		t.Errorf("the policy is %+v", p.Policy)
	}
}

// A model that is accepted compiles, also as a stored one, and its policies can be evaluated.
func FuzzModel(f *testing.F) {
	certification, err := os.ReadFile("../../examples/authzen/certification.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		string(certification), invoices, invoices + "policies: |\n  permit(principal, action, resource) when { resource.amount > context.action.x };\n",
		"actions: {a: {roles: [OWNER]}}\npolicies: 'forbid(principal in user::\"a\", action, resource) unless { principal.x.y == [1, \"b\"] };'\nentities: [{uid: {type: user, id: a}, attrs: {x: {y: [1, b]}}, parents: [{type: user, id: b}], tags: {t: 1}}]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := modelfile.Read([]byte(text))
		if err != nil || Check(file) != nil {
			return
		}
		r := rulesOf(t, text)
		principals := []doorward.Principal{doorward.PrincipalOf(doorward.User{ID: "usr_1", Role: doorward.RoleUser, Status: doorward.UserActive, Rules: r}, doorward.Session{})}
		for _, id := range r.Declared(modelfile.TypeUser) {
			p, found := doorward.PrincipalOfDeclared(r, id, map[string]any{"x": 1.5, "y": nil})
			if !found || strings.HasPrefix(id, "usr_") {
				t.Errorf("the user %q was found: %v", id, found)
			}
			principals = append(principals, p)
		}
		for _, a := range file.Actions {
			v, ok := r.Model().Lookup(doorward.Action(a.Name))
			if !ok || !v.Platform {
				t.Errorf("there is no action %q", a.Name)
			}
			asked := &doorward.Request{Now: time.Unix(0, 0), Properties: &doorward.Properties{Action: map[string]any{"x": true}}}
			if a.Resource != "" {
				asked.Resource = &doorward.Resource{Type: a.Resource, ID: "a", Attributes: map[string]any{"x": "y"}}
			}
			for _, p := range principals {
				if p.Policy != nil {
					p.Policy.Permit(v.Action, asked)
					p.Policy.Refusal(v.Action, asked)
				}
			}
		}
	})
}
