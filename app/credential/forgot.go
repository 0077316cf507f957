package credential

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Limits of mails that people ask for: to one address, by one client network, and about
// one account.
const (
	forgotHits       = 3
	forgotPerNetwork = 30
	changesPerUser   = 10
	forgotWindow     = time.Hour
)

// mailCounter is one of the counters of requests for a mail.
type mailCounter struct {
	bucket string
	limit  int
}

// forgotCounters returns the counters of resets in the order of their locks, that of the
// address last. There is none for the network if the limit per client address is
// off.
func (v *Verifier) forgotCounters(by doorward.Caller, email string) []mailCounter {
	return append(v.networkCounter(by), mailCounter{"forgot:" + email, forgotHits})
}

// changeCounters is forgotCounters for mails that confirm the caller's new address.
func (v *Verifier) changeCounters(by doorward.Caller, email string) []mailCounter {
	return append(v.networkCounter(by), mailCounter{"changes:" + by.ID, changesPerUser}, mailCounter{"change:" + email, forgotHits})
}

func (v *Verifier) networkCounter(by doorward.Caller) []mailCounter {
	if v.limits.PerIP == 0 {
		return nil
	}
	return []mailCounter{{"forgotten:" + Network(by.IP), forgotPerNetwork}}
}

// CheckForgotLimits reports whether another reset may be requested. It only reads,
// so that a request beyond the limits is cheap. Errors: too_many_attempts, the
// same for addresses without an account.
func (v *Verifier) CheckForgotLimits(ctx context.Context, by doorward.Caller, email string) error {
	return v.checkMails(ctx, v.forgotCounters(by, email))
}

func (v *Verifier) checkMails(ctx context.Context, counters []mailCounter) error {
	read, now := v.db.Read(), v.db.Now()
	for _, c := range counters {
		t, err := read.Throttle(ctx, c.bucket)
		if errors.Is(err, store.ErrNone) {
			continue
		}
		left := t.Since.Add(forgotWindow).Sub(now)
		if err == nil && t.Hits >= c.limit && left > 0 {
			err = tooMany(left)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CountForgot counts a request for a reset and returns its number in the hour, for
// the address. Errors are those of CheckForgotLimits; the transaction must then be
// rolled back.
func (v *Verifier) CountForgot(ctx context.Context, tx *store.Tx, by doorward.Caller, email string) (nth int, err error) {
	return countMails(ctx, tx, v.forgotCounters(by, email))
}

func countMails(ctx context.Context, tx *store.Tx, counters []mailCounter) (nth int, err error) {
	for _, c := range counters {
		t, err := tx.HitThrottle(ctx, c.bucket, forgotWindow)
		if err == nil && t.Hits > c.limit {
			err = tooMany(t.Since.Add(forgotWindow).Sub(tx.Now))
		}
		if err != nil {
			return 0, err
		}
		nth = t.Hits
	}
	return nth, nil
}

// CheckChangeLimits is CheckForgotLimits for a mail that confirms the caller's new address.
func (v *Verifier) CheckChangeLimits(ctx context.Context, by doorward.Caller, email string) error {
	return v.checkMails(ctx, v.changeCounters(by, email))
}

// CountChange is CountForgot for a mail that confirms the caller's new address.
func (v *Verifier) CountChange(ctx context.Context, tx *store.Tx, by doorward.Caller, email string) error {
	_, err := countMails(ctx, tx, v.changeCounters(by, email))
	return err
}
