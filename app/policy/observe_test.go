package policy_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/store"
)

// onTwoNodes runs a test on both databases with a clock to move.
func onTwoNodes(t *testing.T, test func(f *apptest.Fixture, clock *apptest.MovedClock)) {
	t.Helper()
	for _, e := range apptest.Engines {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			e.Nodes = 2
			clock := apptest.NewMovedClock()
			test(apptest.New(t, e, apptest.NoLimits, clock.Now), clock)
		})
	}
}

// observing returns the draft of a version that only observes.
func observing(text string) policy.Draft {
	return policy.Draft{Text: text, Mode: store.PolicyObserves}
}

// maySend asks a node whether a session may send messages, as a service does.
func maySend(f *apptest.Fixture, node int, person apptest.Person, ip string) bool {
	f.Helper()
	p, err := f.Node(node).Sessions.Check(f.Context(), person.Token)
	f.NoError(err)
	by := doorward.Caller{Principal: p, IP: ip}
	return f.Node(node).Access.Check(&p, doorward.MessageSend, by.RequestAt(f.Node(node).Now())).Allowed
}

// observedOn returns what a node shows as observed.
func observedOn(f *apptest.Fixture, node int, by doorward.Caller) string {
	f.Helper()
	current, err := f.Node(node).Policies.Current(f.Context(), by)
	f.NoError(err)
	return fmt.Sprint(current.Observed)
}

// A version that observes refuses nothing. What it would have refused is counted for each of its
// policies, over all nodes. The counts of the next version begin at 0.
func TestObserve(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		_, owner := f.Tenant()
		bob, admin := f.Join(owner, doorward.RoleUser), f.Join(owner, doorward.RoleAdmin)
		_, neighbour := f.Tenant()
		text := `@id("users") forbid(principal in Role::"USER", action == Action::"message.send", resource);` + "\n" + fromInside
		put(f, 0, owner.Caller, observing(text))
		for n := range f.Nodes {
			for _, person := range []apptest.Person{bob, admin, owner, neighbour} {
				for _, ip := range []string{"192.0.2.7", "198.51.100.7"} {
					if !maySend(f, n, person, ip) {
						t.Errorf("%s is refused by a version that observes", person.User.Email)
					}
				}
			}
		}
		flushDecisions(f)
		for n := range f.Nodes {
			// The USER from two addresses on two nodes; the ADMIN and the OWNER from outside on both.
			if got := observedOn(f, n, owner.Caller); got != "[{users 4} {inside 4}]" {
				t.Errorf("node %d has observed %s", n, got)
			}
		}
		put(f, 1, owner.Caller, observing(fromInside))
		if got := observedOn(f, 0, owner.Caller); got != "[{inside 0}]" {
			t.Errorf("a new version begins with %s", got)
		}
		put(f, 0, owner.Caller, policy.Draft{Text: fromInside})
		if maySend(f, 1, bob, "198.51.100.7") || observedOn(f, 1, owner.Caller) != "[]" {
			t.Error("the enforced version refuses nothing, or still observes")
		}
	})
}

// While a version observes, the version that refused before keeps refusing, unless both have
// the same text.
func TestObserveKeepsWhatRefuses(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		for _, step := range []struct {
			draft    policy.Draft
			enforced int64
			maySend  bool
		}{
			// by the number of the version
			1: {policy.Draft{Text: noMessages}, 0, false},
			2: {observing(noPeople), 1, false},
			3: {observing(forbidAll), 1, false},
			4: {observing(noMessages), 0, true},
			5: {observing(forbidAll), 0, true},
			6: {policy.Draft{Text: noMessages}, 0, false},
			7: {observing(""), 6, false},
			8: {policy.Draft{Text: ""}, 0, true},
		}[1:] {
			c := put(f, 0, owner.Caller, step.draft)
			if c.Enforced != step.enforced {
				t.Errorf("version %d lets version %d refuse, want %d", c.Version, c.Enforced, step.enforced)
			}
			for n := range f.Nodes {
				if got := maySend(f, n, bob, ""); got != step.maySend {
					t.Errorf("version %d: on node %d sending is %t", c.Version, n, got)
				}
			}
		}
		// A version that waits to be confirmed ends with its successor, even one that observes.
		put(f, 0, owner.Caller, policy.Draft{Text: noPeople})
		put(f, 0, owner.Caller, policy.Draft{Text: noMessages, ConfirmMinutes: 5})
		if c := put(f, 0, owner.Caller, policy.Draft{Text: forbidAll, Mode: store.PolicyObserves, ConfirmMinutes: 5}); c.Enforced != 9 || !maySend(f, 1, bob, "") {
			t.Errorf("after a version that was not confirmed, version %d refuses", c.Enforced)
		}
		clock.Move(6 * time.Minute)
		current, err := f.Node(1).Policies.Current(f.Context(), owner.Caller)
		if err != nil || current.Version != 9 {
			t.Errorf("after its time there is version %d, %v", current.Version, err)
		}
	})
}

// The check of the route and that of the write count as one decision of the request. A check
// for what a page shows counts as none.
func TestObserveCountsRequestsOnce(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		ctx := f.Context()
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		put(f, 0, owner.Caller, observing(`@id("manage") forbid(principal, action == Action::"user.manage", resource);
@id("suspend") forbid(principal, action == Action::"user.suspend", resource);
@id("read") forbid(principal, action == Action::"policy.read", resource);`))
		by := owner.Caller
		p, err := f.Node(0).Sessions.Check(ctx, owner.Token)
		f.NoError(err)
		by.Principal = p
		f.NoError(f.Node(0).Access.Require(ctx, by, doorward.UserManage, by.Tenant()))
		by.Decided = doorward.UserManage
		_, _, err = f.Node(0).Users.Edit(ctx, by, bob.User, suspended())
		f.NoError(err)
		viewOnly := by
		viewOnly.ViewOnly, viewOnly.Decided = true, ""
		f.NoError(f.Node(0).Access.Require(ctx, viewOnly, doorward.UserManage, by.Tenant()))
		f.NoError(f.Node(0).Access.Require(ctx, by, doorward.PolicyRead, by.Tenant())) // no policy can refuse this to an OWNER
		if got := observedOn(f, 0, owner.Caller); got != "[{manage 1} {suspend 1} {read 0}]" {
			t.Errorf("observed %s", got)
		}
	})
}

// No count is lost or added twice, while the database is unavailable and while flushes run
// side by side.
func TestObserveLosesNothing(t *testing.T) {
	onTwoNodes(t, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		_, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		put(f, 0, owner.Caller, observing(noMessages))
		cancelled, cancel := context.WithCancel(f.Context())
		cancel()
		const each = 200
		var all sync.WaitGroup
		for n := range f.Nodes {
			for range 4 {
				all.Go(func() {
					for i := range each {
						maySend(f, n, bob, "")
						if i%20 == 0 {
							_ = f.Node(n).Access.Decisions().Flush(cancelled) // fails
							_ = f.Node(n).Access.Decisions().Flush(f.Context())
						}
					}
				})
			}
		}
		all.Wait()
		flushDecisions(f)
		if got, want := observedOn(f, 0, owner.Caller), fmt.Sprintf("[{no-messages %d}]", 2*4*each); got != want {
			t.Errorf("observed %s, want %s", got, want)
		}
	})
}
