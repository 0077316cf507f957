package audit

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

const (
	minTrimBatch = 50  // events that one transaction deletes at least
	maxTrimBatch = 500 // and at most
	// trimBatchTime is how long a transaction should take: SQLite has one writer, and the node's
	// heartbeat must wait for it, too.
	trimBatchTime = 40 * time.Millisecond
	// trimPause is the shortest time between two batches, in which others write.
	trimPause = 20 * time.Millisecond
	// trimSweepTime limits one sweep; the next one, a minute later, continues.
	trimSweepTime = 30 * time.Second
)

// Sweep deletes events that were kept long enough, for the installation or for their tenant, from the beginning of
// each trail. From trails that aren't kept for ever it also deletes events with a time in the future, which were
// written while the clock was ahead.
func (t *Trail) Sweep(ctx context.Context) error {
	began := time.Now()
	return access.EachDue(func(tenantID string) string { return tenantID }, func(limit int) ([]string, error) {
		if time.Since(began) >= trimSweepTime {
			return nil, nil
		}
		now, since := t.db.Now(), time.Time{}
		if t.keep > 0 {
			since = now.Add(-t.keep)
		}
		return t.db.Read().TrailsDue(ctx, since, now, limit)
	}, func(tenantID string) error { return t.trim(ctx, tenantID, began) })
}

// trim deletes the old events of a trail. After each batch it pauses as long as the batch took, so that
// others can write half of the time.
func (t *Trail) trim(ctx context.Context, tenantID string, began time.Time) error {
	limit := minTrimBatch
	for more := true; more && time.Since(began) < trimSweepTime; {
		start := time.Now()
		err := t.writer.Upkeep(ctx, func(tx *store.Tx) error {
			keep, err := t.kept(ctx, tx.Reader, tenantID)
			if more = keep > 0; err != nil || !more {
				return err
			}
			n, err := tx.TrimTrail(ctx, tenantID, tx.Now.Add(-keep), limit)
			more = n == int64(limit)
			return err
		})
		if err != nil {
			return err
		}
		took := time.Since(start)
		limit = nextBatch(limit, took)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(trimPause, took)):
		}
	}
	return nil
}

// kept returns how long events of the trail are kept; 0: for ever.
func (t *Trail) kept(ctx context.Context, read store.Reader, tenantID string) (time.Duration, error) {
	tenant, err := read.Tenant(ctx, tenantID)
	if errors.Is(err, store.ErrNone) { // the installation's trail, or that of a tenant that was destroyed
		return t.keep, nil
	}
	return tenant.Settings.KeepEvents(t.keep), err
}

// nextBatch returns how many events to delete next, after limit events have taken this long.
func nextBatch(limit int, took time.Duration) int {
	switch {
	case took > trimBatchTime:
		return max(limit/2, minTrimBatch)
	case took < trimBatchTime/3:
		return min(limit*2, maxTrimBatch)
	}
	return limit
}
