package gcra_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/gcra"
)

// takeAll returns how many events are granted at one instant.
func takeAll(l *gcra.Limiter, now time.Duration, perSecond int) (n int) {
	for l.Take(now, perSecond) == 0 {
		n++
	}
	return n
}

// TestEveryRate: exactly the rate is granted at once, and again after each idle second.
// In make test it takes random ones of the rates above a thousand.
func TestEveryRate(t *testing.T) {
	t.Parallel()
	for perSecond := 1; perSecond <= 10_000; perSecond++ {
		if perSecond > 1000 && perSecond < 10_000 && !fulltest.On() {
			perSecond = min(perSecond+rand.IntN(50), 10_000)
		}
		var l gcra.Limiter
		for second := range 3 {
			// Rounding intervals up to nanoseconds delays 10,000 of them by less than 10 µs.
			now := time.Duration(second) * (time.Second + 10*time.Microsecond)
			if n := takeAll(&l, now, perSecond); n != perSecond {
				t.Fatalf("%d a second: %d were granted after %v", perSecond, n, now)
			}
		}
	}
}

// TestWait: the wait is the shortest after which an event is granted.
func TestWait(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 1_000 {
		var l gcra.Limiter
		perSecond, now := 1+random.IntN(10_000), time.Duration(random.Int64N(int64(1000*time.Hour)))
		takeAll(&l, now, perSecond)
		wait := l.Take(now, perSecond)
		if wait <= 0 || l.Take(now+wait-1, perSecond) == 0 || l.Take(now+wait, perSecond) != 0 {
			t.Errorf("%d a second: a wait of %v is not exact", perSecond, wait)
		}
	}
}

func TestRateZeroGrantsNothing(t *testing.T) {
	t.Parallel()
	var l gcra.Limiter
	if wait := l.Take(0, 0); wait != time.Second || !l.Idle(0) {
		t.Errorf("with a rate of 0 the wait is %v", wait)
	}
}

// TestIdle: a limiter is idle when all it granted is a second ago, not earlier.
func TestIdle(t *testing.T) {
	t.Parallel()
	var l gcra.Limiter
	takeAll(&l, time.Hour, 4)
	if l.Idle(time.Hour+time.Second-1) || !l.Idle(time.Hour+time.Second) {
		t.Error("a limiter that granted its rate is not idle exactly a second later")
	}
}

// TestAnyInterval: whatever the instants and rates, no interval of t seconds has more
// than the highest rate × (t + 1).
func TestAnyInterval(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		most := 1 + random.IntN(50)
		expectAtMost(t, most, grants(random, most))
	}
}

// grants tries 300 times, at random instants and rates up to most, and returns the instants at
// which an event was granted.
func grants(random *rand.Rand, most int) (granted []time.Duration) {
	var l gcra.Limiter
	now, longest := time.Duration(0), 1+random.Int64N(int64(200*time.Millisecond))
	for range 300 {
		now += time.Duration(random.Int64N(longest))
		if l.Take(now, random.IntN(most+1)) == 0 {
			granted = append(granted, now)
		}
	}
	return granted
}

func expectAtMost(t *testing.T, perSecond int, granted []time.Duration) {
	t.Helper()
	for i := range granted {
		for j := i; j < len(granted); j++ {
			if n, took := j-i+1, granted[j]-granted[i]; float64(n) > float64(perSecond)*(took.Seconds()+1) {
				t.Fatalf("%d events in %v, at %d a second", n, took, perSecond)
			}
		}
	}
}

// TestRaceExact: eight goroutines that try at the same instants get exactly
// what one would.
func TestRaceExact(t *testing.T) {
	t.Parallel()
	const goroutines, tries, perSecond = 8, 5_000, 10_000
	var l gcra.Limiter
	for second := range 5 {
		now := time.Duration(second) * time.Second
		var granted atomic.Int64
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range tries {
					if l.Take(now, perSecond) == 0 {
						granted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := granted.Load(); n != perSecond {
			t.Errorf("%d were granted at once, want %d", n, perSecond)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	var l gcra.Limiter
	b.ReportAllocs()
	now := time.Duration(0)
	for b.Loop() {
		now += time.Millisecond
		l.Take(now, 1_000)
	}
}
