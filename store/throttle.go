package store

import (
	"context"
	"time"
)

// Throttle is the counter of a bucket.
type Throttle struct {
	Hits  int
	Since time.Time // when the counting began
	Until time.Time // no attempt is evaluated before; the Unix epoch without a delay
}

func throttleFields(t *Throttle) []any {
	return []any{&t.Hits, (*storedTime)(&t.Since), (*storedTime)(&t.Until)}
}

const sqlThrottle = `SELECT hits, since, until FROM throttles WHERE bucket = $1`

// Throttle returns the counter as it is, without counting, or ErrNone.
func (r Reader) Throttle(ctx context.Context, bucket string) (Throttle, error) {
	return one(ctx, r, throttleFields, sqlThrottle, bucket)
}

const (
	hitConflict = `
ON CONFLICT (bucket) DO UPDATE SET
  hits  = CASE WHEN throttles.since <= $3 THEN 1  ELSE throttles.hits + 1 END,
  since = CASE WHEN throttles.since <= $3 THEN $2 ELSE throttles.since END,
  expires_at = CASE WHEN throttles.until > $4 THEN throttles.until ELSE $4 END`
	sqlHitThrottle = `INSERT INTO throttles (bucket, hits, since, until, expires_at) VALUES ($1, 1, $2, 0, $4)` +
		hitConflict + ` RETURNING hits, since, until`
	sqlHitTwoThrottles = `INSERT INTO throttles (bucket, hits, since, until, expires_at) VALUES ($1, 1, $2, 0, $4), ($5, 1, $2, 0, $4)` +
		hitConflict
)

// HitThrottle adds a hit to the bucket, or starts again at one when its window has
// expired, and returns the new count. It locks the bucket until the transaction
// ends. The counter may be deleted one window after its last hit.
func (tx *Tx) HitThrottle(ctx context.Context, bucket string, window time.Duration) (Throttle, error) {
	return one(ctx, tx.Reader, throttleFields, sqlHitThrottle, bucket, micros(tx.Now), micros(tx.Now.Add(-window)), micros(tx.Now.Add(window)))
}

// HitTwoThrottles is HitThrottle for two buckets in one statement. It locks first before second.
func (tx *Tx) HitTwoThrottles(ctx context.Context, first, second string, window time.Duration) error {
	return tx.run(ctx, sqlHitTwoThrottles, first, micros(tx.Now), micros(tx.Now.Add(-window)), micros(tx.Now.Add(window)), second)
}

const sqlDelayThrottle = `UPDATE throttles SET until = $1, expires_at = CASE WHEN expires_at < $1 THEN $1 ELSE expires_at END WHERE bucket = $2`

// DelayThrottle sets the time until which attempts of the bucket are refused.
func (tx *Tx) DelayThrottle(ctx context.Context, bucket string, until time.Time) error {
	return tx.run(ctx, sqlDelayThrottle, micros(until), bucket)
}

const sqlClearThrottle = `DELETE FROM throttles WHERE bucket = $1`

// ClearThrottle deletes the bucket.
func (tx *Tx) ClearThrottle(ctx context.Context, bucket string) error {
	return tx.run(ctx, sqlClearThrottle, bucket)
}

// The conditions are repeated outside: a counter that is hit while it is deleted
// stays.
const sqlDeleteOldThrottles = `DELETE FROM throttles WHERE expires_at <= $1 AND until <= $1 AND bucket IN
  (SELECT bucket FROM throttles WHERE expires_at <= $1 AND until <= $1 ORDER BY expires_at LIMIT $2)`

// DeleteOldThrottles deletes up to limit expired buckets, and returns their number: below limit,
// none is left.
func (tx *Tx) DeleteOldThrottles(ctx context.Context, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldThrottles, micros(tx.Now), limit)
}
