package credential

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Limits on requests for a password reset: for one address, and from one client network.
const (
	forgotPerAddress = 3
	forgotPerNetwork = 30
	forgotWindow     = time.Hour
)

// forgotCounter is one of the counters of requests for a reset.
type forgotCounter struct {
	bucket string
	limit  int
}

// forgotCounters returns the counters in the order in which they are locked; the last one is that of
// the address. If the limit per client address is off, the network has no counter.
func (v *Verifier) forgotCounters(by doorward.Caller, email string) []forgotCounter {
	counters := []forgotCounter{{"forgot:" + email, forgotPerAddress}}
	if v.limits.Load().PerIP == 0 {
		return counters
	}
	return append([]forgotCounter{{"forgotten:" + Network(by.IP), forgotPerNetwork}}, counters...)
}

// changesPerAccount is how many changes of the address a person may request within forgotWindow. Each
// sends a mail to the present address.
const changesPerAccount = 10

// emailChangeCounters returns the counter of the account, and the counters of resets for the new
// address, so that changes and resets share the limit on mails to an address.
func (v *Verifier) emailChangeCounters(by doorward.Caller, email string) []forgotCounter {
	return append([]forgotCounter{{"change-email:" + by.ID, changesPerAccount}}, v.forgotCounters(by, email)...)
}

// CheckEmailChangeLimits is CheckForgotLimits for a change of the caller's address to
// email.
func (v *Verifier) CheckEmailChangeLimits(ctx context.Context, by doorward.Caller, email string) error {
	return v.checkCounters(ctx, v.emailChangeCounters(by, email))
}

// CountEmailChange is CountForgot for a change of the caller's address to email.
func (v *Verifier) CountEmailChange(ctx context.Context, tx *store.Tx, by doorward.Caller, email string) error {
	_, err := count(ctx, tx, v.emailChangeCounters(by, email))
	return err
}

// CheckForgotLimits returns too_many_attempts if no further reset may be requested, also for an address
// without an account. It only reads, so that a request beyond the limits is cheap.
func (v *Verifier) CheckForgotLimits(ctx context.Context, by doorward.Caller, email string) error {
	return v.checkCounters(ctx, v.forgotCounters(by, email))
}

func (v *Verifier) checkCounters(ctx context.Context, counters []forgotCounter) error {
	read, now := v.db.Read(), v.db.Now()
	for _, c := range counters {
		t, err := read.Throttle(ctx, c.bucket)
		if errors.Is(err, store.ErrNone) {
			continue
		}
		wait := t.Since.Add(forgotWindow).Sub(now)
		if err == nil && t.Hits >= c.limit && wait > 0 {
			err = tooMany(wait)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CountForgot counts a request for a reset, and returns how many requests there were for the address
// within an hour. Errors: too_many_attempts; then the transaction must be rolled back.
func (v *Verifier) CountForgot(ctx context.Context, tx *store.Tx, by doorward.Caller, email string) (nth int, err error) {
	return count(ctx, tx, v.forgotCounters(by, email))
}

// count adds one to each counter, and returns the value of the last.
func count(ctx context.Context, tx *store.Tx, counters []forgotCounter) (nth int, err error) {
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
