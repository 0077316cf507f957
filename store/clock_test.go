package store

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
)

// measured is a Clock, and a machine whose own clock a test can set.
type measured struct {
	*testing.T
	*Clock
	step time.Duration // by which this machine's clock was set
}

// now is a measurement in which the database's clock is ahead of where it would be
// if nobody had set it.
func (m *measured) now(ahead, within time.Duration) measurement {
	local := time.Now()
	m.Clock.offset = m.step // as seen from the database: only their difference counts
	return measurement{local: local, database: local.Round(0).Add(ahead), uncertainty: within}
}

func (m *measured) is(ahead time.Duration, wrong bool, what string) {
	m.Helper()
	if off := time.Until(m.Now()) - ahead; off.Abs() > 50*time.Millisecond {
		m.Errorf("%s: the time is %v off", what, off)
	}
	if m.Wrong() != wrong || (m.Err() != nil) != wrong || wrong && !doorward.HasCode(m.Err(), doorward.CodeUnavailable) {
		m.Errorf("%s: wrong is %v, %v; want %v", what, m.Wrong(), m.Err(), wrong)
	}
}

// TestClock: when one clock is set, time continues as before; it follows the
// database's clock again once both agree.
func TestClock(t *testing.T) {
	m := &measured{T: t, Clock: newClock(nil)}
	m.begin(m.now(10*time.Second, 0))
	m.is(10*time.Second, false, "at the start")
	m.apply(m.now(11*time.Second, 0))
	m.is(11*time.Second, false, "the database's clock is followed")
	m.apply(m.now(11*time.Second+300*time.Millisecond, 400*time.Millisecond))
	m.is(11*time.Second, false, "a measurement that agrees as far as it knows")
	if d := m.Drift(); d > -11*time.Second || d < -12*time.Second {
		t.Errorf("the drift is %v", d)
	}

	m.step = 90 * time.Minute
	m.apply(m.now(11*time.Second, 0))
	m.is(11*time.Second, true, "this machine's clock is set ahead")
	m.step = 0
	m.apply(m.now(11*time.Second, 0))
	m.is(11*time.Second, false, "and set right")

	for _, jump := range []time.Duration{26 * time.Hour, -26 * time.Hour} {
		m.apply(m.now(jump, 0))
		m.is(11*time.Second, true, "the database's clock jumps")
	}
	m.apply(m.now(0, 0))
	m.is(0, false, "and is right again")
}

// TestClockIsMended: rows in the future are looked for after each fault, and not
// after everyday corrections.
func TestClockIsMended(t *testing.T) {
	m := &measured{T: t, Clock: newClock(nil)}
	counts := func(want int64, what string) {
		t.Helper()
		if got := m.Corrections(); got != want {
			t.Errorf("%s: corrected %d times, want %d", what, got, want)
		}
	}
	m.begin(m.now(0, 0))
	m.apply(m.now(-ClockTolerance/2, 0))
	m.apply(m.now(ClockTolerance/2, 0))
	counts(0, "within the tolerance")
	m.step = 90 * time.Minute
	m.apply(m.now(0, 0))
	counts(0, "wrong")
	m.step = 0
	m.apply(m.now(0, 0))
	counts(1, "right again")
	for _, jump := range []struct {
		of   time.Duration
		want int64
	}{{26 * time.Hour, 1}, {0, 2}} { // the database runs on the same machine
		m.step = jump.of
		m.apply(m.now(jump.of, 0))
		counts(jump.want, "both clocks jump to "+jump.of.String())
	}
}

// TestNowCosts: a check in memory reads the clock, which must not allocate.
func TestNowCosts(t *testing.T) {
	c := newClock(nil)
	if n := testing.AllocsPerRun(100, func() { c.Now() }); n > 0 {
		t.Errorf("Now allocates %v times", n)
	}
}

func BenchmarkNow(b *testing.B) {
	for name, c := range map[string]*Clock{"database": newClock(nil), "handed": newClock(time.Now)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c.Now()
			}
		})
	}
}
