package login

import (
	"context"
	"encoding/json"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/session"
)

// Switch opens a session of the caller in another tenant and ends the current one. The new one has the
// time and the proofs of the same login, since switching takes no password. Where that tenant asks for a
// second factor, the challenge completes the switch and the current session stays until then. Errors:
// sign_in_required, not_found without an active membership in that tenant, login_too_old if that tenant's
// limit has passed since the login, step_up_required where that tenant demands the account's first
// factor, too_many_attempts, tenant_frozen, tenant_closing, unauthenticated if the session has ended.
func (l *Login) Switch(ctx context.Context, by doorward.Caller, tenantID string) (Outcome, error) {
	outcome, err := l.enter(ctx, entry{
		by: by, proof: proof.Proof{Account: doorward.Account{ID: by.ID, Email: by.Email}}, tenantID: tenantID,
		sessionID: by.SessionID, bySession: true, changed: session.Ended(),
	})
	return outcome, hideMembership(err)
}

// hideMembership hides the difference between a suspended membership and none: to the
// caller of a switch both are an absent tenant.
func hideMembership(err error) error {
	if doorward.HasCode(err, doorward.CodeInvalidCredentials) || doorward.HasCode(err, doorward.CodeMembershipSuspended) {
		return doorward.Fail(doorward.CodeNotFound, "")
	}
	return err
}

// WithSecond completes a sign-in by the answer to its challenge. remember makes the
// browser stand in for the factor, where the tenant allows it. Errors: challenge_over,
// invalid_code, too_many_attempts, those of Answer.Typed, and those of WithPassword about the tenant.
func (l *Login) WithSecond(ctx context.Context, by doorward.Caller, token string, answer factor.Answer, remember bool) (Outcome, error) {
	answer, err := answer.Typed()
	if err != nil {
		return nil, err
	}
	a, err := l.resume(ctx, by, token, factor.ForLogin)
	if err != nil {
		return nil, err
	}
	match, err := l.factors.Try(ctx, by, a.challenge, answer)
	if err != nil {
		return nil, a.refuse(ctx, err)
	}
	a.remember = remember
	a.success = answer.Passed()
	return l.finish(ctx, a, match.Methods, func(tx *access.Tx) error { return match.Use(ctx, tx, a.challenge.TenantID) })
}

// WithFirst completes a sign-in by the first code of the authenticator app that the person has
// set up with the challenge. Errors: not_found for an enrolment that is over, and those of
// WithSecond.
func (l *Login) WithFirst(ctx context.Context, by doorward.Caller, token, id, code string) (Outcome, factor.Confirmed, error) {
	answer, err := factor.Answer{Code: code}.Typed()
	if err != nil {
		return nil, factor.Confirmed{}, err
	}
	return l.withFirst(ctx, by, token, func(c factor.Challenge) (factor.FirstFactor, error) {
		return l.factors.TryFirst(ctx, c, id, answer.Code)
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
	if purpose != factor.ForEnrolment {
		if asked.PublicKey, err = l.factors.RequestOptions(ctx, c); err != nil {
			return asked, err
		}
	}
	if purpose != factor.ForLogin {
		return asked, nil
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
	proof       proof.Proof
	remember    bool
	memberships []doorward.User // of the account, if they have been read
}

// resume opens the challenge and reserves an attempt.
func (l *Login) resume(ctx context.Context, by doorward.Caller, token string, purpose factor.Purpose) (challengedAttempt, error) {
	c, account, err := l.factors.OpenChallenge(ctx, token, purpose)
	if err != nil {
		return challengedAttempt{}, err
	}
	proved, err := l.verifier.Begin(ctx, by, account)
	if err == nil {
		proved.Issuer, proved.TenantID = c.Issuer, c.TenantID
		proved, err = proved.WithState(c.State)
	}
	return challengedAttempt{factors: l.factors, by: by, challenge: c, proof: proved}, err
}

// refuse does what factor.Factors.Refuse does.
func (a challengedAttempt) refuse(ctx context.Context, err error) error {
	return a.factors.Refuse(ctx, a.challenge, a.proof, err)
}

// finish opens the session, or switches to it. In the same transaction the challenge and
// the answer are used up, the attempt succeeds and the browser becomes a known one.
func (l *Login) finish(ctx context.Context, a challengedAttempt, methods []string, use func(*access.Tx) error) (Outcome, error) {
	outcome, err := l.enter(ctx, entry{
		by: a.by, proof: a.proof, tenantID: a.challenge.TenantID, sessionID: a.challenge.SessionID,
		methods: methods, remember: a.remember, memberships: a.memberships,
		use: func(ctx context.Context, tx *access.Tx) error {
			if err := l.factors.TakeChallenge(ctx, tx, a.challenge); err != nil {
				return err
			}
			return use(tx)
		},
		changed: a.changed(),
	})
	if doorward.HasCode(err, doorward.CodeSignOnRefused) { // its provider has ended it since
		err = factor.ChallengeOver()
	}
	if a.challenge.SessionID != "" {
		if err = hideMembership(err); doorward.HasCode(err, doorward.CodeUnauthenticated) {
			err = factor.ChallengeOver() // with the session to switch from
		}
	}
	if err != nil {
		return nil, a.refuse(ctx, err)
	}
	l.factors.Tally(a.success)
	return outcome, nil
}

func (a challengedAttempt) changed() error {
	if a.challenge.SessionID != "" {
		return session.Ended()
	}
	return doorward.Fail(doorward.CodeInvalidCredentials, "")
}
