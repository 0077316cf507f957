package directoryrun_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/directoryrun"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// fixture has a tenant with a directory, the proved domain acme.example and a mapping of the group admins.
type fixture struct {
	*apptest.Fixture
	owner  apptest.Person
	con    string
	secret string
}

func newFixture(base *apptest.Fixture) *fixture {
	base.Helper()
	_, owner := base.Tenant()
	f := &fixture{base, owner, base.Connection(owner, "acme.example"), ""}
	made, err := f.Node(0).Directories.AddSecret(f.Context(), owner.Caller, f.con, nil)
	f.NoError(err)
	f.secret = made.Text
	_, _, err = f.Node(0).Connections.Edit(f.Context(), owner.Caller, f.con, connection.Change{Draft: connection.Draft{Mappings: &[]doorward.GroupMapping{{Group: "admins", Role: doorward.RoleAdmin}}}})
	f.NoError(err)
	return f
}

func (f *fixture) by(node int) doorward.Caller {
	f.Helper()
	caller, err := f.Node(node).Directories.Check(f.Context(), apptest.Anonymous(node), f.secret)
	f.NoError(err)
	return caller
}

func (f *fixture) make(name string) string {
	f.Helper()
	u, err := f.Node(0).Directories.Make(f.Context(), f.by(0), scim.User{UserName: name, ExternalID: "x-" + name})
	f.NoError(err)
	return u.ID
}

func (f *fixture) setActive(id string, active bool) error {
	u, err := f.Node(1).Directories.User(f.Context(), f.by(1), id)
	if err != nil {
		return err
	}
	u.User.Active = &active
	_, err = f.Node(1).Directories.Replace(f.Context(), f.by(1), id, u.User)
	return err
}

func (f *fixture) remove(id string) {
	f.Helper()
	f.NoError(f.Node(1).Directories.Remove(f.Context(), f.by(1), id))
}

// pause makes the next write begin another run.
func (f *fixture) pause() {
	f.Helper()
	f.Exec(`UPDATE directory_runs SET began_at = began_at - 3600000000, last_at = last_at - 3600000000`)
}

// last returns the latest run.
func (f *fixture) last() directoryrun.Run {
	f.Helper()
	page, err := f.Node(0).DirectoryRuns.List(f.Context(), f.owner.Caller, f.con, doorward.Window{Limit: 9})
	f.NoError(err)
	return page.Items[0]
}

// undo undoes the run to its end, which does what its dry run has said.
func (f *fixture) undo(run directoryrun.Run) directoryrun.Run {
	f.Helper()
	before := f.Int(`SELECT count(*) FROM events`)
	preview := f.tried(run)
	if n := f.Int(`SELECT count(*) FROM events`); n != before {
		f.Errorf("the dry run has recorded %d events", n-before)
	}
	_, err := f.Node(0).DirectoryRuns.Undo(f.Context(), f.owner.Caller, f.con, run.ID)
	f.NoError(err)
	f.NoError(f.Node(1).DirectoryRuns.Sweep(f.Context()))
	run, err = f.Node(0).DirectoryRuns.Get(f.Context(), f.owner.Caller, f.con, run.ID)
	f.NoError(err)
	if run.Undo != doorward.UndoDone {
		f.Fatalf("the undo is %q", run.Undo)
	}
	byID := func(a, b directoryrun.Left) int { return strings.Compare(a.SubjectID, b.SubjectID) }
	slices.SortFunc(preview.Left, byID)
	left := slices.SortedFunc(slices.Values(run.Left), byID)
	if !slices.Equal(preview.Left, left) {
		f.Errorf("the dry run leaves %v, and the undo %v", preview.Left, left)
	}
	return run
}

func (f *fixture) member(id string) (doorward.User, error) {
	return f.Node(0).Users.Get(f.Context(), f.owner.Caller, id)
}

// roleOf returns the role of a member; empty: not one.
func (f *fixture) roleOf(id string) doorward.Role {
	m, err := f.member(id)
	if err != nil {
		return ""
	}
	return m.Role
}

func (f *fixture) why(run directoryrun.Run, id string) doorward.Undone {
	for _, l := range run.Left {
		if l.SubjectID == id {
			return l.Why
		}
	}
	return ""
}

// What a full synchronization says again changes nothing: it is in no run, of members and of invited people.
func TestSaidAgain(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ids := []string{f.make("Ann@acme.example"), f.make("ben@elsewhere.example")}
		was := f.last()
		for _, id := range ids {
			before, err := f.Node(1).Directories.User(f.Context(), f.by(1), id)
			f.NoError(err)
			f.NoError(f.setActive(id, true))
			after, err := f.Node(1).Directories.User(f.Context(), f.by(1), id)
			f.NoError(err)
			if !after.Changed.Equal(before.Changed) {
				f.Errorf("%s is changed by what was said before", id)
			}
		}
		if run := f.last(); run.Changed != was.Changed || !run.Last.Equal(was.Last) {
			f.Errorf("the run is %+v, was %+v", run, was)
		}
		f.NoError(f.setActive(ids[0], false))
		if run := f.last(); run.Suspended != was.Suspended+1 {
			f.Errorf("%d are suspended", run.Suspended)
		}
	})
}

// A run that has removed, suspended, made and invited people, and deleted a group, is as if it hadn't been.
func TestUndo(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ctx := f.Context()
		removed, off, inGroup := f.make("ann@acme.example"), f.make("ben@acme.example"), f.make("cid@acme.example")
		invited := f.make("dee@elsewhere.example")
		group, err := f.Node(0).Directories.MakeGroup(ctx, f.by(0), scim.Group{DisplayName: "admins", ExternalID: "g1", Members: []string{removed, inGroup, invited}})
		f.NoError(err)
		if f.roleOf(removed) != doorward.RoleAdmin || f.roleOf(inGroup) != doorward.RoleAdmin {
			t.Fatal("the mapping gives no role")
		}
		hand := f.Join(f.owner, doorward.RoleViewer) // whom no directory has described
		f.pause()

		f.remove(removed)
		f.remove(hand.User.ID)
		f.NoError(f.setActive(off, false))
		f.remove(invited)
		made, guest := f.make("eve@acme.example"), f.make("fay@elsewhere.example")
		f.NoError(f.Node(0).Directories.DeleteGroup(ctx, f.by(0), group.ID))
		run := f.last()
		if run.Removed != 3 || run.Suspended != 1 || run.Made != 2 || run.Changed != 2 {
			t.Fatalf("the run is %+v", run)
		}
		preview, err := f.Node(0).DirectoryRuns.Try(ctx, f.owner.Caller, f.con, run.ID)
		f.NoError(err)
		if len(preview.Back) != 8 || len(preview.Left) != 0 || f.roleOf(removed) != "" {
			t.Errorf("the dry run says %+v", preview)
		}
		if run = f.undo(run); len(run.Left) > 0 {
			t.Errorf("left: %+v", run.Left)
		}
		for id, want := range map[string]doorward.Role{removed: doorward.RoleAdmin, inGroup: doorward.RoleAdmin, hand.User.ID: doorward.RoleViewer, off: doorward.RoleUser, made: ""} {
			if got := f.roleOf(id); got != want {
				t.Errorf("%s has the role %q, want %q", id, got, want)
			}
		}
		if m, err := f.member(off); err != nil || m.Status != doorward.UserActive {
			t.Errorf("who was switched off is %+v, %v", m, err)
		}
		if f.IsValid(hand.Token) {
			t.Error("a session has come back")
		}
		again, err := f.Node(0).Directories.Group(ctx, f.by(0), group.ID, true)
		f.NoError(err)
		want := []string{removed, inGroup, invited}
		if slices.Sort(want); !slices.Equal(again.Members, want) {
			t.Errorf("the group has %q, want %q", again.Members, want)
		}
		for id, state := range map[string]string{removed: "", invited: "invited"} {
			if u, err := f.Node(0).Directories.User(ctx, f.by(0), id); err != nil || u.State != state || u.ExternalID == "" || !*u.Active {
				t.Errorf("%s is %+v, %v", id, u, err)
			}
		}
		for _, id := range []string{made, guest} {
			if _, err := f.Node(0).Directories.User(ctx, f.by(0), id); apptest.Code(err) != doorward.CodeNotFound {
				t.Errorf("%s is still there: %v", id, err)
			}
		}
		if last := f.last(); last.ID != run.ID || last.IsOpen {
			t.Errorf("the undo has begun another run: %+v", last)
		}
		_, err = f.Node(1).DirectoryRuns.Undo(ctx, f.owner.Caller, f.con, run.ID)
		if apptest.Code(err) != doorward.CodeAlreadyUndone {
			t.Errorf("a second undo: %v", err)
		}
		f.Exec(`UPDATE directory_runs SET undo_state = '', last_at = last_at - $1`, (doorward.UndoWithin + time.Minute).Microseconds())
		_, err = f.Node(1).DirectoryRuns.Undo(ctx, f.owner.Caller, f.con, run.ID)
		if apptest.Code(err) != doorward.CodeUndoOver {
			t.Errorf("after a week: %v", err)
		}
	})
}

// What somebody else has changed since stays, and the undo says why.
func TestUndoLeaves(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ctx := f.Context()
		second := f.Join(f.owner, doorward.RoleOwner)
		again, taken, erased, demoted := f.make("ann@acme.example"), f.make("ann@elsewhere.example"), f.make("ben@acme.example"), f.make("cid@acme.example")
		g, err := f.Node(0).Directories.MakeGroup(ctx, f.by(0), scim.Group{DisplayName: "admins", Members: []string{demoted}})
		f.NoError(err)
		f.pause()
		for _, id := range []string{again, taken, erased, demoted, second.User.ID} {
			f.remove(id)
		}
		kept := f.make("dan@acme.example")
		run := f.last()
		f.pause()
		f.make("ann@acme.example") // the same account
		f.make("ann@elsewhere.example")
		account, err := f.DB.Read().Account(ctx, erased)
		f.NoError(err)
		_, err = f.DB.Write(ctx, func(tx *store.Tx) error { return tx.DeleteAccount(ctx, account) })
		f.NoError(err)
		m, err := f.member(kept)
		f.NoError(err)
		role := doorward.RoleViewer
		err = f.Node(0).Users.SetRole(ctx, f.owner.Caller, m, role)
		f.NoError(err)
		_, _, err = f.Node(0).Connections.Edit(ctx, f.owner.Caller, f.con, connection.Change{Draft: connection.Draft{Mappings: &[]doorward.GroupMapping{}}})
		f.NoError(err)
		run = f.undo(run)
		for id, want := range map[string]doorward.Undone{
			again: doorward.UndoneChangedSince, taken: doorward.UndoneAddressTaken, erased: doorward.UndoneErased, demoted: doorward.UndoneRoleTooHigh,
			second.User.ID: doorward.UndoneRoleTooHigh, kept: doorward.UndoneChangedSince,
		} {
			if got := f.why(run, id); got != want {
				t.Errorf("%s was left for %q, want %q", id, got, want)
			}
		}
		if run.DirectoryRun.Left != 6 || run.Undone != 0 || f.roleOf(kept) != role || f.roleOf(demoted) != "" {
			t.Errorf("the undo: %+v", run)
		}
		if again, err := f.Node(0).Directories.Group(ctx, f.by(0), g.ID, true); err != nil || len(again.Members) > 0 {
			t.Errorf("the group has %q, %v", again.Members, err)
		}
	})
}

// An undo that several nodes go on with at once does everything once; one beside writes of the provider leaves each person as
// the later one says.
func TestRaceUndo(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		for round := range apptest.Rounds(2, 8) {
			var ids []string
			for i := range 12 {
				ids = append(ids, f.make(fmt.Sprintf("p%d-%d@acme.example", round, i)))
			}
			f.pause()
			for _, id := range ids {
				f.NoError(f.setActive(id, false))
			}
			run := f.last()
			_, err := f.Node(0).DirectoryRuns.Undo(f.Context(), f.owner.Caller, f.con, run.ID)
			f.NoError(err)
			errs := apptest.Concurrently(6, func(i int) error {
				if i < 3 {
					return f.Node(i).DirectoryRuns.Sweep(f.Context())
				}
				return f.setActive(ids[i], i == 3) // what it says already, or what the undo says
			})
			for _, err := range errs {
				f.NoError(err)
			}
			run, err = f.Node(2).DirectoryRuns.Get(f.Context(), f.owner.Caller, f.con, run.ID)
			f.NoError(err)
			if run.Undo != doorward.UndoDone || run.Undone+run.DirectoryRun.Left != len(ids) {
				t.Errorf("the undo is %+v", run)
			}
			for i, id := range ids {
				m, err := f.member(id)
				f.NoError(err)
				if (i < 4 || i > 5) && m.Status != doorward.UserActive {
					t.Errorf("person %d is %s", i, m.Status)
				}
			}
			f.pause()
		}
		f.WantNoDeadlocks()
	})
}

// rule writes the effects of a faulty rule over n people straight into the tables: the members are suspended, each by a write
// of its own. It returns the run.
func (f *fixture) rule(n int) directoryrun.Run {
	f.Helper()
	ctx, run := f.Context(), doorward.DirectoryRun{ID: doorward.NewID(doorward.PrefixRun), ConnectionID: f.con, TenantID: f.owner.TenantID}
	run.Suspended = n
	for first := 0; first < n; first += 500 {
		_, err := f.DB.Write(ctx, func(tx *store.Tx) error {
			if first == 0 {
				if err := tx.InsertDirectoryRun(ctx, run); err != nil {
					return err
				}
			}
			for i := first; i < min(n, first+500); i++ {
				if err := apptest.SuspendByRun(ctx, tx, run, i); err != nil {
					return err
				}
			}
			run.Last = tx.Now
			return tx.UpdateDirectoryRun(ctx, run)
		})
		f.NoError(err)
	}
	return f.last()
}

// A faulty rule has suspended everybody. The node that undoes it is stopped in the middle, and another one ends it.
func TestRaceUndoOfEverybody(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		n := fulltest.Of(200, 10_000)
		run := f.rule(n)
		_, err := f.Node(0).DirectoryRuns.Undo(f.Context(), f.owner.Caller, f.con, run.ID)
		f.NoError(err)
		count := func() int { return f.Int(`SELECT undone FROM directory_runs`) }
		ctx, stop := context.WithCancel(f.Context())
		stopped := make(chan error, 1)
		began := time.Now()
		go func() { stopped <- f.Node(1).DirectoryRuns.Sweep(ctx) }()
		f.Until("the undo to begin", func() bool { return count() > 0 })
		stop()
		<-stopped // whichever part of it was under way
		f.NoError(f.Node(2).DirectoryRuns.Sweep(f.Context()))
		t.Logf("the undo of %d people took %s", n, time.Since(began).Round(time.Millisecond))
		run, err = f.Node(0).DirectoryRuns.Get(f.Context(), f.owner.Caller, f.con, run.ID)
		f.NoError(err)
		if run.Undo != doorward.UndoDone || run.Undone != n || run.DirectoryRun.Left != 0 {
			t.Errorf("the undo is %+v", run)
		}
		if off := f.Int(`SELECT count(*) FROM memberships WHERE status <> 'active'`); off > 0 {
			t.Errorf("%d people are still suspended", off)
		}
		if events := f.Int(`SELECT count(*) FROM events WHERE action = 'user.resume'`); events != n {
			t.Errorf("%d events, want %d: one for each person", events, n)
		}
		if own := f.Int(`SELECT count(*) FROM events WHERE action = 'user.resume' AND actor_id = $1`, f.owner.User.ID); own != n {
			t.Errorf("%d events are those of who has asked", own)
		}
	})
}

// A made person's session is accepted on no node once the undo is done.
func TestUndoEndsSessions(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		id := f.make("eve@acme.example")
		m, err := f.member(id)
		f.NoError(err)
		eve := apptest.Person{User: m}
		f.SSOMode(f.owner, doorward.SSOOptional, doorward.GuestsAllowed)
		eve = f.ByConnection(eve)
		if !f.IsValid(eve.Token) {
			t.Fatal("the session isn't valid")
		}
		f.undo(f.last())
		if f.IsValid(eve.Token) || f.roleOf(id) != "" {
			t.Error("the person is still there after the undo")
		}
	})
}

// tried returns what a dry run says of the run, of all its people.
func (f *fixture) tried(run directoryrun.Run) directoryrun.Preview {
	f.Helper()
	f.Node(0).DirectoryRuns.SetTryFor(time.Hour)
	preview, err := f.Node(0).DirectoryRuns.Try(f.Context(), f.owner.Caller, f.con, run.ID)
	f.NoError(err)
	return preview
}

// doesOf returns what the dry run says that an undo does for somebody.
func doesOf(p directoryrun.Preview, id string) []directoryrun.Step {
	for _, b := range p.Back {
		if b.SubjectID == id {
			return b.Does
		}
	}
	return nil
}

// The dry run says what comes back with groups: places, and roles by them.
func TestTryGroups(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ctx := f.Context()
		admin, plain := f.make("ann@acme.example"), f.make("ben@acme.example")
		admins, err := f.Node(0).Directories.MakeGroup(ctx, f.by(0), scim.Group{DisplayName: "admins", Members: []string{admin}})
		f.NoError(err)
		sales, err := f.Node(0).Directories.MakeGroup(ctx, f.by(0), scim.Group{DisplayName: "sales", ExternalID: "s", Members: []string{plain}})
		f.NoError(err)
		f.pause()
		f.NoError(f.Node(0).Directories.DeleteGroup(ctx, f.by(0), admins.ID))
		_, err = f.Node(0).Directories.ReplaceGroup(ctx, f.by(0), sales.ID, scim.Group{DisplayName: "sales", ExternalID: "s"})
		f.NoError(err)
		run := f.last()
		p := f.tried(run)
		want := map[string][]directoryrun.Step{admin: {directoryrun.Move, directoryrun.GiveRole}, plain: {directoryrun.Move}, admins.ID: {directoryrun.Remake}}
		for id, does := range want {
			if got := doesOf(p, id); !slices.Equal(got, does) {
				t.Errorf("for %s the undo does %q, want %q", id, got, does)
			}
		}
		if p.People != 2 || p.Looked != 2 || p.BackTotal != 3 || p.LeftTotal != 0 || f.roleOf(admin) != doorward.RoleUser {
			t.Errorf("the dry run says %+v", p)
		}
		f.undo(run)
		if f.roleOf(admin) != doorward.RoleAdmin {
			t.Error("the role isn't back")
		}
	})
}

// A dry run judges each transaction by what earlier ones have done: who has the name of somebody is taken away before, and a
// quota is full.
func TestTryManyPeople(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		const n = 120
		var ids []string
		for i := range n {
			ids = append(ids, f.make(fmt.Sprintf("p%d@acme.example", i)))
		}
		guest := f.make("gus@elsewhere.example")
		f.pause()
		f.remove(guest)
		for _, id := range ids {
			f.remove(id)
		}
		for i := range 2 { // the accounts, and names, of people whom the dry run comes to in its second transaction
			f.make(fmt.Sprintf("p%d@acme.example", i))
		}
		f.make("gus@elsewhere.example")
		run := f.last()
		if p := f.tried(run); p.People != n+4 || p.Looked != n+4 || p.BackTotal != n+4 || len(p.Back) != n+4 || p.LeftTotal != 0 {
			t.Errorf("the dry run says: %d people, %d looked at, %d back, %d left %v", p.People, p.Looked, p.BackTotal, p.LeftTotal, p.Left)
		}
		f.Node(0).DirectoryRuns.SetTryFor(0)
		if p, err := f.Node(0).DirectoryRuns.Try(f.Context(), f.owner.Caller, f.con, run.ID); err != nil || p.Looked != 0 || p.People != n+4 {
			t.Errorf("without time the dry run says %+v, %v", p, err)
		}
		members := f.Int(`SELECT count(*) FROM memberships`)
		f.quota(int64(members + 110 - 2))
		p := f.tried(run)
		full := doorward.Undone(doorward.CodeQuotaExceeded)
		if p.LeftTotal == 0 || p.Left[0].Why != full {
			t.Errorf("with a quota: %d back, %d left", p.BackTotal, p.LeftTotal)
		}
		f.undo(run)
	})
}

// quota bounds the people of the tenant.
func (f *fixture) quota(people int64) {
	f.Helper()
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		return tx.SetQuotas(f.Context(), f.owner.TenantID, doorward.Quotas{People: &people})
	})
	f.NoError(err)
}

// An undo that was asked for before the operator froze or closed the tenant changes nobody from then on, and says so. While the
// tenant is frozen nobody begins one.
func TestUndoInAFrozenTenant(t *testing.T) {
	for why, stop := range map[doorward.Undone]func(*fixture) error{
		doorward.UndoneFrozen: func(f *fixture) error {
			return apptest.ErrorOf(f.Node(0).Tenants.Freeze(f.Context(), apptest.Operator, f.owner.TenantID))
		},
		doorward.UndoneClosing: func(f *fixture) error {
			return apptest.ErrorOf(f.Node(0).Tenants.CloseFor(f.Context(), apptest.Operator, f.owner.TenantID))
		},
	} {
		apptest.OnEach(t, func(base *apptest.Fixture) {
			f := newFixture(base)
			off := f.make("ann@acme.example")
			group, err := f.Node(0).Directories.MakeGroup(f.Context(), f.by(0), scim.Group{DisplayName: "admins", Members: []string{off}})
			f.NoError(err)
			f.pause()
			f.NoError(f.setActive(off, false))
			f.NoError(f.Node(0).Directories.DeleteGroup(f.Context(), f.by(0), group.ID))
			run := f.last()
			_, err = f.Node(0).DirectoryRuns.Undo(f.Context(), f.owner.Caller, f.con, run.ID)
			f.NoError(err)
			f.NoError(stop(f))
			f.NoError(f.Node(1).DirectoryRuns.Sweep(f.Context()))
			run, err = f.Node(0).DirectoryRuns.Get(f.Context(), f.owner.Caller, f.con, run.ID)
			f.NoError(err)
			if run.Undo != doorward.UndoDone || run.Undone != 0 || f.why(run, off) != why || f.why(run, group.ID) != why {
				t.Errorf("%s: the undo is %+v", why, run)
			}
			if m, err := f.DB.Read().User(f.Context(), f.owner.TenantID, off); err != nil || m.Status != doorward.UserSuspended {
				t.Errorf("%s: the person is %s, %v", why, m.Status, err)
			}
			f.Exec(`UPDATE directory_runs SET undo_state = ''`)
			for _, ask := range []func() error{
				func() error {
					return apptest.ErrorOf(f.Node(1).DirectoryRuns.Undo(f.Context(), f.owner.Caller, f.con, run.ID))
				},
				func() error {
					return apptest.ErrorOf(f.Node(1).DirectoryRuns.Try(f.Context(), f.owner.Caller, f.con, run.ID))
				},
			} {
				if err := ask(); apptest.Code(err) != doorward.Code(why) && apptest.Code(err) != doorward.CodeUnauthenticated {
					t.Errorf("%s: an undo that was begun later: %v", why, err)
				}
			}
		})
	}
}
