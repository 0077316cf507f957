package lograte

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/logtest"
)

// TestAllow: the first line of a cause is logged, then one a second with the number left
// out. Another cause is logged at once, and the number of causes is limited.
func TestAllow(t *testing.T) {
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
		leftOut, line := l.Allow(step.cause, began.Add(step.after))
		if leftOut != step.leftOut || line != step.line {
			t.Errorf("%q after %v: line %v with %d left out, want %v with %d", step.cause, step.after, line, leftOut, step.line, step.leftOut)
		}
	}
	lines := 0
	for n := range 100 {
		if _, line := l.Allow(fmt.Sprintf("%c", rune('A'+n)), began.Add(time.Minute)); line {
			lines++
		}
	}
	if lines != maxCauses {
		t.Errorf("100 causes at one instant have %d lines, want %d", lines, maxCauses)
	}
	slow := Limiter{Quiet: time.Minute}
	for after, want := range []bool{true, false, true} {
		if _, line := slow.Allow("x", began.Add(time.Duration(after)*30*time.Second)); line != want {
			t.Errorf("with a minute between lines, after %d s: %v", after*30, line)
		}
	}
}

// TestWarnings: a repeated error is logged once a minute, and another cause at once.
func TestWarnings(t *testing.T) {
	var journal logtest.Journal
	warn := Warnings(slog.New(slog.NewTextHandler(&journal, nil)), "work")
	for range 100 {
		warn(errors.New("refused"))
	}
	warn(errors.New("full"))
	if got := strings.Count(journal.String(), "msg=work"); got != 2 {
		t.Errorf("%d lines, want 2:\n%s", got, journal.String())
	}
	for _, want := range []string{"err=refused leftOut=0", "err=full leftOut=99"} {
		if !strings.Contains(journal.String(), want) {
			t.Errorf("no line has %q:\n%s", want, journal.String())
		}
	}
}
