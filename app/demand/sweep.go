package demand

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Sweep writes down the return of demands that were not confirmed in time, with an event for each. It ends
// sessions of connections where the mode is off again. Several nodes may do so at the same time.
func (d *Demands) Sweep(ctx context.Context) error {
	return access.EachDue(func(p doorward.SSOPolicy) string { return p.TenantID }, func(limit int) ([]doorward.SSOPolicy, error) {
		return d.db.Read().OverdueSSOPolicies(ctx, d.db.Now(), limit)
	}, func(p doorward.SSOPolicy) error { return d.revert(ctx, p.TenantID) })
}

// revert writes the return of one tenant's demand, if it is still to be written.
func (d *Demands) revert(ctx context.Context, tenantID string) error {
	_, err := d.writer.Do(ctx, access.System, doorward.SSORevert, object(tenantID), func(tx *access.Tx) error {
		overdue, err := tx.OverdueSSOPolicy(ctx, tenantID, tx.Now)
		if errors.Is(err, store.ErrNone) { // another node was faster, or it was changed
			tx.SkipEvent()
			return nil
		}
		if err != nil {
			return err
		}
		holds := overdue.At(tx.Now)
		record(tx, overdue, holds)
		if err := tx.SetSSOPolicy(ctx, holds); err != nil || holds.SignsIn() {
			return err
		}
		_, err = d.endSignOn(ctx, tx, tenantID)
		return err
	})
	return err
}
