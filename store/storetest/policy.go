package storetest

import (
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// policies: the last version of a tenant's policies can hold, and while it is not confirmed
// the last confirmed one as well; a change makes all nodes read the tenant again.
func policies(f *fixture) {
	ctx := f.Context()
	acme, other := f.tenant("Acme"), f.tenant("Other")
	insert := func(v store.PolicyVersion) store.PolicyVersion {
		before, err := f.Read().RulesVersion(ctx, acme.ID)
		noError(f, err)
		changes, err := f.Write(ctx, func(tx *store.Tx) error {
			v.TenantID, v.Mode, v.CreatedAt, v.CreatedBy = acme.ID, store.PolicyEnforces, tx.Now, "usr_1"
			return tx.InsertPolicy(ctx, v)
		})
		equal(f, f.value(changes[0].Kind, err), store.ChangeTenant)
		after, err := f.Read().RulesVersion(ctx, acme.ID)
		equal(f, f.value(before != after, err), true)
		return v
	}
	holding := func() store.Policies {
		p, err := f.Read().Policies(ctx, acme.ID)
		noError(f, err)
		return p
	}
	equal(f, holding(), store.Policies{})
	until := f.clock.read().Add(time.Hour).Truncate(time.Microsecond)
	unconfirmed := insert(store.PolicyVersion{Version: 1, Text: "first", ConfirmUntil: &until})
	equal(f, *holding().Latest, unconfirmed)
	equal(f, holding().Confirmed == nil, true)
	equal(f, holding().At(until) == nil, true)
	second := insert(store.PolicyVersion{Version: 2, Text: "second"})
	equal(f, *holding().Confirmed, second)
	third := insert(store.PolicyVersion{Version: 3, Text: "third", ConfirmUntil: &until})
	equal(f, []store.PolicyVersion{*holding().At(until.Add(-time.Microsecond)), *holding().At(until)}, []store.PolicyVersion{third, second})
	confirm := func(tenantID string, version int64) (done bool) {
		f.write(func(tx *store.Tx) {
			var err error
			done, err = tx.ConfirmPolicy(ctx, tenantID, version)
			noError(f, err)
		})
		return done
	}
	equal(f, []bool{confirm(other.ID, 3), confirm(acme.ID, 2), confirm(acme.ID, 3), confirm(acme.ID, 3)}, []bool{false, false, true, false})
	third.ConfirmUntil = nil
	equal(f, *holding().At(until), third)
	is, err := f.Read().PolicyVersion(ctx, acme.ID, 2)
	equal(f, f.value(is, err), second)
	_, err = f.Read().PolicyVersion(ctx, other.ID, 2)
	equal(f, errors.Is(err, store.ErrNone), true)
	page, err := f.Read().PolicyPage(ctx, acme.ID, doorward.Window{Limit: 2})
	equal(f, f.value(page.Items, err), []store.PolicyVersion{third, second})
	page, err = f.Read().PolicyPage(ctx, acme.ID, doorward.Window{Limit: 2, After: *page.Next})
	equal(f, f.value(page.Items, err), []store.PolicyVersion{unconfirmed})
}
