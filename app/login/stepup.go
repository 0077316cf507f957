package login

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/store"
)

// BeginStepUp makes a challenge by which the caller proves again who they are, for this
// session: with a second factor if the account has one, else with the password. If a connection vouches for
// the session, its provider can answer, too (StepUpBySSO). Errors: too_many_attempts, unauthenticated,
// unavailable.
func (l *Login) BeginStepUp(ctx context.Context, by doorward.Caller) (factor.NewChallenge, error) {
	return l.beginStepUp(ctx, by, requested, nil)
}

// OfferStepUp is BeginStepUp for the response step_up_required, which carries the challenge: for the proof
// that it says is needed. It records no event, since the person hasn't asked for the challenge.
func (l *Login) OfferStepUp(ctx context.Context, by doorward.Caller, needed *doorward.ProofNeeded) (factor.NewChallenge, error) {
	var wanted []string
	if by.Issuer != doorward.OwnIssuer && needed != nil {
		wanted = append([]string{}, needed.Methods...)
	}
	return l.beginStepUp(ctx, by, unrequested, wanted)
}

// Values of isRequested.
const requested, unrequested = true, false

func (l *Login) beginStepUp(ctx context.Context, by doorward.Caller, isRequested bool, wanted []string) (begun factor.NewChallenge, err error) {
	_, err = l.writer.Do(ctx, by, doorward.MFAChallenge, sessionObject(by), func(tx *access.Tx) error {
		if !isRequested {
			tx.SkipEvent()
		}
		if _, err := tx.LockAccount(ctx, by.ID); err != nil {
			return err
		}
		account, err := access.OwnAccount(ctx, tx.Reader, by)
		if err != nil {
			return err
		}
		if err := tx.CountChallenge(ctx); err != nil {
			return err
		}
		begun, err = l.factors.BeginStepUp(ctx, tx, account, wanted)
		return err
	})
	if err == nil {
		l.factors.Tally(factor.Asked)
	}
	return begun, err
}

// StepUpMethods returns the methods that can answer a challenge of BeginStepUp.
func (l *Login) StepUpMethods(ctx context.Context, by doorward.Caller) ([]string, error) {
	account, err := access.OwnAccount(ctx, l.db.Read(), by)
	if err != nil {
		return nil, err
	}
	return l.factors.Offered(ctx, factor.ForStepUp, by.Issuer, account)
}

func sessionObject(by doorward.Caller) doorward.Object {
	return doorward.Object{Type: "session", ID: by.SessionID, TenantID: by.TenantID}
}

// Evidence is the answer to a challenge of BeginStepUp: a password or a factor's answer.
type Evidence struct {
	Password string // of an account without a second factor
	factor.Answer
}

// StepUp takes the answer to the challenge of the caller's session: the session goes on under
// a new token with a new time of proof, and the old token ends on all nodes. No other session
// changes. Errors: challenge_over, validation_failed (wrong, at /password, /code,
// /recoveryCode or /credential; those of Answer.Typed), too_many_attempts, unauthenticated when the session has
// ended.
func (l *Login) StepUp(ctx context.Context, by doorward.Caller, token string, evidence Evidence) (session.Opened, error) {
	c, account, err := l.openStepUp(ctx, by, token)
	if err != nil {
		return session.Opened{}, err
	}
	if evidence.Password != "" {
		return l.stepUpByPassword(ctx, by, c, account, evidence.Password)
	}
	answer, err := evidence.Answer.Typed()
	if err != nil {
		return session.Opened{}, err
	}
	return l.stepUpByFactor(ctx, by, c, account, answer)
}

// openStepUp returns the challenge of a token, and the account. Errors: challenge_over, also for a
// challenge of another session.
func (l *Login) openStepUp(ctx context.Context, by doorward.Caller, token string) (factor.Challenge, doorward.Account, error) {
	c, account, err := l.factors.OpenChallenge(ctx, token, factor.ForStepUp)
	if err == nil && (c.SessionID != by.SessionID || c.UserID != by.ID) {
		err = factor.ChallengeOver()
	}
	return c, account, err
}

// StepUpBySSO is StepUp for a sign-in at the provider of the session's connection, whose answer another
// feature has checked: it is fresh, and of the identity that the session was opened for. said is what the
// provider said of its methods, its session, which is empty if it named none, and the session's end. before is called in the transaction,
// ahead of the lock on the account: its error is returned. Errors: challenge_over, unauthenticated, unavailable.
func (l *Login) StepUpBySSO(ctx context.Context, by doorward.Caller, token string, said doorward.Assurance, before func(*access.Tx) error) (session.Opened, error) {
	c, account, err := l.openStepUp(ctx, by, token)
	if err == nil && !c.Accepts(doorward.BySSO) {
		err = factor.ChallengeOver()
	}
	if err != nil {
		return session.Opened{}, err
	}
	assure := func(old store.Credential, now time.Time) doorward.Assurance {
		a := old.Session.Assurance
		a.ProvedAt, a.ProviderAMR, a.ProviderSession = now, said.ProviderAMR, said.ProviderSession
		if until := said.ProviderUntil; !until.IsZero() && (a.ProviderUntil.IsZero() || until.Before(a.ProviderUntil)) {
			a.ProviderUntil = until
		}
		return a
	}
	return l.renew(ctx, by, c, proof.Proof{Account: account}, assure, before, nothing)
}

func (l *Login) stepUpByPassword(ctx context.Context, by doorward.Caller, c factor.Challenge, account doorward.Account, password string) (session.Opened, error) {
	if !c.Accepts(doorward.ByPassword) {
		return session.Opened{}, wrong("/password", "The password isn't enough here. Answer by one of the methods of the challenge.")
	}
	if err := l.factors.CountTry(ctx, c); err != nil {
		return session.Opened{}, err
	}
	proof, err := l.verifier.CheckForAccount(ctx, by, account.ID, account.Email, password)
	if doorward.HasCode(err, doorward.CodeInvalidCredentials) {
		e := wrong("/password", "This is not the password you have now.")
		e.Allowance = doorward.AllowanceOf(err)
		return session.Opened{}, e
	}
	if err != nil {
		return session.Opened{}, err
	}
	opened, err := l.renew(ctx, by, c, proof, session.ProvedByPassword, nothing, nothing)
	return opened, proof.FailIfRefused(ctx, err)
}

func (l *Login) stepUpByFactor(ctx context.Context, by doorward.Caller, c factor.Challenge, account doorward.Account, answer factor.Answer) (session.Opened, error) {
	if !c.Accepts(answer.Method()) {
		return session.Opened{}, wrongAnswer(answer)
	}
	proof, err := l.verifier.Begin(ctx, by, account)
	if err != nil {
		return session.Opened{}, err
	}
	a := challengedAttempt{factors: l.factors, by: by, challenge: c, proof: proof}
	match, err := l.factors.Try(ctx, by, c, answer)
	if err != nil {
		return session.Opened{}, asFieldFault(answer, a.refuse(ctx, err))
	}
	assure := func(old store.Credential, now time.Time) doorward.Assurance {
		return session.ProvedByFactor(old, now, match.Methods...)
	}
	opened, err := l.renew(ctx, by, c, proof, assure, nothing, func(tx *access.Tx) error { return match.Use(ctx, tx, by.TenantID) })
	if err != nil {
		return session.Opened{}, asFieldFault(answer, a.refuse(ctx, err))
	}
	return opened, nil
}

// renew uses up the challenge and the answer, and counts the attempt as a success, in the transaction in
// which the session gets its new token, and which before begins and use goes on. assure returns the assurance of the session after a proof at an instant.
func (l *Login) renew(ctx context.Context, by doorward.Caller, c factor.Challenge, proof proof.Proof,
	assure func(store.Credential, time.Time) doorward.Assurance, before, use func(*access.Tx) error,
) (session.Opened, error) {
	opened := l.sessions.Renewal()
	revocation, err := l.writer.Do(ctx, by, doorward.SessionStepUp, sessionObject(by), func(tx *access.Tx) error {
		if err := before(tx); err != nil {
			return err
		}
		if err := proof.Lock(ctx, tx, session.Ended()); err != nil {
			return err
		}
		if err := l.factors.TakeChallenge(ctx, tx, c); err != nil {
			return err
		}
		if err := use(tx); err != nil {
			return err
		}
		if err := proof.Succeed(ctx, tx.Tx); err != nil {
			return err
		}
		tx.RecordUserAgent()
		return session.Raise(ctx, tx, &opened, by.SessionID, func(old store.Credential) doorward.Assurance { return assure(old, tx.Now) })
	})
	if err != nil {
		return session.Opened{}, err
	}
	opened.Revocation = revocation
	l.sessions.Keep(opened)
	l.factors.Tally(factor.Proved)
	return opened, nil
}

// nothing is what a proof does that has nothing else to check or to use up.
func nothing(*access.Tx) error { return nil }

func wrong(pointer, message string) *doorward.Error {
	return doorward.Invalid(pointer, "wrong", message)
}

// wrongAnswer returns validation_failed for the field that the answer was sent in.
func wrongAnswer(a factor.Answer) *doorward.Error {
	switch a.Method() {
	case doorward.ByPasskey:
		return wrong("/credential", "This passkey doesn't answer the challenge. Begin again.")
	case doorward.ByRecovery:
		return wrong("/recoveryCode", "This is not one of the recovery codes that are left. If the account has a second factor that works, prove that instead.")
	}
	return wrong("/code", "This is not a code that the app shows now, or it was used before. Type the next one.")
}

// asFieldFault turns invalid_code into validation_failed: the session is valid, and a valid
// session never gets 401.
func asFieldFault(a factor.Answer, err error) error {
	var e *doorward.Error
	if !errors.As(err, &e) || e.Code != doorward.CodeInvalidCode {
		return err
	}
	fault := wrongAnswer(a)
	fault.Allowance = e.Allowance
	return fault
}
