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

// StripAccount removes the password and the known browsers of an account that is
// in no tenant. Address and id stay, for the trail and for a later invitation. The
// caller has locked the account, see HoldAccount.
func (tx *Tx) StripAccount(ctx context.Context, id string) error {
	if err := tx.RaiseGeneration(ctx, id, nil); err != nil {
		return err
	}
	return tx.run(ctx, sqlStripAccount, micros(tx.Now), id)
}

// LeftAccount is an account whose last membership has ended, if it has none since.
type LeftAccount struct {
	doorward.Account
	LeftAt time.Time // 1970 if it was before that was recorded
}

func leftAccountColumns(a *LeftAccount) []any {
	return append(accountColumns(&a.Account), (*storedTime)(&a.LeftAt))
}

const sqlLeftAccounts = `SELECT id, email, password_hash, created_at, locale, credential_generation, left_at
FROM users WHERE left_at IS NOT NULL AND left_at <= $1 ORDER BY left_at, id LIMIT $2`

// LeftAccounts returns accounts whose last membership ended at by or before and
// that ForgetLeft has not marked, the oldest first.
func (r Reader) LeftAccounts(ctx context.Context, by time.Time, limit int) ([]LeftAccount, error) {
	return list(ctx, r, leftAccountColumns, sqlLeftAccounts, micros(by), limit)
}

// ForgetLeft records that the account needs no further deletions.
func (tx *Tx) ForgetLeft(ctx context.Context, id string) error {
	return tx.run(ctx, sqlForgetLeft, id)
}
