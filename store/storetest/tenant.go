package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func tenants(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	f.clock.move(time.Second)
	zeta := f.tenant("Zeta")

	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), acme)
	equal(f, f.value(allTenants(ctx, f.Read())), []doorward.Tenant{acme, zeta})
	f.wantNone(f.Read().Tenant(ctx, "tnt_none"))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.FreezeTenant(ctx, acme.ID))
		f.wantNoChange(tx.FreezeTenant(ctx, acme.ID))
		f.wantNoChange(tx.FreezeTenant(ctx, "tnt_none"))
		noError(f, tx.LockTenant(ctx, acme.ID))
		noError(f, tx.LockTenant(ctx, "tnt_none"))
	})
	acme.Status = doorward.TenantFrozen
	equal(f, f.value(allTenants(ctx, f.Read())), []doorward.Tenant{acme, zeta})
}

func settingsOfTenants(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	edited := acme
	edited.Name = "Acme Ltd"
	edited.Settings = doorward.TenantSettings{
		SessionIdle: 90 * time.Second, SessionAbsolute: time.Hour, InvitationDays: 3, AllowedDomains: []string{"acme.example", "xn--bcher-kva.example"},
		KeepEventsDays: 90,
	}
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, edited)) })
	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), edited)
	equal(f, f.value(f.Read().Tenant(ctx, zeta.ID)), zeta)
	f.write(func(tx *store.Tx) { noError(f, tx.EditTenant(ctx, acme)) })
	equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), acme)
}

// statusesOfTenants: freezing and closing are independent, in any order.
func statusesOfTenants(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	closed := f.clock.move(time.Second)
	end := closed.Add(time.Hour)
	steps := []struct {
		name    string
		run     func(*store.Tx) (bool, error)
		changes bool // it changes the tenant
		status  doorward.TenantStatus
		closed  bool
	}{
		{"thaw what is not frozen", func(tx *store.Tx) (bool, error) { return tx.ThawTenant(ctx, acme.ID, noon) }, false, doorward.TenantActive, false},
		{"restore what is not closed", func(tx *store.Tx) (bool, error) { return tx.RestoreTenant(ctx, acme.ID) }, false, doorward.TenantActive, false},
		{"close", func(tx *store.Tx) (bool, error) { return tx.CloseTenant(ctx, acme.ID, end) }, true, doorward.TenantClosing, true},
		{"thaw what is only closed", func(tx *store.Tx) (bool, error) { return tx.ThawTenant(ctx, acme.ID, noon) }, false, doorward.TenantClosing, true},
		{"freeze what is closed", func(tx *store.Tx) (bool, error) { return tx.FreezeTenant(ctx, acme.ID) }, true, doorward.TenantFrozen, true},
		{"restore what is frozen", func(tx *store.Tx) (bool, error) { return tx.RestoreTenant(ctx, acme.ID) }, true, doorward.TenantFrozen, false},
		{"close what is frozen", func(tx *store.Tx) (bool, error) { return tx.CloseTenant(ctx, acme.ID, end) }, true, doorward.TenantFrozen, true},
		{"close twice", func(tx *store.Tx) (bool, error) { return tx.CloseTenant(ctx, acme.ID, noon) }, false, doorward.TenantFrozen, true},
		{"thaw what is closed", func(tx *store.Tx) (bool, error) { return tx.ThawTenant(ctx, acme.ID, noon) }, true, doorward.TenantClosing, true},
		{"restore", func(tx *store.Tx) (bool, error) { return tx.RestoreTenant(ctx, acme.ID) }, true, doorward.TenantActive, false},
		{"freeze", func(tx *store.Tx) (bool, error) { return tx.FreezeTenant(ctx, acme.ID) }, true, doorward.TenantFrozen, false},
		{"thaw", func(tx *store.Tx) (bool, error) { return tx.ThawTenant(ctx, acme.ID, noon) }, true, doorward.TenantActive, false},
	}
	for _, s := range steps {
		f.write(func(tx *store.Tx) {
			changed, err := s.run(tx)
			noError(f, err)
			if changed != s.changes {
				f.Errorf("%s: the tenant changed: %v, want %v", s.name, changed, s.changes)
			}
		})
		want := acme
		want.Status = s.status
		if s.closed {
			want.ClosedAt, want.DestroyAt = pointerTo(closed), pointerTo(end)
		}
		equal(f, f.value(f.Read().Tenant(ctx, acme.ID)), want)
	}
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.CloseTenant(ctx, acme.ID, end))
		f.wantChange(tx.FreezeTenant(ctx, acme.ID))
		f.wantChange(tx.ThawTenant(ctx, acme.ID, end.Add(time.Hour))) // the thaw may postpone the end
	})
	late, err := f.Read().Tenant(ctx, acme.ID)
	equal(f, f.value(late.DestroyAt, err), pointerTo(end.Add(time.Hour)))
	f.clock.move(2 * time.Hour)
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.RestoreTenant(ctx, acme.ID)) }) // the hold is over
}
