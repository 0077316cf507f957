package policy_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/secret"
)

const (
	noMessages = `@id("no-messages") @reason("Closed for the audit.") forbid(principal, action == Action::"message.send", resource);`
	fromInside = `@id("inside") forbid(principal, action == Action::"message.send", resource) unless { context.ip.isInRange(ip("192.0.2.0/24")) };`
	noPeople   = `@id("no-people") forbid(principal, action == Action::"user.read", resource);`
	forbidAll  = `@id("nothing") forbid(principal, action, resource);`
)

var inside = doorward.Caller{IP: "192.0.2.7"}

func put(f *apptest.Fixture, node int, by doorward.Caller, d policy.Draft) policy.Changed {
	f.Helper()
	c, err := f.Node(node).Policies.Put(f.Context(), by, d, nil)
	f.NoError(err)
	return c
}

// maySendOn returns for each node whether a session and a key may send messages, from an
// address inside.
func maySendOn(ctx context.Context, f *apptest.Fixture, token secret.Token, key secret.Key) (all string) {
	f.Helper()
	for _, node := range f.Nodes {
		session, err := node.Sessions.Check(ctx, token)
		f.NoError(err)
		byKey, err := node.APIKeys.Check(ctx, apptest.Anonymous(1), key.Reveal())
		f.NoError(err)
		for _, p := range []doorward.Principal{session, byKey.Principal} {
			by := inside
			by.Principal = p
			all += fmt.Sprintf("%t ", decide.May(&p, &decide.Question{Action: doorward.MessageSend, On: p.Tenant(), Request: by.RequestAt(node.Now()), ForService: true}).Allowed)
		}
	}
	return all
}

const (
	// results of maySendOn on three nodes
	yes = "true true true true true true "
	no  = "false false false false false false "
	// and on two nodes
	noOnTwo = "false false false false "
)

// What a version refuses and no longer refuses holds on every node once Put has returned,
// for credentials that all nodes have in memory.
func TestHoldsOnEveryNodeAtOnce(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		f.AddNode(apptest.NoLimits, time.Now) // the third
		ctx := f.Context()
		_, owner := f.Tenant()
		_, neighbour := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		_, key, err := f.Node(0).APIKeys.Create(ctx, owner.Caller, apikey.Draft{Name: "sync", Permissions: []string{"message.send"}})
		f.NoError(err)
		_, theirs, err := f.Node(0).APIKeys.Create(ctx, neighbour.Caller, apikey.Draft{Name: "sync", Permissions: []string{"message.send"}})
		f.NoError(err)
		if got := maySendOn(ctx, f, bob.Token, key); got != yes {
			t.Fatalf("without policies: %s", got)
		}
		for n := range 3 {
			for text, want := range map[string]string{noMessages: no, fromInside: yes, noPeople: yes, forbidAll: no, "": yes} {
				put(f, n, owner.Caller, policy.Draft{Text: text})
				if got := maySendOn(ctx, f, bob.Token, key); got != want {
					t.Errorf("%s: %s", text, got)
				}
				if got := maySendOn(ctx, f, neighbour.Token, theirs); got != yes {
					t.Errorf("in another tenant, %s: %s", text, got)
				}
			}
		}
	})
}

// A decision must not allocate, unless a policy about its action depends on the request.
func TestDecisionWithoutConditionsAllocatesNothing(t *testing.T) {
	f := apptest.New(t, apptest.Engines[0], apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	put(f, 0, owner.Caller, policy.Draft{Text: fromInside})
	p, err := f.Node(0).Sessions.Check(f.Context(), f.Join(owner, doorward.RoleUser).Token)
	f.NoError(err)
	n := testing.AllocsPerRun(100, func() {
		if !decide.May(&p, &decide.Question{Action: doorward.MessageRead, On: p.Tenant(), ForService: true}).Allowed {
			t.Error("refused")
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A version that nobody confirms ends by itself on every node, for credentials in memory,
// and in transactions. A version that also refuses its author can't be confirmed.
func TestUnconfirmedEndsByItself(t *testing.T) {
	// The clock stands still, since a node is started below in the last second before the version ends.
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		ctx := f.Context()
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		_, key, err := f.Node(0).APIKeys.Create(ctx, owner.Caller, apikey.Draft{Name: "sync", Permissions: []string{"message.send"}})
		f.NoError(err)
		put(f, 0, owner.Caller, policy.Draft{Text: noPeople})
		pending := put(f, 1, owner.Caller, policy.Draft{Text: forbidAll, ConfirmMinutes: 5})
		if got := maySendOn(ctx, f, bob.Token, key); got != noOnTwo {
			t.Errorf("before its end: %s", got)
		}
		if code := apptest.Code(apptest.ErrorOf(f.Node(0).Policies.Confirm(ctx, owner.Caller, nil))); code != doorward.CodeDeniedByPolicy {
			t.Errorf("confirmed by somebody who is locked out: %s", code)
		}
		clock.Move(5*time.Minute - time.Second)
		if got := maySendOn(ctx, f, bob.Token, key); got != noOnTwo {
			t.Errorf("a second before its end: %s", got)
		}
		f.AddNode(apptest.NoLimits, clock.Now) // a server that starts in the meantime
		if got := maySendOn(ctx, f, bob.Token, key); got != no {
			t.Errorf("after a restart: %s", got)
		}
		clock.Move(2 * time.Second)
		if got := maySendOn(ctx, f, bob.Token, key); got != yes {
			t.Errorf("after its end: %s", got)
		}
		for n := range f.Nodes {
			current, err := f.Node(n).Policies.Current(ctx, owner.Caller)
			if err != nil || current.Text != noPeople || policy.Tag(current.PolicyVersion) == policy.Tag(pending.PolicyVersion) {
				t.Errorf("after its end there is %+v, %v", current, err)
			}
		}
		if code := apptest.Code(apptest.ErrorOf(f.Node(0).Policies.Confirm(ctx, owner.Caller, nil))); code != doorward.CodeNotFound {
			t.Errorf("confirmed after its end: %s", code)
		}
		last := put(f, 0, owner.Caller, policy.Draft{Text: noMessages, ConfirmMinutes: 1})
		confirmed, err := f.Node(1).Policies.Confirm(ctx, owner.Caller, nil)
		if err != nil || confirmed.Version != 3 || last.Version != 3 {
			t.Errorf("confirmed %+v, %v", confirmed, err)
		}
		clock.Move(2 * time.Minute)
		if got := maySendOn(ctx, f, bob.Token, key); got != no {
			t.Errorf("after it was confirmed: %s", got)
		}
	})
}

// A policy also refuses Doorward's own actions, even those that are decided only within a
// transaction. It can't keep anybody from ending sessions, or an OWNER from restoring policies.
func TestOwnActions(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		ctx := f.Context()
		_, owner := f.Tenant()
		admin, bob := f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleUser)
		put(f, 0, owner.Caller, policy.Draft{Text: `@id("no-suspending") forbid(principal in Role::"ADMIN", action == Action::"user.suspend", resource);
@id("no-inviting") forbid(principal, action == Action::"user.invite", resource);`})
		_, _, err := f.Node(0).Users.Edit(ctx, admin.Caller, bob.User, suspended())
		if apptest.Code(err) != doorward.CodeDeniedByPolicy {
			t.Errorf("an ADMIN suspends: %v", err)
		}
		_, err = f.Node(0).Invitations.Send(ctx, owner.Caller, apptest.Offer("new@example.com", doorward.RoleUser))
		if apptest.Code(err) != doorward.CodeDeniedByPolicy {
			t.Errorf("an OWNER invites: %v", err)
		}
		put(f, 0, owner.Caller, policy.Draft{Text: forbidAll})
		if _, err := f.Node(0).Users.SignOut(ctx, admin.Caller, bob.User); err != nil {
			t.Errorf("ending sessions: %v", err)
		}
		f.NoError(apptest.ErrorOf(f.Node(0).Sessions.EndOthers(ctx, owner.Caller)))
		if _, err := f.Node(0).Policies.Restore(ctx, owner.Caller, 1, nil); err != nil {
			t.Errorf("an OWNER's way back: %v", err)
		}
		_, _, err = f.Node(0).Users.Edit(ctx, owner.Caller, bob.User, suspended())
		f.NoError(err)
	})
}

// Policies read the assurance level of the session: 1, or 2 after a second factor. A kept
// decision is decided again with the level that the session had.
func TestAssuranceLevel(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		_, owner := f.Tenant()
		weak, strong := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleUser)
		f.Enrol(&strong) // which raises the session to level 2
		for _, level := range []int{1, 2} {
			text := fmt.Sprintf(`@id("level") forbid(principal, action == Action::"message.send", resource) when { context has aal && context.aal == %d };`, level)
			put(f, 0, owner.Caller, policy.Draft{Text: text})
			for n := range f.Nodes {
				if byWeak, byStrong := maySend(f, n, weak, ""), maySend(f, n, strong, ""); byWeak != (level == 2) || byStrong != (level == 1) {
					t.Errorf("node %d, while level %d is refused: level 1 may send: %v, level 2: %v", n, level, byWeak, byStrong)
				}
			}
			flushDecisions(f)
			plan := planned(f, owner.Caller, text, 1)
			// A permit of level 2, which the second text would refuse, is kept only at random.
			refusals := slices.DeleteFunc(plan.Changed, func(c policy.Change) bool { return c.Was == policy.Allowed })
			// The refusals of level 1 would be allowed under the second text.
			if plan.Checked < 2*level || len(refusals) != 2*(level-1) {
				t.Errorf("with the refusal of level %d, %d decisions are checked, and the plan changes the refusals %+v", level, plan.Checked, refusals)
			}
		}
	})
}

func suspended() user.Edit {
	to := doorward.UserSuspended
	return user.Edit{Status: &to}
}

// TestVersionsAtOnce: versions that are saved at once on several nodes are all kept, under
// numbers of their own. Of those that are based on one version, one is saved.
func TestVersionsAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers = 8
		_, owner := f.Tenant()
		draft := func(i int) policy.Draft {
			mode := []policy.Mode{policy.Enforces, policy.Observes}[i%2]
			return policy.Draft{Mode: mode, Text: fmt.Sprintf(`@id("p%d") forbid(principal, action == Action::"message.send", resource);`, i)}
		}
		f.WantCodes(apptest.Concurrently(callers, func(i int) error {
			return apptest.ErrorOf(f.Node(i).Policies.Put(f.Context(), owner.Caller, draft(i), nil))
		}), apptest.Codes{"": callers})
		kept := map[string]bool{}
		for n := range callers {
			v, err := f.Node(0).Policies.Get(f.Context(), owner.Caller, int64(n+1))
			f.NoError(err)
			kept[v.Text] = true
		}
		if len(kept) != callers {
			f.Errorf("%d different versions are kept", len(kept))
		}
		current, err := f.Node(1).Policies.Current(f.Context(), owner.Caller)
		f.NoError(err)
		tags := []string{policy.Tag(current.PolicyVersion)}
		f.WantCodes(apptest.Concurrently(callers, func(i int) error {
			return apptest.ErrorOf(f.Node(i).Policies.Put(f.Context(), owner.Caller, draft(callers+i), tags))
		}), apptest.Codes{"": 1, doorward.CodePreconditionFailed: callers - 1})
	})
}
