package registry

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
)

// While the database is silent, a limited number of checks wait for it and all others fail at
// once. When it replies, or a waiting check ends, the next check may query it.
func TestRaceQueriesToASilentDatabase(t *testing.T) {
	var q QueryLimiter
	now := time.Hour
	clock := func() time.Duration { return now }
	unavailable := doorward.Unavailable(errSilent)
	canQuery := func() (can bool) {
		_ = q.doAt(clock, func() error { can = true; return unavailable })
		return can
	}
	replies, done := make(chan error), make(chan error)
	hang := func(n int) {
		for range n {
			begun := make(chan struct{})
			go func() { done <- q.doAt(clock, func() error { close(begun); return <-replies }) }()
			<-begun
		}
	}
	reply := func(n int, err error) {
		for range n {
			replies <- err
			<-done
		}
	}
	expect := func(want bool, when string) {
		t.Helper()
		if canQuery() != want {
			t.Errorf("%s: the check queries: %v, want %v", when, !want, want)
		}
	}
	hang(maxOpen)
	expect(true, "before the database is silent")
	now += silence + 1
	expect(false, "the database is silent, and as many checks wait as may")
	reply(1, unavailable)
	expect(true, "one has timed out, so another may wait")
	hang(1)
	expect(false, "a fault is not a reply")
	reply(1, nil)
	hang(1)
	expect(true, "the database has replied")
	now += silence + 1
	expect(false, "it is silent again")
	reply(maxOpen, unavailable)
	hang(maxOpen)
	expect(true, "all have timed out, so others may wait")
	reply(maxOpen, nil)
}
