package tenant

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// concerns reports whether the demand next concerns members whom the demand was did not, or concerns them
// earlier.
func concerns(next, was doorward.SecondFactor) bool {
	if next.Since.IsZero() {
		return false
	}
	return was.Since.IsZero() || !was.CoversAll(next) || next.GraceDays < was.GraceDays
}

// notifyConcerned makes notifyMembers notify those whom the new settings concern. They may be too many
// for one transaction.
func notifyConcerned(ctx context.Context, tx *access.Tx, before, after doorward.Tenant) error {
	if !concerns(after.Settings.SecondFactor, before.Settings.SecondFactor) {
		return nil
	}
	return tx.AddFactorDemand(ctx, after.ID, tx.EventID())
}

// notifiedAtOnce is how many members one transaction reads, and queues a mail for.
const notifiedAtOnce = 200

// notifyMembers queues the notices of all demands for second factors. It can be interrupted at any point
// and continues the next time, on any node; each member gets one notice of a demand.
func (t *Tenants) notifyMembers(ctx context.Context) error {
	return access.EachDue(func(d store.FactorDemand) string { return d.TenantID }, func(limit int) ([]store.FactorDemand, error) {
		return t.db.Read().FactorDemands(ctx, limit)
	}, func(d store.FactorDemand) error { return t.notifySome(ctx, d) })
}

// notifySome queues the notices to the next members.
func (t *Tenants) notifySome(ctx context.Context, d store.FactorDemand) error {
	return t.writer.Upkeep(ctx, func(tx *store.Tx) error {
		members, err := tx.TakeFactorDemand(ctx, d, notifiedAtOnce)
		if err != nil || len(members) == 0 {
			return err
		}
		tenant, err := tx.Tenant(ctx, d.TenantID)
		if err != nil {
			return err
		}
		tx.MailShare = d.TenantID
		for _, m := range members {
			if m.IsActive() && m.Factors == 0 && tenant.Settings.SecondFactor.Covers(m.Role) {
				err = errors.Join(err, tx.QueueMail(ctx, store.MailFactorsDemanded, m.Email, d.EventID))
			}
		}
		return err
	})
}
