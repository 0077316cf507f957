package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRaceUnreachableServerIsLeftAlone: while the one server for all work can't be reached, a queue of thousands tries
// it now and then, with one job. Afterwards everything is sent at once.
func TestRaceUnreachableServerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		var isDown atomic.Bool
		isDown.Store(true)
		mem := &memoryQueue{}
		for i := range 5000 {
			mem.rows = append(mem.rows, Job{ID: fmt.Sprintf("job_%06d", i), Host: fmt.Sprint(i % 50)})
		}
		q := mem.queue()
		q.Unreachable = func(err error) bool { return errors.Is(err, down) }
		var tries, sent atomic.Int64
		q.Try = func(ctx context.Context, j Job, send Send) error {
			err := send(ctx, func(context.Context) error {
				if isDown.Load() {
					return down
				}
				return nil
			})
			mem.mu.Lock()
			defer mem.mu.Unlock()
			if tries.Add(1); err == nil {
				sent.Add(1)
				mem.rows = mem.rows[:0]
			}
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		go q.Run(ctx)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		// 32 begin at the same time; then rests of 1, 2, 4, 8, 16 s, and of half a minute.
		if n := tries.Load(); n > 32+5+20 || n < 20 {
			t.Errorf("%d tries in ten minutes", n)
		}
		isDown.Store(false)
		time.Sleep(restMax + 10*time.Second)
		synctest.Wait()
		if sent.Load() == 0 {
			t.Error("nothing was sent after the server came back")
		}
		stop()
		synctest.Wait()
	})
}
