package lograte

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSummary: each cause has its lines in an interval, and then one about all others.
func TestSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		s := Summary{Every: time.Minute, Report: func(cause string, leftOut int) { reports = append(reports, fmt.Sprint(cause, " ", leftOut)) }}
		lines := func(cause string, events int) (n int) {
			for range events {
				if s.Allow(cause, 2) {
					n++
				}
			}
			return n
		}
		if a, b := lines("a", 5), lines("b", 2); a != 2 || b != 2 {
			t.Errorf("%d and %d lines, want 2 of each cause", a, b)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"a 3"}; !slices.Equal(reports, want) {
			t.Errorf("reports %q, want %q", reports, want)
		}
		if n := lines("a", 1); n != 1 {
			t.Errorf("%d lines in the next interval, want 1", n)
		}
		for i := range 10 * maxSummaries {
			lines(fmt.Sprint("made up ", i), 1)
		}
		s.mu.Lock()
		kept := len(s.events)
		s.mu.Unlock()
		if kept > maxSummaries+1 {
			t.Errorf("%d causes are kept, want %d and the others", kept, maxSummaries)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := fmt.Sprint(otherCauses, " ", 10*maxSummaries-maxSummaries+1-2); reports[len(reports)-1] != want {
			t.Errorf("reports %q, want the last to be %q", reports, want)
		}
	})
}
