package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

const (
	sqlStripAccount = `UPDATE users SET password_hash = '', left_at = $1 WHERE id = $2`
	sqlForgetLeft   = `UPDATE users SET left_at = NULL WHERE id = $1`
)

// StripAccount takes from an account that is in no tenant any more what it could be
// signed in to with, and all trust in browsers. The address and the id stay, for
// the trail and for an invitation to come. The caller holds the account, see
// HoldAccount.
func (tx *Tx) StripAccount(ctx context.Context, id string) error {
	if err := tx.RaiseGeneration(ctx, id, nil); err != nil {
		return err
	}
	return tx.run(ctx, sqlStripAccount, micros(tx.Now), id)
}

// LeftAccount is an account whose last membership has ended, if it has none since.
type LeftAccount struct {
	doorward.Account
	LeftAt time.Time // 1970 when that was before it was noted
}

func leftAccountColumns(a *LeftAccount) []any {
	return append(accountColumns(&a.Account), (*storedTime)(&a.LeftAt))
}

const sqlLeftAccounts = `SELECT id, email, password_hash, created_at, locale, credential_generation, left_at
FROM users WHERE left_at IS NOT NULL AND left_at <= $1 ORDER BY left_at, id LIMIT $2`

// LeftAccounts returns accounts whose last membership ended at the instant or
// before and with which ForgetLeft isn't done, the longest gone first.
func (r Reader) LeftAccounts(ctx context.Context, by time.Time, limit int) ([]LeftAccount, error) {
	return list(ctx, r, leftAccountColumns, sqlLeftAccounts, micros(by), limit)
}

// ForgetLeft notes that nothing more has to go with the account's last membership.
func (tx *Tx) ForgetLeft(ctx context.Context, id string) error {
	return tx.run(ctx, sqlForgetLeft, id)
}
