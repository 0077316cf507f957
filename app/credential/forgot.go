package credential

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// A person gets three mails with a reset an hour, whoever asks for them, and a
// client asks thirty times an hour, for whomever.
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

// MayForget looks whether another mail with a reset may be asked for. It writes
// nothing, so that what is beyond the limits costs a read. Errors:
// too_many_attempts, the same for addresses without an account.
func (d *Verifier) MayForget(ctx context.Context, by doorward.Caller, email string) error {
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

// CountForgot counts that a reset is asked for and returns which one of the hour
// it is, for the address. Errors are those of MayForget; nothing may be written
// then.
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
