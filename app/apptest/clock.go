package apptest

import (
	"sync/atomic"
	"time"
)

// Clock is the clock of a fixture.
type Clock interface{ Now() time.Time }

// MovedClock runs, and is ahead of the real time by as much as a test has moved it.
type MovedClock struct{ offset atomic.Int64 }

// NewMovedClock returns a clock with the real time.
func NewMovedClock() *MovedClock { return &MovedClock{} }

// Now returns the time.
func (c *MovedClock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// Move advances the clock.
func (c *MovedClock) Move(d time.Duration) { c.offset.Add(int64(d)) }

// StoppedClock changes only when a test moves it.
type StoppedClock struct {
	at     time.Time
	offset atomic.Int64
}

// NewStoppedClock returns a clock stopped at the current time.
func NewStoppedClock() *StoppedClock { return StopClockAt(time.Now()) }

// StopClockAt returns a clock stopped at the time.
func StopClockAt(at time.Time) *StoppedClock { return &StoppedClock{at: at} }

// Now returns the time.
func (c *StoppedClock) Now() time.Time { return c.at.Add(time.Duration(c.offset.Load())) }

// Move advances the clock, or sets it back if d is negative.
func (c *StoppedClock) Move(d time.Duration) { c.offset.Add(int64(d)) }
