package login

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
)

// askForMore makes a challenge if a session was refused because a second factor is missing.
// The attempt then counts neither as a failure nor as a success; see
// credential.Proof.Pause. Other causes end the attempt. sessionID is the session to switch from;
// empty for a login.
func (l *Login) askForMore(ctx context.Context, by doorward.Caller, proof credential.Proof, tenantID, sessionID string, cause error) (Outcome, error) {
	purpose := factor.ForLogin
	switch {
	case doorward.HasCode(cause, doorward.CodeMFARequired):
	case doorward.HasCode(cause, doorward.CodeMFAEnrolmentRequired):
		purpose = factor.ForEnrolment
	default:
		return nil, proof.FailIfRefused(ctx, cause)
	}
	begun, err := l.begin(ctx, by, proof, purpose, tenantID, sessionID)
	if err = proof.FailIfRefused(ctx, err); err != nil {
		return nil, err
	}
	if purpose == factor.ForEnrolment {
		return EnrolmentNeeded{begun}, nil
	}
	return SecondNeeded{begun}, nil
}

func (l *Login) begin(ctx context.Context, by doorward.Caller, proof credential.Proof, purpose factor.Purpose, tenantID, sessionID string) (begun factor.NewChallenge, err error) {
	account := proof.Account
	changed := doorward.Fail(doorward.CodeInvalidCredentials, "")
	if sessionID != "" {
		changed = doorward.Fail(doorward.CodeUnauthenticated, "The session has since ended.")
	}
	caller := by.As(doorward.User{ID: account.ID, Email: account.Email})
	on := doorward.Object{Type: "user", ID: account.ID, TenantID: tenantID}
	_, err = l.writer.Do(ctx, caller, doorward.MFAChallenge, on, func(tx *access.Tx) error {
		if same, err := tx.LockAccountIfSamePassword(ctx, account); err != nil || !same {
			return cmp.Or(err, error(changed))
		}
		if err := proof.Pause(ctx, tx.Tx); err != nil {
			return err
		}
		if sessionID != "" { // a switch begins here, and its completion doesn't count
			if err := cmp.Or(tx.CountChallenge(ctx), tx.CountChange(ctx)); err != nil {
				return err
			}
		}
		begun, err = l.factors.BeginChallenge(ctx, tx, purpose, account, tenantID, sessionID)
		return err
	})
	if err == nil {
		l.factors.Tally(factor.Asked)
	}
	return begun, err
}

// Switch opens a session of the caller in another tenant and ends the current one; see
// session.Sessions.Switch. Where that tenant asks for a second factor, the challenge
// completes the switch and the current session stays until then. Where that tenant demands the
// first factor of the account, the session must have been proved recently: no password is asked
// for, and a thief of an old session could set up a factor of their own. Errors:
// step_up_required, too_many_attempts, and those of session.Sessions.Switch.
func (l *Login) Switch(ctx context.Context, by doorward.Caller, tenantID string) (Outcome, error) {
	count := func(tx *access.Tx) error { return tx.CountChange(ctx) }
	opened, err := l.sessions.Switch(ctx, by, tenantID, nil, count) // nil: without another proof
	switch {
	case err == nil:
		return SignedIn{Opened: opened}, nil
	case doorward.HasCode(err, doorward.CodeMFAEnrolmentRequired):
		if err := l.writer.NeedProof(by); err != nil {
			return nil, err
		}
	case !doorward.HasCode(err, doorward.CodeMFARequired):
		return nil, err
	}
	account, readErr := access.OwnAccount(ctx, l.db.Read(), by)
	if readErr != nil {
		return nil, readErr
	}
	return l.askForMore(ctx, by, credential.Proof{Account: account}, tenantID, by.SessionID, err)
}

// WithSecond completes a sign-in by the answer to its challenge. remember makes the
// browser stand in for the factor, where the tenant allows it. Errors: challenge_over,
// invalid_code, too_many_attempts, and those of WithPassword about the tenant.
func (l *Login) WithSecond(ctx context.Context, by doorward.Caller, token string, answer factor.Answer, remember bool) (Outcome, error) {
	a, err := l.resume(ctx, by, token, factor.ForLogin)
	if err != nil {
		return nil, err
	}
	match, err := l.factors.Try(ctx, by, a.challenge, answer)
	if err != nil {
		return nil, a.refuse(ctx, err)
	}
	a.remember = remember
	if answer.RecoveryCode != "" {
		a.success = factor.Recovered
	}
	return l.finish(ctx, a, match.Methods, func(tx *access.Tx) error { return match.Use(ctx, tx, a.challenge.TenantID) })
}

// WithFirst completes a sign-in by the first code of the authenticator app that the person has
// set up with the challenge. Errors: not_found for an enrolment that is over, and those of
// WithSecond.
func (l *Login) WithFirst(ctx context.Context, by doorward.Caller, token, id, code string) (Outcome, factor.Confirmed, error) {
	return l.withFirst(ctx, by, token, func(c factor.Challenge) (factor.FirstFactor, error) {
		return l.factors.TryFirst(ctx, c, id, code)
	})
}

// WithFirstPasskey does what WithFirst does, with a passkey instead of a code. The name of the
// passkey may be empty.
func (l *Login) WithFirstPasskey(ctx context.Context, by doorward.Caller, token string, response []byte, name string) (Outcome, factor.Confirmed, error) {
	return l.withFirst(ctx, by, token, func(c factor.Challenge) (factor.FirstFactor, error) {
		return l.factors.TryFirstPasskey(ctx, by, c, response, name)
	})
}

func (l *Login) withFirst(ctx context.Context, by doorward.Caller, token string, try func(factor.Challenge) (factor.FirstFactor, error)) (Outcome, factor.Confirmed, error) {
	a, err := l.resume(ctx, by, token, factor.ForEnrolment)
	if err != nil {
		return nil, factor.Confirmed{}, err
	}
	first, err := try(a.challenge)
	if err != nil {
		return nil, factor.Confirmed{}, a.refuse(ctx, err)
	}
	var done factor.Confirmed
	outcome, err := l.finish(ctx, a, first.Methods, func(tx *access.Tx) (err error) {
		done, err = first.Confirm(ctx, tx)
		return err
	})
	return outcome, done, err
}

// Asked is what a page shows about a challenge.
type Asked struct {
	Email        string
	Methods      []string
	RememberDays int             // for which the browser can stand in for the factor
	PublicKey    json.RawMessage // WebAuthn's options, if it can be answered with a passkey
}

// Asked describes the challenge of a token. Errors: challenge_over.
func (l *Login) Asked(ctx context.Context, token string, purpose factor.Purpose) (Asked, error) {
	c, account, err := l.factors.OpenChallenge(ctx, token, purpose)
	if err != nil {
		return Asked{}, err
	}
	asked := Asked{Email: account.Email, Methods: c.Methods}
	if purpose == factor.ForLogin {
		if asked.PublicKey, err = l.factors.RequestOptions(ctx, c); err != nil {
			return asked, err
		}
	}
	tenant, err := l.db.Read().Tenant(ctx, c.TenantID)
	asked.RememberDays = tenant.Settings.SecondFactor.RememberDays
	return asked, err
}

// challengedAttempt is a sign-in or a step-up that a challenge completes.
type challengedAttempt struct {
	factors     *factor.Factors
	success     factor.Metric // the counter of its success; the zero value is factor.Passed
	by          doorward.Caller
	challenge   factor.Challenge
	proof       credential.Proof
	remember    bool
	passkeyOnly bool // without a password
}

// resume opens the challenge and reserves an attempt.
func (l *Login) resume(ctx context.Context, by doorward.Caller, token string, purpose factor.Purpose) (challengedAttempt, error) {
	c, account, err := l.factors.OpenChallenge(ctx, token, purpose)
	if err != nil {
		return challengedAttempt{}, err
	}
	proof, err := l.verifier.Begin(ctx, by, account)
	return challengedAttempt{factors: l.factors, by: by, challenge: c, proof: proof}, err
}

// refuse counts a wrong answer as a failure and records it. After too_many_attempts, when the
// answer was not checked, the attempt doesn't count. Other errors end the attempt.
func (a challengedAttempt) refuse(ctx context.Context, err error) error {
	var reason *doorward.Error
	if doorward.HasCode(err, doorward.CodeTooManyAttempts) {
		a.proof.Release(ctx)
		return err
	}
	if errors.As(err, &reason) && reason.Code == doorward.CodeInvalidCode {
		on := doorward.Object{Type: "user", ID: a.challenge.UserID, TenantID: a.challenge.TenantID}
		a.factors.Tally(factor.Refused)
		return a.proof.Refuse(ctx, doorward.MFARefuse, on, reason)
	}
	return a.proof.FailIfRefused(ctx, err)
}

// finish opens the session, or switches to it. In the same transaction the challenge and
// the answer are used up, the attempt succeeds and the browser becomes a known one.
func (l *Login) finish(ctx context.Context, a challengedAttempt, methods []string, use func(*access.Tx) error) (Outcome, error) {
	var memberships []doorward.User
	device, isNew := secret.New(), false
	opened, err := l.open(ctx, a, methods, func(tx *access.Tx) (err error) {
		if err := l.factors.TakeChallenge(ctx, tx, a.challenge); err != nil {
			return err
		}
		if err := use(tx); err != nil {
			return err
		}
		if err := a.proof.Succeed(ctx, tx.Tx); err != nil {
			return err
		}
		if isNew, err = a.storeBrowser(ctx, tx, device.Hash()); err != nil {
			return err
		}
		// Before the commit: a fault after it would lose the session's token.
		memberships, err = tx.Memberships(ctx, a.challenge.UserID)
		return err
	})
	if err != nil {
		return nil, a.refuse(ctx, err)
	}
	l.factors.Tally(a.success)
	done := SignedIn{Opened: opened, CanSwitch: a.challenge.SessionID == "" && hasOther(memberships, a.challenge.TenantID), Allowance: a.proof.Allowance()}
	if isNew {
		done.Device = &device
	}
	return done, nil
}

// open opens a session; for a switch, one that replaces the session that asked for it.
func (l *Login) open(ctx context.Context, a challengedAttempt, methods []string, prepare func(*access.Tx) error) (session.Opened, error) {
	account := a.proof.Account
	if a.challenge.SessionID == "" {
		assurance := doorward.Assurance{}
		if !a.passkeyOnly {
			assurance.AMR = []string{doorward.MethodPassword}
		}
		assurance = assurance.WithProof(l.db.Now(), methods...)
		return l.sessions.Open(ctx, a.by, account, a.challenge.TenantID, assurance, prepare)
	}
	by := a.by.As(doorward.User{ID: account.ID, Email: account.Email})
	by.SessionID = a.challenge.SessionID
	opened, err := l.sessions.Switch(ctx, by, a.challenge.TenantID, methods, prepare)
	if doorward.HasCode(err, doorward.CodeUnauthenticated) {
		err = factor.ChallengeOver()
	}
	return opened, err
}

// storeBrowser is rememberBrowser after a challenge. It also makes the browser stand in for the
// factor if the person wants that and the tenant allows it. A browser that was known already then gets
// a new cookie: somebody who has the password may have made the old one, and have planted it here.
func (a challengedAttempt) storeBrowser(ctx context.Context, tx *access.Tx, hash secret.Hash) (isNew bool, err error) {
	device, isNew, err := rememberBrowser(ctx, tx, a.by, a.proof.Account, hash)
	if err != nil || !a.remember || device == nil {
		return isNew, err
	}
	tenant, err := tx.Tenant(ctx, a.challenge.TenantID)
	if err != nil || tenant.Settings.SecondFactor.RememberDays == 0 {
		return isNew, err
	}
	if !isNew {
		if err := tx.RenewDevice(ctx, device, hash[:]); err != nil {
			return false, err
		}
	}
	return true, tx.RememberBrowser(ctx, hash[:], a.by.IP, a.by.UserAgent)
}
