package model_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/model"
	"github.com/doorward/doorward/app/modelfile"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

const (
	shared = "actions:\n  invoice.read: {roles: [OWNER, ADMIN, USER]}\n  invoice.approve: {roles: [OWNER, ADMIN]}\n"
	strict = "actions:\n  invoice.read: {roles: [OWNER, ADMIN]}\n"
)

// Values of the argument force of Apply.
const withForce, withoutForce = true, false

// check is what a test expects: whether a credential may perform an action.
type check struct {
	credential string // session or key
	action     doorward.Action
	allowed    bool
}

// credentials are a USER's session and a key of the role USER, which may read invoices
// and messages.
type credentials struct {
	f     *apptest.Fixture
	token secret.Token
	key   secret.Key
}

func (c credentials) want(ctx context.Context, checks ...check) {
	c.f.Helper()
	for _, node := range c.f.Nodes {
		session, err := node.Sessions.Check(ctx, c.token)
		c.f.NoError(err)
		key, err := node.APIKeys.Check(ctx, apptest.Anonymous(1), c.key.Reveal())
		c.f.NoError(err)
		for _, want := range checks {
			p := map[string]*doorward.Principal{"session": &session, "key": &key.Principal}[want.credential]
			if got := decide.May(p, &decide.Question{Action: want.action, On: p.Tenant(), ForService: true}).Allowed; got != want.allowed {
				c.f.Errorf("%s of the %s is allowed: %v, want %v", want.action, want.credential, got, want.allowed)
			}
		}
	}
}

// What a model grants and takes away holds on every node once Apply has returned, for
// credentials that all nodes have in memory.
func TestHoldsOnEveryNodeAtOnce(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		apply(f, 0, shared)
		_, key, err := f.Node(0).APIKeys.Create(ctx, caller(f, owner), apikey.Draft{Name: "sync", Permissions: []string{"invoice.read", "user.read"}, Days: nil})
		f.NoError(err)
		c := credentials{f, bob.Token, key}
		for n := range 3 {
			c.want(ctx, check{"session", "invoice.read", true}, check{"key", "invoice.read", true}, check{"session", "message.send", false}, check{"key", "user.read", true})
			apply(f, n, strict)
			c.want(ctx, check{"session", "invoice.read", false}, check{"key", "invoice.read", false}, check{"session", "user.read", true}, check{"key", "user.read", true})
			apply(f, n+1, "actions: {}")
			c.want(ctx, check{"session", "invoice.read", false}, check{"key", "invoice.read", false})
			apply(f, n+2, shared)
		}
		c.want(ctx, check{"key", "invoice.read", true}, check{"key", "invoice.approve", false}, check{"session", "invoice.approve", false})
	})
}

func apply(f *apptest.Fixture, node int, text string) model.Applied {
	f.Helper()
	a, err := f.Node(node).Models.Apply(f.Context(), apptest.Operator, text, nil, withoutForce)
	f.NoError(err)
	return a
}

// caller returns the person as a caller, with the session as it is now.
func caller(f *apptest.Fixture, p apptest.Person) doorward.Caller {
	f.Helper()
	current, err := f.Node(0).Sessions.Check(f.Context(), p.Token)
	f.NoError(err)
	p.Principal = current
	return p.Caller
}

const (
	// permitting lets a USER approve, and forbids keys to read invoices.
	permitting = shared + `
policies: |
  @id("users") permit(principal is User, action == Action::"invoice.approve", resource);
  @id("no-keys") @reason("Ask a person.") forbid(principal is Key, action == Action::"invoice.read", resource);
`
	// forbidding has neither of these policies, and forbids everybody to read invoices.
	forbidding = shared + `
policies: |
  @id("nobody") forbid(principal, action == Action::"invoice.read", resource);
`
)

// What the operator's policies permit and forbid holds on every node once Apply has
// returned, for credentials that all nodes have in memory.
func TestOperatorPoliciesHoldOnEveryNodeAtOnce(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		apply(f, 0, shared)
		_, key, err := f.Node(0).APIKeys.Create(ctx, caller(f, owner), apikey.Draft{Name: "sync", Permissions: []string{"invoice.read"}, Days: nil})
		f.NoError(err)
		c := credentials{f, bob.Token, key}
		c.want(ctx, check{"session", "invoice.read", true}, check{"session", "invoice.approve", false}, check{"key", "invoice.read", true})
		apply(f, 1, permitting)
		c.want(ctx, check{"session", "invoice.read", true}, check{"session", "invoice.approve", true}, check{"key", "invoice.read", false}, check{"key", "invoice.approve", false})
		apply(f, 2, forbidding)
		c.want(ctx, check{"session", "invoice.read", false}, check{"session", "invoice.approve", false}, check{"key", "invoice.read", false})
		apply(f, 0, shared)
		c.want(ctx, check{"session", "invoice.read", true}, check{"session", "invoice.approve", false}, check{"key", "invoice.read", true})
	})
}

func TestVersionsAreKept(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ctx, models := f.Context(), f.Node(0).Models
		builtIn, err := models.Current(ctx)
		f.NoError(err)
		if builtIn.Version != 0 || builtIn.Text == "" || !builtIn.CreatedAt.IsZero() {
			t.Errorf("without a model there is %+v", builtIn)
		}
		first, same, second := apply(f, 0, shared), apply(f, 1, shared), apply(f, 1, strict)
		if first.Model.Version != 1 || same.Model.Version != 1 || len(same.Changes) != 0 || second.Model.Version != 2 {
			t.Errorf("the versions are %d, %d, %d", first.Model.Version, same.Model.Version, second.Model.Version)
		}
		for number, want := range map[int64]string{0: builtIn.Text, 1: shared, 2: strict} {
			v, err := models.Version(ctx, number)
			if err != nil || v.Text != want || v.Version != number {
				t.Errorf("version %d is %+v, %v", number, v, err)
			}
		}
		events, err := storetest.Events(ctx, f.DB.Read(), "")
		f.NoError(err)
		var got []string
		for _, e := range events {
			if e.Action == doorward.ModelApply {
				got = append(got, fmt.Sprint(e.Changes))
			}
		}
		want := []string{
			"[{version 0 1} {actionsAdded  invoice.approve invoice.read} {actionsRemoved  billing.manage billing.read data.destroy message.read message.send report.read}]",
			"[{version 1 2} {actionsRemoved  invoice.approve} {actionsChanged  invoice.read}]",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if code := apptest.Code(apptest.ErrorOf(models.Version(ctx, 3))); code != doorward.CodeNotFound {
			t.Errorf("a version that isn't there: %s", code)
		}
	})
}

// Of several callers that apply a model to the same version at once, one succeeds. The others
// are refused, since they haven't seen the new version.
func TestOneOfSeveralApplies(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		errs := apptest.Concurrently(6, func(i int) error {
			_, err := f.Node(i).Models.Apply(f.Context(), apptest.Operator, shared+"# "+string(rune('a'+i))+"\n", []string{"0"}, withoutForce)
			return err
		})
		f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodePreconditionFailed: 5})
		current, err := f.Node(0).Models.Current(f.Context())
		if err != nil || current.Version != 1 {
			t.Errorf("the model is %+v, %v", current, err)
		}
	})
}

func TestRefusedModels(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		models := f.Node(0).Models
		for text, want := range map[string]doorward.Code{"": doorward.CodeValidationFailed, "actions: [": doorward.CodeValidationFailed, "actions: {user.x: {roles: [OWNER]}}": doorward.CodeValidationFailed} {
			if code := apptest.Code(apptest.ErrorOf(models.Apply(f.Context(), apptest.Operator, text, nil, withoutForce))); code != want {
				t.Errorf("%q: %s", text, code)
			}
		}
		if code := apptest.Code(apptest.ErrorOf(models.Apply(f.Context(), owner.Caller, shared, nil, withoutForce))); code != doorward.CodeForbidden {
			t.Errorf("an OWNER gets %q", code)
		}
		if n := f.CountRows("models"); n != 0 {
			t.Errorf("%d versions were written", n)
		}
	})
}

// Faults of policies and entities have their places in the file.
func TestFaultsOfPoliciesAndEntities(t *testing.T) {
	for text, want := range map[string]string{
		"policies: |\n  @id(\"a\")\n  permit(principal, action == Action::\"burn\", resource);":                   "5:39 unknown_action",
		"policies: \"permit(principal, action, resource)\"":                                                       "3:11 syntax",
		"policies: |\n  permit(principal, action == Action::\"user.invite\", resource);":                          "4:39 unknown_action",
		"policies: |\n  permit(principal in team::\"a\", action, resource);\nentities: [{uid: {type: b, id: a}}]": "4:23 type",
		"resources: {bill: {sum: long}}\nentities:\n  - uid: {type: bill, id: a}\n    attrs: {sum: many}":         "5:5 type",
		"policies: |\n  permit(principal, action, resource) when { " + strings.Repeat("(", 1000) + " };":          "4:77 too_deep",
	} {
		var refused *doorward.Error
		var got []string
		errors.As(model.Check(strict+text), &refused)
		for _, f := range refused.Fields {
			got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Code))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%.200s\nhas the faults %v, want %s", text, got, want)
		}
	}
}

func TestDiffNamesPoliciesAndEntities(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		f.Tenant()
		apply(f, 0, permitting+"entities: [{uid: {type: team, id: a}}, {uid: {type: team, id: b}, attrs: {x: 1, y: 2}}]")
		next := shared + `
policies: |
  @id("users") forbid (principal is User, action == Action::"invoice.approve", resource);
  @id("more") permit(principal, action, resource);
entities: [{uid: {type: team, id: b}, attrs: {y: 2, x: 1}}, {uid: {type: user, id: c}}]`
		want := []string{`policy "more"`, `policy "no-keys"`, `policy "users"`, `entity team::"a"`, `entity user::"c"`}
		plan, err := f.Node(0).Models.Diff(f.Context(), next)
		f.NoError(err)
		applied := apply(f, 0, next)
		var got []string
		for _, c := range plan.Parts {
			got = append(got, c.Kind+" "+c.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(plan.Parts, applied.Parts); diff != "" {
			t.Errorf("apply did something else: %s", diff)
		}
		if again, err := f.Node(0).Models.Diff(f.Context(), next); err != nil || len(again.Parts) > 0 {
			t.Errorf("the same text changes %+v, %v", again.Parts, err)
		}
	})
}

// A diff lists the roles and keys that would gain or lose actions, and changes nothing.
func TestDiffSaysWhoGainsAndLoses(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		acme, owner := f.Tenant()
		apply(f, 0, shared)
		_, err := f.DB.Write(ctx, func(tx *store.Tx) error {
			for _, r := range []doorward.CustomRole{
				{ID: "rol_1", Name: "APPROVER", Permissions: []doorward.Action{"invoice.approve", "invoice.read"}},
				{ID: "rol_2", Name: "READER", Permissions: []doorward.Action{"invoice.pay", "user.read"}},
				{ID: "rol_3", Name: "SAME", Permissions: []doorward.Action{"user.read"}},
			} {
				if _, err := tx.InsertCustomRole(ctx, acme.ID, r); err != nil {
					return err
				}
			}
			return nil
		})
		f.NoError(err)
		key, _, err := f.Node(0).APIKeys.Create(ctx, caller(f, owner), apikey.Draft{Name: "sync", Role: "ADMIN", Permissions: []string{"invoice.approve", "invoice.read"}})
		f.NoError(err)
		_, _, err = f.Node(0).APIKeys.Create(ctx, caller(f, owner), apikey.Draft{Name: "people", Permissions: []string{"user.read"}})
		f.NoError(err)

		next := "actions:\n  invoice.read: {roles: [OWNER, ADMIN]}\n  invoice.pay: {roles: [OWNER]}\n"
		plan, err := f.Node(1).Models.Diff(ctx, next)
		f.NoError(err)
		if names := namesOf(plan.Changes); plan.Base.Version != 1 || !slices.Equal(names, []string{"invoice.approve", "invoice.pay", "invoice.read"}) {
			t.Errorf("the actions %v change since version %d", names, plan.Base.Version)
		}
		want := []model.Holder{
			{TenantID: acme.ID, ID: "rol_1", Name: "APPROVER", Loses: []doorward.Action{"invoice.approve"}, Rank: doorward.RoleAdmin, NewRank: doorward.RoleAdmin},
			{TenantID: acme.ID, ID: "rol_2", Name: "READER", Gains: []doorward.Action{"invoice.pay"}, Rank: doorward.RoleViewer, NewRank: doorward.RoleOwner},
		}
		if diff := cmp.Diff(want, plan.Roles); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]model.Holder{{TenantID: acme.ID, ID: key.ID, Name: "sync", Loses: []doorward.Action{"invoice.approve"}}}, plan.Keys); diff != "" {
			t.Error(diff)
		}
		plan, err = f.Node(1).Models.Diff(ctx, strings.Replace(shared, "[OWNER, ADMIN]}", "[OWNER, ADMIN], keys: false}", 1))
		if f.NoError(err); len(plan.Keys) != 1 || plan.Keys[0].ID != key.ID || len(plan.Keys[0].Loses) != 1 {
			t.Errorf("with keys: false the keys lose %+v", plan.Keys)
		}
		if current, err := f.Node(0).Models.Current(ctx); err != nil || current.Version != 1 {
			t.Errorf("after a diff the model is %+v, %v", current, err)
		}
	})
}

func namesOf(changes []modelfile.Change) (names []string) {
	for _, c := range changes {
		names = append(names, c.Name)
	}
	return names
}

// The text of version 0 is the built-in model, so that a new model can start from it.
func TestBuiltInText(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		builtIn, err := f.Node(0).Models.Current(f.Context())
		f.NoError(err)
		apply(f, 0, builtIn.Text+"# applied\n")
		current, err := f.DB.Read().Rules(f.Context(), "")
		f.NoError(err)
		var got, want []doorward.Verb
		for _, v := range current.Model().Verbs() {
			v.About = ""
			got = append(got, v)
		}
		want = append(want, doorward.Verbs()...)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(doorward.Verb{})); diff != "" {
			t.Error(diff)
		}
	})
}

// A model that takes away what policies name is refused with the list, and with force
// turns off these policies and no others.
func TestModelInUse(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		acme, owner := f.Tenant()
		apply(f, 0, shared)
		const policies = "@id(\"nobody\") forbid(principal, action == Action::\"invoice.approve\", resource);\n@id(\"readers\") forbid(principal, action == Action::\"invoice.read\", resource);\n"
		_, err := f.DB.Write(ctx, func(tx *store.Tx) error {
			return tx.InsertPolicy(ctx, store.PolicyVersion{TenantID: acme.ID, Version: 1, Text: policies, Mode: store.PolicyEnforces, CreatedAt: tx.Now, CreatedBy: owner.User.ID})
		})
		f.NoError(err)
		off := []model.BrokenPolicy{{TenantID: acme.ID, ID: "nobody"}}
		plan, err := f.Node(0).Models.Diff(ctx, strict)
		f.NoError(err)
		if diff := cmp.Diff(off, plan.Broken); diff != "" {
			t.Error(diff)
		}
		_, err = f.Node(0).Models.Apply(ctx, apptest.Operator, strict, nil, withoutForce)
		var refused *doorward.Error
		if !errors.As(err, &refused) || refused.Code != doorward.CodeModelInUse || len(refused.Fields) != 1 {
			t.Fatalf("got %v", err)
		}
		if current, err := f.Node(0).Models.Current(ctx); err != nil || current.Version != 1 {
			t.Errorf("the model is %+v, %v", current, err)
		}
		forced, err := f.Node(1).Models.Apply(ctx, apptest.Operator, strict, nil, withForce)
		f.NoError(err)
		if diff := cmp.Diff(off, forced.Broken); diff != "" {
			t.Error(diff)
		}
		p := caller(f, owner).Principal
		if d := decide.May(&p, &decide.Question{Action: "invoice.read", On: p.Tenant(), ForService: true}); d.Allowed {
			t.Error("the other policy no longer refuses")
		}
		apply(f, 0, "actions:\n  invoice.read: {roles: [OWNER, ADMIN, USER]}\n") // a policy that no longer applies doesn't keep another model from being applied
	})
}
