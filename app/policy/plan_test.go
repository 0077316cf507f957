package policy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/decisionlog"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/store"
)

// changedCells returns the cells of a plan's matrix that change, each in short.
func changedCells(plan policy.Plan) (all []string) {
	for _, c := range plan.Matrix {
		if c.Was != c.Would {
			all = append(all, fmt.Sprintf("%s %s %s>%s", c.Role, c.Action, c.Was, c.Would))
		}
	}
	return all
}

func planned(f *apptest.Fixture, by doorward.Caller, text string, hours int) policy.Plan {
	f.Helper()
	plan, err := f.Node(0).Policies.Plan(f.Context(), by, policy.Draft{Text: text}, hours)
	f.NoError(err)
	return plan
}

// flushDecisions writes the decisions and counts that the nodes hold in memory.
func flushDecisions(f *apptest.Fixture) {
	f.Helper()
	for n := range f.Nodes {
		f.NoError(f.Node(n).Access.Decisions().Flush(f.Context()))
	}
}

// nearlyOver is a context of a request that has hardly any time left.
type nearlyOver struct{ context.Context }

func (nearlyOver) Deadline() (time.Time, bool) { return time.Now(), true }

// A plan compares a text with the one that refuses now: for each role, and for the decisions
// that were made on any node. It writes nothing.
func TestPlan(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		admin, bob, vic := f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleViewer)
		_, neighbour := f.Tenant()
		put(f, 0, neighbour.Caller, policy.Draft{Text: noMessages})
		maySend(f, 0, neighbour, "")
		put(f, 0, owner.Caller, policy.Draft{Text: noMessages})
		for n := range f.Nodes {
			maySend(f, n, bob, "192.0.2.7")
			maySend(f, n, vic, "192.0.2.7")
		}
		higher := doorward.Object{Type: "user", ID: owner.User.ID, TenantID: owner.User.TenantID, Held: doorward.RoleOwner}
		if f.Node(0).Access.Require(f.Context(), admin.Caller, doorward.UserManage, higher) == nil {
			t.Error("an ADMIN may change an OWNER")
		}
		flushDecisions(f)
		before := f.RowsWithoutNodes()
		// All refusals are kept, and at random a permit.
		kept := decisionsSince(f, owner.User.TenantID, clock.Now().Add(-time.Hour))
		if refused := countRefused(kept); refused != 5 {
			t.Fatalf("%d refusals are kept: %+v", refused, kept)
		}

		plan := planned(f, owner.Caller, fromInside, 1)
		if want := []string{"USER message.send refused>conditional", "ADMIN message.send refused>conditional", "OWNER message.send refused>conditional"}; !slices.Equal(changedCells(plan), want) {
			t.Errorf("the matrix has %q", changedCells(plan))
		}
		if plan.Checked != len(kept) || len(plan.Changed) != 2 { // refusals by the role or the rank don't change
			t.Fatalf("of %d decisions %d change: %+v", plan.Checked, len(plan.Changed), plan.Changed)
		}
		want := policy.Change{
			ActorType: doorward.ByUser, ActorID: bob.User.ID, ActorEmail: bob.User.Email, Action: doorward.MessageSend,
			Was: policy.Refused, Would: policy.Allowed, Because: []policy.Cause{{Kind: policy.ByRole, ID: "USER"}},
		}
		for _, got := range plan.Changed {
			if got.At = (time.Time{}); !cmp.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		}
		if got := planned(f, owner.Caller, noMessages, policy.PlanHoursMax); got.Checked != len(kept) || len(got.Changed) != 0 || changedCells(got) != nil {
			t.Errorf("the same text changes %+v, %q", got.Changed, changedCells(got))
		}
		late, err := f.Node(0).Policies.Plan(nearlyOver{f.Context()}, owner.Caller, policy.Draft{Text: noMessages}, 1)
		if err != nil || late.Checked != 0 || len(late.Matrix) == 0 {
			t.Errorf("without time for decisions %d are checked, with %d cells: %v", late.Checked, len(late.Matrix), err)
		}
		clock.Move(2 * time.Hour)
		if got := planned(f, owner.Caller, forbidAll, 1); got.Checked != 0 {
			t.Errorf("%d decisions of the last hour", got.Checked)
		}
		if after := f.RowsWithoutNodes(); !slices.Equal(before, after) {
			t.Error(cmp.Diff(before, after))
		}
		for _, hours := range []int{-1, 0, 169} {
			if _, err := f.Node(0).Policies.Plan(f.Context(), owner.Caller, policy.Draft{Text: ""}, hours); apptest.Code(err) != doorward.CodeValidationFailed {
				t.Errorf("%d hours: %v", hours, err)
			}
		}
		if _, err := f.Node(0).Policies.Plan(f.Context(), owner.Caller, policy.Draft{Text: "forbid("}, 1); apptest.Code(err) != doorward.CodeValidationFailed {
			t.Errorf("a text with faults: %v", err)
		}
	})
}

// A plan names people by their address only for who may read people.
func TestPlanShowsNoAddresses(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		_, err := f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: "REVIEWER", Permissions: []string{"policy.read"}})
		f.NoError(err)
		owner.Caller.Principal, err = f.Node(0).Sessions.Check(f.Context(), owner.Token)
		f.NoError(err)
		reviewer := f.Join(owner, "REVIEWER")
		put(f, 0, owner.Caller, policy.Draft{Text: noMessages})
		maySend(f, 0, bob, "192.0.2.7")
		flushDecisions(f)
		for _, test := range []struct {
			by    doorward.Caller
			email string
		}{{owner.Caller, bob.User.Email}, {reviewer.Caller, ""}} {
			got := planned(f, test.by, "", 1).Changed
			if len(got) != 1 || got[0].ActorID != bob.User.ID || got[0].ActorEmail != test.email {
				t.Errorf("a %s gets %+v, want the address %q", test.by.Role, got, test.email)
			}
		}
	})
}

// Each cell of the matrix is the result of a check for everybody with the role, or conditional
// if the results differ.
func TestPlanMatrix(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		for _, c := range []struct{ text, want string }{
			{`@id("a") forbid(principal in Role::"USER", action == Action::"message.send", resource);`, "USER refused"},
			{`@id("a") forbid(principal is User, action == Action::"message.send", resource) when { principal.role == "ADMIN" };`, "ADMIN conditional"}, // not its keys
			{`@id("a") forbid(principal is Key, action == Action::"message.send", resource);`, "USER conditional, ADMIN conditional"},
			{`@id("a") forbid(principal, action == Action::"message.send", resource) when { context.kind == "key" };`, "USER conditional, ADMIN conditional, OWNER conditional"},
			{`@id("a") forbid(principal is User, action == Action::"message.send", resource) when { principal.email == "x@acme.example" };`, "USER conditional, ADMIN conditional, OWNER conditional"},
			{`@id("a") forbid(principal, action == Action::"message.send", resource) when { resource in Tenant::"x" };`, "USER conditional, ADMIN conditional, OWNER conditional"},
			{`@id("a") forbid(principal, action == Action::"policy.read", resource);`, "ADMIN refused"}, // of an OWNER it refuses nothing
			{`@id("a") forbid(principal, action == Action::"message.send", resource) when { 1 > 2 };`, ""},
		} {
			var got []string
			for _, cell := range planned(f, owner.Caller, c.text, 1).Matrix {
				if cell.Was != cell.Would && (cell.Action == doorward.MessageSend || cell.Action == doorward.PolicyRead) {
					got = append(got, fmt.Sprintf("%s %s", cell.Role, cell.Would))
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("%s\n would be %q, want %q", c.text, text, c.want)
			}
		}
	})
}

// Decisions under random policies, for users and keys, are decided again from their records
// with the same result, policy, reason and line.
func TestReplayIsIdentical(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		const rounds = 5
		ctx, r := f.Context(), rand.New(rand.NewPCG(3, uint64(time.Now().UnixNano())))
		tenant, owner := f.Tenant()
		people := []apptest.Person{owner, f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleViewer)}
		f.Enrol(&people[1]) // which raises the session to level 2
		_, key, err := f.Node(0).APIKeys.Create(ctx, owner.Caller, apikey.Draft{Name: "sync", Role: "ADMIN", Permissions: []string{"tenant.read", "user.read"}})
		f.NoError(err)
		const model = "actions: {doc.sign: {roles: [OWNER]}}\npolicies: |\n  permit (principal in Role::\"USER\", action, resource) when { context.ip.isLoopback() };\n" +
			"  @id(\"far\") forbid (principal, action, resource) when { context has path && context.path like \"/b*\" };\n"
		const force = false
		_, err = f.Node(0).Models.Apply(ctx, apptest.Operator, model, nil, force)
		f.NoError(err)
		pick := func(from ...string) string { return from[r.IntN(len(from))] }
		allowed, refused := 0, 0
		for range rounds {
			var text string
			for i := 0; i < 6; {
				one := fmt.Sprintf("@id(\"p%d\") @reason(%q) forbid(principal %s, action %s, resource) %s;\n", i, pick("", "No."),
					pick("", "is User", "is Key", `in Role::"USER"`), pick(`== Action::"doc.sign"`, `== Action::"tenant.read"`, `in [Action::"doc.sign", Action::"user.read"]`),
					pick(`when { context.ip.isLoopback() }`, `unless { context.ip.isInRange(ip("192.0.2.0/24")) }`, `when { context has authAge && context.authAge > 60 }`,
						`when { context.aal == 2 }`, `when { context.path like "/a*" }`, `when { context.kind == "key" }`, `when { principal has email && principal.email like "*a*" }`,
						`when { principal has owner && principal.owner == User::"`+owner.User.ID+`" }`, `when { context.now > datetime("2026-01-01") }`, `when { resource in Tenant::"`+tenant.ID+`" }`))
				if f.Node(0).Policies.Check(ctx, one) == nil { // not every condition is valid for every scope
					text, i = text+one, i+1
				}
			}
			version := put(f, 0, owner.Caller, policy.Draft{Text: text})
			clock.Move(2 * time.Second) // a node keeps a limited number of decisions in a second
			began := clock.Now()
			for n := range 6000 {
				by := principalOf(f, n%2, people, key.Reveal(), r.IntN(len(people)+1))
				req := (&doorward.Caller{Principal: by, IP: pick("192.0.2.7", "127.0.0.1", "::1", "")}).RequestAt(clock.Now())
				req.Path, req.Method = pick("", "/a/b", "/b"), pick("", "GET")
				f.Node(n%2).Access.Check(&by, doorward.Action(pick("doc.sign", "tenant.read", "user.read", "user.invite")), req)
				if n%200 == 0 {
					clock.Move(time.Second)
					flushDecisions(f)
				}
			}
			flushDecisions(f)
			current, err := f.DB.Read().Rules(ctx, tenant.ID)
			f.NoError(err)
			trial, err := rules.Try(version.PolicyVersion, model)
			f.NoError(err)
			for _, k := range decisionsSince(f, tenant.ID, began) {
				d := decisionlog.Replay(&k, current, trial)
				if d.Allowed != k.Allowed || !cmp.Equal(d.Policy(), k.Refusal) {
					t.Errorf("%s\n%+v is decided again as %t by %+v", text, k, d.Allowed, d.Policy())
				}
				if d.Allowed {
					allowed++
				} else {
					refused++
				}
			}
		}
		if allowed < 1 || refused < 500 {
			t.Errorf("in %d rounds only %d decisions allow and %d refuse", rounds, allowed, refused)
		}
	})
}

// principalOf returns the i-th of the people as a principal, or the key if there are only i.
func principalOf(f *apptest.Fixture, node int, people []apptest.Person, key string, i int) doorward.Principal {
	f.Helper()
	if i < len(people) {
		p, err := f.Node(node).Sessions.Check(f.Context(), people[i].Token)
		f.NoError(err)
		return p
	}
	c, err := f.Node(node).APIKeys.Check(f.Context(), apptest.Anonymous(1), key)
	f.NoError(err)
	return c.Principal
}

func countRefused(all []store.KeptDecision) (n int) {
	for _, k := range all {
		if !k.Allowed {
			n++
		}
	}
	return n
}

func decisionsSince(f *apptest.Fixture, tenantID string, at time.Time) (all []store.KeptDecision) {
	f.Helper()
	before := doorward.Position{At: at.Add(24 * time.Hour).UnixMicro()}
	for {
		batch, err := f.DB.Read().Decisions(f.Context(), tenantID, at, before, 100)
		f.NoError(err)
		if all = append(all, batch...); len(batch) < 100 {
			return all
		}
		last := batch[len(batch)-1]
		before = doorward.Position{At: last.At.UnixMicro(), ID: last.ID}
	}
}
