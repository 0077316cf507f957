package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Counter counts something in the bucket, up to Limit within Window, for all nodes together.
type Counter struct {
	Bucket string
	Limit  int
	Window time.Duration
}

// ClientCounters returns the counters of what one client address may do limit times within window, in
// the order in which they are locked; with IPv6 that of the /48 first (doorward.NetworkLimits).
func ClientCounters(what string, by doorward.Caller, limit int, window time.Duration) []Counter {
	var counters []Counter
	for _, n := range doorward.NetworkLimits(by.IP, limit) {
		counters = append(counters, Counter{what + ":" + n.Network, n.Limit, window})
	}
	return counters
}

// CheckCounters returns too_many_attempts if a counter has reached its limit. It only reads.
func CheckCounters(ctx context.Context, db *store.DB, counters []Counter) error {
	read, now := db.Read(), db.Now()
	for _, c := range counters {
		t, err := read.Throttle(ctx, c.Bucket)
		if errors.Is(err, store.ErrNone) {
			continue
		}
		if err == nil && t.Hits >= c.Limit && now.Before(t.Since.Add(c.Window)) {
			err = c.refusal(t, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HitCounters adds one to each counter, and returns the value of the last. Errors: too_many_attempts;
// then the transaction must be rolled back.
func HitCounters(ctx context.Context, tx *store.Tx, counters []Counter) (nth int, err error) {
	for _, c := range counters {
		t, err := tx.HitThrottle(ctx, c.Bucket, c.Window)
		if err == nil && t.Hits > c.Limit {
			err = c.refusal(t, tx.Now)
		}
		if err != nil {
			return 0, err
		}
		nth = t.Hits
	}
	return nth, nil
}

// CountWithin adds one to each counter. At the limit it only reads, so that no caller fills the table
// with counters. Errors: too_many_attempts, unavailable.
func (w *Writer) CountWithin(ctx context.Context, counters []Counter) error {
	if err := CheckCounters(ctx, w.db, counters); err != nil {
		return err
	}
	return w.Upkeep(ctx, func(tx *store.Tx) error {
		_, err := HitCounters(ctx, tx, counters)
		return err
	})
}

func (c Counter) refusal(t store.Throttle, now time.Time) *doorward.Error {
	return TooManyAttempts(t.Since.Add(c.Window).Sub(now))
}

// TooManyAttempts returns the error for a caller who must wait, a second at least.
func TooManyAttempts(wait time.Duration) *doorward.Error {
	return &doorward.Error{Code: doorward.CodeTooManyAttempts, RetryAfter: max(wait, time.Second)}
}

// What an account may do from its sessions within ownWindow, over all nodes. Whatever ends access is not
// counted, nor is what a login begins, which counts in its own limits.
const (
	ownChallenges = 120 // challenges that it begins
	ownChanges    = 120 // changes of its own: factors, address, names, switches
	ownWindow     = time.Hour
)

// CountChallenge counts a challenge that the account begins from a session. The account is locked.
// Errors: too_many_attempts; then the transaction must be rolled back.
func (tx *Tx) CountChallenge(ctx context.Context) error {
	return tx.countOwn(ctx, Counter{"challenges:" + tx.By.ID, ownChallenges, ownWindow}, "proofs of who you are")
}

// CountChange is CountChallenge for a change of the account's own, when that begins.
func (tx *Tx) CountChange(ctx context.Context) error {
	return tx.countOwn(ctx, Counter{"changes:" + tx.By.ID, ownChanges, ownWindow}, "changes of your account")
}

func (tx *Tx) countOwn(ctx context.Context, c Counter, what string) error {
	_, err := HitCounters(ctx, tx.Tx, []Counter{c})
	var e *doorward.Error
	if errors.As(err, &e) {
		e.Detail = fmt.Sprintf("There were more than %d %s within an hour. Wait for the seconds in Retry-After.", c.Limit, what)
	}
	return err
}
