package access

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// Limit on unknown keys of any kind from one client network. It doesn't affect valid keys or
// logins.
const (
	maxUnknownKeys = 30
	unknownWindow  = 10 * time.Minute
)

// CountUnknownKey counts a well-formed key that is unknown, for all nodes together. Beyond the
// limit it only reads the count. Errors: too_many_attempts, unavailable.
func (w *Writer) CountUnknownKey(ctx context.Context, by doorward.Caller) error {
	return w.CountWithin(ctx, ClientCounters("unknown-keys", by, maxUnknownKeys, unknownWindow))
}
