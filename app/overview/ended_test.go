package overview_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// idle is the idle limit that the tenant sets instead of an hour.
const idle = 5 * time.Minute

// TestCountsOfEndedSessions: a tenant tightens its idle limit, which ends sessions
// without deleting them. The count before an action, the count in its result and the
// count in the trail all equal the number of valid sessions.
func TestCountsOfEndedSessions(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		users, ctx := f.Node(0).Users, f.Context()
		ends := []struct {
			act doorward.Action
			do  func(p apptest.Person) (doorward.Ended, error)
		}{
			{doorward.UserSignOut, func(p apptest.Person) (doorward.Ended, error) { return users.SignOut(ctx, owner.Caller, p.User) }},
			{doorward.UserSuspend, func(p apptest.Person) (doorward.Ended, error) { return users.Suspend(ctx, owner.Caller, p.User) }},
			{doorward.UserRemove, func(p apptest.Person) (doorward.Ended, error) {
				return users.Remove(ctx, owner.Caller, p.User, user.Handover{}, nil)
			}},
			{doorward.UserLeave, func(p apptest.Person) (doorward.Ended, error) { return users.Leave(ctx, p.Caller, acme.ID) }},
		}
		for range len(ends) + 1 {
			f.Join(owner, doorward.RoleUser)
		}
		owner, others := tighten(f, acme, clock)
		for i, end := range ends {
			before := countAffected(f, owner, others[i])
			after, err := end.do(others[i])
			f.NoError(err)
			if want := (doorward.Ended{Sessions: 2}); !cmp.Equal(before, want) || !cmp.Equal(withoutRevocation(f, after), want) || sessionsEndedInTrail(f, acme.ID, end.act) != "2" {
				f.Errorf("%s: %+v before, %+v after, %q in the trail; two sessions were valid", end.act, before, after, sessionsEndedInTrail(f, acme.ID, end.act))
			}
		}
		before, err := f.Node(0).Overviews.CountAllAffected(ctx, owner.Caller)
		f.NoError(err)
		_, after, err := f.Node(0).Tenants.Close(ctx, owner.Caller, acme.Name)
		f.NoError(err)
		if want := (doorward.Ended{Sessions: 4}); !cmp.Equal(before, want) || !cmp.Equal(withoutRevocation(f, after), want) || sessionsEndedInTrail(f, acme.ID, doorward.TenantClose) != "4" {
			f.Errorf("closing: %+v before, %+v after, %q in the trail; four sessions were valid", before, after, sessionsEndedInTrail(f, acme.ID, doorward.TenantClose))
		}
	})
}

// TestCountsOfOwnEndedSessions is the same for actions on one's own sessions and for
// actions of an operator on a tenant.
func TestCountsOfOwnEndedSessions(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		for range 2 {
			f.Join(owner, doorward.RoleUser)
		}
		_, others := tighten(f, acme, clock)
		f.NoError(apptest.ErrorOf(f.Node(0).Sessions.EndOthers(f.Context(), others[0].Caller)))
		f.NoError(apptest.ErrorOf(f.Node(0).Passwords.Change(f.Context(), others[1].Caller, apptest.FirstPassword, apptest.Password(1), apptest.Password(1))))
		for i, action := range []doorward.Action{doorward.SessionEnd, doorward.PasswordChange} {
			if got := sessionsEndedInTrail(f, acme.ID, action); got != "1" || !f.IsValid(others[i].Token) {
				f.Errorf("%s: %q in the trail, and that session is valid: %v; one other was valid", action, got, f.IsValid(others[i].Token))
			}
		}
		ended, err := f.Node(0).Tenants.Freeze(f.Context(), apptest.Operator, acme.ID)
		f.NoError(err)
		if ended.Sessions != 4 || sessionsEndedInTrail(f, acme.ID, doorward.TenantFreeze) != "4" {
			f.Errorf("freezing: %+v, %q in the trail; four sessions were valid", ended, sessionsEndedInTrail(f, acme.ID, doorward.TenantFreeze))
		}
	})
}

// tighten moves the clock, signs every member in twice, and sets an idle limit that ends
// their earlier sessions. It returns the OWNER and the others, each with the second of
// the two valid sessions.
func tighten(f *apptest.Fixture, acme doorward.Tenant, clock *apptest.MovedClock) (owner apptest.Person, others []apptest.Person) {
	f.Helper()
	page, err := f.DB.Read().UserPage(f.Context(), acme.ID, store.UserFilter{}, doorward.Window{Limit: 20})
	f.NoError(err)
	clock.Move(30 * time.Minute)
	for _, u := range page.Items {
		f.SignIn(u.Email, apptest.FirstPassword)
		p := f.SignIn(u.Email, apptest.FirstPassword)
		if u.Role == doorward.RoleOwner {
			owner = p
			continue
		}
		others = append(others, p)
	}
	minutes := map[string]any{doorward.SettingIdle: doorward.Minutes(idle)}
	_, err = f.Node(0).Tenants.Edit(f.Context(), owner.Caller, tenant.Edit{Settings: minutes})
	f.NoError(err)
	return owner, others
}

func countAffected(f *apptest.Fixture, by, member apptest.Person) doorward.Ended {
	f.Helper()
	e, err := f.Node(0).Overviews.CountAffected(f.Context(), by.Caller, member.User)
	f.NoError(err)
	return e
}

// sessionsEndedInTrail returns how many sessions the newest event of the action says it ended.
func sessionsEndedInTrail(f *apptest.Fixture, tenantID string, action doorward.Action) string {
	f.Helper()
	events, err := storetest.Events(f.Context(), f.DB.Read(), tenantID)
	f.NoError(err)
	for _, e := range slices.Backward(events) {
		for _, c := range e.Changes {
			if e.Action == action && c.Field == "sessionsEnded" {
				return c.To
			}
		}
	}
	return ""
}

// TestUnwrittenUseCounts: a session in use on one node, whose use isn't written
// yet, is counted by another node.
func TestUnwrittenUseCounts(t *testing.T) {
	clock := apptest.NewMovedClock()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, clock.Now)
	acme, owner := f.Tenant()
	bob := f.Join(owner, doorward.RoleUser)
	minutes := map[string]any{doorward.SettingIdle: doorward.Minutes(idle)}
	_, err := f.Node(0).Tenants.Edit(f.Context(), owner.Caller, tenant.Edit{Settings: minutes})
	f.NoError(err)
	check := func() {
		t.Helper()
		_, err := f.Node(1).Sessions.Check(f.Context(), bob.Token)
		f.NoError(err)
	}
	check()
	clock.Move(idle - time.Second)
	check()
	clock.Move(2 * time.Second)
	check()
	if before, want := countAffected(f, owner, bob), (doorward.Ended{Sessions: 1}); !cmp.Equal(before, want) {
		t.Errorf("%+v before, want the one valid session", before)
	}
	ended, err := f.Node(0).Users.SignOut(f.Context(), owner.Caller, bob.User)
	f.NoError(err)
	if ended.Sessions != 1 || sessionsEndedInTrail(f, acme.ID, doorward.UserSignOut) != "1" {
		t.Errorf("%+v after, want the one valid session", ended)
	}
}

// withoutRevocation returns the counts without the revocation, which must have reached every node.
func withoutRevocation(f *apptest.Fixture, e doorward.Ended) doorward.Ended {
	f.Helper()
	if e.Revocation.Nodes != len(f.Nodes) || e.Revocation.Took <= 0 {
		f.Errorf("%+v: want it to take effect on every node", e.Revocation)
	}
	e.Revocation = doorward.Revocation{}
	return e
}
