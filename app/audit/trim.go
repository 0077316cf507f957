package audit

import (
	"context"
	"time"

	"github.com/doorward/doorward/store"
)

const (
	trimBatch  = 500 // events that one transaction deletes
	trimTrails = 100 // trails that are looked for at once
	// trimPause is the time between two batches, in which others write.
	trimPause = 20 * time.Millisecond
	// trimFor bounds one sweep: the next one, a minute later, continues.
	trimFor = 30 * time.Second
)

// Sweep deletes events that are older than they are kept, from the beginning of each
// trail.
func (t *Trail) Sweep(ctx context.Context) error {
	if t.keep == 0 {
		return nil
	}
	for began := time.Now(); time.Since(began) < trimFor; {
		now := t.db.Now()
		due, err := t.db.Read().TrailsDue(ctx, now.Add(-t.keep), now, trimTrails)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, tenantID := range due {
			if err := t.trim(ctx, tenantID, began); err != nil {
				return err
			}
		}
	}
	return nil
}

// trim deletes the old events of a trail.
func (t *Trail) trim(ctx context.Context, tenantID string, began time.Time) error {
	for n := int64(trimBatch); n == trimBatch && time.Since(began) < trimFor; {
		err := t.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.TrimTrail(ctx, tenantID, tx.Now.Add(-t.keep), trimBatch)
			return err
		})
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(trimPause):
		}
	}
	return nil
}
