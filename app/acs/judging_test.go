package acs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/doorward/doorward"
)

// TestRaceJudging: of very many responses at once a few are judged at a time, some wait, and others are told at once to
// come again. Who waits for too long, or has gone, is not judged.
func TestRaceJudging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudging()
		var all sync.WaitGroup
		var running, busy, judged atomic.Int64
		held := make(chan struct{})
		judge := func() error {
			if n := running.Add(1); n > int64(cap(j.slots)) {
				t.Errorf("%d are judged at once", n)
			}
			<-held
			running.Add(-1)
			judged.Add(1)
			return nil
		}
		const extra = 40
		for range cap(j.slots) + waitingMax + extra {
			all.Go(func() {
				if err := j.do(t.Context(), judge); errors.Is(err, errBusy) && doorward.HasCode(err, doorward.CodeUnavailable) {
					busy.Add(1)
				}
			})
		}
		synctest.Wait()
		if busy.Load() != extra {
			t.Errorf("%d are told to come again, of %d too many", busy.Load(), extra)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		close(held)
		all.Wait()
		if got := judged.Load(); got != int64(cap(j.slots)+waitingMax) {
			t.Errorf("%d were judged", got)
		}
		for range cap(j.slots) {
			j.slots <- struct{}{} // somebody else's, for ever
		}
		if err := j.do(gone, judge); !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone is answered %v", err)
		}
		if err := j.do(t.Context(), judge); !errors.Is(err, errBusy) {
			t.Errorf("who waits for too long is answered %v", err)
		}
	})
}
