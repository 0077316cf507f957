package factor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/store"
)

// EnrolmentLife is how long the enrolment of a TOTP can be confirmed.
const EnrolmentLife = time.Hour

// Enrolment is a TOTP that is being set up. The seed is shown only here.
type Enrolment struct {
	ID   string
	Seed []byte
	URI  string // for the authenticator app
}

// Confirmed is a confirmed factor.
type Confirmed struct {
	Factor        doorward.Factor
	RecoveryCodes []string // made for the first factor, and shown only here
	// Raised is the session that added the factor, under its new token; zero if there was none.
	Raised session.Opened
}

// Enrol begins the enrolment of a TOTP for the caller; the name may be empty. Errors:
// step_up_required, validation_failed, master_key_missing, too_many_factors, too_many_attempts.
func (f *Factors) Enrol(ctx context.Context, by doorward.Caller, name string) (Enrolment, error) {
	return f.enrol(ctx, by, doorward.MFAEnrol, doorward.Account{ID: by.ID, Email: by.Email}, by.TenantID, name)
}

// EnrolWithChallenge is Enrol with a challenge in place of a session, for a person who needs a factor to sign in.
// Errors: challenge_over, validation_failed, master_key_missing, too_many_factors.
func (f *Factors) EnrolWithChallenge(ctx context.Context, by doorward.Caller, token, name string) (Enrolment, error) {
	c, account, err := f.OpenChallenge(ctx, token, ForEnrolment)
	if err != nil {
		return Enrolment{}, err
	}
	user := doorward.User{ID: account.ID, Email: account.Email}
	return f.enrol(ctx, by.As(user), doorward.MFAChallenge, account, c.TenantID, name)
}

// enrol begins an enrolment, which replaces an unfinished one.
func (f *Factors) enrol(ctx context.Context, by doorward.Caller, action doorward.Action, account doorward.Account, tenantID, name string) (Enrolment, error) {
	if faults := doorward.CheckName("/name", &name); len(faults) > 0 {
		return Enrolment{}, f.invalid(ctx, by, action, userObject(account.ID, tenantID), faults)
	}
	seed := totp.NewSeed()
	e := Enrolment{ID: doorward.NewID(doorward.PrefixFactor), Seed: seed, URI: totp.URI(f.issuer.Load().name, account.Email, seed)}
	_, err := f.writer.Do(ctx, by, action, userObject(account.ID, tenantID), func(tx *access.Tx) error {
		tx.SkipEvent() // Confirm records it
		if err := prepareEnrolment(ctx, tx, account.ID); err != nil {
			return err
		}
		if by.SessionID != "" {
			if err := tx.CountChange(ctx); err != nil {
				return err
			}
		}
		sealed, err := f.master.Seal(ctx, tx.Tx, seedPlace(e.ID), seed)
		if err != nil {
			return err
		}
		_, err = tx.InsertFactor(ctx, store.Factor{SeedSealed: sealed, Factor: doorward.Factor{
			ID: e.ID, UserID: account.ID, Kind: doorward.TOTP, Name: cmp.Or(name, DefaultName), CreatedAt: tx.Now,
		}})
		return err
	})
	return e, err
}

// invalid returns the error for faults in a request. A caller who lacks the permission, or a recent
// proof of identity, gets that error instead.
func (f *Factors) invalid(ctx context.Context, by doorward.Caller, action doorward.Action, on doorward.Object, faults []doorward.FieldError) error {
	if err := f.writer.Require(ctx, by, action, on); err != nil {
		return err
	}
	return doorward.InvalidFields(faults...)
}

// DefaultName is the name of a TOTP without a name.
const DefaultName = "Authenticator app"

// prepareEnrolment locks the account and deletes its unfinished enrolments. Errors: challenge_over if
// the account was erased since the challenge was read, too_many_factors.
func prepareEnrolment(ctx context.Context, tx *access.Tx, userID string) error {
	if err := challengeOverUnless(tx.LockAccount(ctx, userID)); err != nil {
		return err
	}
	if err := tx.DeleteUnconfirmedFactors(ctx, userID); err != nil {
		return err
	}
	all, err := tx.Factors(ctx, userID)
	if err == nil && len(all) >= doorward.MaxFactors {
		err = doorward.Fail(doorward.CodeTooManyFactors, "")
	}
	return err
}

// Pending returns an unfinished enrolment of the caller, to show it again. Errors: not_found.
func (f *Factors) Pending(ctx context.Context, by doorward.Caller, id string) (Enrolment, error) {
	return f.pendingOf(ctx, doorward.Account{ID: by.ID, Email: by.Email}, id)
}

// PendingWithChallenge is Pending with a challenge in place of a session. Errors: challenge_over, not_found.
func (f *Factors) PendingWithChallenge(ctx context.Context, token, id string) (Enrolment, error) {
	_, account, err := f.OpenChallenge(ctx, token, ForEnrolment)
	if err != nil {
		return Enrolment{}, err
	}
	return f.pendingOf(ctx, account, id)
}

func (f *Factors) pendingOf(ctx context.Context, account doorward.Account, id string) (Enrolment, error) {
	_, seed, err := f.pendingSeed(ctx, account.ID, id)
	return Enrolment{ID: id, Seed: seed, URI: totp.URI(f.issuer.Load().name, account.Email, seed)}, err
}

// Confirm completes the enrolment of the caller's TOTP with its first code, and raises the session
// to assurance level 2, under a new token. Errors: not_found, validation_failed with /code wrong or invalid,
// step_up_required.
func (f *Factors) Confirm(ctx context.Context, by doorward.Caller, id, code string) (Confirmed, error) {
	code, err := typedCode(code)
	if err != nil {
		return Confirmed{}, err
	}
	pending, step, err := f.checkFirstCode(ctx, by.ID, id, code)
	if doorward.HasCode(err, doorward.CodeInvalidCode) {
		err = doorward.Invalid("/code", "wrong", "This is not the code that the app shows now.")
	}
	if err != nil {
		return Confirmed{}, err
	}
	var done Confirmed
	op := access.Operation{Action: doorward.MFAEnrol, On: userObject(by.ID, by.TenantID), Began: pending.CreatedAt}
	op.Write = func(tx *access.Tx) (err error) {
		if _, err := tx.LockAccount(ctx, by.ID); err != nil {
			return err
		}
		if done, err = f.confirm(ctx, tx, by.ID, id, step); err != nil {
			return err
		}
		return done.record(ctx, tx, by, doorward.MethodCode)
	}
	revocation, err := f.writer.DoAll(ctx, by, op)
	done.Raised.Revocation = revocation
	return done, err
}

// record records a new factor of the caller, sends a notice, and raises the session.
func (done *Confirmed) record(ctx context.Context, tx *access.Tx, by doorward.Caller, methods ...string) (err error) {
	tx.Changed(doorward.FieldFactor, "", string(done.Factor.Kind))
	if len(done.RecoveryCodes) > 0 {
		tx.Changed(doorward.FieldRecoveryCodes, "", strconv.Itoa(len(done.RecoveryCodes)))
	}
	if err := notify(ctx, tx, store.MailFactorAdded, by.Email); err != nil {
		return err
	}
	done.Raised = session.Opened{Token: secret.New()} // not kept in memory: the next check reads it
	return session.Raise(ctx, tx, &done.Raised, by.SessionID, func(old store.Credential) doorward.Assurance {
		return session.ProvedByFactor(old, tx.Now, methods...)
	})
}

// checkFirstCode checks the first code of a TOTP that is being set up. Errors: not_found,
// invalid_code, unavailable.
func (f *Factors) checkFirstCode(ctx context.Context, userID, id, code string) (pending store.Factor, step int64, err error) {
	pending, seed, err := f.pendingSeed(ctx, userID, id)
	if err != nil {
		return pending, 0, err
	}
	step, ok := totp.Match(seed, code, f.db.Now(), 0)
	if !ok {
		return pending, 0, wrongAnswer()
	}
	return pending, step, nil
}

// pendingSeed returns a TOTP that is being set up, and its seed. Errors: not_found.
func (f *Factors) pendingSeed(ctx context.Context, userID, id string) (store.Factor, []byte, error) {
	all, err := f.db.Read().Factors(ctx, userID)
	if err != nil {
		return store.Factor{}, nil, err
	}
	i := slices.IndexFunc(all, func(stored store.Factor) bool {
		return stored.ID == id && stored.Kind == doorward.TOTP && stored.ConfirmedAt == nil
	})
	if i < 0 || !f.db.Now().Before(all[i].CreatedAt.Add(EnrolmentLife)) {
		return store.Factor{}, nil, doorward.Fail(doorward.CodeNotFound, "")
	}
	seed, err := f.seed(ctx, all[i])
	return all[i], seed, err
}

// confirm confirms the TOTP, and makes recovery codes if it is the account's first factor. The account
// must be locked. Errors: not_found.
func (f *Factors) confirm(ctx context.Context, tx *access.Tx, userID, id string, step int64) (Confirmed, error) {
	if err := notFoundUnless(tx.ConfirmFactor(ctx, userID, id, step)); err != nil {
		return Confirmed{}, err
	}
	stored, err := lockFactor(ctx, tx, userID, id)
	if err != nil {
		return Confirmed{}, err
	}
	return f.afterAdding(ctx, tx, stored.Factor)
}

// afterAdding must be called after a factor was added. It calls afterChange, and makes recovery codes
// for the first factor.
func (f *Factors) afterAdding(ctx context.Context, tx *access.Tx, added doorward.Factor) (Confirmed, error) {
	done := Confirmed{Factor: added}
	count, err := f.afterChange(ctx, tx, added.UserID)
	if err == nil && count == 1 {
		done.RecoveryCodes, err = replaceCodes(ctx, tx, added.UserID)
	}
	return done, err
}

// FirstFactor is a checked first factor. Confirming it completes a login.
type FirstFactor struct {
	Methods   []string // for Assurance.AMR
	challenge Challenge
	confirm   func(ctx context.Context, tx *access.Tx) (Confirmed, error)
}

// TryFirst counts a try of the challenge, and checks the first code of the TOTP. Errors:
// challenge_over, not_found, invalid_code, unavailable. The code must have the form of Answer.Typed.
func (f *Factors) TryFirst(ctx context.Context, c Challenge, id, code string) (FirstFactor, error) {
	if err := f.CountTry(ctx, c); err != nil {
		return FirstFactor{}, err
	}
	_, step, err := f.checkFirstCode(ctx, c.UserID, id, code)
	return FirstFactor{[]string{doorward.MethodCode}, c, func(ctx context.Context, tx *access.Tx) (Confirmed, error) {
		return f.confirm(ctx, tx, c.UserID, id, step)
	}}, err
}

// Confirm confirms the factor in the transaction that opens the session, under the lock on the
// account. It returns challenge_over if the account has a factor by then: somebody who only knows
// the password must not add one.
func (first FirstFactor) Confirm(ctx context.Context, tx *access.Tx) (Confirmed, error) {
	account, err := tx.Account(ctx, first.challenge.UserID)
	if err == nil && account.Factors > 0 {
		err = ChallengeOver()
	}
	if err != nil {
		return Confirmed{}, err
	}
	done, err := first.confirm(ctx, tx)
	if err != nil {
		return done, err
	}
	return done, notifyAlso(ctx, tx, store.MailFactorAdded, account, doorward.MFAEnrol, first.challenge.TenantID,
		doorward.Change{Field: doorward.FieldFactor, To: string(done.Factor.Kind)},
		doorward.Change{Field: doorward.FieldRecoveryCodes, To: strconv.Itoa(len(done.RecoveryCodes))})
}

// Sweep deletes expired challenges and enrolments.
func (f *Factors) Sweep(ctx context.Context) error {
	return errors.Join(
		f.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.DeleteEndedChallenges(ctx, limit) }),
		f.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
			return tx.DeleteOldEnrolments(ctx, tx.Now.Add(-EnrolmentLife), limit)
		}),
		f.sweepResets(ctx),
	)
}

// CountTotals counts the factors for ReadTotals of all nodes.
func (f *Factors) CountTotals(ctx context.Context) error {
	totals, err := f.db.Read().CountFactors(ctx)
	if err != nil {
		return err
	}
	return f.writer.Upkeep(ctx, func(tx *store.Tx) error { return tx.PutFactorTotals(ctx, totals) })
}

// ReadTotals reads what the last CountTotals has counted, for Totals of this node.
func (f *Factors) ReadTotals(ctx context.Context) error {
	totals, err := f.db.Read().FactorTotals(ctx)
	if err == nil {
		f.totals.Store(&totals)
	}
	return err
}
