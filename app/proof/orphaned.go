package proof

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

const (
	// counterRetention is how long an account's counters are kept after its last membership: a
	// removal must not reset the count of guesses.
	counterRetention = 24 * time.Hour
	orphanBatch      = 100
)

// SweepOrphaned deletes the counters of accounts that have been in no tenant for a day. The password
// and known browsers of an account are deleted with its last membership.
func (v *Verifier) SweepOrphaned(ctx context.Context) error {
	for {
		orphaned, err := v.db.Read().OrphanedAccounts(ctx, v.db.Now().Add(-counterRetention), orphanBatch)
		if err != nil || len(orphaned) == 0 {
			return err
		}
		for _, account := range orphaned {
			err = errors.Join(err, v.writer.Upkeep(ctx, func(tx *store.Tx) error { return sweepOrphaned(ctx, tx, account) }))
		}
		if err != nil {
			return err
		}
	}
}

// sweepOrphaned checks again under the lock on the account, which member.Ensure takes too.
func sweepOrphaned(ctx context.Context, tx *store.Tx, account doorward.Account) error {
	if locked, err := tx.LockAccount(ctx, account.ID); err != nil || !locked {
		return err
	}
	memberships, err := tx.CountMemberships(ctx, account.ID)
	if err != nil {
		return err
	}
	if memberships == 0 {
		if err := tx.DeleteCounters(ctx, account); err != nil {
			return err
		}
	}
	return tx.UnmarkOrphaned(ctx, account.ID)
}
