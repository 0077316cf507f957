package node

import (
	"sync"
	"sync/atomic"
	"time"
)

// net/http sets up to seven deadlines for one request on a connection that stays open,
// and nearly all are minutes or seconds away and soon replaced. Each costs a timer of
// the runtime. So a connection only notes a deadline that isn't near, and a sweep finds
// those that have passed.

const (
	// sweepDeadlinesEvery is how late a deadline that was only noted may take effect.
	sweepDeadlinesEvery = 500 * time.Millisecond
	// A deadline within nearDeadline is set on the connection at once, because the sweep isn't
	// precise enough for it.
	nearDeadline = 4 * sweepDeadlinesEvery
)

// deadline is one deadline of a connection. Setting it stores at and then loads armed;
// the sweep stores armed and then loads at. So at least one of the two sees the other's
// store.
type deadline struct {
	at    atomic.Int64 // since openConns.start; 0: none
	armed atomic.Bool  // the connection itself has a deadline
	mu    sync.Mutex   // held while the connection's own deadline changes
}

// set notes the deadline. It calls apply, which sets the connection's own deadline, if the
// new one is near or the connection still has an earlier one.
func (d *deadline) set(owner *openConns, t time.Time, apply func(time.Time) error) error {
	at := int64(0)
	if !t.IsZero() {
		at = max(1, int64(t.Sub(owner.start)))
	}
	isNear := at != 0 && at-owner.lastSweep.Load() < int64(nearDeadline)
	d.at.Store(at)
	if !isNear && !d.armed.Load() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !isNear {
		t = time.Time{}
	}
	d.armed.Store(isNear)
	return apply(t)
}

// enforce makes the deadline take effect if it has passed.
func (d *deadline) enforce(now int64, apply func(time.Time) error) {
	if !d.passed(now) || d.armed.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.armed.Load() {
		return // a near one has replaced it, and the connection enforces that itself
	}
	d.armed.Store(true)
	if d.passed(now) {
		_ = apply(time.Unix(1, 0)) // it fails only for a closed connection
		return
	}
	d.armed.Store(false) // replaced in between
}

func (d *deadline) passed(now int64) bool {
	at := d.at.Load()
	return at != 0 && at <= now
}
