package app_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/app/apptest"
)

// TestRaceTurns: of several nodes that look at once, one does each sweep, and again when it is due next. So a node
// that has died is replaced.
func TestRaceTurns(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		names := f.Node(0).SweepNames()
		if sorted := slices.Compact(slices.Sorted(slices.Values(names))); len(sorted) != len(names) {
			f.Fatalf("two sweeps have one name: %q", names)
		}
		for _, round := range []struct {
			later time.Duration
			want  int
		}{{0, len(names)}, {time.Minute - time.Second, 0}, {time.Second, len(names) - 2}, {4 * time.Minute, len(names)}} {
			clock.Move(round.later)
			var taken atomic.Int64
			apptest.Concurrently(4, func(i int) error {
				left := map[string]time.Time{}
				for range 2 * len(names) { // some find that another node was faster
					if f.Node(i).TakeTurn(f.Context(), left) {
						taken.Add(1)
					}
				}
				return nil
			})
			if got := int(taken.Load()); got != round.want {
				f.Errorf("after %v: %d turns were taken, want %d", round.later, got, round.want)
			}
		}
	})
}

// turns takes all turns that are due for the node, and returns how many.
func turns(f *apptest.Fixture, node int, left map[string]time.Time) (n int) {
	for f.Node(node).TakeTurn(f.Context(), left) {
		n++
	}
	return n
}

// TestFailedTurnsPassOn: a node that can't do a sweep leaves the next turn to the others, and the one after
// that to none.
func TestFailedTurnsPassOn(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		all, left := len(f.Node(0).SweepNames()), map[string]time.Time{}
		f.Exec(`ALTER TABLE mails RENAME TO lost`)
		if n := turns(f, 0, left); n != all || len(left) != 1 {
			f.Fatalf("%d turns of %d, failed: %v", n, all, left)
		}
		f.Exec(`ALTER TABLE lost RENAME TO mails`)
		clock.Move(5 * time.Minute)
		left["mails"] = f.Node(0).Now().Add(time.Second)
		if n := turns(f, 0, left); n != all-1 {
			f.Errorf("%d turns of the node that failed, want %d", n, all-1)
		}
		if n := turns(f, 1, map[string]time.Time{}); n != 1 {
			f.Errorf("%d turns of the other node, want 1", n)
		}
		clock.Move(5 * time.Minute)
		if n := turns(f, 0, left); n != all {
			f.Errorf("%d turns later, want %d", n, all)
		}
	})
}

// TestTurnsAfterAClockThatWasAhead: turns that were taken then are due now.
func TestTurnsAfterAClockThatWasAhead(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		left := map[string]time.Time{}
		clock.Move(24 * time.Hour)
		turns(f, 0, left)
		clock.Move(-24 * time.Hour)
		if n, want := turns(f, 0, left), len(f.Node(0).SweepNames()); n != want {
			f.Errorf("%d turns, want %d", n, want)
		}
	})
}
