package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// A mail with a code for a word is sent at most doorward.FactorMailsPerHour times within mailWindow.
const mailWindow = time.Hour

const sqlGiveFactorWord = `INSERT INTO factor_words (tenant_id, user_id, asked_at, mails, first_mail_at) VALUES ($1, $2, $3, 1, $3)
ON CONFLICT (tenant_id, user_id) DO UPDATE SET asked_at = $3,
  mails = CASE WHEN factor_words.first_mail_at <= $4 THEN 1 ELSE factor_words.mails + 1 END,
  first_mail_at = CASE WHEN factor_words.first_mail_at <= $4 THEN $3 ELSE factor_words.first_mail_at END
RETURNING mails`

// GiveFactorWord records the tenant's word that the second factors of its member may be removed. It
// returns how many mails about it were asked for within an hour.
func (tx *Tx) GiveFactorWord(ctx context.Context, tenantID, userID string) (mails int, err error) {
	return one(ctx, tx.Reader, countColumn, sqlGiveFactorWord, tenantID, userID, micros(tx.Now), micros(tx.Now.Add(-mailWindow)))
}

func factorWordFields(w *doorward.FactorWord) []any {
	return []any{&w.TenantID, &w.UserID, (*storedTime)(&w.AskedAt)}
}

const (
	sqlFactorWordsFor = `SELECT tenant_id, user_id, asked_at FROM factor_words WHERE user_id = $1 AND asked_at > $2 ORDER BY tenant_id`
	sqlFactorWordsOf  = `SELECT tenant_id, user_id, asked_at FROM factor_words WHERE tenant_id = $1 AND asked_at > $2 ORDER BY user_id`
)

// FactorWordsFor returns the words for the account's factors that hold at the instant.
func (r Reader) FactorWordsFor(ctx context.Context, userID string, now time.Time) ([]doorward.FactorWord, error) {
	return list(ctx, r, factorWordFields, sqlFactorWordsFor, userID, micros(now.Add(-doorward.FactorWordLife)))
}

// FactorWordsOf returns the words of the tenant that hold at the instant.
func (r Reader) FactorWordsOf(ctx context.Context, tenantID string, now time.Time) ([]doorward.FactorWord, error) {
	return list(ctx, r, factorWordFields, sqlFactorWordsOf, tenantID, micros(now.Add(-doorward.FactorWordLife)))
}

// FactorReset reads what doorward.JudgeFactorReset judges. Right only under the lock on the account.
func (r Reader) FactorReset(ctx context.Context, userID string, now time.Time) (doorward.FactorReset, error) {
	memberships, err := r.Memberships(ctx, userID)
	if err != nil {
		return doorward.FactorReset{}, err
	}
	words, err := r.FactorWordsFor(ctx, userID, now)
	return doorward.JudgeFactorReset(memberships, words), err
}

const (
	sqlVoidFactorWords  = `UPDATE factor_words SET asked_at = 0 WHERE user_id = $1`
	sqlDeleteFactorWord = `DELETE FROM factor_words WHERE tenant_id = $1 AND user_id = $2`
	sqlSweepFactorWords = `DELETE FROM factor_words WHERE first_mail_at <= $1 AND asked_at <= $1 AND (tenant_id, user_id) IN (
  SELECT tenant_id, user_id FROM factor_words WHERE first_mail_at <= $1 AND asked_at <= $1 ORDER BY first_mail_at LIMIT $2)`
)

// VoidFactorWords makes all words for the account's factors void.
func (tx *Tx) VoidFactorWords(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlVoidFactorWords, userID)
}

// DeleteOldFactorWords deletes words that were given at an instant or before, and returns how many, at
// most limit.
func (tx *Tx) DeleteOldFactorWords(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlSweepFactorWords, micros(until), limit)
}

// FactorCode is the code of a mail that removes the account's second factors.
type FactorCode struct {
	UserID    string
	CreatedAt time.Time
	ExpiresAt time.Time
	UsedAt    *time.Time
}

func factorCodeFields(c *FactorCode) []any {
	return []any{&c.UserID, (*storedTime)(&c.CreatedAt), (*storedTime)(&c.ExpiresAt), nullableTime{&c.UsedAt}}
}

const (
	selectFactorCode  = `SELECT user_id, created_at, expires_at, used_at FROM factor_codes `
	sqlFactorCode     = selectFactorCode + `WHERE hash = $1`
	sqlFactorCodesFor = selectFactorCode + `WHERE user_id = $1 ORDER BY created_at`

	sqlInsertFactorCode = `INSERT INTO factor_codes (hash, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)`
	// Not set to now: nodes whose clocks are behind would accept the codes a little longer.
	sqlExpireFactorCodes = `UPDATE factor_codes SET expires_at = created_at WHERE user_id = $2 AND used_at IS NULL AND expires_at > $1`
	sqlUseFactorCode     = `UPDATE factor_codes SET used_at = $1 WHERE hash = $2 AND used_at IS NULL AND expires_at > $1`
	sqlSweepFactorCodes  = `DELETE FROM factor_codes WHERE hash IN (SELECT hash FROM factor_codes WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`
)

// FactorCode returns the code with the hash, or ErrNone.
func (r Reader) FactorCode(ctx context.Context, hash []byte) (FactorCode, error) {
	return one(ctx, r, factorCodeFields, sqlFactorCode, hash)
}

// FactorCodesFor returns the codes for the account that are kept, the oldest first.
func (r Reader) FactorCodesFor(ctx context.Context, userID string) ([]FactorCode, error) {
	return list(ctx, r, factorCodeFields, sqlFactorCodesFor, userID)
}

// InsertFactorCode adds a code for the account, and ends the earlier ones.
func (tx *Tx) InsertFactorCode(ctx context.Context, hash []byte, userID string, expiresAt time.Time) error {
	if err := tx.ExpireFactorCodes(ctx, userID); err != nil {
		return err
	}
	return tx.run(ctx, sqlInsertFactorCode, hash, userID, micros(tx.Now), micros(expiresAt))
}

// ExpireFactorCodes ends the open codes for the account.
func (tx *Tx) ExpireFactorCodes(ctx context.Context, userID string) error {
	return tx.run(ctx, sqlExpireFactorCodes, micros(tx.Now), userID)
}

// UseFactorCode marks the code as used, and reports whether it was open.
func (tx *Tx) UseFactorCode(ctx context.Context, hash []byte) (bool, error) {
	return tx.affected(ctx, sqlUseFactorCode, micros(tx.Now), hash)
}

// DeleteOldFactorCodes deletes codes that expired at an instant or before, and returns how many, at most
// limit.
func (tx *Tx) DeleteOldFactorCodes(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlSweepFactorCodes, micros(until), limit)
}
