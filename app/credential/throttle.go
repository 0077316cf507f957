package credential

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
)

// Limits bound the attempts at passwords. The numbers are those of the
// contract; 0 switches a limit off.
type Limits struct {
	PerAccount int // failures per address before attempts are delayed
	PerIP      int // failures per client address in ten minutes
}

const (
	firstDelay   = time.Second
	longestDelay = 15 * time.Minute
	// closedAfter so many failures without a success, browsers that haven't
	// signed in before are not heard until the password is reset (NIST SP
	// 800-63B-4, section 3.2.2, allows 100).
	closedAfter   = 100
	accountMemory = 30 * 24 * time.Hour // fewer failures are forgotten that long after the first
	ipWindow      = 10 * time.Minute
	deviceWindow  = time.Hour
	deviceHits    = 10
)

// forever is longer than any wait: a bucket closed until then is opened by
// nothing but a reset.
var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// attempt names the buckets in which an attempt was counted, and for one of a
// known device what is left of its allowance. Such a one has no bucket of its
// client.
type attempt struct {
	own, ip   string
	allowance *doorward.Allowance
}

// reserve counts the attempt before anything is hashed, in the database, so
// that parallel guesses, over several nodes too, can't pass the limits between
// the check and the count. An attempt that is refused here is not counted.
func (d *Desk) reserve(ctx context.Context, by doorward.Caller, email string) (attempt, error) {
	ctx, span := trace.Start(ctx, "attempt.reserve")
	defer span.End()
	var a attempt
	err := d.door.Upkeep(ctx, func(tx *store.Tx) error {
		known, err := d.knownDevice(ctx, tx, by, email)
		if err != nil {
			return err
		}
		if known {
			a = attempt{own: "device:" + hex.EncodeToString(by.Device)}
			a.allowance, err = d.countDevice(ctx, tx, a.own)
			return err
		}
		a = attempt{ip: "ip:" + Network(by.IP)}
		if err := d.countIP(ctx, tx, a.ip); err != nil {
			return err
		}
		a.own = accountBucket(email, by)
		return d.countAccount(ctx, tx, a.own)
	})
	tell(by, a.allowance)
	return a, err
}

// tell says what is left of an allowance to the only one who can use it up. What
// is left of an account's or an address's would tell of others.
func tell(by doorward.Caller, left *doorward.Allowance) {
	if left != nil && by.Limited != nil {
		by.Limited(*left)
	}
}

// accountBucket: texts that are no address share one counter per client, so
// that flooding with them fills no table.
func accountBucket(email string, by doorward.Caller) string {
	if email == "" {
		return "nobody:" + Network(by.IP)
	}
	return "account:" + email
}

// knownDevice reports whether the attempt is counted in the allowance of its
// browser and nowhere else. The counter of its client would be a neighbour's to
// use up, and isn't needed: the allowance is less. Nor do its failures count
// there, for the allowance bounds them and strangers would pay. Without an
// allowance nothing would bound them, so then it is a client like any other.
func (d *Desk) knownDevice(ctx context.Context, tx *store.Tx, by doorward.Caller, email string) (bool, error) {
	if by.Device == nil || d.limits.PerAccount == 0 {
		return false, nil
	}
	return tx.DeviceKnown(ctx, by.Device, email, tx.Now.Add(-doorward.DeviceLife))
}

func (d *Desk) countIP(ctx context.Context, tx *store.Tx, bucket string) error {
	if d.limits.PerIP == 0 {
		return nil
	}
	t, err := tx.HitThrottle(ctx, bucket, ipWindow)
	if err == nil && t.Hits > d.limits.PerIP {
		return tooMany(t.Since.Add(ipWindow).Sub(tx.Now))
	}
	return err
}

// countDevice counts in the allowance of a known device, which nobody else can
// use up.
func (d *Desk) countDevice(ctx context.Context, tx *store.Tx, bucket string) (*doorward.Allowance, error) {
	t, err := tx.HitThrottle(ctx, bucket, deviceWindow)
	if err != nil {
		return nil, err
	}
	left := &doorward.Allowance{
		Name: "device", Quota: deviceHits, Window: deviceWindow,
		Remaining: max(0, deviceHits-t.Hits), Reset: t.Since.Add(deviceWindow).Sub(tx.Now),
	}
	if t.Hits > deviceHits {
		return left, tooMany(left.Reset)
	}
	return left, nil
}

func (d *Desk) countAccount(ctx context.Context, tx *store.Tx, bucket string) error {
	if d.limits.PerAccount == 0 {
		return nil
	}
	t, err := tx.HitThrottle(ctx, bucket, accountMemory)
	if err != nil {
		return err
	}
	if wait := t.Until.Sub(tx.Now); wait > 0 {
		return tooMany(min(wait, longestDelay))
	}
	switch {
	case t.Hits < d.limits.PerAccount:
		return nil
	case t.Hits >= closedAfter:
		return tx.DelayThrottle(ctx, bucket, forever)
	}
	return tx.DelayThrottle(ctx, bucket, tx.Now.Add(delay(t.Hits-d.limits.PerAccount)))
}

// delay is 1 s after the last free failure and doubles with each further one.
func delay(further int) time.Duration {
	if further > 10 {
		return longestDelay
	}
	return min(firstDelay<<further, longestDelay)
}

// settle takes a successful attempt back: it clears the counter it was counted
// in and is no failure of its client address. It locks the two in the order of
// reserve: the other way round two logins of one person would deadlock.
func (d *Desk) settle(ctx context.Context, by doorward.Caller, a attempt) error {
	if a.allowance != nil {
		tell(by, &doorward.Allowance{Name: a.allowance.Name, Quota: deviceHits, Window: deviceWindow, Remaining: deviceHits, Reset: deviceWindow})
	}
	ctx, span := trace.Start(ctx, "attempt.settle")
	defer span.End()
	return d.door.Upkeep(ctx, func(tx *store.Tx) error {
		if a.ip != "" {
			if err := tx.RefundThrottle(ctx, a.ip); err != nil {
				return err
			}
		}
		return tx.ClearThrottle(ctx, a.own)
	})
}

// Forgive clears the delays of an address, after a reset by its mail.
func Forgive(ctx context.Context, tx *store.Tx, email string) error {
	return tx.ClearThrottle(ctx, "account:"+email)
}

func tooMany(wait time.Duration) error {
	return &doorward.Error{Code: doorward.CodeTooManyAttempts, RetryAfter: max(wait, time.Second)}
}

// Network is what counts as one client, see doorward.Network.
func Network(ip string) string { return doorward.Network(ip) }

// Sweep deletes counters and devices that decide nothing any more, the counters
// in several transactions: a flood leaves many.
func (d *Desk) Sweep(ctx context.Context) error {
	for more := true; more; {
		err := d.door.Upkeep(ctx, func(tx *store.Tx) (err error) {
			more, err = tx.DeleteOldThrottles(ctx, tx.Now.Add(-accountMemory))
			return err
		})
		if err != nil {
			return err
		}
	}
	return d.door.Upkeep(ctx, func(tx *store.Tx) error {
		return tx.DeleteOldDevices(ctx, tx.Now.Add(-doorward.DeviceLife))
	})
}
