package credential

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Three resets an hour are mailed to one address, and thirty an hour are taken from
// one client network.
const (
	forgotHits       = 3
	forgotPerNetwork = 30
	forgotWindow     = time.Hour
)

// forgotCounter is one of the counters of requests for a reset.
type forgotCounter struct {
	bucket string
	most   int
}

// forgotCounters are in the order in which they are locked, that of the address
// last. Without a limit on client addresses there is none on theirs here.
func (d *Verifier) forgotCounters(by doorward.Caller, email string) []forgotCounter {
	counters := []forgotCounter{{"forgot:" + email, forgotHits}}
	if d.limits.PerIP == 0 {
		return counters
	}
	return append([]forgotCounter{{"forgotten:" + Network(by.IP), forgotPerNetwork}}, counters...)
}

// CheckForgotLimits reports whether another reset may be asked for. It writes nothing,
// so that a request beyond the limits costs a read. Errors:
// too_many_attempts, the same for addresses without an account.
func (d *Verifier) CheckForgotLimits(ctx context.Context, by doorward.Caller, email string) error {
	read, now := d.db.Read(), d.db.Now()
	for _, c := range d.forgotCounters(by, email) {
		t, err := read.Throttle(ctx, c.bucket)
		if errors.Is(err, store.ErrNone) {
			continue
		}
		left := t.Since.Add(forgotWindow).Sub(now)
		if err == nil && t.Hits >= c.most && left > 0 {
			err = tooMany(left)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CountForgot counts a request for a reset and returns its number in the hour, for the
// address. Errors are those of CheckForgotLimits; the transaction must not commit then.
func (d *Verifier) CountForgot(ctx context.Context, tx *store.Tx, by doorward.Caller, email string) (nth int, err error) {
	for _, c := range d.forgotCounters(by, email) {
		t, err := tx.HitThrottle(ctx, c.bucket, forgotWindow)
		if err == nil && t.Hits > c.most {
			err = tooMany(t.Since.Add(forgotWindow).Sub(tx.Now))
		}
		if err != nil {
			return 0, err
		}
		nth = t.Hits
	}
	return nth, nil
}
