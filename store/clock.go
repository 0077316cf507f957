package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
)

// Clock is what everything that begins or ends by time is judged by: the
// database's clock, which all nodes share, so that no node's own can end what the
// others hold valid.
//
// It is measured at the start and at each poll of the lease, and in between goes on
// by this process's monotonic clock, which nobody sets. This machine's own clock
// decides nothing. It is the witness: where it and the database's differ by more
// than ClockTolerance one of the two is wrong, and which can't be told from here, so
// nothing is judged by either until they agree again (see Err).
type Clock struct {
	handed doorward.Clock // the database's clock, in tests; else nil
	offset time.Duration  // of this machine's clock, for tests of expiry

	anchor atomic.Pointer[anchor]
	drift  atomic.Int64 // nanoseconds
	wrong  atomic.Bool
	mended atomic.Int64
	moved  atomic.Int64 // nanoseconds

	mu sync.Mutex // one measurement is taken over at a time
}

const (
	// ClockTolerance is how far this machine's clock and the database's may be apart
	// before nothing is judged by time.
	ClockTolerance = 30 * time.Second
	// ClockWarning is from where on a difference is reported: time services keep
	// machines within milliseconds.
	ClockWarning = 2 * time.Second
	// roundTrip is the longest that a measurement may take, which could be wrong by
	// half of it.
	roundTrip = time.Second
	// agreement is how far a measurement may be from what is expected, besides its
	// own uncertainty, for nothing to be corrected.
	agreement = time.Millisecond
)

// anchor is the database's time at an instant of the monotonic clock.
type anchor struct {
	at    time.Time // by the database, without a monotonic part
	local time.Time // with one
}

func (a *anchor) now() time.Time { return a.at.Add(time.Since(a.local)) }

// newClock goes by the machine's clock until the first measurement.
func newClock(handed doorward.Clock) *Clock {
	c := &Clock{handed: handed}
	now := time.Now()
	c.anchor.Store(&anchor{now.Round(0), now})
	return c
}

// Now is the instant by the database's clock. It costs one reading of the
// monotonic clock.
func (c *Clock) Now() time.Time {
	if c.handed != nil {
		return doorward.Instant(c.handed())
	}
	return doorward.Instant(c.anchor.Load().now())
}

// Drift is how far this machine's clock was ahead of the database's at the last
// measurement.
func (c *Clock) Drift() time.Duration { return time.Duration(c.drift.Load()) }

// Wrong reports whether this machine's clock and the database's are so far apart
// that nothing is judged by time.
func (c *Clock) Wrong() bool { return c.wrong.Load() }

// Mended counts up when a clock that was wrong is right again, and when the time was set
// back by more than ClockTolerance: what was noted until then may lie in the future.
func (c *Clock) Mended() int64 { return c.mended.Load() }

// Moved is by how much the installation's clock is, for tests of expiry.
func (c *Clock) Moved() time.Duration { return time.Duration(c.moved.Load()) }

// OffsetFrom returns by how much this machine's clock is moved, and whether that differs
// from how far the installation's is. A clock that was handed in never differs.
func (c *Clock) OffsetFrom(moved time.Duration) (offset time.Duration, differs bool) {
	return c.offset, c.handed == nil && c.offset != moved
}

// Err is nil unless the clock is Wrong; then it is unavailable and says so.
func (c *Clock) Err() error {
	if !c.Wrong() {
		return nil
	}
	e := doorward.Unavailable(fmt.Errorf("store: this machine's clock is %s the database's", Ahead(c.Drift())))
	e.Detail = "The clocks of this node and of the database are too far apart to tell what is over."
	return e
}

// Ahead says a drift in words, before "the database's": "1h30m0s ahead of", "2s behind".
func Ahead(drift time.Duration) string {
	how := "ahead of"
	if drift < 0 {
		how = "behind"
	}
	return drift.Abs().Round(time.Millisecond).String() + " " + how
}

// reading is a measurement.
type reading struct {
	local  time.Time     // the instant in the middle of it, with a monotonic part
	theirs time.Time     // by the database, moved as the installation's is
	within time.Duration // what it may be wrong by
	moved  time.Duration // how far the installation's clock is moved, for tests
}

// take corrects the clock by a measurement. While the clocks are too far apart the
// old anchor goes on: it was right when they last agreed.
func (c *Clock) take(r reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	drift, was := c.driftOf(r), c.anchor.Load()
	wrong := drift.Abs() > ClockTolerance
	off := r.theirs.Sub(was.at.Add(r.local.Sub(was.local)))
	if !wrong && off.Abs() > r.within+agreement {
		c.anchor.Store(&anchor{r.theirs, r.local})
	}
	if !wrong && (c.wrong.Load() || off < -ClockTolerance) {
		c.mended.Add(1)
	}
	c.drift.Store(int64(drift))
	c.moved.Store(int64(r.moved))
	c.wrong.Store(wrong) // last: who finds it right finds the anchor right
}

// driftOf is how far this machine's clock, as it was then, is ahead.
func (c *Clock) driftOf(r reading) time.Duration { return r.local.Round(0).Add(c.offset).Sub(r.theirs) }

// begin takes the first measurement over, whatever it is.
func (c *Clock) begin(r reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.anchor.Store(&anchor{r.theirs, r.local})
	c.drift.Store(int64(c.driftOf(r)))
	c.moved.Store(int64(r.moved))
}

// StartClock measures the database's clock for the first time. offset moves this
// machine's clock, for tests of expiry: the installation's is moved as the first
// node to start has moved it, and by offset while there is none. The schema has to
// be up to date. The error is unavailable.
func (db *DB) StartClock(ctx context.Context, offset time.Duration) error {
	db.clock.offset = offset
	if db.clock.handed != nil {
		return nil
	}
	r, err := db.readClock(ctx)
	if err == nil && offset != r.moved {
		err = db.moveAlone(ctx, &r)
	}
	if err == nil {
		db.clock.begin(r)
	}
	return err
}

const sqlCountNodes = `SELECT count(*) FROM nodes`

// moveAlone has a command without a server beside it go by its own offset.
func (db *DB) moveAlone(ctx context.Context, r *reading) error {
	nodes, err := one(ctx, db.Read(), countColumn, sqlCountNodes)
	if err == nil && nodes == 0 {
		r.theirs, r.moved = r.theirs.Add(db.clock.offset-r.moved), db.clock.offset
	}
	return err
}

// ClockDrift measures how far this machine's clock is ahead of the database's: of the
// installation's, where a node keeps that moved.
func (db *DB) ClockDrift(ctx context.Context) (time.Duration, error) {
	r, err := db.readClock(ctx)
	if err != nil {
		return 0, err
	}
	if db.clock.handed != nil {
		return db.clock.handed().Sub(r.theirs), nil
	}
	nodes, err := one(ctx, db.Read(), countColumn, sqlCountNodes)
	if nodes == 0 {
		r.theirs = r.theirs.Add(-r.moved)
	}
	return db.clock.driftOf(r), err
}

// MeasureClock follows the database's clock; the lease calls it with its polls. An answer
// that took too long says nothing and is discarded, and a fault shows in the poll.
func (db *DB) MeasureClock(ctx context.Context) {
	if db.clock.handed != nil {
		return
	}
	if r, err := db.readClock(ctx); err == nil && r.within <= roundTrip/2 {
		db.clock.take(r)
	}
}

// readClock asks the database for its time. That of SQLite is this machine's.
func (db *DB) readClock(ctx context.Context) (reading, error) {
	var theirs instant
	var moved int64
	sent := time.Now()
	if err := db.read.QueryRowContext(ctx, db.engine.clock).Scan(&theirs, &moved); err != nil {
		return reading{}, fault(err)
	}
	half := time.Since(sent) / 2
	r := reading{local: sent.Add(half), theirs: time.Time(theirs), within: half, moved: time.Duration(moved) * time.Microsecond}
	if db.engine.path != "" {
		r.theirs, r.within = r.local.Round(0), 0
	}
	r.theirs = r.theirs.Add(r.moved)
	return r, nil
}

// Now is the instant by the database's clock, see Clock.
func (db *DB) Now() time.Time { return db.clock.Now() }

// Clock is what everything is judged by.
func (db *DB) Clock() *Clock { return db.clock }
