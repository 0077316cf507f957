// Package gcra limits how often something may happen, with the generic cell rate
// algorithm in its form of virtual scheduling (ITU-T Recommendation I.371, annex A): one
// atomic word per limit, no timer, no lock. Over any t seconds a [Limiter] with the rate
// r grants at most r × (t + 1) events: r at once, then r a second.
package gcra

import (
	"sync/atomic"
	"time"
)

// Limiter counts the events of one limit. The zero value has granted nothing. It is safe
// for concurrent use. One that is discarded and created again grants a second's events
// again, so discard it only when it is idle; see [Limiter.Idle].
type Limiter struct {
	// next is the theoretical arrival time of the recommendation, in nanoseconds: from then
	// on, the events granted so far no longer count.
	next atomic.Int64
}

// Take grants one event at the instant now and returns 0, or returns how long to wait until
// one can be granted, provided that no other is granted first. The instant is the time since
// any fixed origin, by a monotonic clock.
//
// perSecond may differ from call to call, and applies at once. A higher one grants as if it had
// applied for a second already. So if several limiters divide a limit, none of them may have
// granted the difference in that second ([github.com/doorward/doorward/store/lease.Lease.Share]
// ensures it). With 0 nothing is granted and the wait is a second.
func (l *Limiter) Take(now time.Duration, perSecond int) (wait time.Duration) {
	if perSecond <= 0 {
		return time.Second
	}
	interval := (int64(time.Second) + int64(perSecond) - 1) / int64(perSecond)
	latest := int64(now) + interval*int64(perSecond)
	for {
		before := l.next.Load()
		next := max(before, int64(now)) + interval
		if next > latest {
			return time.Duration(next - latest)
		}
		if l.next.CompareAndSwap(before, next) {
			return 0
		}
	}
}

// Idle reports whether a new Limiter would grant the same: nothing of what was granted
// counts any more at the instant now.
func (l *Limiter) Idle(now time.Duration) bool { return l.next.Load() <= int64(now) }
