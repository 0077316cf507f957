// Package proof verifies passwords and hashes new ones.
//
// Every password attempt (login, accepting an invitation, changing the password) goes
// through Check, so that all share one counter of attempts and one order of steps: reserve
// the attempt, look up the account, hash exactly once, count the failure, record it. Neither
// the steps nor their duration depend on whether the address has an account.
//
// A correct password is not yet a success. Check returns a Proof, which succeeds in the
// transaction of the action that it permits. If the action is refused, the attempt counts as a
// failure: otherwise the counter would reveal a correct guess for an account that may not
// sign in.
//
//	proof, err := verifier.Check(ctx, by, address, password)
//	…
//	_, err = writer.Do(ctx, by, action, on, func(tx *access.Tx) error {
//		… // lock the account, verify that the password hash is unchanged
//		return proof.Succeed(ctx, tx.Tx)
//	})
//	return proof.FailIfRefused(ctx, err)
//
// Every new password goes through Rules and Hash.
package proof

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/argon"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// MaxPasswordBytes is the length in bytes of the longest password that is hashed. A longer one is
// always wrong.
const MaxPasswordBytes = 1024

// Verifier verifies passwords and hashes new ones.
type Verifier struct {
	writer *access.Writer
	db     *store.DB
	pool   *argon.Pool
	limits atomic.Pointer[Limits]
}

// New returns a verifier.
func New(writer *access.Writer, db *store.DB, pool *argon.Pool, limits Limits) *Verifier {
	v := &Verifier{writer: writer, db: db, pool: pool}
	v.SetLimits(limits)
	return v
}

// SetLimits changes the limits for attempts that begin from now on.
func (v *Verifier) SetLimits(limits Limits) { v.limits.Store(&limits) }

// Proof is a correct password, or another proof after Begin, with an attempt that is in flight.
// Call FailIfRefused, Refuse, RefuseUnknown or Release on each Proof. A Proof without a verifier
// stands for a proof without an attempt, such as a session; Succeed and FailIfRefused then do
// nothing.
type Proof struct {
	Account doorward.Account
	// Issuer vouches for it, in TenantID alone unless it is Doorward itself. Methods are those of
	// doorward.Assurance; a passkey names its own when it is answered.
	Issuer   doorward.Issuer
	TenantID string
	Methods  []string
	// ProviderAMR is what the provider of a connection said of its methods. OwnMethods are those of the
	// account that were proved beside the connection's word: they belong to no connection.
	ProviderAMR, OwnMethods []string
	// AuthTime is when the provider of a connection says that it has authenticated the person; the zero Time if
	// it doesn't say.
	AuthTime time.Time
	// ProviderSession is that of doorward.Assurance. BegunAt is when the sign-in by a connection began: if its provider
	// has ended the person's sign-ins since then, it opens no session.
	ProviderSession string
	BegunAt         time.Time
	// ProviderUntil is that of doorward.Assurance.
	ProviderUntil time.Time

	verifier *Verifier
	by       doorward.Caller
	attempt  attempt
	newHash  string // replaces a hash with outdated parameters, unless empty
}

// Assurance returns what the proof says at now. A provider's second factor counts for its level, but is no
// factor of the account (Assurance.FactorAt). A sign-in at a provider is as old as that says; a time to come
// counts as now.
func (p Proof) Assurance(now time.Time) doorward.Assurance {
	a := doorward.Assurance{Issuer: p.Issuer, AAL: 1, AMR: p.Methods, ProviderAMR: p.ProviderAMR, ProviderSession: p.ProviderSession, ProviderUntil: p.ProviderUntil, ProvedAt: now}
	if p.Issuer == doorward.OwnIssuer {
		return a
	}
	if !p.AuthTime.IsZero() && p.AuthTime.Before(now) {
		a.ProvedAt = p.AuthTime
	}
	if slices.Contains(p.Methods, doorward.MethodSeveral) {
		a.AAL = 2
	}
	var factors []string
	for _, m := range p.OwnMethods {
		if m == doorward.MethodPassword {
			a.PasswordAt = now
			continue
		}
		factors = append(factors, m)
	}
	if len(factors) > 0 {
		a = a.WithFactor(now, factors...)
	}
	return a
}

// state is what a challenge keeps of the proof of a connection. That of Doorward itself needs none.
type state struct {
	Methods, ProviderAMR, OwnMethods []string
	AuthTime                         time.Time `json:",omitzero"`
	ProviderSession                  string    `json:",omitempty"`
	BegunAt                          time.Time `json:",omitzero"`
	ProviderUntil                    time.Time `json:",omitzero"`
}

// State returns what a challenge must keep of the proof, for WithState; nil if that is nothing.
func (p Proof) State() []byte {
	if p.Issuer == doorward.OwnIssuer {
		return nil
	}
	text, err := json.Marshal(state{p.Methods, p.ProviderAMR, p.OwnMethods, p.AuthTime, p.ProviderSession, p.BegunAt, p.ProviderUntil})
	if err != nil {
		panic(err) // texts can't fail
	}
	return text
}

// WithState returns the proof with what State has kept of the one that the challenge follows.
func (p Proof) WithState(kept []byte) (Proof, error) {
	if p.Issuer == doorward.OwnIssuer {
		return p, nil
	}
	var s state
	err := json.Unmarshal(kept, &s)
	p.Methods, p.ProviderAMR, p.OwnMethods, p.AuthTime = s.Methods, s.ProviderAMR, s.OwnMethods, s.AuthTime
	p.ProviderSession, p.BegunAt, p.ProviderUntil = s.ProviderSession, s.BegunAt, s.ProviderUntil
	return p, err
}

// Check returns a Proof with the account of the address if the password is correct. The address
// need not be canonical. Errors: invalid_credentials for a wrong password, an unknown address and
// every other fault of the caller; too_many_attempts, unavailable.
func (v *Verifier) Check(ctx context.Context, by doorward.Caller, address, password string) (Proof, error) {
	email := canonical(address)
	attempt, err := v.begin(ctx, by, email)
	if err != nil {
		return Proof{}, err
	}
	proof, correct, err := v.compare(ctx, email, password)
	if err != nil {
		v.release(ctx, attempt)
		return Proof{}, err
	}
	if !correct {
		return Proof{}, v.refuse(ctx, by, email, attempt)
	}
	proof.verifier, proof.by, proof.attempt, proof.Methods = v, by, attempt, []string{doorward.MethodPassword}
	return proof, nil
}

// CheckForAccount is Check for the account with an id, which had the address when it was read. By now
// another account may have the address, whose password proves nothing.
func (v *Verifier) CheckForAccount(ctx context.Context, by doorward.Caller, id, address, password string) (Proof, error) {
	proof, err := v.Check(ctx, by, address, password)
	if err == nil && proof.Account.ID != id {
		return Proof{}, proof.FailIfRefused(ctx, doorward.Fail(doorward.CodeInvalidCredentials, ""))
	}
	return proof, err
}

// Begin reserves an attempt at a proof that follows the password, under the same limits. The Proof
// succeeds, fails or is released like that of a password. Errors: too_many_attempts, unavailable.
func (v *Verifier) Begin(ctx context.Context, by doorward.Caller, account doorward.Account) (Proof, error) {
	attempt, err := v.begin(ctx, by, account.Email)
	return Proof{Account: account, Methods: []string{doorward.MethodPassword}, verifier: v, by: by, attempt: attempt}, err
}

// BeginUsernameless is Begin for a passkey that names its account. Only the limit of the client
// network applies: such a proof can't be guessed, and the failures of others must not lock a
// person out.
func (v *Verifier) BeginUsernameless(ctx context.Context, by doorward.Caller) (Proof, error) {
	attempt, err := v.reserve(ctx, func(tx *store.Tx, a *attempt) error { return v.admitClient(ctx, tx, a, by) })
	if err != nil && !attempt.busy {
		err = v.refuseBeyondLimits(ctx, by, "", attempt, err)
	}
	return Proof{verifier: v, by: by, attempt: attempt}, err
}

// begin reserves the attempt. It records a refusal, unless the only cause is attempts in flight.
func (v *Verifier) begin(ctx context.Context, by doorward.Caller, email string) (attempt, error) {
	attempt, err := v.reserve(ctx, func(tx *store.Tx, a *attempt) error { return v.admit(ctx, tx, a, by, email) })
	if err != nil && !attempt.busy {
		err = v.refuseBeyondLimits(ctx, by, email, attempt, err)
	}
	return attempt, err
}

// compare looks up the account and compares the password. It hashes a correct password again if its
// hash was imported or has other parameters.
func (v *Verifier) compare(ctx context.Context, email, password string) (p Proof, correct bool, err error) {
	p.Account, err = v.db.Read().AccountByEmail(ctx, email)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return p, false, err
	}
	result, err := v.verify(ctx, p.Account.PasswordHash, password)
	if err == nil && result.OK && result.Outdated {
		p.newHash, err = v.Hash(ctx, password)
	}
	return p, result.OK, err
}

// Lock locks the account, unless it has changed since it was proved: then it returns changed. It is the
// first step of each transaction that acts on the proof. Every action on an account or its sessions locks
// in this order: tenant, account, membership.
func (p Proof) Lock(ctx context.Context, tx *access.Tx, changed error) error {
	same, err := tx.LockAccountIfSamePassword(ctx, p.Account)
	if err == nil && !same {
		err = changed
	}
	return err
}

// Succeed counts the attempt as a success, in the transaction of the permitted action and under the lock
// on the account. It replaces an outdated hash, unless the password has changed since.
func (p Proof) Succeed(ctx context.Context, tx *store.Tx) error {
	if err := p.rehash(ctx, tx); err != nil {
		return err
	}
	return p.attempt.succeed(ctx, tx)
}

// Pause ends the attempt without an outcome, in the transaction that asks for another proof. The
// password neither counts as a failure nor clears the counter: if it did clear it, a second
// factor could be guessed for ever between correct passwords. Pause replaces an outdated hash.
func (p Proof) Pause(ctx context.Context, tx *store.Tx) error {
	if err := p.rehash(ctx, tx); err != nil || p.attempt.id == "" {
		return err
	}
	_, err := tx.DeleteAttempt(ctx, p.attempt.id)
	return err
}

func (p Proof) rehash(ctx context.Context, tx *store.Tx) error {
	if p.newHash == "" {
		return nil
	}
	_, err := tx.SetPassword(ctx, p.Account.ID, p.Account.PasswordHash, p.newHash)
	return err
}

// FailIfRefused counts the attempt as a failure if err, the result of the action, is a refusal. A
// fault of the server and challenge_over release the attempt. Without an error the attempt has
// already succeeded. It returns err, or the error if the attempt could not be counted.
func (p Proof) FailIfRefused(ctx context.Context, err error) error {
	var reason *doorward.Error
	switch {
	case p.verifier == nil:
		return err
	case err == nil:
		return nil
	case errors.As(err, &reason) && reason.Kind() != doorward.KindUnavailable && reason.Code != doorward.CodeChallengeOver:
		return cmp.Or(p.verifier.fail(ctx, p.attempt, nil), p.attempt.withAllowance(err))
	}
	p.verifier.release(ctx, p.attempt)
	return err
}

// Release ends the attempt as if it had not been made. Call it instead of
// FailIfRefused for a refusal that shows the caller that the password is correct.
func (p Proof) Release(ctx context.Context) { p.verifier.release(ctx, p.attempt) }

// SamePassword reports whether two texts are the same password.
func SamePassword(a, b string) bool { return norm.NFC.String(a) == norm.NFC.String(b) }

// Allowance returns what remains of a known browser's own allowance after a success. It is nil for
// other callers: the allowance of an account or a network would reveal what others do.
func (p Proof) Allowance() *doorward.Allowance {
	if p.attempt.allowance == nil {
		return nil
	}
	return &doorward.Allowance{Name: p.attempt.allowance.Name, Quota: maxPerDevice, Window: deviceWindow, Remaining: p.attempt.remainingAfterSuccess, Reset: deviceWindow}
}

// canonical returns the address to look up. It returns an empty address, which no account has, for a
// malformed one, so that the steps are the same.
func canonical(address string) string {
	email, err := mailaddr.Parse(address)
	if err != nil {
		return ""
	}
	return email
}

// verify hashes once, also if there is no account or the password is too long. A password that NFC
// changes is hashed a second time as it was typed, unless the first was right: a hash that was imported
// is of what people typed elsewhere. Such a hash is outdated, since Hash is over NFC.
func (v *Verifier) verify(ctx context.Context, hash, password string) (argon.Result, error) {
	composed := norm.NFC.String(password)
	result, err := v.verifyText(ctx, hash, composed)
	if err != nil || result.OK || composed == password {
		return result, err
	}
	result, err = v.verifyText(ctx, hash, password)
	result.Outdated = true
	return result, err
}

func (v *Verifier) verifyText(ctx context.Context, hash, password string) (argon.Result, error) {
	if len(password) > MaxPasswordBytes {
		hash, password = "", ""
	}
	result, err := v.pool.Verify(ctx, hash, password)
	if err != nil {
		return argon.Result{}, doorward.Unavailable(err)
	}
	return result, nil
}

// Hash returns the PHC string of a new password, which Rules have accepted.
func (v *Verifier) Hash(ctx context.Context, password string) (string, error) {
	hash, err := v.pool.Hash(ctx, norm.NFC.String(password))
	if err != nil {
		return "", doorward.Unavailable(err)
	}
	return hash, nil
}
