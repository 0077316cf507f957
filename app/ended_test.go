package app_test

import (
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/store"
)

// idle is the limit that the tenant of these tests has tightened from an hour.
const idle = 5 * time.Minute

// onEachAhead is onEach with a clock to move.
func onEachAhead(t *testing.T, test func(*world, *ahead)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			clock := &ahead{}
			test(newWorld(t, e, noLimits, clock.now), clock)
		})
	}
}

// TestEndedAreTheLive: a tenant tightens its idle limit, which ends sessions
// without deleting them. What an act is about to end, what it says that it has
// ended and what is on record are then all the number of sessions that still pass.
func TestEndedAreTheLive(t *testing.T) {
	onEachAhead(t, func(w *world, clock *ahead) {
		acme, owner := w.tenant()
		users, ctx := w.on(0).Users, w.Context()
		ends := []struct {
			act doorward.Action
			do  func(who person) (doorward.Ended, error)
		}{
			{doorward.UserSignOut, func(who person) (doorward.Ended, error) { return users.SignOut(ctx, owner.Caller, who.User) }},
			{doorward.UserSuspend, func(who person) (doorward.Ended, error) { return users.Suspend(ctx, owner.Caller, who.User) }},
			{doorward.UserRemove, func(who person) (doorward.Ended, error) { return users.Remove(ctx, owner.Caller, who.User, nil) }},
			{doorward.UserLeave, func(who person) (doorward.Ended, error) { return users.Leave(ctx, who.Caller, acme.ID) }},
		}
		for range len(ends) + 1 {
			w.join(owner, doorward.RoleUser)
		}
		owner, who := w.tighten(acme, clock)
		for i, end := range ends {
			before := w.atStake(owner, who[i])
			after, err := end.do(who[i])
			w.ok(err)
			after = w.held(after)
			if want := (doorward.Ended{Sessions: 2}); before != want || after != want || w.onRecord(acme.ID, end.act) != "2" {
				w.Errorf("%s: %+v before, %+v after, %q on record; two sessions were live", end.act, before, after, w.onRecord(acme.ID, end.act))
			}
		}
		before, err := w.on(0).Overviews.AllAtStake(ctx, owner.Caller)
		w.ok(err)
		_, after, err := w.on(0).Tenants.Close(ctx, owner.Caller, acme.Name)
		w.ok(err)
		after = w.held(after)
		if want := (doorward.Ended{Sessions: 4}); before != want || after != want || w.onRecord(acme.ID, doorward.TenantClose) != "4" {
			w.Errorf("closing: %+v before, %+v after, %q on record; four sessions were live", before, after, w.onRecord(acme.ID, doorward.TenantClose))
		}
	})
}

// TestOwnEndedAreTheLive is the same for what people do to their own sessions, and
// for what an operator does to a tenant.
func TestOwnEndedAreTheLive(t *testing.T) {
	onEachAhead(t, func(w *world, clock *ahead) {
		acme, owner := w.tenant()
		for range 2 {
			w.join(owner, doorward.RoleUser)
		}
		_, who := w.tighten(acme, clock)
		w.ok(failure(w.on(0).Sessions.EndOthers(w.Context(), who[0].Caller)))
		w.ok(failure(w.on(0).Passwords.Change(w.Context(), who[1].Caller, first, password(1), password(1))))
		for i, act := range []doorward.Action{doorward.SessionEnd, doorward.PasswordChange} {
			if got := w.onRecord(acme.ID, act); got != "1" || !w.passes(who[i].token) {
				w.Errorf("%s: %q on record, and that session passes: %v; one other was live", act, got, w.passes(who[i].token))
			}
		}
		ended, err := w.on(0).Tenants.Freeze(w.Context(), operator, acme.ID)
		w.ok(err)
		if ended.Sessions != 4 || w.onRecord(acme.ID, doorward.TenantFreeze) != "4" {
			w.Errorf("freezing: %+v, %q on record; four sessions were live", ended, w.onRecord(acme.ID, doorward.TenantFreeze))
		}
	})
}

// tighten has every member sign in twice more, after what they have already is
// older than the limit that the tenant sets then, and returns the OWNER and the
// others with a session that is live.
func (w *world) tighten(acme doorward.Tenant, clock *ahead) (owner person, others []person) {
	w.Helper()
	page, err := w.db.Read().UserPage(w.Context(), acme.ID, store.UserFilter{}, doorward.Window{Limit: 20})
	w.ok(err)
	clock.move(30 * time.Minute)
	for _, u := range page.Items {
		w.signIn(u.Email, first)
		p := w.signIn(u.Email, first)
		if u.Role == doorward.RoleOwner {
			owner = p
			continue
		}
		others = append(others, p)
	}
	minutes := int64(idle / time.Minute)
	_, err = w.on(0).Tenants.Edit(w.Context(), owner.Caller, tenant.Edit{SessionIdleMinutes: &minutes})
	w.ok(err)
	return owner, others
}

func (w *world) atStake(by, member person) doorward.Ended {
	w.Helper()
	e, err := w.on(0).Overviews.AtStake(w.Context(), by.Caller, member.User)
	w.ok(err)
	return e
}

// onRecord is how many sessions the newest such act has ended, by the trail.
func (w *world) onRecord(tenantID string, act doorward.Action) string {
	w.Helper()
	events, err := w.db.Read().Events(w.Context(), tenantID)
	w.ok(err)
	for _, e := range slices.Backward(events) {
		for _, c := range e.Changes {
			if e.Action == act && c.Field == "sessionsEnded" {
				return c.To
			}
		}
	}
	return ""
}

// TestUnwrittenUseCounts: a session in use on another node, of which the database
// doesn't know yet, is counted by a node that has not seen it.
func TestUnwrittenUseCounts(t *testing.T) {
	clock := &ahead{}
	w := newWorld(t, engines[1], noLimits, clock.now)
	acme, owner := w.tenant()
	bob := w.join(owner, doorward.RoleUser)
	minutes := int64(idle / time.Minute)
	_, err := w.on(0).Tenants.Edit(w.Context(), owner.Caller, tenant.Edit{SessionIdleMinutes: &minutes})
	w.ok(err)
	check := func() {
		t.Helper()
		_, err := w.on(1).Sessions.Check(w.Context(), bob.token)
		w.ok(err)
	}
	check()
	clock.move(idle - time.Second)
	check()
	clock.move(2 * time.Second)
	check()
	if before, want := w.atStake(owner, bob), (doorward.Ended{Sessions: 1}); before != want {
		t.Errorf("%+v before, and one session passes", before)
	}
	ended, err := w.on(0).Users.SignOut(w.Context(), owner.Caller, bob.User)
	w.ok(err)
	if ended.Sessions != 1 || w.onRecord(acme.ID, doorward.UserSignOut) != "1" {
		t.Errorf("%+v after, and one session passed", ended)
	}
}

// held is the count without how it was made to hold, which is on every node.
func (w *world) held(e doorward.Ended) doorward.Ended {
	w.Helper()
	if e.Revocation.Nodes != len(w.nodes) || e.Revocation.Took <= 0 {
		w.Errorf("%+v: want it to hold on %d nodes", e.Revocation, len(w.nodes))
	}
	e.Revocation = doorward.Revocation{}
	return e
}
