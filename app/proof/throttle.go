package proof

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/refusal"
	"github.com/doorward/doorward/internal/trace"
	"github.com/doorward/doorward/store"
)

// Limits limit password attempts. 0 switches a limit off.
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
	accountWindow = 30 * 24 * time.Hour // from the first failure, unless closedAfter is reached
	ipWindow      = 10 * time.Minute
	deviceWindow  = time.Hour
	maxPerDevice  = 10 // failures of one browser in deviceWindow
	maxAllDevices = 30 // failures of all known browsers of an account in deviceWindow
	// attemptLife is longer than any request: an older attempt belongs to a node that
	// was killed.
	attemptLife = time.Minute
	// finishTimeout limits the write of an outcome after the request has ended.
	finishTimeout = 5 * time.Second
)

// forever is the end of a delay that no time ends, only ClearDelays or ClearCodes.
var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// attempt names the buckets in which an attempt counts. An attempt from a known device doesn't count
// in the bucket of its client network.
type attempt struct {
	id        string  // empty when no limit applies
	limits    *Limits // in force when the attempt began
	ownBucket string  // of the known device, else of the account
	// clientBuckets are those of access.ClientCounters; none with a known device. After a refusal by one
	// of them, that is the last.
	clientBuckets         []string
	devicesBucket         string // of all devices of the account; empty without a known device
	device                []byte // hash of the known device
	allowance             *doorward.Allowance
	remainingAfterSuccess int // what is left of the allowance after a success
	// busy reports whether the attempt was refused only because of attempts in flight.
	busy bool
}

// widerBucket returns the bucket besides ownBucket, that of the devices or of the client.
func (a attempt) widerBucket() string {
	if len(a.clientBuckets) == 0 {
		return a.devicesBucket
	}
	return a.clientBuckets[len(a.clientBuckets)-1]
}

// siteBucket returns the bucket of the /48 of a client with an IPv6 address, else nothing.
func (a attempt) siteBucket() string {
	if len(a.clientBuckets) < 2 {
		return ""
	}
	return a.clientBuckets[0]
}

// reserve stores the attempt before the password is hashed, so that parallel guesses on any node
// can't exceed the limits between the check and the count. While the attempt is in flight it counts
// as a failure: attempts beyond the limits must wait for a second. A refused attempt leaves no row.
func (v *Verifier) reserve(ctx context.Context, admit func(*store.Tx, *attempt) error) (attempt, error) {
	ctx, span := trace.Start(ctx, "attempt.reserve")
	defer span.End()
	id, a, limits := doorward.NewID("att_"), attempt{}, v.limits.Load()
	err := v.writer.Upkeep(ctx, func(tx *store.Tx) error {
		a = attempt{id: id, limits: limits}
		if err := admit(tx, &a); err != nil || a.ownBucket+a.widerBucket() == "" {
			return err
		}
		row := store.Attempt{ID: a.id, OwnBucket: a.ownBucket, WiderBucket: a.widerBucket(), SiteBucket: a.siteBucket()}
		return tx.InsertAttempt(ctx, row, tx.Now.Add(attemptLife))
	})
	switch {
	case err == nil:
	case doorward.HasCode(err, doorward.CodeTooManyAttempts):
		err = a.withAllowance(err)
	default: // the transaction may have been committed
		v.release(ctx, a)
	}
	if a.ownBucket+a.widerBucket() == "" {
		a.id = ""
	}
	return a, err
}

// admit checks the limits of the caller's known devices, or else of the client network and of the
// account, and sets the buckets of the attempt.
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

// withAllowance adds the remaining allowance of the device to the error; see Proof.Allowance.
func (a attempt) withAllowance(err error) error {
	var e *doorward.Error
	if a.allowance == nil || !errors.As(err, &e) {
		return err
	}
	withAllowance := *e
	withAllowance.Allowance = a.allowance
	return &withAllowance
}

// accountBucket returns the bucket of an address. Malformed addresses from one client network share a
// bucket, so that they can't fill the table.
func accountBucket(email string, by doorward.Caller) string {
	if email == "" {
		return "nobody:" + Network(by.IP)
	}
	return "account:" + email
}

// knownDevices returns the known devices of the caller. The attempt then counts in their allowance
// and not for the client network, which callers share: they could use up each other's limit. If the
// limits on accounts are off there is no allowance, and a known device is treated like any client.
func (v *Verifier) knownDevices(ctx context.Context, tx *store.Tx, a *attempt, by doorward.Caller, email string) ([]store.KnownDevice, error) {
	if a.limits.PerAccount == 0 {
		return nil, nil
	}
	return KnownDevices(ctx, tx.Reader, by, email, tx.Now)
}

// KnownDevices returns the caller's devices that have signed in to the account of the canonical
// address before, and are still known.
func KnownDevices(ctx context.Context, read store.Reader, by doorward.Caller, email string, now time.Time) ([]store.KnownDevice, error) {
	return read.KnownDevices(ctx, email, by.Devices, now.Add(-doorward.DeviceLife))
}

// CurrentDevice returns the known browser of the caller, or nil. It is also nil if the caller sends
// several: a thief could have planted one, and the current browser stays known when all others are
// forgotten.
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

// lock locks a bucket and reads its counter.
func lock(ctx context.Context, tx *store.Tx, bucket string, window time.Duration) (c counter, err error) {
	if c.Throttle, err = tx.LockThrottle(ctx, bucket, window); err != nil {
		return c, err
	}
	c.inFlight, err = tx.AttemptsInFlight(ctx, bucket)
	return c, err
}

// remaining returns how many more attempts may begin, as if all in flight had failed.
func (c counter) remaining(limit int) int { return max(0, limit-c.Hits-c.inFlight) }

// refusal returns the error for an attempt beyond the limit, which must wait for the end of the
// window, or for the attempts in flight.
func (a *attempt) refusal(c counter, limit int, window time.Duration, now time.Time) error {
	if c.Hits >= limit {
		return tooMany(c.Since.Add(window).Sub(now))
	}
	return a.refuseBusy()
}

func (a *attempt) refuseBusy() error {
	a.busy = true
	return tooMany(time.Second)
}

// admitClient checks the limits of the client network.
func (v *Verifier) admitClient(ctx context.Context, tx *store.Tx, a *attempt, by doorward.Caller) error {
	if a.limits.PerIP == 0 {
		return nil
	}
	for _, l := range access.ClientCounters("ip", by, a.limits.PerIP, ipWindow) {
		a.clientBuckets = append(a.clientBuckets, l.Bucket)
		c, err := lock(ctx, tx, l.Bucket, l.Window)
		if err == nil && c.remaining(l.Limit) == 0 {
			err = a.refusal(c, l.Limit, l.Window, tx.Now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// admitDevice checks the allowance of a known device, which nobody else can use up, and that of all
// devices of the account, since a thief who knows the password can make further devices. If the
// caller has several, it chooses a device with a remaining allowance.
func (v *Verifier) admitDevice(ctx context.Context, tx *store.Tx, a *attempt, known []store.KnownDevice) error {
	a.devicesBucket = "devices:" + known[0].UserID
	all, err := lock(ctx, tx, a.devicesBucket, deviceWindow)
	if err != nil {
		return err
	}
	var one counter
	for _, device := range known {
		a.device, a.ownBucket = device.Hash, deviceBucket(device.Hash)
		if one, err = lock(ctx, tx, a.ownBucket, deviceWindow); err != nil {
			return err
		}
		if one.remaining(maxPerDevice) > 0 {
			break
		}
	}
	a.allowance = &doorward.Allowance{
		Name: "device", Quota: maxPerDevice, Window: deviceWindow,
		Remaining: max(0, min(one.remaining(maxPerDevice), all.remaining(maxAllDevices))-1), Reset: one.Since.Add(deviceWindow).Sub(tx.Now),
	}
	a.remainingAfterSuccess = min(maxPerDevice, all.remaining(maxAllDevices))
	switch {
	case all.remaining(maxAllDevices) == 0:
		a.allowance.Reset = all.Since.Add(deviceWindow).Sub(tx.Now)
		return a.refusal(all, maxAllDevices, deviceWindow, tx.Now)
	case one.remaining(maxPerDevice) == 0:
		return a.refusal(one, maxPerDevice, deviceWindow, tx.Now)
	}
	return nil
}

// admitAccount checks the limit of the account. It admits as many parallel attempts as failures remain
// without a delay, and then one at a time.
func (v *Verifier) admitAccount(ctx context.Context, tx *store.Tx, a *attempt, bucket string) error {
	if a.limits.PerAccount == 0 {
		return nil
	}
	a.ownBucket = bucket
	c, err := lock(ctx, tx, bucket, accountWindow)
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

// delay returns the wait after a failure that reaches the limit: 1 s. It doubles with each further
// failure, up to 15 min.
func delay(further int) time.Duration {
	if further > 10 {
		return longestDelay
	}
	return min(firstDelay<<further, longestDelay)
}

// fail counts the attempt as a failure, and calls record, unless it is nil, in the same transaction.
func (v *Verifier) fail(ctx context.Context, a attempt, record refusal.RecordFunc) error {
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

// countFailure counts a failure in all buckets of the attempt. It locks them in the order of reserve,
// so that attempts can't deadlock. The record comes last: every transaction locks buckets before the
// row of a record.
func (v *Verifier) countFailure(ctx context.Context, tx *store.Tx, a attempt) error {
	if err := countClient(ctx, tx, a.clientBuckets); err != nil {
		return err
	}
	if a.devicesBucket != "" {
		if _, err := tx.HitThrottle(ctx, a.devicesBucket, deviceWindow); err != nil {
			return err
		}
	}
	switch {
	case a.ownBucket == "":
		return nil
	case a.device != nil:
		_, err := tx.HitThrottle(ctx, a.ownBucket, deviceWindow)
		return err
	}
	return failAccount(ctx, tx, a)
}

// countClient counts a failure of the client network, in one statement.
func countClient(ctx context.Context, tx *store.Tx, buckets []string) (err error) {
	switch len(buckets) {
	case 1:
		_, err = tx.HitThrottle(ctx, buckets[0], ipWindow)
	case 2:
		err = tx.HitTwoThrottles(ctx, buckets[0], buckets[1], ipWindow)
	}
	return err
}

// failAccount counts a failure of the account and sets the delay.
func failAccount(ctx context.Context, tx *store.Tx, a attempt) error {
	t, err := tx.HitThrottle(ctx, a.ownBucket, accountWindow)
	switch {
	case err != nil || t.Hits < a.limits.PerAccount:
		return err
	case t.Hits >= closedAfter:
		return tx.DelayThrottle(ctx, a.ownBucket, forever)
	}
	return tx.DelayThrottle(ctx, a.ownBucket, tx.Now.Add(delay(t.Hits-a.limits.PerAccount)))
}

// release ends an attempt without an outcome, so that it doesn't count. If the write fails, the attempt
// expires by itself.
func (v *Verifier) release(ctx context.Context, a attempt) {
	_ = v.finish(ctx, a, func(context.Context, *store.Tx) error { return nil })
}

// finish ends an attempt and writes its outcome. If the request ends before that, the outcome is
// written in the background: a client must not avoid the count of a failure by closing the
// connection.
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

// finishLate writes an outcome, unless the first try has committed although it returned an error.
func (v *Verifier) finishLate(ctx context.Context, a attempt, outcome func(context.Context, *store.Tx) error) {
	ctx, stop := context.WithTimeout(ctx, finishTimeout)
	defer stop()
	_ = v.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if isOpen, err := tx.DeleteAttempt(ctx, a.id); err != nil || !isOpen {
			return err
		}
		return outcome(ctx, tx)
	})
}

// succeed deletes a successful attempt in the transaction of the permitted action, and clears the
// counter of its account or device.
func (a attempt) succeed(ctx context.Context, tx *store.Tx) error {
	if a.id == "" {
		return nil
	}
	if _, err := tx.DeleteAttempt(ctx, a.id); err != nil || a.ownBucket == "" {
		return err
	}
	return tx.ClearThrottle(ctx, a.ownBucket)
}

// CountCode counts a try of a code of the account's authenticator app, before the code is checked.
// After closedAfter tries without a proof of a second factor, codes are refused. A reset of the
// password doesn't clear this counter: it proves only the mailbox, and codes could be guessed for
// ever between resets. Errors: too_many_attempts.
func (v *Verifier) CountCode(ctx context.Context, tx *store.Tx, userID string) error {
	if v.limits.Load().PerAccount == 0 {
		return nil
	}
	bucket := codesBucket(userID)
	t, err := tx.HitThrottle(ctx, bucket, accountWindow)
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

// codesClosed returns the error when codes are refused. It names the field, so that pages don't ask the
// person to wait.
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

// ClearLoginNotices clears the counts of notices about logins from unknown browsers, so that the next ones
// are mailed at once to the address: somebody with the old password may have used them up.
func ClearLoginNotices(ctx context.Context, tx *store.Tx, userID, email string) error {
	if err := tx.ClearThrottle(ctx, "newcomers:"+userID); err != nil {
		return err
	}
	return tx.ClearThrottle(ctx, store.NoticeBucket(email, doorward.SessionOpen))
}

// ClearDelays clears the delays of an address, after a password reset by mail.
func ClearDelays(ctx context.Context, tx *store.Tx, email string) error {
	return tx.ClearThrottle(ctx, "account:"+email)
}

// Unlock ends all delays of an account: those of its address, of its known browsers, and of codes.
func Unlock(ctx context.Context, tx *store.Tx, account doorward.Account) error {
	devices, err := tx.DeviceHashes(ctx, account.ID)
	if err != nil {
		return err
	}
	err = errors.Join(ClearDelays(ctx, tx, account.Email), ClearCodes(ctx, tx, account.ID), tx.ClearThrottle(ctx, "devices:"+account.ID))
	for _, hash := range devices {
		err = errors.Join(err, tx.ClearThrottle(ctx, deviceBucket(hash)))
	}
	return err
}

func deviceBucket(hash []byte) string { return "device:" + hex.EncodeToString(hash) }

func tooMany(wait time.Duration) *doorward.Error { return access.TooManyAttempts(wait) }

// Network returns the client network of an address, see doorward.Network.
func Network(ip string) string { return doorward.Network(ip) }

// Sweep deletes expired counters, attempts and devices, and what browsers remember of a second
// factor that was given too long ago, in several transactions, since an attack leaves many.
func (v *Verifier) Sweep(ctx context.Context) error {
	return errors.Join(
		v.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldThrottles(ctx, limit)
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

// passkeysPerNetwork is how many logins with a passkey alone a client network may begin within
// ipWindow. Each view of the login page begins one, and few are completed.
const passkeysPerNetwork = 1000

// CountPasskeyBegin counts the beginning of a login with a passkey alone. Errors:
// too_many_attempts; the transaction must then be rolled back.
func (v *Verifier) CountPasskeyBegin(ctx context.Context, tx *store.Tx, by doorward.Caller) error {
	if v.limits.Load().PerIP == 0 {
		return nil
	}
	_, err := access.HitCounters(ctx, tx, access.ClientCounters("passkey", by, passkeysPerNetwork, ipWindow))
	return err
}
