// Package waittest waits for events in tests. A test must fail for a fault only, never because
// the machine is slow: so all waits have one limit, far beyond what a busy machine needs, and no
// test compares the time that something took. TestNoTestMeasuresTheMachine finds those that do.
package waittest

import (
	"context"
	"testing"
	"time"
)

// Limit is the longest that a test waits for an event.
const Limit = 2 * time.Minute

// Deadline is the end of a wait that begins now, for connections.
func Deadline() time.Time { return time.Now().Add(Limit) }

// Until polls until a condition holds. The description, such as "the mail to be sent", is for
// the failure.
func Until(t testing.TB, description string, holds func() bool) {
	t.Helper()
	for deadline := Deadline(); !holds(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", Limit, description)
		}
	}
}

// For returns the next value of a channel, or the zero value once it is closed.
func For[T any](t testing.TB, description string, channel <-chan T) T {
	t.Helper()
	select {
	case value := <-channel:
		return value
	case <-time.After(Limit):
		t.Fatalf("waited %v for %s", Limit, description)
		panic("unreachable")
	}
}

// Interrupt returns a context that ends after d, to see what is left of work that was cut off.
// What it cuts off may be at any step, or done.
func Interrupt(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
