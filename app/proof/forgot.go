package proof

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Limits on requests for a password reset: for one address, and from one client network.
const (
	forgotPerAddress = 3
	forgotPerNetwork = 30
	forgotWindow     = time.Hour
)

// forgotCounters returns the counters in the order in which they are locked; the last one is that of
// the address. If the limit per client address is off, the network has no counter.
func (v *Verifier) forgotCounters(by doorward.Caller, email string) []access.Counter {
	var counters []access.Counter
	if v.limits.Load().PerIP > 0 {
		counters = access.ClientCounters("forgotten", by, forgotPerNetwork, forgotWindow)
	}
	return append(counters, access.Counter{Bucket: "forgot:" + email, Limit: forgotPerAddress, Window: forgotWindow})
}

// changesPerAccount is how many changes of the address a person may request within forgotWindow. Each
// sends a mail to the present address.
const changesPerAccount = 10

// emailChangeCounters returns the counter of the account, and the counters of resets for the new
// address, so that changes and resets share the limit on mails to an address.
func (v *Verifier) emailChangeCounters(by doorward.Caller, email string) []access.Counter {
	own := access.Counter{Bucket: "change-email:" + by.ID, Limit: changesPerAccount, Window: forgotWindow}
	return append([]access.Counter{own}, v.forgotCounters(by, email)...)
}

// CheckEmailChangeLimits is CheckForgotLimits for a change of the caller's address to
// email.
func (v *Verifier) CheckEmailChangeLimits(ctx context.Context, by doorward.Caller, email string) error {
	return access.CheckCounters(ctx, v.db, v.emailChangeCounters(by, email))
}

// CountEmailChange is CountForgot for a change of the caller's address to email.
func (v *Verifier) CountEmailChange(ctx context.Context, tx *store.Tx, by doorward.Caller, email string) error {
	_, err := access.HitCounters(ctx, tx, v.emailChangeCounters(by, email))
	return err
}

// CheckForgotLimits returns too_many_attempts if no further reset may be requested, also for an address
// without an account. It only reads, so that a request beyond the limits is cheap.
func (v *Verifier) CheckForgotLimits(ctx context.Context, by doorward.Caller, email string) error {
	return access.CheckCounters(ctx, v.db, v.forgotCounters(by, email))
}

// CountForgot counts a request for a reset, and returns how many requests there were for the address
// within an hour. Errors: too_many_attempts; then the transaction must be rolled back.
func (v *Verifier) CountForgot(ctx context.Context, tx *store.Tx, by doorward.Caller, email string) (nth int, err error) {
	return access.HitCounters(ctx, tx, v.forgotCounters(by, email))
}
