package lograte

import (
	"fmt"
	"testing"
	"time"
)

// TestLine: the first of a cause has a line, one a second tells how many were
// left out, another cause has a line at once, and many causes are no flood.
func TestLine(t *testing.T) {
	var l Limiter
	began := time.Now()
	for _, step := range []struct {
		after   time.Duration
		cause   string
		leftOut int
		line    bool
	}{
		{0, "refused", 0, true},
		{1, "refused", 0, false},
		{2, "refused", 0, false},
		{3, "reset: 127.0.0.1:41001", 2, true},
		{4, "reset: 127.0.0.1:41002", 0, false},
		{time.Second, "refused", 1, true},
		{2*time.Second - 1, "refused", 0, false},
		{2 * time.Second, "refused", 1, true},
	} {
		leftOut, line := l.Line(step.cause, began.Add(step.after))
		if leftOut != step.leftOut || line != step.line {
			t.Errorf("%q after %v: line %v with %d left out, want %v with %d", step.cause, step.after, line, leftOut, step.line, step.leftOut)
		}
	}
	lines := 0
	for n := range 100 {
		if _, line := l.Line(fmt.Sprintf("%c", rune('A'+n)), began.Add(time.Minute)); line {
			lines++
		}
	}
	if lines != mostCauses {
		t.Errorf("100 causes in a moment have %d lines, want %d", lines, mostCauses)
	}
	slow := Limiter{Quiet: time.Minute}
	for after, want := range []bool{true, false, true} {
		if _, line := slow.Line("x", began.Add(time.Duration(after)*30*time.Second)); line != want {
			t.Errorf("with a minute between lines, after %d s: %v", after*30, line)
		}
	}
}
