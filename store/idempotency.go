package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// How long a row of a call with an Idempotency-Key counts. A mark outlives its request, which
// has 2.7 s. A client that retries 5 s after a crash no longer finds it.
const (
	callMarkLife   = 4 * time.Second
	callAnswerLife = 24 * time.Hour
)

const sqlMarkCall = `INSERT INTO idempotency (id, tenant_id, body, attempt, answer, expires_at, user_id) VALUES ($1, $2, $3, $4, NULL, $5, $7)
ON CONFLICT (id) DO UPDATE SET tenant_id = $2, body = $3, attempt = $4, answer = NULL, expires_at = $5, user_id = $7
WHERE idempotency.expires_at <= $6`

// MarkCall marks the call as under way, and reports false if another attempt is, or
// its answer is kept. A mark or an answer that has expired is replaced.
func (tx *Tx) MarkCall(ctx context.Context, c doorward.IdempotentCall) (bool, error) {
	return tx.affected(ctx, sqlMarkCall, c.ID, c.TenantID, c.Body, c.Attempt, micros(tx.Now.Add(callMarkLife)), micros(tx.Now), c.UserID)
}

// KnownCall is what is stored about an earlier attempt at a call.
type KnownCall struct {
	Body   []byte
	Answer []byte // sealed; nil while the attempt is under way
}

const sqlKnownCall = `SELECT body, answer FROM idempotency WHERE id = $1`

// KnownCall returns the row of the call, or ErrNone.
func (r Reader) KnownCall(ctx context.Context, id []byte) (KnownCall, error) {
	return one(ctx, r, func(c *KnownCall) []any { return []any{&c.Body, &c.Answer} }, sqlKnownCall, id)
}

const sqlKeepAnswer = `UPDATE idempotency SET answer = $1, expires_at = $2 WHERE id = $3 AND attempt = $4 AND answer IS NULL`

// KeepAnswer keeps the sealed answer for 24 hours, and reports false if the attempt
// no longer has the mark: then another one may be under way.
func (tx *Tx) KeepAnswer(ctx context.Context, c doorward.IdempotentCall, answer []byte) (bool, error) {
	return tx.affected(ctx, sqlKeepAnswer, answer, micros(tx.Now.Add(callAnswerLife)), c.ID, c.Attempt)
}

const sqlUnmarkCall = `DELETE FROM idempotency WHERE id = $1 AND attempt = $2 AND answer IS NULL`

// UnmarkCall deletes the attempt's mark, unless its answer is kept.
func (tx *Tx) UnmarkCall(ctx context.Context, c doorward.IdempotentCall) error {
	return tx.run(ctx, sqlUnmarkCall, c.ID, c.Attempt)
}

// The condition is repeated outside: a mark that is replaced, or gets its answer, while it is
// deleted stays.
const sqlDeleteExpiredCalls = `DELETE FROM idempotency WHERE expires_at <= $1 AND id IN (SELECT id FROM idempotency WHERE expires_at <= $1 LIMIT $2)`

// DeleteExpiredCalls deletes marks and answers that have expired. It returns how many,
// at most limit.
func (tx *Tx) DeleteExpiredCalls(ctx context.Context, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteExpiredCalls, micros(tx.Now), limit)
}

const (
	sqlDeleteCallsOf = `DELETE FROM idempotency WHERE tenant_id = $1`
	sqlDeleteCallsBy = `DELETE FROM idempotency WHERE user_id = $1 AND user_id <> ''`
)

// DeleteCallsOf deletes the marks and answers of the tenant's callers.
func (tx *Tx) DeleteCallsOf(ctx context.Context, tenantID string) error {
	return tx.run(ctx, sqlDeleteCallsOf, tenantID)
}

const sqlDeleteAllCalls = `DELETE FROM idempotency`

// DeleteAllCalls deletes all marks and answers.
func (tx *Tx) DeleteAllCalls(ctx context.Context) error {
	return tx.run(ctx, sqlDeleteAllCalls)
}
