package store

import (
	"context"
	"time"
)

// Attempt is a password attempt in flight, with the buckets in which a failure will count.
type Attempt struct {
	ID          string
	OwnBucket   string // of the account or the known browser; may be empty
	WiderBucket string // of the client's network, or of all known browsers of the account; may be empty
	SiteBucket  string // of the /48 of a client with an IPv6 address; may be empty
}

// A write, to lock the row. It resets a counter whose window has expired.
const sqlLockThrottle = `INSERT INTO throttles (bucket, hits, since, until, expires_at) VALUES ($1, 0, $2, 0, $4)
ON CONFLICT (bucket) DO UPDATE SET
  hits  = CASE WHEN throttles.since <= $3 THEN 0 ELSE throttles.hits END,
  since = CASE WHEN throttles.since <= $3 OR throttles.hits = 0 THEN $2 ELSE throttles.since END,
  expires_at = CASE WHEN throttles.until > $4 THEN throttles.until ELSE $4 END
RETURNING hits, since, until`

// LockThrottle returns the counter of the bucket, 0 when its window has expired,
// and locks it until the transaction ends.
func (tx *Tx) LockThrottle(ctx context.Context, bucket string, window time.Duration) (Throttle, error) {
	return one(ctx, tx.Reader, throttleFields, sqlLockThrottle, bucket, micros(tx.Now), micros(tx.Now.Add(-window)), micros(tx.Now.Add(window)))
}

const sqlInsertAttempt = `INSERT INTO attempts (id, own, wider, site, ends_at) VALUES ($1, $2, $3, $4, $5)`

// InsertAttempt records that the attempt is in flight, until endsAt at the latest.
func (tx *Tx) InsertAttempt(ctx context.Context, a Attempt, endsAt time.Time) error {
	return tx.run(ctx, sqlInsertAttempt, a.ID, a.OwnBucket, a.WiderBucket, a.SiteBucket, micros(endsAt))
}

const sqlAttemptsInFlight = `SELECT count(*) FROM attempts WHERE (own = $1 OR wider = $1 OR site = $1) AND ends_at > $2`

// AttemptsInFlight counts the attempts of the bucket that have no outcome yet. The
// count is right only under LockThrottle.
func (tx *Tx) AttemptsInFlight(ctx context.Context, bucket string) (int, error) {
	return one(ctx, tx.Reader, countColumn, sqlAttemptsInFlight, bucket, micros(tx.Now))
}

const sqlDeleteAttempt = `DELETE FROM attempts WHERE id = $1`

// DeleteAttempt ends the attempt and reports whether it was in flight.
func (tx *Tx) DeleteAttempt(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlDeleteAttempt, id)
}

const sqlDeleteEndedAttempts = `DELETE FROM attempts WHERE id IN (SELECT id FROM attempts WHERE ends_at <= $1 LIMIT $2)`

// DeleteEndedAttempts deletes attempts that killed nodes have left behind, and returns how
// many, at most limit.
func (tx *Tx) DeleteEndedAttempts(ctx context.Context, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteEndedAttempts, micros(tx.Now), limit)
}
