// Package progress shows how far a long command is, with an estimate of what is left.
//
//	r := progress.Start(os.Stderr, isTerminal)
//	defer r.Stop()
//	out := r.Before(os.Stdout) // for what is printed meanwhile
//	ctx = progress.With(ctx, r)
//	…
//	progress.Step(ctx, "copying rows", rows, nil)
//	progress.Add(ctx, 1) // after each row
//
// Functions that do the work name their steps by the context, and show nothing without a Reporter in it. On a
// terminal one line is rewritten each second. Elsewhere, as in a journal, a line is written every ten
// seconds. Work that is done before the first line is due shows nothing.
package progress

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// onTerminal and elsewhere are the times between two lines.
	onTerminal = time.Second
	elsewhere  = 10 * time.Second
	// estimateAfter is how long a step must run before its speed says something about the rest.
	estimateAfter = 3 * time.Second
)

// Reporter writes the lines. Make it with Start. It is safe for use by several goroutines.
type Reporter struct {
	out        io.Writer
	isTerminal bool
	added      atomic.Int64 // by Add in this step
	quit       chan struct{}
	ended      sync.WaitGroup

	mu      sync.Mutex
	name    string // of the step; empty: none has begun
	total   int64  // units in the step; 0: unknown
	measure func() int64
	began   time.Time
	shown   time.Time // of the last line, or of the start
	isOpen  bool      // the line on the terminal isn't ended
}

// Start returns a reporter that writes to out until Stop.
func Start(out io.Writer, isTerminal bool) *Reporter {
	r := newReporter(out, isTerminal, time.Now())
	r.ended.Go(func() {
		tick := time.NewTicker(onTerminal)
		defer tick.Stop()
		for {
			select {
			case <-r.quit:
				return
			case now := <-tick.C:
				r.show(now)
			}
		}
	})
	return r
}

func newReporter(out io.Writer, isTerminal bool, now time.Time) *Reporter {
	return &Reporter{out: out, isTerminal: isTerminal, quit: make(chan struct{}), shown: now}
}

// Stop ends the reports, and removes an unfinished line from the terminal.
func (r *Reporter) Stop() {
	close(r.quit)
	r.ended.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
}

// Before returns a writer to w, which may be the same terminal: it removes the unfinished line before it writes, so
// that a result doesn't stand behind it.
func (r *Reporter) Before(w io.Writer) io.Writer { return clearing{r, w} }

type clearing struct {
	reporter *Reporter
	io.Writer
}

// Write implements io.Writer.
func (c clearing) Write(p []byte) (int, error) {
	c.reporter.mu.Lock()
	defer c.reporter.mu.Unlock()
	c.reporter.clear()
	return c.Writer.Write(p)
}

// begin begins a step.
func (r *Reporter) begin(name string, total int64, measure func() int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.name, r.total, r.measure, r.began = name, total, measure, now
	r.added.Store(0)
}

// show writes a line if one is due.
func (r *Reporter) show(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	every := elsewhere
	if r.isTerminal {
		every = onTerminal
	}
	if r.name == "" || now.Sub(r.shown) < every {
		return
	}
	r.shown = now
	done := r.added.Load()
	if r.measure != nil {
		done = r.measure()
	}
	text := "doorward: " + r.name + ": " + state(done, r.total, now.Sub(r.began))
	if !r.isTerminal {
		fmt.Fprintln(r.out, text)
		return
	}
	r.clear()
	fmt.Fprint(r.out, text)
	r.isOpen = true
}

// clear empties the line on the terminal (ECMA-48: EL).
func (r *Reporter) clear() {
	if r.isOpen {
		fmt.Fprint(r.out, "\r\x1b[K")
	}
	r.isOpen = false
}

// state describes how far a step is after a time. What is done can exceed a total that was estimated.
func state(done, total int64, after time.Duration) string {
	if total <= 0 {
		return seconds(after) + " so far"
	}
	done = min(done, total)
	text := fmt.Sprintf("%d %%", min(99, 100*done/total))
	if 100*done >= total && after >= estimateAfter {
		left := time.Duration(float64(after) * float64(total-done) / float64(done))
		text += ", about " + seconds(left) + " left"
	}
	return text
}

// seconds writes a duration in whole seconds.
func seconds(d time.Duration) string { return max(d, time.Second).Round(time.Second).String() }

type key struct{}

// With returns a context whose steps the reporter shows.
func With(ctx context.Context, r *Reporter) context.Context { return context.WithValue(ctx, key{}, r) }

func of(ctx context.Context) *Reporter {
	r, _ := ctx.Value(key{}).(*Reporter)
	return r
}

// Step begins a step with a number of units, 0 if that isn't known. measure returns how many are done; without
// it they are counted by Add.
func Step(ctx context.Context, name string, total int64, measure func() int64) {
	if r := of(ctx); r != nil {
		r.begin(name, total, measure, time.Now())
	}
}

// Add counts units as done.
func Add(ctx context.Context, units int64) {
	if r := of(ctx); r != nil {
		r.added.Add(units)
	}
}
