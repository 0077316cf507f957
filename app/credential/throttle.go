package credential

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
)

// Limits bound password attempts. 0 switches a limit off.
type Limits struct {
	PerAccount int // failures per address before attempts are delayed
	PerIP      int // failures per client address in ten minutes
}

const (
	firstDelay   = time.Second
	longestDelay = 15 * time.Minute
	// closedAfter is the number of failures without a success after which attempts
	// from unknown browsers are refused until the password is reset (NIST SP
	// 800-63B-4, section 3.2.2, allows 100).
	closedAfter   = 100
	accountMemory = 30 * 24 * time.Hour // after the first failure, unless closedAfter is reached
	ipWindow      = 10 * time.Minute
	deviceWindow  = time.Hour
	deviceHits    = 10 // of one browser
	devicesHits   = 30 // of all browsers of an account
	// attemptLife is longer than any request: an older attempt belongs to a node that
	// was killed.
	attemptLife = time.Minute
	// finishWithin bounds the write of an outcome after the request has ended.
	finishWithin = 5 * time.Second
)

// forever is the end of a delay that time doesn't end; see closedAfter and CountCode.
var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// attempt names the buckets that an attempt counts in. One from a known device
// doesn't count for its client network.
type attempt struct {
	id                    string  // empty when no limit applies
	limits                *Limits // in force when it began
	own                   string  // bucket of the account or the device
	ip                    string  // bucket of the client network, without a known device
	all                   string  // bucket of all devices of the account, with a known device
	device                []byte  // hash of the known device
	allowance             *doorward.Allowance
	remainingAfterSuccess int // what is left of the allowance after a success
	// busy: refused only because of attempts in flight.
	busy bool
}

// wider is the bucket besides own: at most one of ip and all is set.
func (a attempt) wider() string { return a.ip + a.all }

// reserve stores the attempt before anything is hashed, so that parallel guesses,
// also on several nodes, can't pass the limits between the check and the count.
// While it is in flight, further attempts that would exceed the limits if it
// failed must wait for a second. A refused attempt leaves no row.
func (v *Verifier) reserve(ctx context.Context, admit func(*store.Tx, *attempt) error) (attempt, error) {
	ctx, span := trace.Start(ctx, "attempt.reserve")
	defer span.End()
	id, a, limits := doorward.NewID("att_"), attempt{}, v.limits.Load()
	err := v.writer.Upkeep(ctx, func(tx *store.Tx) error {
		a = attempt{id: id, limits: limits}
		if err := admit(tx, &a); err != nil || a.own+a.wider() == "" {
			return err
		}
		return tx.InsertAttempt(ctx, store.Attempt{ID: a.id, Own: a.own, Wider: a.wider()}, tx.Now.Add(attemptLife))
	})
	switch {
	case err == nil:
	case doorward.HasCode(err, doorward.CodeTooManyAttempts):
		err = a.withAllowance(err)
	default: // it may have been committed
		v.release(ctx, a)
	}
	if a.own+a.wider() == "" {
		a.id = ""
	}
	return a, err
}

func (v *Verifier) admit(ctx context.Context, tx *store.Tx, a *attempt, by doorward.Caller, email string) error {
	known, err := v.knownDevices(ctx, tx, a, by, email)
	switch {
	case err != nil:
		return err
	case len(known) > 0:
		return v.admitDevice(ctx, tx, a, known)
	}
	if err := v.admitClient(ctx, tx, a, by); err != nil {
		return err
	}
	return v.admitAccount(ctx, tx, a, accountBucket(email, by))
}

// withAllowance adds the rest of the device's allowance to the error; see
// Proof.Allowance.
func (a attempt) withAllowance(err error) error {
	var e *doorward.Error
	if a.allowance == nil || !errors.As(err, &e) {
		return err
	}
	withRest := *e
	withRest.Allowance = a.allowance
	return &withRest
}

// accountBucket is the bucket of an address. All malformed ones from one client network
// share a bucket, so that they can't fill the table.
func accountBucket(email string, by doorward.Caller) string {
	if email == "" {
		return "nobody:" + Network(by.IP)
	}
	return "account:" + email
}

// knownDevices returns the devices of the caller, in whose allowance the attempt
// counts. It doesn't count for the client network: neighbours could use that up,
// and failures here would use it up for them. With the limits on accounts off
// there is no allowance, and a device is treated like any client.
func (v *Verifier) knownDevices(ctx context.Context, tx *store.Tx, a *attempt, by doorward.Caller, email string) ([]store.KnownDevice, error) {
	if a.limits.PerAccount == 0 {
		return nil, nil
	}
	return KnownDevices(ctx, tx.Reader, by, email, tx.Now)
}

// KnownDevices returns the caller's devices that have signed in to the account of
// the canonical address before and are still trusted.
func KnownDevices(ctx context.Context, read store.Reader, by doorward.Caller, email string, now time.Time) ([]store.KnownDevice, error) {
	return read.KnownDevices(ctx, email, by.Devices, now.Add(-doorward.DeviceLife))
}

// CurrentDevice is the known browser of the caller, or nil. It is also nil if the caller
// sends several: a thief could have planted one, and what is returned here stays known when
// the others end.
func CurrentDevice(ctx context.Context, read store.Reader, by doorward.Caller, now time.Time) ([]byte, error) {
	known, err := KnownDevices(ctx, read, by, by.Email, now)
	if err != nil || len(known) != 1 {
		return nil, err
	}
	return known[0].Hash, nil
}

// counter is a locked bucket, and the number of its attempts in flight.
type counter struct {
	store.Throttle
	inFlight int
}

func lock(ctx context.Context, tx *store.Tx, bucket string, window time.Duration) (c counter, err error) {
	if c.Throttle, err = tx.LockThrottle(ctx, bucket, window); err != nil {
		return c, err
	}
	c.inFlight, err = tx.AttemptsInFlight(ctx, bucket)
	return c, err
}

// remaining is how many more attempts may begin even if all in flight fail.
func (c counter) remaining(most int) int { return max(0, most-c.Hits-c.inFlight) }

// refusal is the error for an attempt beyond the limit: it has to wait for the end
// of the window, or for the attempts in flight.
func (a *attempt) refusal(c counter, most int, window time.Duration, now time.Time) error {
	if c.Hits >= most {
		return tooMany(c.Since.Add(window).Sub(now))
	}
	return a.refuseBusy()
}

func (a *attempt) refuseBusy() error {
	a.busy = true
	return tooMany(time.Second)
}

func (v *Verifier) admitClient(ctx context.Context, tx *store.Tx, a *attempt, by doorward.Caller) error {
	if a.limits.PerIP == 0 {
		return nil
	}
	a.ip = "ip:" + Network(by.IP)
	c, err := lock(ctx, tx, a.ip, ipWindow)
	if err == nil && c.remaining(a.limits.PerIP) == 0 {
		err = a.refusal(c, a.limits.PerIP, ipWindow, tx.Now)
	}
	return err
}

// admitDevice counts the attempt in the allowance of a known device, which nobody
// else can use up, and in that of all devices of the account, since a thief who
// knows the password can make further devices. Of several devices it takes one
// with some allowance left.
func (v *Verifier) admitDevice(ctx context.Context, tx *store.Tx, a *attempt, known []store.KnownDevice) error {
	a.all = "devices:" + known[0].UserID
	all, err := lock(ctx, tx, a.all, deviceWindow)
	if err != nil {
		return err
	}
	var one counter
	for _, device := range known {
		a.device, a.own = device.Hash, "device:"+hex.EncodeToString(device.Hash)
		if one, err = lock(ctx, tx, a.own, deviceWindow); err != nil {
			return err
		}
		if one.remaining(deviceHits) > 0 {
			break
		}
	}
	a.allowance = &doorward.Allowance{
		Name: "device", Quota: deviceHits, Window: deviceWindow,
		Remaining: max(0, min(one.remaining(deviceHits), all.remaining(devicesHits))-1), Reset: one.Since.Add(deviceWindow).Sub(tx.Now),
	}
	a.remainingAfterSuccess = min(deviceHits, all.remaining(devicesHits))
	switch {
	case all.remaining(devicesHits) == 0:
		a.allowance.Reset = all.Since.Add(deviceWindow).Sub(tx.Now)
		return a.refusal(all, devicesHits, deviceWindow, tx.Now)
	case one.remaining(deviceHits) == 0:
		return a.refusal(one, deviceHits, deviceWindow, tx.Now)
	}
	return nil
}

// admitAccount admits as many parallel attempts as there are free failures left,
// then one at a time.
func (v *Verifier) admitAccount(ctx context.Context, tx *store.Tx, a *attempt, bucket string) error {
	if a.limits.PerAccount == 0 {
		return nil
	}
	a.own = bucket
	c, err := lock(ctx, tx, bucket, accountMemory)
	if err != nil {
		return err
	}
	if wait := c.Until.Sub(tx.Now); wait > 0 {
		return tooMany(min(wait, longestDelay))
	}
	if c.inFlight >= max(1, a.limits.PerAccount-c.Hits) {
		return a.refuseBusy()
	}
	return nil
}

// delay is 1 s after the last free failure, and doubles with each further one up to 15 min.
func delay(further int) time.Duration {
	if further > 10 {
		return longestDelay
	}
	return min(firstDelay<<further, longestDelay)
}

// fail counts the attempt as a failure and writes its record, unless nil, in the
// same transaction.
func (v *Verifier) fail(ctx context.Context, a attempt, record access.Record) error {
	if a.id == "" && record == nil {
		return nil
	}
	ctx, span := trace.Start(ctx, "attempt.fail")
	defer span.End()
	if a.id == "" {
		return v.writer.Upkeep(ctx, func(tx *store.Tx) error { return record(ctx, tx) })
	}
	return v.finish(ctx, a, func(ctx context.Context, tx *store.Tx) error {
		if err := v.countFailure(ctx, tx, a); err != nil || record == nil {
			return err
		}
		return record(ctx, tx)
	})
}

// countFailure locks the counters in the order of reserve, so that no two attempts
// deadlock. The record comes after them: no transaction that locks its row waits
// for a counter.
func (v *Verifier) countFailure(ctx context.Context, tx *store.Tx, a attempt) error {
	if a.ip != "" {
		if _, err := tx.HitThrottle(ctx, a.ip, ipWindow); err != nil {
			return err
		}
	}
	if a.all != "" {
		if _, err := tx.HitThrottle(ctx, a.all, deviceWindow); err != nil {
			return err
		}
	}
	switch {
	case a.own == "":
		return nil
	case a.device != nil:
		_, err := tx.HitThrottle(ctx, a.own, deviceWindow)
		return err
	}
	return failAccount(ctx, tx, a)
}

func failAccount(ctx context.Context, tx *store.Tx, a attempt) error {
	t, err := tx.HitThrottle(ctx, a.own, accountMemory)
	switch {
	case err != nil || t.Hits < a.limits.PerAccount:
		return err
	case t.Hits >= closedAfter:
		return tx.DelayThrottle(ctx, a.own, forever)
	}
	return tx.DelayThrottle(ctx, a.own, tx.Now.Add(delay(t.Hits-a.limits.PerAccount)))
}

// release ends an attempt without an outcome, which counts nowhere. If the write
// fails the attempt expires by itself.
func (v *Verifier) release(ctx context.Context, a attempt) {
	_ = v.finish(ctx, a, func(context.Context, *store.Tx) error { return nil })
}

// finish ends an attempt and writes its outcome. If the request ends before, the
// outcome is written in the background: closing the connection must not keep a failure
// from being counted.
func (v *Verifier) finish(ctx context.Context, a attempt, outcome func(context.Context, *store.Tx) error) error {
	if a.id == "" {
		return nil
	}
	err := v.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if _, err := tx.DeleteAttempt(ctx, a.id); err != nil {
			return err
		}
		return outcome(ctx, tx)
	})
	if err != nil && ctx.Err() != nil {
		go v.finishLate(context.WithoutCancel(ctx), a, outcome)
	}
	return err
}

// finishLate writes an outcome unless that is done: the first try may have committed
// although it returned an error.
func (v *Verifier) finishLate(ctx context.Context, a attempt, outcome func(context.Context, *store.Tx) error) {
	ctx, stop := context.WithTimeout(ctx, finishWithin)
	defer stop()
	_ = v.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if isOpen, err := tx.DeleteAttempt(ctx, a.id); err != nil || !isOpen {
			return err
		}
		return outcome(ctx, tx)
	})
}

// settle deletes a successful attempt in the transaction of what it permits, and
// clears the counter of its account or device.
func (a attempt) settle(ctx context.Context, tx *store.Tx) error {
	if a.id == "" {
		return nil
	}
	if _, err := tx.DeleteAttempt(ctx, a.id); err != nil || a.own == "" {
		return err
	}
	return tx.ClearThrottle(ctx, a.own)
}

// CountCode counts a try at a code of the account's authenticator app, before it is
// checked. After closedAfter in a row without a proof of a second factor, codes are
// refused. A reset of the password doesn't clear this counter: it proves the mailbox only,
// and codes could be guessed for ever between resets. Errors: too_many_attempts.
func (v *Verifier) CountCode(ctx context.Context, tx *store.Tx, userID string) error {
	if v.limits.Load().PerAccount == 0 {
		return nil
	}
	bucket := codesBucket(userID)
	t, err := tx.HitThrottle(ctx, bucket, accountMemory)
	switch {
	case err != nil:
		return err
	case t.Until.After(tx.Now):
		return codesClosed()
	case t.Hits >= closedAfter:
		return tx.DelayThrottle(ctx, bucket, forever)
	}
	return nil
}

// codesClosed names the field, so that pages don't tell the person to wait.
func codesClosed() *doorward.Error {
	err := tooMany(longestDelay)
	err.Detail = "There were too many wrong codes. Use a passkey, or sign in with a recovery code, or ask an administrator to reset the second factors."
	err.Fields = []doorward.FieldError{{Pointer: "/code", Code: "closed", Message: err.Detail}}
	return err
}

// ClearCodes clears the counter of CountCode, after a proof of a second factor or the end of
// all factors.
func ClearCodes(ctx context.Context, tx *store.Tx, userID string) error {
	return tx.ClearThrottle(ctx, codesBucket(userID))
}

func codesBucket(userID string) string { return "codes:" + userID }

// Reset clears the delays of an address, after a password reset by mail.
func Reset(ctx context.Context, tx *store.Tx, email string) error {
	return tx.ClearThrottle(ctx, "account:"+email)
}

func tooMany(wait time.Duration) *doorward.Error {
	return &doorward.Error{Code: doorward.CodeTooManyAttempts, RetryAfter: max(wait, time.Second)}
}

// Network is the client network of an address, see doorward.Network.
func Network(ip string) string { return doorward.Network(ip) }

// Sweep deletes expired counters, attempts and devices, and proofs of a second factor that no
// browser may remember any more, in several transactions, since an attack leaves many.
func (v *Verifier) Sweep(ctx context.Context) error {
	return errors.Join(
		v.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldThrottles(ctx, tx.Now.Add(-accountMemory), limit)
		}),
		v.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.DeleteEndedAttempts(ctx, limit) }),
		v.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.ForgetBrowsersProvedBefore(ctx, tx.Now.AddDate(0, 0, -doorward.MaxRememberDays), limit)
		}),
		v.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldDevices(ctx, tx.Now.Add(-doorward.DeviceLife), limit)
		}),
	)
}

// passkeysPerNetwork are the logins with a passkey alone that one client network may begin
// within ipWindow. Each page of the login begins one in the browser, and few are finished.
const passkeysPerNetwork = 1000

// CountPasskeyBegin counts the beginning of a login with a passkey alone. Errors:
// too_many_attempts; the transaction must then be rolled back.
func (v *Verifier) CountPasskeyBegin(ctx context.Context, tx *store.Tx, by doorward.Caller) error {
	if v.limits.Load().PerIP == 0 {
		return nil
	}
	t, err := tx.HitThrottle(ctx, "passkey:"+Network(by.IP), ipWindow)
	if err == nil && t.Hits > passkeysPerNetwork {
		err = tooMany(t.Since.Add(ipWindow).Sub(tx.Now))
	}
	return err
}
