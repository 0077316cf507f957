package directory

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Sweep tells OWNERs of secrets that end soon, gives roles that are due, and deletes old runs with their effects. Several
// nodes may sweep at the same time. Errors: unavailable.
func (d *Directories) Sweep(ctx context.Context) error {
	errs := []error{
		d.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldDirectoryRuns(ctx, tx.Now.Add(-doorward.DirectoryRunsKept), limit)
		}),
		d.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { // of runs that are gone
			return tx.DeleteOldDirectoryEffects(ctx, tx.Now.Add(-doorward.DirectoryRunsKept-doorward.DirectoryRunMax), limit)
		}),
		d.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldRefusals(ctx, tx.Now.Add(-refusedFor), limit)
		}),
	}
	errs = append(errs, access.EachEnding(d.db.Now, func(s store.ExpiringSecret) string { return s.ID }, func(from, to time.Time, number, limit int) ([]store.ExpiringSecret, error) {
		return d.db.Read().ExpiringSCIMSecrets(ctx, from, to, number, limit)
	}, func(s store.ExpiringSecret, number int) error { return d.notifyBefore(ctx, s, number) }))
	return errors.Join(append(errs, d.sweepRoles(ctx))...)
}

func (d *Directories) sweepRoles(ctx context.Context) error {
	due, err := d.db.Read().DueConnections(ctx, true)
	for _, c := range due {
		by := doorward.Caller{Principal: doorward.Principal{Kind: doorward.ByDirectory, ID: c.ID, TenantID: c.TenantID, ConnectionID: c.ID}}
		err = errors.Join(err, d.finishRoles(ctx, by))
	}
	return err
}

func (d *Directories) notifyBefore(ctx context.Context, s store.ExpiringSecret, number int) error {
	on := doorward.Object{Type: "connection", ID: s.ConnectionID, TenantID: s.TenantID}
	_, err := d.writer.Do(ctx, access.System, doorward.ConnectionSecretChange, on, func(tx *access.Tx) error {
		due, err := tx.MarkSCIMNotice(ctx, s.ID, number)
		if err != nil || !due {
			tx.SkipEvent()
			return err
		}
		tx.Changed(doorward.FieldSCIMSecret, s.Hint, s.Hint)
		tx.Changed(doorward.FieldEndsAt, "", s.ExpiresAt.Format(time.RFC3339))
		return tx.NotifyHolders(ctx, store.MailSCIMSecretExpiring, s.TenantID, doorward.RoleOwner)
	})
	return err
}
