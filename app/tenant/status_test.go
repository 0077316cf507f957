package tenant_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// TestClosingOutrunsLogin: once the closing has returned, no session of a USER is valid, and a
// restore of the tenant revives none.
func TestClosingOutrunsLogin(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		account := f.Account(bob)
		for range apptest.Rounds(12, 40) {
			var o apptest.OpenedSessions
			errs := apptest.Concurrently(5, func(i int) error {
				if i == 4 {
					_, _, err := f.Node(0).Tenants.Close(f.Context(), owner.Caller, acme.Name)
					return err
				}
				return o.Add(f.Enter(i, account, acme.ID))
			})
			f.NoError(errs[4])
			f.WantOnly(errs, "", doorward.CodeTenantClosing)
			if n := f.CountValid(&o); n > 0 {
				f.Fatalf("%d sessions are valid after the closing", n)
			}
			owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
			_, err := f.Node(1).Tenants.Restore(f.Context(), owner.Caller)
			f.NoError(err)
			if n := f.CountValid(&o); n > 0 || !f.IsValid(owner.Token) {
				f.Fatalf("%d sessions were revived; the OWNER's own is valid: %v", n, f.IsValid(owner.Token))
			}
			owner = f.SignIn(owner.User.Email, apptest.FirstPassword) // as a member of an active tenant
		}
	})
}

// TestRestoreBringsNoSessionBack: a restore revives no session of a USER, not even one that
// was written during the closing.
func TestRestoreBringsNoSessionBack(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		bob := f.Join(owner, doorward.RoleUser)
		_, _, err := f.Node(0).Tenants.Close(f.Context(), owner.Caller, acme.Name)
		f.NoError(err)
		slipped, now := secret.New(), f.DB.Now()
		hash := slipped.Hash()
		_, err = f.DB.Write(f.Context(), func(tx *store.Tx) error {
			return tx.InsertSession(f.Context(), doorward.Session{
				ID: doorward.NewID(doorward.PrefixSession), UserID: bob.User.ID, TenantID: acme.ID, CreatedAt: now, LastSeenAt: now,
			}, hash[:])
		})
		f.NoError(err)
		if f.IsValid(slipped) {
			f.Fatal("a USER's session is valid in a tenant that is closing")
		}
		_, err = f.Node(0).Tenants.Restore(f.Context(), f.SignIn(owner.User.Email, apptest.FirstPassword).Caller)
		f.NoError(err)
		if f.IsValid(slipped) {
			f.Error("the session was revived")
		}
	})
}

// storedTenant returns the tenant as it is stored.
func storedTenant(f *apptest.Fixture, id string) doorward.Tenant {
	f.Helper()
	t, err := f.Node(0).Tenants.Get(f.Context(), id)
	f.NoError(err)
	return t
}

// TestFreezeOfAClosedTenant: an OWNER can't undo a freeze, not even by closing
// and restoring.
func TestFreezeOfAClosedTenant(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		closed, _, err := f.Node(0).Tenants.Close(f.Context(), owner.Caller, acme.Name)
		f.NoError(err)
		owner = f.SignIn(owner.User.Email, apptest.FirstPassword) // to restore it
		ended, err := f.Node(1).Tenants.Freeze(f.Context(), apptest.Operator, acme.ID)
		if err != nil || ended.Sessions != 1 {
			t.Fatalf("freezing a closed tenant ends %d sessions, %v; want the OWNER's", ended.Sessions, err)
		}
		if f.IsValid(owner.Token) {
			t.Error("the OWNER's session is still valid")
		}
		if got := f.TryLogin(owner.User.Email, apptest.FirstPassword); got != doorward.CodeTenantFrozen {
			t.Errorf("the OWNER's login: %q", got)
		}
		if _, err := f.Node(0).Tenants.Restore(f.Context(), owner.Caller); apptest.Code(err) != doorward.CodeUnauthenticated {
			t.Errorf("restoring with a session that has ended: %v", err)
		}
		frozen := storedTenant(f, acme.ID)
		if frozen.Status != doorward.TenantFrozen || frozen.DestroyAt == nil || !frozen.DestroyAt.Equal(*closed.DestroyAt) {
			t.Errorf("the tenant is %s, destroyed at %v, want %v", frozen.Status, frozen.DestroyAt, closed.DestroyAt)
		}

		f.NoError(apptest.ErrorOf(f.Node(1).Tenants.Thaw(f.Context(), apptest.Operator, acme.ID)))
		if err := apptest.ErrorOf(f.Node(0).Tenants.Thaw(f.Context(), apptest.Operator, acme.ID)); apptest.Code(err) != doorward.CodeTenantClosing {
			t.Errorf("thawing a closed tenant that isn't frozen: %v", err)
		}
		if thawed := storedTenant(f, acme.ID); thawed.Status != doorward.TenantClosing {
			t.Errorf("the thawed tenant is %s", thawed.Status)
		}
		owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
		restored, err := f.Node(0).Tenants.Restore(f.Context(), owner.Caller)
		if err != nil || restored.Status != doorward.TenantActive || restored.ClosedAt != nil || restored.DestroyAt != nil {
			t.Errorf("restored: %+v, %v", restored, err)
		}
	})
}

// TestFreezeCloseAndRestoreAtOnce: in any order, a tenant frozen by the operator
// stays frozen, and no session there is valid.
func TestFreezeCloseAndRestoreAtOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		closedToo := 0
		rounds := apptest.Rounds(10, 25)
		for range rounds {
			second := f.SignIn(owner.User.Email, apptest.FirstPassword)
			errs := apptest.Concurrently(3, func(i int) (err error) {
				switch i {
				case 0:
					_, err = f.Node(0).Tenants.Freeze(f.Context(), apptest.Operator, acme.ID)
				case 1:
					_, _, err = f.Node(1).Tenants.Close(f.Context(), owner.Caller, acme.Name)
				case 2:
					_, err = f.Node(1).Tenants.Restore(f.Context(), second.Caller)
				}
				return err
			})
			f.NoError(errs[0])
			f.WantOnly(errs[1:], "", doorward.CodeUnauthenticated, doorward.CodeTenantFrozen, doorward.CodeTenantNotClosing)
			stored := storedTenant(f, acme.ID)
			if stored.Status != doorward.TenantFrozen || f.IsValid(owner.Token) || f.IsValid(second.Token) {
				t.Fatalf("the tenant is %s; sessions are valid: %v %v", stored.Status, f.IsValid(owner.Token), f.IsValid(second.Token))
			}
			f.NoError(apptest.ErrorOf(f.Node(0).Tenants.Thaw(f.Context(), apptest.Operator, acme.ID)))
			owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
			if stored.ClosedAt != nil {
				closedToo++
				_, err := f.Node(1).Tenants.Restore(f.Context(), owner.Caller)
				f.NoError(err)
				owner = f.SignIn(owner.User.Email, apptest.FirstPassword) // as a member of an active tenant
			}
		}
		t.Logf("of %d freezes %d came with a closing", rounds, closedToo)
	})
}

// TestFrozenTenantsAreNotDestroyed: a frozen tenant is kept even if its hold is
// over, and after the thaw an OWNER has a day to restore it.
func TestFrozenTenantsAreNotDestroyed(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		_, _, err := f.Node(0).Tenants.Close(f.Context(), owner.Caller, acme.Name)
		f.NoError(err)
		_, err = f.Node(0).Tenants.Freeze(f.Context(), apptest.Operator, acme.ID)
		f.NoError(err)
		clock.Move(apptest.TenantHold + time.Hour)
		f.NoError(f.Node(1).Tenants.Sweep(f.Context()))
		storedTenant(f, acme.ID)
		f.NoError(apptest.ErrorOf(f.Node(0).Tenants.Thaw(f.Context(), apptest.Operator, acme.ID)))
		f.NoError(f.Node(1).Tenants.Sweep(f.Context()))
		clock.Move(23 * time.Hour)
		f.NoError(f.Node(1).Tenants.Sweep(f.Context()))
		owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
		clock.Move(2 * time.Hour)
		f.NoError(f.Node(1).Tenants.Sweep(f.Context()))
		if _, err := f.Node(0).Tenants.Get(f.Context(), acme.ID); apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("a day after the thaw the tenant still exists: %v", err)
		}
	})
}

// TestDestructionIsNotEarlier: a shorter hold of another node doesn't make the destruction
// earlier.
func TestDestructionIsNotEarlier(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		acme, owner := f.Tenant()
		closed, _, err := f.Node(0).Tenants.Close(f.Context(), owner.Caller, acme.Name)
		f.NoError(err)
		if got := closed.DestroyAt.Sub(*closed.ClosedAt); got != apptest.TenantHold {
			f.Fatalf("the data is destroyed %v after the closing, want %v", got, apptest.TenantHold)
		}
		var journal logtest.Journal
		hasty := app.New(f.DB, app.Settings{Lease: lease.MinLease, Hash: argon.Params{MemoryKiB: 1024, Time: 1, Parallelism: 1}, Log: slog.New(slog.NewTextHandler(&journal, nil))}).Tenants // a hold of 0s
		for range 2 {
			f.NoError(hasty.Sweep(f.Context()))
			storedTenant(f, acme.ID)
			clock.Move(apptest.TenantHold - time.Hour)
		}
		clock.Move(2*time.Hour - apptest.TenantHold)
		f.NoError(hasty.Sweep(f.Context()))
		if _, err := f.Node(0).Tenants.Get(f.Context(), acme.ID); apptest.Code(err) != doorward.CodeNotFound {
			f.Errorf("after the hold the tenant still exists: %v", err)
		}
		for _, want := range []string{"tenant data is being destroyed", "tenant data is destroyed", acme.ID, "destroyAt"} {
			if !strings.Contains(journal.String(), want) {
				f.Errorf("the log doesn't contain %q:\n%s", want, journal.String())
			}
		}
	})
}
