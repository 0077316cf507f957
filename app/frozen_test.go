package app_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/store"
)

// status returns the tenant as it is stored.
func (w *world) status(id string) doorward.Tenant {
	w.Helper()
	t, err := w.on(0).Tenants.Get(w.Context(), id)
	w.ok(err)
	return t
}

// TestFreezeOfAClosedTenant: an OWNER gets out of a freeze by no way, closing and
// restoring included.
func TestFreezeOfAClosedTenant(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		closed, _, err := w.on(0).Tenants.Close(w.Context(), owner.Caller, acme.Name)
		w.ok(err)
		owner = w.signIn(owner.Email, first) // to restore it
		ended, err := w.on(1).Tenants.Freeze(w.Context(), operator, acme.ID)
		if err != nil || ended.Sessions != 1 {
			t.Fatalf("freezing a closed tenant ends %d sessions, %v; want the OWNER's", ended.Sessions, err)
		}
		if w.passes(owner.token) {
			t.Error("the OWNER's session goes on")
		}
		if got := w.tries(owner.Email, first); got != doorward.CodeTenantFrozen {
			t.Errorf("the OWNER's login ends with %q", got)
		}
		if _, err := w.on(0).Tenants.Restore(w.Context(), owner.Caller); code(err) != doorward.CodeUnauthenticated {
			t.Errorf("restoring with a session that has ended: %v", err)
		}
		both := w.status(acme.ID)
		if both.Status != doorward.TenantFrozen || both.DestroyAt == nil || !both.DestroyAt.Equal(*closed.DestroyAt) {
			t.Errorf("the tenant is %s, destroyed at %v, want %v", both.Status, both.DestroyAt, closed.DestroyAt)
		}

		w.ok(failure(w.on(1).Tenants.Thaw(w.Context(), operator, acme.ID)))
		if err := failure(w.on(0).Tenants.Thaw(w.Context(), operator, acme.ID)); code(err) != doorward.CodeTenantClosing {
			t.Errorf("thawing what is closed and not frozen: %v", err)
		}
		if is := w.status(acme.ID); is.Status != doorward.TenantClosing {
			t.Errorf("the thawed tenant is %s", is.Status)
		}
		owner = w.signIn(owner.Email, first)
		restored, err := w.on(0).Tenants.Restore(w.Context(), owner.Caller)
		if err != nil || restored.Status != doorward.TenantActive || restored.ClosedAt != nil || restored.DestroyAt != nil {
			t.Errorf("restored: %+v, %v", restored, err)
		}
	})
}

// TestFreezeCloseAndRestoreAtOnce: whatever comes first, a tenant that the operator
// has frozen stays so, and nobody's session is of use there.
func TestFreezeCloseAndRestoreAtOnce(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		var closedToo, restored int
		for range 25 {
			second := w.signIn(owner.Email, first)
			errs := together(3, func(i int) (err error) {
				switch i {
				case 0:
					_, err = w.on(0).Tenants.Freeze(w.Context(), operator, acme.ID)
				case 1:
					_, _, err = w.on(1).Tenants.Close(w.Context(), owner.Caller, acme.Name)
				case 2:
					_, err = w.on(1).Tenants.Restore(w.Context(), second.Caller)
				}
				return err
			})
			w.ok(errs[0])
			w.only(errs[1:], "", doorward.CodeUnauthenticated, doorward.CodeTenantFrozen, doorward.CodeTenantNotClosing)
			is := w.status(acme.ID)
			if is.Status != doorward.TenantFrozen || w.passes(owner.token) || w.passes(second.token) {
				t.Fatalf("the tenant is %s; sessions pass: %v %v", is.Status, w.passes(owner.token), w.passes(second.token))
			}
			w.ok(failure(w.on(0).Tenants.Thaw(w.Context(), operator, acme.ID)))
			owner = w.signIn(owner.Email, first)
			if is.ClosedAt != nil {
				closedToo++
				owner = w.signIn(owner.Email, first)
				_, err := w.on(1).Tenants.Restore(w.Context(), owner.Caller)
				w.ok(err)
				restored++
			}
		}
		t.Logf("of 25 freezes %d met a closing", closedToo)
	})
}

// TestFrozenTenantsAreNotDestroyed: what is frozen is kept, however long ago the
// hold ended, and after the thaw an OWNER has a day.
func TestFrozenTenantsAreNotDestroyed(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			clock := &ahead{}
			w := newWorld(t, e, noLimits, clock.now)
			acme, owner := w.tenant()
			_, _, err := w.on(0).Tenants.Close(t.Context(), owner.Caller, acme.Name)
			w.ok(err)
			_, err = w.on(0).Tenants.Freeze(t.Context(), operator, acme.ID)
			w.ok(err)
			clock.move(hold + time.Hour)
			w.ok(w.on(1).Tenants.Sweep(t.Context()))
			w.status(acme.ID)
			w.ok(failure(w.on(0).Tenants.Thaw(t.Context(), operator, acme.ID)))
			w.ok(w.on(1).Tenants.Sweep(t.Context()))
			clock.move(23 * time.Hour)
			w.ok(w.on(1).Tenants.Sweep(t.Context()))
			owner = w.signIn(owner.Email, first)
			clock.move(2 * time.Hour)
			w.ok(w.on(1).Tenants.Sweep(t.Context()))
			if _, err := w.on(0).Tenants.Get(t.Context(), acme.ID); code(err) != doorward.CodeNotFound {
				t.Errorf("a day after the thaw the tenant is there: %v", err)
			}
		})
	}
}

// TestDestructionIsAsPromised: neither another node's hold nor what the version
// before leaves out brings it forward.
func TestDestructionIsAsPromised(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			clock := &ahead{}
			w := newWorld(t, e, noLimits, clock.now)
			acme, owner := w.tenant()
			old, oldOwner := w.tenant()
			closed, _, err := w.on(0).Tenants.Close(t.Context(), owner.Caller, acme.Name)
			w.ok(err)
			if got := closed.DestroyAt.Sub(*closed.ClosedAt); got != hold {
				t.Fatalf("the data is destroyed %v after the closing, want %v", got, hold)
			}
			_, _, err = w.on(0).Tenants.Close(t.Context(), oldOwner.Caller, old.Name)
			w.ok(err)
			w.exec(`UPDATE tenants SET destroy_at = NULL WHERE id = $1`, old.ID) // as the version before leaves it
			var journal logtest.Journal
			hasty := app.New(w.db, app.Settings{Lease: store.MinLease, Hash: argon.Params{MemoryKiB: 1024, Time: 1, Parallelism: 1}, Log: slog.New(slog.NewTextHandler(&journal, nil))}).Tenants // a hold of 0s
			for range 2 {
				w.ok(hasty.Sweep(t.Context()))
				w.status(acme.ID)
				w.status(old.ID)
				clock.move(hold - time.Hour)
			}
			clock.move(2*time.Hour - hold)
			w.ok(hasty.Sweep(t.Context()))
			for _, id := range []string{acme.ID, old.ID} {
				if _, err := w.on(0).Tenants.Get(t.Context(), id); code(err) != doorward.CodeNotFound {
					t.Errorf("after the hold the tenant is there: %v", err)
				}
			}
			for _, want := range []string{"tenant data is being destroyed", "tenant data is destroyed", acme.ID, "destroyAt"} {
				if !strings.Contains(journal.String(), want) {
					t.Errorf("the log does not say %q:\n%s", want, journal.String())
				}
			}
		})
	}
}
