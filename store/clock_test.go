package store

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
)

// clockTest is a Clock under test, on a machine whose own clock the test can set.
type clockTest struct {
	*testing.T
	*Clock
	step time.Duration // by which this machine's clock was set
}

// measure returns a measurement by which the database's clock is ahead of this machine's
// unchanged clock.
func (m *clockTest) measure(ahead, uncertainty time.Duration) measurement {
	local := time.Now()
	m.Clock.offset = m.step // as if this machine's clock were set: only the difference counts
	return measurement{local: local, database: local.Round(0).Add(ahead), uncertainty: uncertainty}
}

func (m *clockTest) want(ahead time.Duration, wrong bool, when string) {
	m.Helper()
	if off := time.Until(m.Now()) - ahead; off.Abs() > 50*time.Millisecond {
		m.Errorf("%s: the time is %v off", when, off)
	}
	if m.Wrong() != wrong || (m.Err() != nil) != wrong || wrong && !doorward.HasCode(m.Err(), doorward.CodeUnavailable) {
		m.Errorf("%s: wrong is %v, %v; want %v", when, m.Wrong(), m.Err(), wrong)
	}
}

// TestClock: when one clock is set, time continues as before; it follows the
// database's clock again once both agree.
func TestClock(t *testing.T) {
	m := &clockTest{T: t, Clock: newClock(nil)}
	m.begin(m.measure(10*time.Second, 0))
	m.want(10*time.Second, false, "at the start")
	m.apply(m.measure(11*time.Second, 0))
	m.want(11*time.Second, false, "the database's clock is followed")
	m.apply(m.measure(11*time.Second+300*time.Millisecond, 400*time.Millisecond))
	m.want(11*time.Second, false, "a measurement that agrees within its uncertainty")
	if d := m.Drift(); d > -11*time.Second || d < -12*time.Second {
		t.Errorf("the drift is %v", d)
	}

	m.step = 90 * time.Minute
	m.apply(m.measure(11*time.Second, 0))
	m.want(11*time.Second, true, "this machine's clock is set ahead")
	m.step = 0
	m.apply(m.measure(11*time.Second, 0))
	m.want(11*time.Second, false, "and set right")

	for _, jump := range []time.Duration{26 * time.Hour, -26 * time.Hour} {
		m.apply(m.measure(jump, 0))
		m.want(11*time.Second, true, "the database's clock jumps")
	}
	m.apply(m.measure(0, 0))
	m.want(0, false, "and is right again")
}

// TestCorrectionsOfClock: a correction, after which rows in the future are searched for, is
// counted for each fault, but not for small adjustments.
func TestCorrectionsOfClock(t *testing.T) {
	m := &clockTest{T: t, Clock: newClock(nil)}
	wantCount := func(want int64, what string) {
		t.Helper()
		if got := m.Corrections(); got != want {
			t.Errorf("%s: corrected %d times, want %d", what, got, want)
		}
	}
	m.begin(m.measure(0, 0))
	m.apply(m.measure(-ClockTolerance/2, 0))
	m.apply(m.measure(ClockTolerance/2, 0))
	wantCount(0, "within the tolerance")
	m.step = 90 * time.Minute
	m.apply(m.measure(0, 0))
	wantCount(0, "wrong")
	m.step = 0
	m.apply(m.measure(0, 0))
	wantCount(1, "right again")
	for _, jump := range []struct {
		of   time.Duration
		want int64
	}{{26 * time.Hour, 1}, {0, 2}} { // the database runs on the same machine
		m.step = jump.of
		m.apply(m.measure(jump.of, 0))
		wantCount(jump.want, "both clocks jump to "+jump.of.String())
	}
}

// TestNowDoesNotAllocate: every check from memory reads the clock.
func TestNowDoesNotAllocate(t *testing.T) {
	c := newClock(nil)
	if n := testing.AllocsPerRun(100, func() { c.Now() }); n > 0 {
		t.Errorf("Now allocates %v times", n)
	}
}

func BenchmarkNow(b *testing.B) {
	for name, c := range map[string]*Clock{"database": newClock(nil), "replaced": newClock(time.Now)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c.Now()
			}
		})
	}
}
