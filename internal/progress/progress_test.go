package progress

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// TestLines: nothing for what is quick, then a line every ten seconds with an estimate.
func TestLines(t *testing.T) {
	var out strings.Builder
	r := newReporter(&out, false, start)
	ctx := With(context.Background(), r)
	r.begin("copying rows", 200, nil, start)
	for second := range 21 {
		r.show(start.Add(time.Duration(second) * time.Second))
		Add(ctx, 5)
	}
	want := "doorward: copying rows: 25 %, about 30s left\ndoorward: copying rows: 50 %, about 20s left\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	r.begin("checking pages and indexes", 0, nil, start.Add(20*time.Second))
	r.show(start.Add(31 * time.Second))
	if want := "doorward: checking pages and indexes: 11s so far\n"; out.String() != want {
		t.Errorf("without a total: %q, want %q", out.String(), want)
	}
}

// TestTerminal: one line is rewritten, and nothing of it is left.
func TestTerminal(t *testing.T) {
	var out strings.Builder
	r := newReporter(&out, true, start)
	size := int64(0)
	r.begin("copying", 100, func() int64 { return size }, start)
	r.show(start)
	for _, size = range []int64{10, 250} { // a total that was too low
		r.show(start.Add(time.Duration(size) * time.Second))
	}
	r.Stop()
	if want := "doorward: copying: 10 %, about 1m30s left\r\x1b[Kdoorward: copying: 99 %, about 1s left\r\x1b[K"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestResultBehindProgress: what a command prints on the same terminal has a line of its own.
func TestResultBehindProgress(t *testing.T) {
	var out strings.Builder
	r := newReporter(&out, true, start)
	result := r.Before(&out)
	r.begin("copying", 100, func() int64 { return 10 }, start)
	r.show(start.Add(10 * time.Second))
	fmt.Fprintln(result, "Moved.")
	fmt.Fprintln(result, "Nothing is lost.")
	r.Stop()
	if want := "doorward: copying: 10 %, about 1m30s left\r\x1b[KMoved.\nNothing is lost.\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestWithoutReporter: the work goes on unwatched.
func TestWithoutReporter(t *testing.T) {
	Step(context.Background(), "copying", 1, nil)
	Add(context.Background(), 1)
	r := Start(new(strings.Builder), true)
	Step(With(context.Background(), r), "copying", 1, nil)
	r.Stop()
}
