package provider

import (
	"context"
	"time"
)

// WriteWithin is what a request keeps of its time for what it writes after the provider's answer, or without one.
const WriteWithin = 1500 * time.Millisecond

// WhileAsking returns the context in which a request that has to write afterwards asks the provider: it ends 1.5 s before
// the request's own, if that is bounded.
func WhileAsking(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, isBounded := ctx.Deadline(); isBounded {
		return context.WithDeadline(ctx, end.Add(-WriteWithin))
	}
	return context.WithCancel(ctx)
}
