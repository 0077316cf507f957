package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/rules"
	"github.com/doorward/doorward/store"
)

// effects returns who changes in a matrix, in short: the outcomes, and the policies that make them.
func effects(cells []policy.Cell, actions ...doorward.Action) (all []string) {
	short := func(who string, role doorward.Role, e *policy.Effect) {
		if e != nil && e.Changes {
			all = append(all, fmt.Sprintf("%s %s %s%s>%s%s", role, who, e.Was, ids(e.WasBecause), e.Would, ids(e.Because)))
		}
	}
	for i := range cells {
		if c := &cells[i]; slices.Contains(actions, c.Action) {
			short("users", c.Role, &c.Users)
			short("keys", c.Role, c.Keys)
		}
	}
	return all
}

func ids(c policy.Causes) (text string) {
	for _, one := range c.First {
		if one.Kind == policy.ByPolicy {
			text += fmt.Sprintf(" %s:%d", one.ID, one.Line)
		}
	}
	if c.Others > 0 {
		text += fmt.Sprint("+", c.Others)
	}
	return text
}

func forbids(id, principal, condition string) string {
	return fmt.Sprintf("@id(%q) forbid(%s, action == Action::\"message.send\", resource)%s;\n", id, principal, condition)
}

// Cells that change say for whom, and by which policy. Others, spaces, names and the order of the policies
// change nothing; another condition does, although the outcome has the same name.
func TestMatrixSaysWhy(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		hours, later := ` when { context.hour < 8 }`, ` when { context.hour < 9 }`
		inForce := ""
		for _, c := range []struct{ was, would, zone, want string }{
			{"", forbids("a", `principal in Role::"USER"`, ""), "", "USER users allowed>refused a:1, USER keys allowed>refused a:1"},
			{"", forbids("a", `principal is Key`, ""), "", "USER keys allowed>refused a:1, ADMIN keys allowed>refused a:1"},
			{"", forbids("a", `principal is User in Role::"USER"`, ` when { principal.email == "x@acme.example" }`), "", "USER users allowed>conditional a:1"},
			{"", forbids("a", `principal == User::"usr_x"`, ""), "", "USER users allowed>conditional a:1, ADMIN users allowed>conditional a:1, OWNER users allowed>conditional a:1"},
			{forbids("a", `principal in Role::"USER"`, hours), "\n" + forbids("b", `principal in Role::"USER"`, ""), "", "USER users conditional a:1>refused b:2, USER keys conditional a:1>refused b:2"},
			{forbids("a", `principal in Role::"OWNER"`, hours), forbids("a", `principal in Role::"OWNER"`, later), "", "OWNER users conditional a:1>conditional a:1"},
			{forbids("a", `principal in Role::"OWNER"`, hours), "// why\n" + forbids("b", `principal  in Role::"OWNER"`, "\n  when { context.hour   < 8 }"), "", ""},
			{forbids("a", `principal`, hours) + forbids("b", `principal`, later), forbids("b", `principal`, later) + forbids("a", `principal`, hours), "", ""},
			{forbids("a", `principal in Role::"OWNER"`, hours), forbids("a", `principal in Role::"OWNER"`, hours), "Asia/Tokyo", "OWNER users conditional a:1>conditional a:1"},
			{forbids("a", `principal in Role::"OWNER"`, ` when { context.ip.isLoopback() }`), forbids("a", `principal in Role::"OWNER"`, ` when { context.ip.isLoopback() }`), "Asia/Tokyo", ""},
			{
				strings.Join([]string{forbids("a", `principal in Role::"OWNER"`, ""), forbids("b", `principal in Role::"OWNER"`, ""), forbids("c", `principal in Role::"OWNER"`, ""), forbids("d", `principal in Role::"OWNER"`, ""), forbids("e", `principal in Role::"OWNER"`, ""), forbids("f", `principal in Role::"OWNER"`, ""), forbids("z", `principal in Role::"OWNER"`, hours)}, ""),
				"", "", "OWNER users refused a:1 b:2 c:3 d:4 e:5+1>allowed",
			},
		} {
			if c.was != inForce {
				put(f, 0, owner.Caller, policy.Draft{Text: c.was})
				inForce = c.was
			}
			plan, err := f.Node(0).Policies.Plan(f.Context(), owner.Caller, policy.Draft{Text: c.would, TimeZone: c.zone}, 1)
			f.NoError(err)
			if got := strings.Join(effects(plan.Matrix, doorward.MessageSend), ", "); got != c.want {
				t.Errorf("%s\n->%s\n%s, want\n%s", c.was, c.would, got, c.want)
			}
		}
	})
}

// What waits to be confirmed is compared with what returns without that, and a restored version with what
// refuses now. A version that observes changes nothing.
func TestMatrixOfVersions(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		toOwner := func(id string) string { return forbids(id, `principal in Role::"OWNER"`, "") }
		confirmMatrix := func() policy.Matrix {
			m, err := f.Node(0).Policies.ConfirmMatrix(f.Context(), owner.Caller)
			f.NoError(err)
			return m
		}
		want := func(what string, m policy.Matrix, was, would int64, effect string) {
			t.Helper()
			if got := strings.Join(effects(m.Cells, doorward.MessageSend), ", "); m.Was != was || m.Would != would || got != effect {
				t.Errorf("%s: %d>%d %q, want %d>%d %q", what, m.Was, m.Would, got, was, would, effect)
			}
		}
		put(f, 0, owner.Caller, policy.Draft{Text: toOwner("a")})
		want("nothing waits", confirmMatrix(), 0, 0, "")
		put(f, 0, owner.Caller, policy.Draft{Text: "", ConfirmMinutes: 5})
		want("an empty text waits", confirmMatrix(), 1, 2, "OWNER users refused a:1>allowed")
		put(f, 0, owner.Caller, policy.Draft{Text: toOwner("b"), Mode: policy.Observes, ConfirmMinutes: 5})
		want("a text waits that observes", confirmMatrix(), 1, 1, "")
		for version, effect := range map[int64]string{1: "", 2: "OWNER users refused a:1>allowed", 3: ""} {
			m, err := f.Node(0).Policies.RestoreMatrix(f.Context(), owner.Caller, version)
			f.NoError(err)
			want(fmt.Sprint("restoring ", version), m, 1, map[int64]int64{1: 1, 2: 2, 3: 1}[version], effect)
		}
		clock.Move(6 * time.Minute)
		want("it has ended", confirmMatrix(), 0, 0, "")
		if _, err := f.Node(0).Policies.RestoreMatrix(f.Context(), owner.Caller, 99); apptest.Code(err) != doorward.CodeNotFound {
			t.Errorf("no such version: %v", err)
		}
	})
}

// Where the matrix is sure, every decision is as it says, for people and keys with each role, and for any
// request.
func TestMatrixAgreesWithDecisions(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ctx, seed := f.Context(), uint64(time.Now().UnixNano())
		r := rand.New(rand.NewPCG(5, seed))
		_, owner := f.Tenant()
		const model = "actions: {doc.sign: {roles: [OWNER]}, doc.read: {roles: [OWNER, ADMIN, USER, VIEWER], keys: false}}\npolicies: |\n" +
			"  permit (principal in Role::\"USER\", action == Action::\"doc.sign\", resource) when { context.ip.isLoopback() };\n" +
			"  @id(\"far\") forbid (principal is Key, action == Action::\"doc.sign\", resource);\n"
		const force = false
		_, err := f.Node(0).Models.Apply(ctx, apptest.Operator, model, nil, force)
		f.NoError(err)
		owner.Caller.Principal, err = f.Node(0).Sessions.Check(ctx, owner.Token)
		f.NoError(err)
		_, err = f.Node(0).Roles.Create(ctx, owner.Caller, role.Draft{Name: "WRITER", Permissions: []string{"doc.sign", "user.read"}})
		f.NoError(err)
		actions := []doorward.Action{"doc.sign", "doc.read", "user.read", "user.suspend", "policy.read", "session.end"}
		pick := func(from ...string) string { return from[r.IntN(len(from))] }
		sure := 0
		for range 40 {
			var text string
			for i := 0; i < 3; {
				one := fmt.Sprintf("@id(\"p%d\") forbid(principal %s, action %s, resource) %s;\n", i,
					pick("", "is User", "is Key", `in Role::"USER"`, `is User in Role::"ADMIN"`, `== User::"`+owner.User.ID+`"`),
					pick(`== Action::"doc.sign"`, `== Action::"user.manage"`, `== Action::"policy.read"`, `in [Action::"doc.read", Action::"user.read"]`, ""),
					pick("", `when { context.ip.isLoopback() }`, `when { context.kind == "key" }`, `when { principal.role == "USER" }`, `when { principal is Key }`, `unless { principal in Role::"OWNER" }`, `when { principal has email && principal.email like "o*" }`))
				if f.Node(0).Policies.Check(ctx, one) == nil {
					text, i = text+one, i+1
				}
			}
			cells := planned(f, owner.Caller, text, 1).Matrix
			trial, err := rules.Try(store.PolicyVersion{Text: text}, model)
			f.NoError(err)
			current, err := f.DB.Read().Rules(ctx, owner.User.TenantID)
			f.NoError(err)
			current = current.WithPolicy(trial)
			for i := range cells {
				c := &cells[i]
				if !slices.Contains(actions, c.Action) {
					continue
				}
				sure += agree(t, text, seed, c.Users.Would, "users", principalsWith(current, owner.User, c.Role, false), c)
				if c.Keys != nil {
					sure += agree(t, text, seed, c.Keys.Would, "keys", principalsWith(current, owner.User, c.Role, true), c)
				} else if c.Role != doorward.RoleOwner {
					agree(t, text, seed, policy.Refused, "keys", principalsWith(current, owner.User, c.Role, true), c)
				}
			}
		}
		if sure < 500 {
			t.Errorf("only %d outcomes are sure", sure)
		}
	})
}

// principalsWith returns principals with a role: the owner's user as if it had the role, and others.
func principalsWith(current *doorward.Rules, owner doorward.User, role doorward.Role, keys bool) (all []doorward.Principal) {
	for _, one := range []struct{ id, email string }{{owner.ID, owner.Email}, {"usr_other", "other@acme.example"}, {"usr_third", "third@acme.example"}} {
		if keys {
			all = append(all, doorward.PrincipalOfKey(doorward.APIKey{
				ID: "key_" + one.id, TenantID: owner.TenantID, OwnerID: one.id, Rules: current, Role: role, OwnerRole: doorward.RoleOwner, Permissions: current.Grant(role).Actions,
			}, doorward.TenantActive))
			continue
		}
		u := owner
		u.ID, u.Email, u.Role, u.Rules = one.id, one.email, role, current
		all = append(all, doorward.PrincipalOf(u, doorward.Session{}))
	}
	return all
}

// agree decides for each principal and some requests, and compares that with an outcome. It returns 1 if
// the outcome is sure.
func agree(t *testing.T, text string, seed uint64, outcome policy.Outcome, who string, all []doorward.Principal, c *policy.Cell) int {
	t.Helper()
	for _, p := range all {
		for _, ip := range []string{"127.0.0.1", "192.0.2.7", ""} {
			by := doorward.Caller{Principal: p, IP: ip}
			d := decide.May(&p, &decide.Question{Action: c.Action, On: p.Tenant(), Request: by.RequestAt(time.Now())})
			if outcome == policy.Allowed && !d.Allowed || outcome == policy.Refused && d.Allowed {
				t.Errorf("%s\n%s of %s %s: the matrix says %s, the decision on %s from %q is %t (seed %d)", text, who, c.Role, c.Action, outcome, p.ID, ip, d.Allowed, seed)
				return 0
			}
		}
	}
	if outcome == policy.Conditional {
		return 0
	}
	return 1
}

// A matrix of the largest text, model and set of roles has the causes of the first cells that change.
func TestMatrixIsBounded(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		var model strings.Builder
		model.WriteString("actions:\n")
		for i := range 400 {
			fmt.Fprintf(&model, "  doc.a%d: {roles: [OWNER, ADMIN, USER, VIEWER]}\n", i)
		}
		const force = false
		_, err := f.Node(0).Models.Apply(f.Context(), apptest.Operator, model.String(), nil, force)
		f.NoError(err)
		var text strings.Builder
		for i := range 200 {
			fmt.Fprintf(&text, "@id(\"p%d\") forbid(principal, action, resource);\n", i)
		}
		cells := planned(f, owner.Caller, text.String(), 1).Matrix
		changed, explained := 0, 0
		for i := range cells {
			if c := &cells[i]; c.Changes() {
				changed++
				if c.Explained() {
					explained++
					if got := c.Users.Because; c.Users.Changes && (len(got.First) != policy.CausesMax || got.Others != 200-policy.CausesMax) {
						t.Fatalf("%s %s has %d causes and %d others", c.Role, c.Action, len(got.First), got.Others)
					}
				}
			}
		}
		if changed < 1600 || explained != policy.ReasonsMax {
			t.Errorf("of %d cells that change %d have causes", changed, explained)
		}
	})
}

// A key is a principal like any other: what the matrix says of keys holds for one that exists.
func TestMatrixOfAKey(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		_, key, err := f.Node(0).APIKeys.Create(f.Context(), owner.Caller, apikey.Draft{Name: "sync", Role: "USER", Permissions: []string{"message.send"}})
		f.NoError(err)
		text := forbids("keys", "principal is Key", "")
		if got := effects(planned(f, owner.Caller, text, 1).Matrix, doorward.MessageSend); !slices.Equal(got, []string{"USER keys allowed>refused keys:1", "ADMIN keys allowed>refused keys:1"}) {
			t.Errorf("the matrix has %q", got)
		}
		put(f, 0, owner.Caller, policy.Draft{Text: text})
		c, err := f.Node(0).APIKeys.Check(f.Context(), apptest.Anonymous(1), key.Reveal())
		f.NoError(err)
		if d := decide.May(&c.Principal, &decide.Question{Action: doorward.MessageSend, On: c.Principal.Tenant(), ForService: true}); d.Allowed {
			t.Error("the key may send")
		}
	})
}
