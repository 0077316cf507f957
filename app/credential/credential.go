// Package credential is where passwords are tried and made.
//
// Every way to try a password (login, accepting an invitation, changing the
// password) comes through Check, so that they share one counter of attempts
// and one order of work: reserve the attempt, look the account up, hash exactly
// once, count the failure, record. Neither this nor the time it takes depends on
// whether the address has an account.
//
// A right password is no success yet. Check returns a Proof, to be settled in the
// transaction of what it allows. Without that the attempt counts as a failure, or
// the counter would reveal a guessed password that opens nothing:
//
//	proof, err := verifier.Check(ctx, by, address, password)
//	…
//	_, err = door.Do(ctx, by, act, on, func(tx *access.Tx) error {
//		… // lock the account, see that the password is still the one
//		return proof.Settle(ctx, tx.Tx)
//	})
//	return proof.End(ctx, err)
//
// Every password that is set comes through Rules and Hash.
package credential

import (
	"cmp"
	"context"
	"errors"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// MaxPasswordBytes is the longest password that is hashed, in bytes; anything
// longer is wrong without being looked at.
const MaxPasswordBytes = 1024

// Verifier tries passwords and hashes new ones.
type Verifier struct {
	door   *access.Door
	db     *store.DB
	pool   *argon.Pool
	limits Limits
}

// New returns a verifier.
func New(door *access.Door, db *store.DB, pool *argon.Pool, limits Limits) *Verifier {
	return &Verifier{door, db, pool, limits}
}

// Proof is a right password whose attempt is in flight. Each is passed to End, or
// refused. The zero Proof stands for a proof of another kind: it settles nothing.
type Proof struct {
	Account  doorward.Account
	verifier *Verifier
	by       doorward.Caller
	attempt  attempt
	newHash  string // to replace one of other parameters; empty: nothing to replace
}

// Check returns the account of the address if the password is its own. Errors
// are invalid_credentials for every cause that lies with the caller,
// too_many_attempts, and unavailable. The address is as typed.
func (d *Verifier) Check(ctx context.Context, by doorward.Caller, address, password string) (Proof, error) {
	email := canonical(address)
	attempt, err := d.reserve(ctx, by, email)
	if err != nil {
		if attempt.busy { // nothing has happened that anybody should see
			return Proof{}, err
		}
		return Proof{}, d.limited(ctx, by, email, attempt, err)
	}
	proof, right, err := d.judge(ctx, email, password)
	if err != nil {
		d.release(ctx, attempt)
		return Proof{}, err
	}
	if !right {
		return Proof{}, d.refuse(ctx, by, email, attempt)
	}
	proof.verifier, proof.by, proof.attempt = d, by, attempt
	return proof, nil
}

// judge looks the account up and compares the password. A right one is hashed again
// if its hash was made elsewhere or with other parameters.
func (d *Verifier) judge(ctx context.Context, email, password string) (p Proof, right bool, err error) {
	p.Account, err = d.db.Read().AccountByEmail(ctx, email)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return p, false, err
	}
	result, err := d.verify(ctx, p.Account.PasswordHash, password)
	if err == nil && result.OK && result.Outdated {
		p.newHash, err = d.Hash(ctx, password)
	}
	return p, result.OK, err
}

// Settle makes the attempt a success, in the transaction of what it has allowed
// and under LockAccount. A hash of other parameters is replaced. It is no failure here
// if the password has changed in the meantime: LockAccount reports that.
func (p Proof) Settle(ctx context.Context, tx *store.Tx) error {
	if p.newHash != "" {
		if _, err := tx.SetPassword(ctx, p.Account.ID, p.Account.PasswordHash, p.newHash); err != nil {
			return err
		}
	}
	return p.attempt.settle(ctx, tx)
}

// End ends the attempt by the result of the act that the password was for, and returns
// that, or the fault that kept the attempt from being counted. Without an error the
// attempt is settled, an unavailable one releases it, any other one is a failure.
func (p Proof) End(ctx context.Context, err error) error {
	var reason *doorward.Error
	switch {
	case p.verifier == nil:
		return err
	case err == nil:
		return nil
	case errors.As(err, &reason) && reason.Kind() != doorward.KindUnavailable:
		return cmp.Or(p.verifier.fail(ctx, p.attempt, nil), p.attempt.withAllowance(err))
	}
	p.verifier.release(ctx, p.attempt)
	return err
}

// Allowance is what a known browser has left of its own after a success. It is nil for
// every other caller: what is left for an account or a client address would reveal
// others' use.
func (p Proof) Allowance() *doorward.Allowance {
	if p.attempt.allowance == nil {
		return nil
	}
	return &doorward.Allowance{Name: p.attempt.allowance.Name, Quota: deviceHits, Window: deviceWindow, Remaining: p.attempt.remainingAfterSuccess, Reset: deviceWindow}
}

// canonical is the address to look up. A malformed one becomes empty, which no
// account has, so that the same work is done for it.
func canonical(address string) string {
	email, err := mailaddr.Parse(address)
	if err != nil {
		return ""
	}
	return email
}

// verify does exactly one hash, also without an account and for a password
// that is too long to be one.
func (d *Verifier) verify(ctx context.Context, hash, password string) (argon.Result, error) {
	password = norm.NFC.String(password)
	if len(password) > MaxPasswordBytes {
		hash, password = "", ""
	}
	result, err := d.pool.Verify(ctx, hash, password)
	if err != nil {
		return argon.Result{}, doorward.Unavailable(err)
	}
	return result, nil
}

// Hash returns the PHC string of a new password, which Rules have let pass.
func (d *Verifier) Hash(ctx context.Context, password string) (string, error) {
	hash, err := d.pool.Hash(ctx, norm.NFC.String(password))
	if err != nil {
		return "", doorward.Unavailable(err)
	}
	return hash, nil
}
