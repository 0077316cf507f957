package demand_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/demand"
)

// TestReadiness: who would be shut out is who is shut out, and why.
func TestReadiness(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		a := newAcme(f)
		ann, bob, guest := joinAs(f, a.owner, a.address("ann"), doorward.RoleUser), joinAs(f, a.owner, a.address("bob"), doorward.RoleUser), f.Join(a.owner, doorward.RoleUser)
		old, long := joinAs(f, a.owner, "old@old.example", doorward.RoleUser), f.Join(a.owner, doorward.RoleUser)
		gone := joinAs(f, a.owner, a.address("gone"), doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), a.owner.Caller, gone.User)))
		f.Connection(a.owner, "old.example")
		f.Exec(`UPDATE domains SET status = 'lapsed' WHERE domain = 'old.example'`)
		f.Identity(long, a.con)
		f.Exec(`UPDATE identities SET last_used_at = $1`, f.DB.Now().Add(-31*24*time.Hour).UnixMicro())
		f.Identity(ann, a.con)
		ready := func() demand.Readiness {
			f.Helper()
			r, err := f.Node(0).Demands.Readiness(f.Context(), a.owner.Caller)
			f.NoError(err)
			return r
		}
		never := func(all ...demand.Unready) []demand.Unready {
			slices.SortFunc(all, func(a, b demand.Unready) int { return strings.Compare(a.UserID, b.UserID) })
			return all
		}
		lapsed, notYet := demand.Unready{UserID: old.ID, Email: old.Email, Why: demand.DomainLapsed}, demand.Unready{UserID: bob.ID, Email: bob.Email, Why: demand.NotYet}
		want := demand.Readiness{
			Members: 6, Recently: 1, Guests: 2, NeverCount: 2, Never: never(lapsed, notYet),
			Owners: []demand.Owner{{UserID: a.owner.ID, HasWayBack: true}},
		}
		before := f.RowsWithoutNodes()
		if diff := cmp.Diff(want, ready()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if diff := cmp.Diff(before, f.RowsWithoutNodes()); diff != "" {
			t.Errorf("something was written:\n%s", diff)
		}
		a.demanded(f, doorward.GuestsRefused)
		want.NeverCount, want.Never = 3, never(lapsed, notYet, demand.Unready{UserID: guest.ID, Email: guest.Email, Why: demand.Guest})
		if diff := cmp.Diff(want, ready()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		refused := []apptest.Person{ann, bob, guest, old, long}
		for _, p := range refused {
			if apptest.Code(signInTo(f, 0, p, a.id)) == "" {
				t.Errorf("%s isn't shut out", p.Email)
			}
		}
		f.Exec(`UPDATE connections SET status = 'disabled'`)
		if got := ready().Never; !slices.ContainsFunc(got, func(u demand.Unready) bool { return u.UserID == bob.ID && u.Why == demand.NoConnection }) {
			t.Errorf("without a connection they are %+v", got)
		}
	})
}

// TestDiscover: how somebody signs in follows from the domain and the tenant's mode, and from nothing else.
func TestDiscover(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.HighLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		a := newAcme(f)
		asked := 0
		home := func(address string) demand.Home {
			f.Helper()
			asked++
			h, err := f.Node(0).Demands.Discover(f.Context(), apptest.Anonymous(7), address)
			f.NoError(err)
			return h
		}
		none := demand.Home{}
		check := func(address string, want demand.Home) {
			f.Helper()
			if got := home(address); got != want {
				f.Errorf("%q signs in by %+v, want %+v", address, got, want)
			}
		}
		nobody := a.address("nobody")
		check(nobody, none)
		f.SSOMode(a.owner, doorward.SSOOptional, doorward.GuestsAllowed)
		byCon := demand.Home{ConnectionID: a.con, ConnectionName: "Okta"}
		check(nobody, byCon)
		check(strings.ToUpper(nobody), byCon)
		a.demanded(f, doorward.GuestsAllowed)
		byCon.IsRequired = true
		check(nobody, byCon)
		for _, other := range []string{"x@sub." + a.domain, "x@elsewhere.example", "", "x", "@" + a.domain, a.owner.Email} {
			check(other, none)
		}
		for _, end := range []string{`UPDATE domains SET status = 'lapsed'`, `UPDATE domains SET status = 'verified'; UPDATE connections SET status = 'draft'`} {
			for statement := range strings.SplitSeq(end, ";") {
				f.Exec(statement)
			}
			check(nobody, none)
		}
		f.SSOMode(a.owner, doorward.SSOOff, doorward.GuestsAllowed)
		f.Exec(`UPDATE connections SET status = 'active'`)
		check(nobody, none)
		for ; asked < 60; asked++ {
			f.NoError(apptest.ErrorOf(f.Node(0).Demands.Discover(f.Context(), apptest.Anonymous(7), nobody)))
		}
		want(f, apptest.ErrorOf(f.Node(0).Demands.Discover(f.Context(), apptest.Anonymous(7), nobody)), doorward.CodeTooManyAttempts)
		f.NoError(apptest.ErrorOf(f.Node(0).Demands.Discover(f.Context(), apptest.Anonymous(8), nobody)))
		clock.Move(time.Minute)
		f.NoError(apptest.ErrorOf(f.Node(0).Demands.Discover(f.Context(), apptest.Anonymous(7), nobody)))
	})
}
