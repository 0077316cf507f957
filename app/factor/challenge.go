package factor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/passkey"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Purpose is the purpose of a challenge.
type Purpose string

// The purposes of challenges.
const (
	ForLogin        Purpose = "login"   // the second step of a login, or of switching to a tenant
	ForStepUp       Purpose = "step-up" // a new proof for a session
	ForEnrolment    Purpose = "enrol"   // setting up the first factor, which completes a login
	ForPasskey      Purpose = "passkey" // setting up a passkey in a session
	ForUsernameless Purpose = "anybody" // a login with a passkey alone
	ForInvitation   Purpose = "accept"  // the second step of accepting an invitation
	ForSignOn       Purpose = "sign-on" // the second step of proving an account that a tenant's sign-on names
)

// NewChallenge is a challenge in the form that the person gets.
type NewChallenge struct {
	Token     secret.Token
	Methods   []string
	ExpiresAt time.Time
	// PublicKey has WebAuthn's options: to answer with a passkey, or to make one in an enrolment.
	// It is empty if the challenge was not begun for either.
	PublicKey json.RawMessage
	// ConnectionID is the connection whose provider can answer it, if Methods has doorward.BySSO.
	ConnectionID string
}

// Challenge is a challenge that a request has brought.
type Challenge struct {
	store.Challenge
	hash     secret.Hash
	webauthn []byte // the challenge that authenticators sign, see challengeOf
}

// BeginChallenge makes a challenge for the account in the transaction that asks for the proof. The
// account was locked before: each change of its factors ends its challenges, and must not miss
// this one. sessionID is the session that the proof replaces; it may be empty. The caller's issuer goes
// on to vouch for what the challenge completes. The challenge is over
// if the account's generation has changed since the caller read the account. state goes on to what the
// challenge completes; it may be nil.
func (f *Factors) BeginChallenge(ctx context.Context, tx *access.Tx, purpose Purpose, account doorward.Account, tenantID, sessionID string, state []byte) (NewChallenge, error) {
	return f.beginFor(ctx, tx, account, store.Challenge{Purpose: string(purpose), TenantID: tenantID, SessionID: sessionID, State: state}, nil)
}

// BeginStepUp is BeginChallenge for a new proof of the caller's session. wanted are the methods that
// count for what the person is about to do; nil: all.
func (f *Factors) BeginStepUp(ctx context.Context, tx *access.Tx, account doorward.Account, wanted []string) (NewChallenge, error) {
	c := store.Challenge{Purpose: string(ForStepUp), TenantID: tx.By.TenantID, SessionID: tx.By.SessionID}
	begun, err := f.beginFor(ctx, tx, account, c, wanted)
	if slices.Contains(begun.Methods, doorward.BySSO) {
		begun.ConnectionID = string(tx.By.Issuer)
	}
	return begun, err
}

// BeginForInvitation is BeginChallenge for accepting the invitation with the id, and no other. tenantID
// is the tenant whose trail records the answer.
func (f *Factors) BeginForInvitation(ctx context.Context, tx *access.Tx, account doorward.Account, tenantID, invitationID string) (NewChallenge, error) {
	return f.beginFor(ctx, tx, account, store.Challenge{Purpose: string(ForInvitation), TenantID: tenantID, State: []byte(invitationID)}, nil)
}

// OpenForInvitation is OpenChallenge for a challenge of BeginForInvitation.
func (f *Factors) OpenForInvitation(ctx context.Context, token, invitationID string) (Challenge, doorward.Account, error) {
	c, account, err := f.OpenChallenge(ctx, token, ForInvitation)
	if err == nil && string(c.State) != invitationID {
		err = ChallengeOver()
	}
	return c, account, err
}

// BeginForSignOn is BeginChallenge for what is held of a sign-in by a connection under the id, and for nothing
// else.
func (f *Factors) BeginForSignOn(ctx context.Context, tx *access.Tx, account doorward.Account, tenantID, heldID string) (NewChallenge, error) {
	return f.beginFor(ctx, tx, account, store.Challenge{Purpose: string(ForSignOn), TenantID: tenantID, State: []byte(heldID)}, nil)
}

// OpenForSignOn is OpenChallenge for a challenge of BeginForSignOn.
func (f *Factors) OpenForSignOn(ctx context.Context, token, heldID string) (Challenge, doorward.Account, error) {
	c, account, err := f.OpenChallenge(ctx, token, ForSignOn)
	if err == nil && string(c.State) != heldID {
		err = ChallengeOver()
	}
	return c, account, err
}

func (f *Factors) beginFor(ctx context.Context, tx *access.Tx, account doorward.Account, c store.Challenge, wanted []string) (NewChallenge, error) {
	current, err := tx.Account(ctx, account.ID)
	if err != nil {
		return NewChallenge{}, err
	}
	available, err := f.readAvailable(ctx, tx.Reader, current)
	if err != nil {
		return NewChallenge{}, err
	}
	c.UserID, c.Generation, c.Issuer = account.ID, account.Generation, tx.By.Issuer
	c.Methods = available.offered(Purpose(c.Purpose), tx.By.Issuer, f.issuer.Load().party.Usable())
	if wanted != nil {
		c.Methods = slices.DeleteFunc(c.Methods, func(m string) bool { return !slices.Contains(wanted, m) })
	}
	return f.begin(ctx, tx.Tx, c, available.passkeys)
}

// begin makes the challenge c. passkeys are those that may answer it; nil: any passkey.
func (f *Factors) begin(ctx context.Context, tx *store.Tx, c store.Challenge, passkeys []passkey.Credential) (challenge NewChallenge, err error) {
	challenge = NewChallenge{Token: secret.New(), Methods: c.Methods, ExpiresAt: tx.Now.Add(doorward.ChallengeLife)}
	if c.Purpose != string(ForEnrolment) && c.Purpose != string(ForPasskey) && slices.Contains(c.Methods, doorward.ByPasskey) {
		if challenge.PublicKey, err = f.issuer.Load().party.RequestOptions(challengeOf(challenge.Token), passkeys); err != nil {
			return challenge, err
		}
	}
	hash := challenge.Token.Hash()
	c.EndsAt = challenge.ExpiresAt
	return challenge, tx.InsertChallenge(ctx, hash[:], c)
}

// availableFactors has the factors and recovery codes with which an account can answer a challenge.
type availableFactors struct {
	account       doorward.Account
	hasCode       bool // whether there is an authenticator app
	passkeys      []passkey.Credential
	recoveryCodes int // number of codes
}

func (f *Factors) readAvailable(ctx context.Context, read store.Reader, account doorward.Account) (a availableFactors, err error) {
	all, err := read.Factors(ctx, account.ID)
	if err != nil {
		return a, err
	}
	for _, stored := range all {
		if !stored.Usable() {
			continue
		}
		if stored.Kind == doorward.TOTP {
			a.hasCode = true
			continue
		}
		c, err := passkey.Read(stored.CredentialID, stored.Credential)
		if err != nil {
			return a, err
		}
		a.passkeys = append(a.passkeys, c)
	}
	a.account = account
	a.recoveryCodes, err = read.CountRecoveryCodes(ctx, account.ID)
	return a, err
}

// offered returns the methods by which the account can answer; for a step-up by the session that the issuer
// vouches for. passkeysAllowed says whether browsers allow passkeys at this server's address.
func (a availableFactors) offered(purpose Purpose, issuer doorward.Issuer, passkeysAllowed bool) []string {
	isEnrolment := purpose == ForEnrolment
	methods := []string{}
	if a.hasCode || isEnrolment {
		methods = append(methods, doorward.ByCode)
	}
	if passkeysAllowed && (len(a.passkeys) > 0 || isEnrolment) {
		methods = append(methods, doorward.ByPasskey)
	}
	// A recovery code is accepted for a step-up only if no usable factor remains, as when the last
	// one was disabled: the person can then set up another factor.
	if a.recoveryCodes > 0 && (purpose == ForLogin || purpose == ForInvitation || purpose == ForSignOn || purpose == ForStepUp && a.account.Factors > 0 && len(methods) == 0) {
		methods = append(methods, doorward.ByRecovery)
	}
	switch {
	case purpose == ForStepUp && issuer != doorward.OwnIssuer:
		return a.withSSO(methods)
	case purpose == ForStepUp && a.account.Factors == 0:
		return []string{doorward.ByPassword}
	}
	return methods
}

// withSSO adds the methods of a session that a connection vouches for to those of the account's factors. What
// each of them is a proof of, decide.ProvedOwn says.
func (a availableFactors) withSSO(factors []string) []string {
	methods := []string{doorward.BySSO}
	if a.account.PasswordHash != "" {
		methods = append(methods, doorward.ByPassword)
	}
	return append(methods, factors...)
}

// Offered returns the methods by which the account can answer a challenge for the purpose, in a session
// that the issuer vouches for.
func (f *Factors) Offered(ctx context.Context, purpose Purpose, issuer doorward.Issuer, account doorward.Account) ([]string, error) {
	available, err := f.readAvailable(ctx, f.db.Read(), account)
	return available.offered(purpose, issuer, f.issuer.Load().party.Usable()), err
}

// ChallengeOver returns the error of a challenge that has ended or has another purpose.
func ChallengeOver() *doorward.Error { return doorward.Fail(doorward.CodeChallengeOver, "") }

// OpenChallenge returns the challenge of a token, and its current account. Errors: challenge_over,
// also if the password has changed since; unavailable.
func (f *Factors) OpenChallenge(ctx context.Context, token string, purpose Purpose) (Challenge, doorward.Account, error) {
	c, err := f.read(ctx, token, purpose)
	if err != nil {
		return c, doorward.Account{}, err
	}
	account, err := f.db.Read().Account(ctx, c.UserID)
	if err == nil && account.Generation != c.Generation {
		err = ChallengeOver()
	}
	return c, account, challengeOverIfNone(err)
}

// read returns the challenge of a token. Errors: challenge_over, unavailable.
func (f *Factors) read(ctx context.Context, token string, purpose Purpose) (Challenge, error) {
	parsed, err := secret.Parse(token)
	if err != nil {
		return Challenge{}, ChallengeOver()
	}
	c := Challenge{hash: parsed.Hash(), webauthn: challengeOf(parsed)}
	c.Challenge, err = f.db.Read().Challenge(ctx, c.hash[:], string(purpose), doorward.ChallengeTries, f.db.Now())
	return c, challengeOverIfNone(err)
}

// challengeOverIfNone returns err, or challenge_over for store.ErrNone.
func challengeOverIfNone(err error) error {
	if errors.Is(err, store.ErrNone) {
		return ChallengeOver()
	}
	return err
}

// Accepts reports whether the challenge can be answered with the method.
func (c Challenge) Accepts(method string) bool { return slices.Contains(c.Methods, method) }

// CountTry counts a try of the challenge. Errors: challenge_over, unavailable.
func (f *Factors) CountTry(ctx context.Context, c Challenge) error {
	return f.writer.Upkeep(ctx, func(tx *store.Tx) error { return f.countTry(ctx, tx, c) })
}

func (f *Factors) countTry(ctx context.Context, tx *store.Tx, c Challenge) error {
	return challengeOverUnless(tx.TryChallenge(ctx, c.hash[:], doorward.ChallengeTries))
}

// TakeChallenge marks the challenge as used, in the transaction of the permitted action and under the lock on
// the account. Errors: challenge_over, also if the password has changed since.
func (f *Factors) TakeChallenge(ctx context.Context, tx *access.Tx, c Challenge) error {
	account, err := tx.Account(ctx, c.UserID)
	if err == nil && account.Generation != c.Generation {
		err = ChallengeOver()
	}
	if err != nil {
		return challengeOverIfNone(err)
	}
	if !tx.Now.Before(c.EndsAt) {
		return ChallengeOver()
	}
	return challengeOverUnless(tx.TakeChallenge(ctx, c.hash[:]))
}

// challengeOverUnless returns err, or challenge_over if open is false.
func challengeOverUnless(open bool, err error) error {
	if err == nil && !open {
		err = ChallengeOver()
	}
	return err
}
