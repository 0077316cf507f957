package store

import (
	"context"
	"time"
)

// Throttle is the counter of a bucket.
type Throttle struct {
	Hits  int
	Since time.Time // when the counting began
	Until time.Time // no attempt is evaluated before; 1970 without a delay
}

func throttleColumns(t *Throttle) []any {
	return []any{&t.Hits, (*instant)(&t.Since), (*instant)(&t.Until)}
}

const sqlHitThrottle = `INSERT INTO throttles (bucket, hits, since, until) VALUES ($1, 1, $2, 0)
ON CONFLICT (bucket) DO UPDATE SET
  hits  = CASE WHEN throttles.since <= $3 THEN 1  ELSE throttles.hits + 1 END,
  since = CASE WHEN throttles.since <= $3 THEN $2 ELSE throttles.since END
RETURNING hits, since, until`

// HitThrottle counts one more in the bucket, from one again when the counting
// began a window ago or earlier, and returns the new count. The bucket is held
// against other transactions until this one ends.
func (tx *Tx) HitThrottle(ctx context.Context, bucket string, window time.Duration) (Throttle, error) {
	return one(ctx, tx.Reader, throttleColumns, sqlHitThrottle, bucket, micros(tx.Now), micros(tx.Now.Add(-window)))
}

const sqlDelayThrottle = `UPDATE throttles SET until = $1 WHERE bucket = $2`

// DelayThrottle closes the bucket until an instant.
func (tx *Tx) DelayThrottle(ctx context.Context, bucket string, until time.Time) error {
	return tx.must(ctx, sqlDelayThrottle, micros(until), bucket)
}

const sqlClearThrottle = `DELETE FROM throttles WHERE bucket = $1`

// ClearThrottle forgets the bucket.
func (tx *Tx) ClearThrottle(ctx context.Context, bucket string) error {
	return tx.must(ctx, sqlClearThrottle, bucket)
}

const sqlDeleteOldThrottles = `DELETE FROM throttles WHERE since <= $1 AND until <= $1`

// DeleteOldThrottles removes buckets that have counted nothing since before.
func (tx *Tx) DeleteOldThrottles(ctx context.Context, before time.Time) error {
	return tx.must(ctx, sqlDeleteOldThrottles, micros(before))
}
