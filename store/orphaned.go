package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

const (
	sqlClearCredentials = `UPDATE users SET password_hash = '', left_at = $1 WHERE id = $2`
	sqlUnmarkOrphaned   = `UPDATE users SET left_at = NULL WHERE id = $1`
)

// ClearCredentials removes the password, the factors, the challenges and the known browsers of
// an account that is in no tenant, and marks it as orphaned. Address and id stay, for the trail
// and for a later invitation. The caller has locked the account, see LockAccount.
func (tx *Tx) ClearCredentials(ctx context.Context, id string) error {
	if err := tx.RaiseCredentialGeneration(ctx, id, nil); err != nil {
		return err
	}
	if err := tx.DeleteFactors(ctx, id); err != nil {
		return err
	}
	if err := tx.EndChallenges(ctx, id); err != nil {
		return err
	}
	if err := tx.ExpireFactorCodes(ctx, id); err != nil {
		return err
	}
	return tx.run(ctx, sqlClearCredentials, micros(tx.Now), id)
}

const sqlOrphanedAccounts = `SELECT id, email, password_hash, created_at, locale, credential_generation, factors, managed_by
FROM users WHERE left_at IS NOT NULL AND left_at <= $1 ORDER BY left_at, id LIMIT $2`

// OrphanedAccounts returns accounts whose last membership ended at an instant or before, the
// oldest end first. They may have a new membership. Those that UnmarkOrphaned has removed are left out.
func (r Reader) OrphanedAccounts(ctx context.Context, until time.Time, limit int) ([]doorward.Account, error) {
	return list(ctx, r, accountFields, sqlOrphanedAccounts, micros(until), limit)
}

// UnmarkOrphaned removes the account from OrphanedAccounts: it has a membership again, or
// nothing of it is left to delete.
func (tx *Tx) UnmarkOrphaned(ctx context.Context, id string) error {
	return tx.run(ctx, sqlUnmarkOrphaned, id)
}
