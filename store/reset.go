package store

import (
	"context"
	"time"
)

// Reset is a requested reset of a password.
type Reset struct {
	ID        string
	UserID    string
	CreatedAt time.Time
	ExpiresAt time.Time
	UsedAt    *time.Time
}

func resetFields(r *Reset) []any {
	return []any{&r.ID, &r.UserID, (*storedTime)(&r.CreatedAt), (*storedTime)(&r.ExpiresAt), nullableTime{&r.UsedAt}}
}

const sqlResetByToken = `SELECT r.id, r.user_id, r.created_at, r.expires_at, r.used_at
FROM resets r JOIN link_tokens l ON l.subject_id = r.id WHERE l.hash = $1`

// ResetByToken returns the reset of a token hash, or ErrNone.
func (r Reader) ResetByToken(ctx context.Context, hash []byte) (Reset, error) {
	return one(ctx, r, resetFields, sqlResetByToken, hash)
}

const sqlInsertReset = `INSERT INTO resets (id, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)`

// InsertReset adds the reset.
func (tx *Tx) InsertReset(ctx context.Context, r Reset) error {
	return tx.run(ctx, sqlInsertReset, r.ID, r.UserID, micros(r.CreatedAt), micros(r.ExpiresAt))
}

// Not set to now: nodes whose clocks are behind would accept the resets a little longer.
const sqlExpireResets = `UPDATE resets SET expires_at = created_at WHERE user_id = $2 AND used_at IS NULL AND expires_at > $1`

// ExpireResets ends the user's open resets.
func (tx *Tx) ExpireResets(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlExpireResets, micros(tx.Now), userID)
}

const sqlUseReset = `UPDATE resets SET used_at = $1 WHERE id = $2 AND used_at IS NULL AND expires_at > $1`

// UseReset marks the reset as used and reports whether it was open.
func (tx *Tx) UseReset(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlUseReset, micros(tx.Now), id)
}
