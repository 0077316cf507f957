package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
)

// Clock is the database's clock, which decides on all nodes what has begun and what has
// ended. It is measured at the start and about every half second by the lease, and runs on this process's
// monotonic clock in between. While the machine's own clock differs from it by more than
// ClockTolerance, nothing that depends on time is decided (see Err).
type Clock struct {
	injected doorward.Clock // replaces the database's clock in tests; else nil
	offset   time.Duration  // of this machine's clock, for tests of expiry

	anchor             atomic.Pointer[anchor]
	drift              atomic.Int64 // nanoseconds
	wrong              atomic.Bool
	corrections        atomic.Int64
	installationOffset atomic.Int64 // nanoseconds

	mu sync.Mutex // one measurement is applied at a time
}

const (
	// ClockTolerance is the difference between this machine's clock and the database's
	// beyond which nothing that depends on time is decided.
	ClockTolerance = 30 * time.Second
	// clockMargin is more than the clocks of two nodes differ by while both decide.
	clockMargin = 2 * ClockTolerance
	// ClockWarning is the difference that is reported: time services keep machines
	// within milliseconds.
	ClockWarning = 2 * time.Second
	// maxRoundTrip is the longest that a measurement may take. The error of a measurement
	// is at most half of the time that it took.
	maxRoundTrip = time.Second
	// negligibleJump is the deviation, beyond a measurement's own uncertainty, that needs
	// no correction.
	negligibleJump = time.Millisecond
)

// anchor is the database's time at an instant of the monotonic clock.
type anchor struct {
	at    time.Time // by the database, without a monotonic part
	local time.Time // by this process, with a monotonic part
}

func (a *anchor) now() time.Time { return a.at.Add(time.Since(a.local)) }

// newClock returns a clock that follows the machine's until the first measurement.
func newClock(injected doorward.Clock) *Clock {
	c := &Clock{injected: injected}
	now := time.Now()
	c.anchor.Store(&anchor{now.Round(0), now})
	return c
}

// Now is the time by the database's clock. It costs one reading of the monotonic
// clock.
func (c *Clock) Now() time.Time {
	if c.injected != nil {
		return doorward.Instant(c.injected())
	}
	return doorward.Instant(c.anchor.Load().now())
}

// Drift is how far this machine's clock was ahead of the database's at the last
// measurement.
func (c *Clock) Drift() time.Duration { return time.Duration(c.drift.Load()) }

// Wrong reports whether this machine's clock and the database's are more than
// ClockTolerance apart.
func (c *Clock) Wrong() bool { return c.wrong.Load() }

// Corrections counts how often a wrong clock agreed again, or the database's clock was set
// back by more than ClockTolerance: times stored before may lie in the future.
func (c *Clock) Corrections() int64 { return c.corrections.Load() }

// InstallationOffset is how far the installation's clock is moved, for tests of
// expiry.
func (c *Clock) InstallationOffset() time.Duration { return time.Duration(c.installationOffset.Load()) }

// OffsetFrom returns how far this machine's clock is moved, and whether that
// differs from the installation's offset. An injected clock never differs.
func (c *Clock) OffsetFrom(installation time.Duration) (offset time.Duration, differs bool) {
	return c.offset, c.injected == nil && c.offset != installation
}

// Err is nil unless the clock is Wrong; then it is unavailable with the cause.
func (c *Clock) Err() error {
	if !c.Wrong() {
		return nil
	}
	e := doorward.Unavailable(fmt.Errorf("store: this machine's clock is %s the database's", DescribeDrift(c.Drift())))
	e.Detail = "The clocks of this node and of the database are too far apart to tell what has expired."
	return e
}

// DescribeDrift describes a drift, before "the database's": "1h30m0s ahead of", "2s
// behind".
func DescribeDrift(drift time.Duration) string {
	relation := "ahead of"
	if drift < 0 {
		relation = "behind"
	}
	precision := time.Millisecond
	if drift.Abs() > time.Minute {
		precision = time.Second
	}
	return drift.Abs().Round(precision).String() + " " + relation
}

// measurement is one reading of the database's clock.
type measurement struct {
	local       time.Time // the instant in the middle of it, with a monotonic part
	database    time.Time // by the database, with the installation's offset
	uncertainty time.Duration
	offset      time.Duration // the installation's
}

// apply corrects the clock by a measurement. While the clocks are too far apart
// the anchor stays: it was right when they last agreed.
func (c *Clock) apply(r measurement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	drift, old := c.driftOf(r), c.anchor.Load()
	wrong := drift.Abs() > ClockTolerance
	jump := r.database.Sub(old.at.Add(r.local.Sub(old.local))) // from the time by the old anchor
	if !wrong && jump.Abs() > r.uncertainty+negligibleJump {
		c.anchor.Store(&anchor{r.database, r.local})
	}
	if !wrong && (c.wrong.Load() || jump < -ClockTolerance) {
		c.corrections.Add(1)
	}
	c.drift.Store(int64(drift))
	c.installationOffset.Store(int64(r.offset))
	c.wrong.Store(wrong) // last: a reader that sees it right must see the new anchor
}

// driftOf is how far this machine's clock was ahead at the measurement.
func (c *Clock) driftOf(r measurement) time.Duration {
	return r.local.Round(0).Add(c.offset).Sub(r.database)
}

// begin applies the first measurement, without a comparison.
func (c *Clock) begin(r measurement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.anchor.Store(&anchor{r.database, r.local})
	c.drift.Store(int64(c.driftOf(r)))
	c.installationOffset.Store(int64(r.offset))
}

// StartClock measures the database's clock for the first time. offset, for tests of
// expiry, is how far this machine's clock is moved. While no node is registered it is the
// installation's offset, too, but in this process only: the first node stores its own
// (lease.Join). The schema must be up to date. The error is unavailable.
func (db *DB) StartClock(ctx context.Context, offset time.Duration) error {
	db.clock.offset = offset
	if db.clock.injected != nil {
		return nil
	}
	r, err := db.readClock(ctx)
	if err == nil && offset != r.offset {
		err = db.applyOwnOffsetIfNoNodes(ctx, &r)
	}
	if err == nil {
		db.clock.begin(r)
	}
	return err
}

const sqlCountNodes = `SELECT count(*) FROM nodes`

// applyOwnOffsetIfNoNodes applies this process's own offset if no node is registered.
func (db *DB) applyOwnOffsetIfNoNodes(ctx context.Context, r *measurement) error {
	nodes, err := one(ctx, db.Read(), countColumn, sqlCountNodes)
	if err == nil && nodes == 0 {
		r.database, r.offset = r.database.Add(db.clock.offset-r.offset), db.clock.offset
	}
	return err
}

// ClockDrift measures how far this machine's clock is ahead of the database's,
// including the installation's offset while a node is registered.
func (db *DB) ClockDrift(ctx context.Context) (time.Duration, error) {
	r, err := db.readClock(ctx)
	if err != nil {
		return 0, err
	}
	if db.clock.injected != nil {
		return db.clock.injected().Sub(r.database), nil
	}
	nodes, err := one(ctx, db.Read(), countColumn, sqlCountNodes)
	if nodes == 0 {
		r.database = r.database.Add(-r.offset)
	}
	return db.clock.driftOf(r), err
}

// MeasureClock follows the database's clock; the lease calls it with its polls. A
// reply that took too long is discarded, and a fault shows in the poll itself.
func (db *DB) MeasureClock(ctx context.Context) {
	if db.clock.injected != nil {
		return
	}
	if r, err := db.readClock(ctx); err == nil && r.uncertainty <= maxRoundTrip/2 {
		db.clock.apply(r)
	}
}

// readClock reads the database's clock. That of SQLite is this machine's.
func (db *DB) readClock(ctx context.Context) (measurement, error) {
	var database storedTime
	var offset int64
	sent := time.Now()
	if err := db.read.QueryRowContext(ctx, db.engine.clock).Scan(&database, &offset); err != nil {
		return measurement{}, fault(err)
	}
	half := time.Since(sent) / 2
	r := measurement{local: sent.Add(half), database: time.Time(database), uncertainty: half, offset: time.Duration(offset) * time.Microsecond}
	if db.engine.path != "" {
		r.database, r.uncertainty = r.local.Round(0), 0
	}
	r.database = r.database.Add(r.offset)
	return r, nil
}

// Now is the time by the database's clock, see Clock.
func (db *DB) Now() time.Time { return db.clock.Now() }

// Clock returns the clock that decides about expiry.
func (db *DB) Clock() *Clock { return db.clock }
