package access

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
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
	bucket := "unknown-keys:" + doorward.Network(by.IP)
	t, err := w.db.Read().Throttle(ctx, bucket)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	if !w.tooManyUnknown(t) {
		err = w.Upkeep(ctx, func(tx *store.Tx) (err error) {
			t, err = tx.HitThrottle(ctx, bucket, unknownWindow)
			return err
		})
		if err != nil {
			return err
		}
		t.Hits-- // the limit applies to the keys before this one
	}
	if w.tooManyUnknown(t) {
		return &doorward.Error{Code: doorward.CodeTooManyAttempts, RetryAfter: max(time.Second, t.Since.Add(unknownWindow).Sub(w.db.Now()))}
	}
	return nil
}

// tooManyUnknown reports whether the limit of unknown keys is used up.
func (w *Writer) tooManyUnknown(t store.Throttle) bool {
	return t.Hits >= maxUnknownKeys && w.db.Now().Before(t.Since.Add(unknownWindow))
}
