package factor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/passkey"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/internal/useragent"
	"github.com/doorward/doorward/store"
)

// challengeOf returns the challenge of WebAuthn for a token. It is derived from the token, so that the
// database doesn't have to store it.
func challengeOf(token secret.Token) []byte {
	sum := sha256.Sum256([]byte("webauthn challenge of " + token.Reveal()))
	return sum[:]
}

// requirePasskeys returns passkeys_unavailable if browsers allow no passkeys at this server's
// address.
func (f *Factors) requirePasskeys() error {
	if !f.issuer.Load().party.Usable() {
		return doorward.Fail(doorward.CodePasskeysUnavailable, "")
	}
	return nil
}

// methodsOf returns the authentication methods (RFC 8176) of a proof by the passkey.
func methodsOf(c passkey.Credential) []string {
	if c.BackupEligible {
		return []string{doorward.MethodSynced, doorward.MethodPresent}
	}
	return []string{doorward.MethodDevice, doorward.MethodPresent}
}

// BeginUsernameless makes a challenge for a login with a passkey alone (a discoverable credential of
// WebAuthn). The answer names the account. Errors: passkeys_unavailable.
func (f *Factors) BeginUsernameless(ctx context.Context, tx *store.Tx) (NewChallenge, error) {
	if err := f.requirePasskeys(); err != nil {
		return NewChallenge{}, err
	}
	return f.begin(ctx, tx, store.Challenge{Purpose: string(ForUsernameless), Methods: []string{doorward.ByPasskey}}, nil)
}

// OpenUsernameless returns a challenge of BeginUsernameless. Errors: challenge_over.
func (f *Factors) OpenUsernameless(ctx context.Context, token string) (Challenge, error) {
	return f.read(ctx, token, ForUsernameless)
}

// TryUsernameless is Try for a challenge of BeginUsernameless. It also returns the account of the
// passkey, and the challenge for that account, even if the answer is wrong. The account is zero if
// the passkey is unknown.
func (f *Factors) TryUsernameless(ctx context.Context, by doorward.Caller, c Challenge, response []byte) (Challenge, doorward.Account, Match, error) {
	if err := f.CountTry(ctx, c); err != nil {
		return c, doorward.Account{}, Match{}, err
	}
	answer, err := passkey.Parse(response)
	if err != nil {
		return c, doorward.Account{}, Match{}, wrongAnswer()
	}
	stored, err := f.db.Read().FactorByCredential(ctx, answer.CredentialID)
	if errors.Is(err, store.ErrNone) {
		err = wrongAnswer()
	}
	if err != nil {
		return c, doorward.Account{}, Match{}, err
	}
	account, err := f.db.Read().Account(ctx, stored.UserID)
	if errors.Is(err, store.ErrNone) { // erased since
		err = wrongAnswer()
	}
	if err != nil {
		return c, account, Match{}, err
	}
	c.UserID, c.Generation = account.ID, account.Generation
	if answer.UserHandle == "" { // the authenticator hasn't named the account
		return c, account, Match{}, wrongAnswer()
	}
	match, err := f.verify(ctx, by, c, stored, answer)
	return c, account, match, err
}

// checkPasskey checks an answer by one of the account's passkeys.
func (f *Factors) checkPasskey(ctx context.Context, by doorward.Caller, c Challenge, response []byte) (Match, error) {
	answer, err := passkey.Parse(response)
	if err != nil {
		return Match{}, wrongAnswer()
	}
	stored, err := f.db.Read().FactorByCredential(ctx, answer.CredentialID)
	if errors.Is(err, store.ErrNone) || err == nil && stored.UserID != c.UserID {
		err = wrongAnswer()
	}
	if err != nil {
		return Match{}, err
	}
	return f.verify(ctx, by, c, stored, answer)
}

// verify checks the answer of the passkey.
func (f *Factors) verify(ctx context.Context, by doorward.Caller, c Challenge, stored store.Factor, answer passkey.Answer) (Match, error) {
	if !stored.Usable() || !f.issuer.Load().party.Usable() {
		return Match{}, wrongAnswer()
	}
	old, err := passkey.Read(stored.CredentialID, stored.Credential)
	if err != nil {
		return Match{}, err
	}
	used, err := f.issuer.Load().party.Verify(c.webauthn, stored.UserID, old, answer)
	switch {
	case errors.Is(err, passkey.ErrCopied):
		return Match{}, f.disable(ctx, by, c, stored)
	case err != nil:
		return Match{}, wrongAnswer()
	}
	next := stored
	next.Credential, next.Synced = used.Text(), used.BackupEligible
	return Match{methodsOf(used), stored.UserID, func(ctx context.Context, tx *access.Tx, _ string) error {
		return wrongAnswerUnless(tx.UsePasskey(ctx, stored, next))
	}}, nil
}

// disable disables a passkey that was copied, and notifies the owner: nobody can tell which of the
// two is the owner's. It also marks the challenge as used. So an answer that is sent twice doesn't
// look like a copy: its challenge is over the second time. Errors: invalid_code, challenge_over.
func (f *Factors) disable(ctx context.Context, by doorward.Caller, c Challenge, stored store.Factor) error {
	account, err := f.db.Read().Account(ctx, stored.UserID)
	if errors.Is(err, store.ErrNone) { // erased since
		err = ChallengeOver()
	}
	if err != nil {
		return err
	}
	home, err := proof.HomeTenant(ctx, f.db.Read(), account.ID, c.TenantID)
	if err != nil {
		return err
	}
	by = by.As(doorward.User{ID: account.ID, Email: account.Email})
	_, err = f.writer.Do(ctx, by, doorward.MFAClone, userObject(account.ID, home), func(tx *access.Tx) error {
		if _, err := tx.LockAccount(ctx, account.ID); err != nil {
			return err
		}
		if err := f.TakeChallenge(ctx, tx, c); err != nil {
			return err
		}
		disabled, err := tx.DisableFactor(ctx, stored.ID)
		if err != nil {
			return err
		}
		if !disabled { // another request has disabled or removed it
			tx.SkipEvent()
			return nil
		}
		if _, err := f.afterChange(ctx, tx, account.ID); err != nil {
			return err
		}
		tx.Changed(doorward.FieldFactor, string(stored.Kind), "")
		return notify(ctx, tx, store.MailPasskeyCopied, account.Email)
	})
	if err == nil {
		err = wrongAnswer()
	}
	return err
}

// BeginPasskey begins the enrolment of a passkey for the caller. Errors: passkeys_unavailable,
// step_up_required, too_many_factors, too_many_attempts.
func (f *Factors) BeginPasskey(ctx context.Context, by doorward.Caller) (challenge NewChallenge, err error) {
	if err := f.requirePasskeys(); err != nil {
		return challenge, err
	}
	_, err = f.writer.Do(ctx, by, doorward.MFAEnrol, userObject(by.ID, by.TenantID), func(tx *access.Tx) error {
		tx.SkipEvent() // ConfirmPasskey records it
		account, err := tx.Account(ctx, by.ID)
		if err != nil {
			return err
		}
		if err := prepareEnrolment(ctx, tx, by.ID); err != nil {
			return err
		}
		if err := cmp.Or(tx.CountChallenge(ctx), tx.CountChange(ctx)); err != nil {
			return err
		}
		challenge, err = f.begin(ctx, tx.Tx, store.Challenge{
			Purpose: string(ForPasskey), UserID: by.ID, TenantID: by.TenantID, SessionID: by.SessionID,
			Generation: account.Generation, Methods: []string{doorward.ByPasskey},
		}, nil)
		return err
	})
	if err == nil {
		challenge.PublicKey, err = f.creationOptions(ctx, challenge.Token, doorward.Account{ID: by.ID, Email: by.Email})
	}
	return challenge, err
}

// BeginPasskeyWithChallenge is BeginPasskey with a challenge in place of a session, for a person who needs a
// factor to sign in. It doesn't make another challenge: the passkey answers the same one. Errors:
// passkeys_unavailable, challenge_over.
func (f *Factors) BeginPasskeyWithChallenge(ctx context.Context, token string) (NewChallenge, error) {
	return f.pendingPasskey(ctx, token, ForEnrolment)
}

// PendingPasskey returns an unfinished enrolment of BeginPasskey, to show it again. Errors:
// challenge_over, passkeys_unavailable.
func (f *Factors) PendingPasskey(ctx context.Context, token string) (NewChallenge, error) {
	return f.pendingPasskey(ctx, token, ForPasskey)
}

func (f *Factors) pendingPasskey(ctx context.Context, text string, purpose Purpose) (NewChallenge, error) {
	c, account, err := f.OpenChallenge(ctx, text, purpose)
	if err == nil {
		err = f.requirePasskeys()
	}
	if err != nil {
		return NewChallenge{}, err
	}
	token, err := secret.Parse(text)
	if err != nil {
		return NewChallenge{}, ChallengeOver()
	}
	challenge := NewChallenge{Token: token, Methods: []string{doorward.ByPasskey}, ExpiresAt: c.EndsAt}
	challenge.PublicKey, err = f.creationOptions(ctx, token, account)
	return challenge, err
}

// creationOptions returns WebAuthn's options to make a passkey. They exclude authenticators that
// have a passkey of the account.
func (f *Factors) creationOptions(ctx context.Context, token secret.Token, account doorward.Account) (json.RawMessage, error) {
	all, err := f.db.Read().Factors(ctx, account.ID)
	if err != nil {
		return nil, err
	}
	var excluded []passkey.Credential
	for _, stored := range all {
		if stored.Kind != doorward.Passkey {
			continue
		}
		c, err := passkey.Read(stored.CredentialID, stored.Credential)
		if err != nil {
			return nil, err
		}
		excluded = append(excluded, c)
	}
	return f.issuer.Load().party.CreationOptions(challengeOf(token), passkey.User{ID: account.ID, Name: account.Email}, excluded)
}

// ConfirmPasskey completes the enrolment of the caller's passkey, and raises the session to
// assurance level 2, under a new token. The name may be empty. Errors: challenge_over, step_up_required,
// too_many_factors, passkeys_unavailable, validation_failed for the name or with /credential wrong.
func (f *Factors) ConfirmPasskey(ctx context.Context, by doorward.Caller, token string, response []byte, name string) (Confirmed, error) {
	c, _, err := f.OpenChallenge(ctx, token, ForPasskey)
	if err == nil && (c.UserID != by.ID || c.SessionID != by.SessionID) {
		err = ChallengeOver()
	}
	if err != nil {
		return Confirmed{}, err
	}
	made, err := f.register(ctx, by, c, response, name)
	if err != nil {
		return Confirmed{}, wrongCredential(err)
	}
	var done Confirmed
	op := access.Operation{Action: doorward.MFAEnrol, On: userObject(by.ID, by.TenantID), Began: c.EndsAt.Add(-doorward.ChallengeLife)}
	op.Write = func(tx *access.Tx) (err error) {
		if err := prepareEnrolment(ctx, tx, by.ID); err != nil {
			return err
		}
		if err := f.TakeChallenge(ctx, tx, c); err != nil {
			return err
		}
		if done, err = f.insert(ctx, tx, made); err != nil {
			return err
		}
		return done.record(ctx, tx, by, made.methods...)
	}
	revocation, err := f.writer.DoAll(ctx, by, op)
	done.Raised.Revocation = revocation
	return done, wrongCredential(err)
}

// wrongCredential turns invalid_code into a fault of /credential.
func wrongCredential(err error) error {
	if doorward.HasCode(err, doorward.CodeInvalidCode) {
		return doorward.Invalid("/credential", "wrong", "This is no new passkey for the challenge. Begin again.")
	}
	return err
}

// newPasskey is a checked passkey that isn't inserted yet.
type newPasskey struct {
	store.Factor
	methods []string
}

// register counts a try of the challenge, and checks the answer. Errors: validation_failed,
// passkeys_unavailable, challenge_over, invalid_code.
func (f *Factors) register(ctx context.Context, by doorward.Caller, c Challenge, response []byte, name string) (newPasskey, error) {
	if faults := doorward.CheckName("/name", &name); len(faults) > 0 {
		return newPasskey{}, doorward.InvalidFields(faults...)
	}
	if err := f.requirePasskeys(); err != nil {
		return newPasskey{}, err
	}
	if err := f.CountTry(ctx, c); err != nil {
		return newPasskey{}, err
	}
	made, err := f.issuer.Load().party.Register(c.webauthn, c.UserID, response)
	if err != nil {
		return newPasskey{}, wrongAnswer()
	}
	return newPasskey{store.Factor{CredentialID: made.ID, Credential: made.Text(), Factor: doorward.Factor{
		ID: doorward.NewID(doorward.PrefixFactor), UserID: c.UserID, Kind: doorward.Passkey,
		Name: cmp.Or(name, made.Model(), browserName(by.UserAgent), "Passkey"), Synced: made.BackupEligible,
	}}, methodsOf(made)}, nil
}

// browserName returns the name of the browser and its system, for a passkey without a name; empty if
// they are unknown.
func browserName(userAgent string) string {
	browser, system := useragent.Parse(userAgent)
	if browser != "" && system != "" {
		return browser + " on " + system
	}
	return browser + system
}

// insert inserts the passkey, under the lock on the account. Errors: invalid_code if an account has it
// already.
func (f *Factors) insert(ctx context.Context, tx *access.Tx, made newPasskey) (Confirmed, error) {
	factor := made.Factor
	factor.CreatedAt, factor.ConfirmedAt = tx.Now, &tx.Now
	if err := wrongAnswerUnless(tx.InsertFactor(ctx, factor)); err != nil {
		return Confirmed{}, err
	}
	return f.afterAdding(ctx, tx, factor.Factor)
}

// TryFirstPasskey counts a try of the challenge, and checks the passkey that was made for it.
// Errors: those of register, unavailable.
func (f *Factors) TryFirstPasskey(ctx context.Context, by doorward.Caller, c Challenge, response []byte, name string) (FirstFactor, error) {
	made, err := f.register(ctx, by, c, response, name)
	return FirstFactor{made.methods, c, func(ctx context.Context, tx *access.Tx) (Confirmed, error) {
		return f.insert(ctx, tx, made)
	}}, err
}

// RequestOptions returns WebAuthn's options to answer an open challenge, to show the challenge again.
// They are empty if no passkey can answer it.
func (f *Factors) RequestOptions(ctx context.Context, c Challenge) (json.RawMessage, error) {
	if !c.Accepts(doorward.ByPasskey) || !f.issuer.Load().party.Usable() {
		return nil, nil
	}
	available, err := f.readAvailable(ctx, f.db.Read(), doorward.Account{ID: c.UserID})
	if err != nil {
		return nil, err
	}
	return f.issuer.Load().party.RequestOptions(c.webauthn, available.passkeys)
}
