package overview_test

import (
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// While events are written, all nodes add them to the usage of their trail at once: each is counted once.
func TestRaceTrailIsCountedOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, _ := f.Tenant()
		ctx, before := f.Context(), f.Int(`SELECT count(*) FROM events WHERE action = 'session.open'`)
		const writers, batches, batch = 4, 10, 150
		var writing, sweeping sync.WaitGroup
		written := make(chan struct{})
		for range writers {
			writing.Go(func() {
				for range batches {
					_, err := f.DB.Write(ctx, func(tx *store.Tx) error { return openMany(f, tx, acme.ID, batch) })
					f.NoError(err)
				}
			})
		}
		for i := range 4 {
			sweeping.Go(func() {
				for isLast := false; !isLast; {
					select {
					case <-written:
						isLast = true
					default:
					}
					f.NoError(f.Node(i).Overviews.Sweep(ctx))
				}
			})
		}
		writing.Wait()
		close(written)
		sweeping.Wait()
		hour := f.DB.Now().Truncate(time.Hour).Add(-time.Hour)
		counted := func(counts []doorward.UsageCount, err error) (sum int) {
			f.NoError(err)
			for _, c := range counts {
				sum += int(c.Times)
			}
			return sum
		}
		if got, want := counted(f.DB.Read().UsageOfTrail(ctx, acme.ID, hour, time.Hour)), before+writers*batches*batch; got != want {
			f.Errorf("%d events are counted, want %d", got, want)
		}
		if got := counted(f.DB.Read().Usage(ctx, acme.ID, hour)); got < writers*batches*batch-1000 {
			f.Errorf("%d events are in the usage: more than 1,000 are not", got)
		}
	})
}

func openMany(f *apptest.Fixture, tx *store.Tx, tenantID string, n int) error {
	for range n {
		if err := tx.InsertEvent(f.Context(), doorward.Event{ID: doorward.NewID("evt_"), Action: doorward.SessionOpen, Outcome: doorward.Done, Target: doorward.Object{TenantID: tenantID}, Changes: []doorward.Change{}}); err != nil {
			return err
		}
	}
	return nil
}
