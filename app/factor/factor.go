// Package factor has the proofs of identity after the password, or in place of it: codes of an
// authenticator app (TOTP), passkeys, and recovery codes.
//
// Between the two steps of a proof there is a challenge: a token that the person gets, and whose
// hash is in the database. It can be used once, for one purpose and one account, within
// doorward.ChallengeLife and doorward.ChallengeTries tries. Each try is counted before it is
// checked. The transaction of the permitted action marks challenge and answer as used by
// conditional statements, so that an answer is accepted only once on all nodes:
//
//	c, account, err := factors.OpenChallenge(ctx, token, factor.ForLogin)
//	proved, err := verifier.Begin(ctx, by, account) // counts in the account's limits
//	match, err := factors.Try(ctx, by, c, answer)
//	… // in the transaction, under the lock on the account:
//	err = factors.TakeChallenge(ctx, tx, c)
//	err = match.Use(ctx, tx, tenantID)
//	err = proved.Succeed(ctx, tx.Tx)
//
// Every change of factors is announced to all nodes, forgets remembered browsers, which take the
// place of a factor, and sends the person a mail.
package factor

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/passkey"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// Factors is the feature. Make it with New.
type Factors struct {
	writer   *access.Writer
	db       *store.DB
	verifier *proof.Verifier
	master   *masterkey.Keys
	lifetime store.SessionLifetime
	baseURL  string
	issuer   atomic.Pointer[issuer]
	tallies  [metricCount]atomic.Uint64
	totals   atomic.Pointer[store.FactorTotals]
}

// New returns the feature. Authenticator apps and browsers show the issuer; passkeys are bound to the
// base URL. lifetime determines which sessions have
// expired; these are left out of the counts of ended sessions.
func New(writer *access.Writer, db *store.DB, verifier *proof.Verifier, master *masterkey.Keys, lifetime store.SessionLifetime, issuer, baseURL string) *Factors {
	f := &Factors{writer: writer, db: db, verifier: verifier, master: master, lifetime: lifetime, baseURL: baseURL}
	f.SetIssuer(issuer)
	master.OnLoss("factors", f.forgetSeeds)
	return f
}

// issuer is the name that authenticator apps and browsers show, and the relying party with that name.
type issuer struct {
	name  string
	party *passkey.Party
}

// SetIssuer changes the name that authenticator apps and browsers show for new factors.
func (f *Factors) SetIssuer(name string) {
	f.issuer.Store(&issuer{name, passkey.New(f.baseURL, name)})
}

// PasskeysAllowed reports whether browsers allow passkeys at this server's address.
func (f *Factors) PasskeysAllowed() bool { return f.issuer.Load().party.Usable() }

// OwnFactors are the factors of a caller, with recovery codes and remembered browsers.
type OwnFactors struct {
	Factors       []doorward.Factor // confirmed ones, the oldest first
	RecoveryCodes int               // how many remain
	Remembered    []Browser         // the latest first
	// Reset has the words of tenants for removing the factors; none are given where nothing waits.
	Reset doorward.FactorReset
}

// OfCaller returns the caller's factors. They belong to the account: where a connection vouches for the
// session, and its tenant doesn't manage the account, they are shown to those who may change them. Errors:
// sign_in_required, step_up_required, unavailable.
func (f *Factors) OfCaller(ctx context.Context, by doorward.Caller) (OwnFactors, error) {
	if by.Issuer != doorward.OwnIssuer && !by.IsManaged {
		if err := f.writer.Require(ctx, by, doorward.MFAEnrol, userObject(by.ID, by.TenantID)); err != nil {
			return OwnFactors{}, err
		}
	}
	read := f.db.Read()
	all, err := read.Factors(ctx, by.ID)
	if err != nil {
		return OwnFactors{}, err
	}
	own := OwnFactors{}
	for _, stored := range all {
		if stored.ConfirmedAt != nil {
			stored.Factor.IsLost = stored.IsLost()
			own.Factors = append(own.Factors, stored.Factor)
		}
	}
	if own.RecoveryCodes, err = read.CountRecoveryCodes(ctx, by.ID); err != nil {
		return OwnFactors{}, err
	}
	if own.Reset, err = read.FactorReset(ctx, by.ID, f.db.Now()); err != nil {
		return OwnFactors{}, err
	}
	own.Remembered, err = f.browsers(ctx, read, by)
	return own, err
}

// Rename renames a factor of the caller. Like every change it forgets remembered browsers: a thief
// could exchange names, so that the owner removes the wrong factor. Errors: step_up_required,
// validation_failed, not_found, too_many_attempts.
func (f *Factors) Rename(ctx context.Context, by doorward.Caller, id, name string) (doorward.Factor, error) {
	faults := doorward.CheckName("/name", &name)
	if name == "" {
		faults = append(faults, doorward.FieldError{Pointer: "/name", Code: "required", Message: "Give it a name."})
	}
	if len(faults) > 0 {
		return doorward.Factor{}, f.invalid(ctx, by, doorward.MFAEnrol, userObject(by.ID, by.TenantID), faults)
	}
	var renamed doorward.Factor
	_, err := f.writer.Do(ctx, by, doorward.MFAEnrol, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		old, err := lockFactor(ctx, tx, by.ID, id)
		if err != nil {
			return err
		}
		if renamed = old.Factor; renamed.Name == name {
			tx.SkipEvent()
			return nil
		}
		if err := tx.CountChange(ctx); err != nil {
			return err
		}
		tx.Changed(doorward.FieldFactorRenamed, "", string(renamed.Kind)) // the trail doesn't have the names, which are private
		renamed.Name = name
		if err := notFoundUnless(tx.RenameFactor(ctx, by.ID, id, name)); err != nil {
			return err
		}
		if _, err := f.afterChange(ctx, tx, by.ID); err != nil {
			return err
		}
		return notify(ctx, tx, store.MailFactorRenamed, by.Email)
	})
	return renamed, err
}

// Remove removes a factor of the caller, and the recovery codes with the last factor. Errors:
// step_up_required; not_found; mfa_required_here for the last usable factor while a tenant demands
// one.
func (f *Factors) Remove(ctx context.Context, by doorward.Caller, id string) (doorward.Revocation, error) {
	return f.writer.Do(ctx, by, doorward.MFARemove, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		old, err := lockFactor(ctx, tx, by.ID, id)
		if err != nil {
			return err
		}
		if err := notFoundUnless(tx.DeleteFactor(ctx, by.ID, id)); err != nil {
			return err
		}
		count, err := f.afterChange(ctx, tx, by.ID)
		if err != nil {
			return err
		}
		if err := checkDemand(ctx, tx, by.ID); err != nil {
			return err
		}
		if count == 0 {
			if err := tx.SetRecoveryCodes(ctx, by.ID, nil); err != nil {
				return err
			}
		}
		tx.Changed(doorward.FieldFactor, string(old.Kind), "")
		return notify(ctx, tx, store.MailFactorRemoved, by.Email)
	})
}

// checkDemand returns mfa_required_here if a tenant of the account demands a factor and the account
// has no usable one.
func checkDemand(ctx context.Context, tx *access.Tx, userID string) error {
	all, err := tx.Factors(ctx, userID)
	if err != nil || slices.ContainsFunc(all, func(stored store.Factor) bool { return stored.Usable() }) {
		return err
	}
	memberships, err := tx.Memberships(ctx, userID)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		tenant, err := tx.Tenant(ctx, m.TenantID)
		if err != nil {
			return err
		}
		if tenant.Settings.SecondFactor.Covers(m.Role) {
			return doorward.Fail(doorward.CodeMFARequiredHere, "")
		}
	}
	return nil
}

// afterChange must be called after each change of an account's factors. It announces their number to
// all nodes, and ends challenges, codes of mails and remembered browsers. It returns the number.
func (f *Factors) afterChange(ctx context.Context, tx *access.Tx, userID string) (count int, err error) {
	if err := tx.UpdateFactorCounts(ctx, userID); err != nil {
		return 0, err
	}
	if err := tx.EndChallenges(ctx, userID); err != nil {
		return 0, err
	}
	if err := tx.ExpireFactorCodes(ctx, userID); err != nil {
		return 0, err
	}
	if err := tx.ForgetBrowsers(ctx, userID); err != nil {
		return 0, err
	}
	account, err := tx.Account(ctx, userID)
	return account.Factors, err
}

// notifyAlso records a change of the account's factors in the course of another action, in the trail of
// the tenant and of all others in which its owner is active, and queues a mail to them.
func notifyAlso(ctx context.Context, tx *access.Tx, kind store.MailKind, account doorward.Account, action doorward.Action, tenantID string, changes ...doorward.Change) error {
	changes = append(changes, doorward.Change{Field: doorward.FieldUserAgent, To: tx.By.UserAgent})
	if err := tx.NotifyAlso(ctx, kind, []string{account.Email}, action, userObject(account.ID, tenantID), changes...); err != nil {
		return err
	}
	return tx.RecordElsewhere(ctx, action, userObject(account.ID, tenantID), changes...)
}

// notify queues a mail to the person about the change, and records the browser that was used.
func notify(ctx context.Context, tx *access.Tx, kind store.MailKind, email string) error {
	tx.RecordUserAgent()
	return tx.Notify(ctx, kind, email)
}

// lockFactor locks the account and returns its confirmed factor. Errors: not_found.
func lockFactor(ctx context.Context, tx *access.Tx, userID, id string) (store.Factor, error) {
	if _, err := tx.LockAccount(ctx, userID); err != nil {
		return store.Factor{}, err
	}
	all, err := tx.Factors(ctx, userID)
	i := slices.IndexFunc(all, func(stored store.Factor) bool { return stored.ID == id && stored.ConfirmedAt != nil })
	if err == nil && i < 0 {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return store.Factor{}, err
	}
	return all[i], nil
}

// notFoundUnless returns err, or not_found if found is false.
func notFoundUnless(found bool, err error) error {
	if err == nil && !found {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return err
}

func userObject(userID, tenantID string) doorward.Object {
	return doorward.Object{Type: "user", ID: userID, TenantID: tenantID}
}

// seedPlace returns where a sealed seed is stored.
func seedPlace(id string) seal.Place {
	return seal.Place{Table: "factors", ID: id, Column: "seed_sealed"}
}

// seed opens the sealed seed of a TOTP. Here a missing master key is a fault of the server, since
// the seed was sealed with one. Errors: unavailable.
func (f *Factors) seed(ctx context.Context, stored store.Factor) ([]byte, error) {
	seed, err := f.master.Open(ctx, seedPlace(stored.ID), stored.SeedSealed)
	if err != nil && !isUnavailable(err) {
		err = doorward.Unavailable(err)
	}
	return seed, err
}

// CountMembers returns how many people of the caller's tenant have a factor, and how many don't.
// Errors: forbidden, unavailable.
func (f *Factors) CountMembers(ctx context.Context, by doorward.Caller) (store.FactorCount, error) {
	if err := f.writer.Require(ctx, by, doorward.SettingsManage, by.Tenant()); err != nil {
		return store.FactorCount{}, err
	}
	return f.db.Read().CountMembersFactors(ctx, by.TenantID)
}
