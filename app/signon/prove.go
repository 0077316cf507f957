package signon

import (
	"bytes"
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/proof"
)

// HeldCookie is the name of the cookie with what a provider has said, while the person is asked for
// something.
const HeldCookie = "doorward_signon"

// Waiting is a sign-in that waits for the person, as a page shows it.
type Waiting struct {
	Connection doorward.Connection
	Tenant     doorward.Tenant
	Email      string // of the account
	// Replaces reports whether the person has to agree: another session of the browser is replaced. Proves
	// reports whether the account has to be proved. If it is neither, since that session has ended meanwhile,
	// agreeing goes on.
	Replaces, Proves bool
	Password         bool // the account can be proved by its password
	Passkey          bool // … by a passkey, as far as the browser can
}

// Waiting describes what was held. Errors: those of resume.
func (s *SignOn) Waiting(ctx context.Context, by doorward.Caller, conID, cookie string) (Waiting, error) {
	a, h, err := s.resume(ctx, by, conID, cookie)
	if err != nil {
		return Waiting{}, err
	}
	f, err := s.joining.Look(ctx, h.Person)
	if err != nil {
		return Waiting{}, err
	}
	w := Waiting{Connection: a.connection, Tenant: f.Tenant, Email: f.ShownAddress(), Replaces: !h.Agreed && replaces(by, f, a.connection)}
	if f.Account != nil {
		w.Password = f.Account.PasswordHash != ""
		w.Passkey = f.Account.ManagedBy == "" && s.factors.PasskeysAllowed()
	}
	w.Proves = !w.Replaces && (f.MustProve() || w.Password)
	return w, nil
}

// resume returns what was held in the cookie. Errors: sign_on_state if it is over, was used, or is the word of
// another provider than the connection has by now; sign_on_refused if the connection was disabled since; not_found, unavailable.
func (s *SignOn) resume(ctx context.Context, by doorward.Caller, conID, cookie string) (attempt, held, error) {
	c, err := s.connection(ctx, conID)
	if err != nil {
		return attempt{}, held{}, err
	}
	a, h := attempt{s: s, by: by, connection: c, flow: flow.Flow{Purpose: flow.ForSignIn}, counters: refusals(by)}, held{}
	isOurs, err := s.texts.Open(ctx, conID, HeldCookie, cookie, &h)
	if err == nil && (!isOurs || flow.IsOver(h.At, s.db.Now()) || !bytes.Equal(h.By, providerOf(c.InForce))) {
		err = stateError()
	}
	if err == nil {
		err = a.stillOn(ctx, h.BegunAt)
	}
	h.Connection, h.Issuer = c, c.InForce.IdentityIssuer() // By says that it is the same
	return a, h, err
}

// Agree goes on with what was held: the person agrees that the session replaces the browser's. Errors: those
// of Finish.
func (s *SignOn) Agree(ctx context.Context, by doorward.Caller, conID, cookie string) (Result, error) {
	a, h, err := s.resume(ctx, by, conID, cookie)
	if err != nil {
		return Result{}, err
	}
	h.Agreed = true
	return a.signIn(ctx, h, proved{})
}

// Prove goes on with what was held after the password of the account. If the account has a second factor,
// Result.Second asks for it. Errors: validation_failed for a wrong password; those of Finish.
func (s *SignOn) Prove(ctx context.Context, by doorward.Caller, conID, cookie, password string) (Result, error) {
	a, h, f, err := s.toProve(ctx, by, conID, cookie)
	if err != nil {
		return Result{}, err
	}
	p, err := s.verifier.CheckForAccount(ctx, by, f.Account.ID, f.Account.Email, password)
	if doorward.HasCode(err, doorward.CodeInvalidCredentials) {
		wrong := doorward.Invalid("/password", "wrong", "This is not the password you have now.")
		wrong.Allowance = doorward.AllowanceOf(err)
		return Result{}, wrong
	}
	if err != nil {
		return Result{}, err
	}
	if f.MustProve() && f.Account.Factors > 0 {
		return a.askSecond(ctx, h, p)
	}
	p.OwnMethods = []string{doorward.MethodPassword}
	result, err := a.signIn(ctx, h, proved{Proof: p})
	return result, p.FailIfRefused(ctx, err)
}

// toProve returns what was held, of an account that exists.
func (s *SignOn) toProve(ctx context.Context, by doorward.Caller, conID, cookie string) (attempt, held, joining.Found, error) {
	a, h, err := s.resume(ctx, by, conID, cookie)
	if err != nil {
		return a, h, joining.Found{}, err
	}
	f, err := s.joining.Look(ctx, h.Person)
	if err == nil && (f.Account == nil || f.Refused() != "" || !h.Agreed && replaces(by, f, a.connection)) {
		err = stateError()
	}
	return a, h, f, err
}

// askSecond asks for the account's second factor after the password.
func (a *attempt) askSecond(ctx context.Context, h held, p proof.Proof) (Result, error) {
	by := a.by.As(doorward.User{ID: p.Account.ID, Email: p.Account.Email})
	on := doorward.Object{Type: "user", ID: p.Account.ID, TenantID: a.connection.TenantID}
	var begun factor.NewChallenge
	_, err := a.s.writer.Do(ctx, by, doorward.MFAChallenge, on, func(tx *access.Tx) (err error) {
		if err := p.Lock(ctx, tx, stateError()); err != nil {
			return err
		}
		if err := p.Pause(ctx, tx.Tx); err != nil {
			return err
		}
		begun, err = a.s.factors.BeginForSignOn(ctx, tx, p.Account, a.connection.TenantID, h.ID)
		return err
	})
	if err != nil {
		return Result{}, p.FailIfRefused(ctx, err)
	}
	a.s.factors.Tally(factor.Asked)
	return Result{Second: &begun}, nil
}

// ProveSecond goes on after Result.Second. Errors: challenge_over, invalid_code, too_many_attempts; those of
// factor.Answer.Typed and of Finish.
func (s *SignOn) ProveSecond(ctx context.Context, by doorward.Caller, conID, cookie, challenge string, answer factor.Answer) (Result, error) {
	a, h, f, err := s.toProve(ctx, by, conID, cookie)
	if err != nil {
		return Result{}, err
	}
	c, account, err := s.factors.OpenForSignOn(ctx, challenge, h.ID)
	if err == nil && account.ID != f.Account.ID {
		err = factor.ChallengeOver()
	}
	if err != nil {
		return Result{}, err
	}
	if answer, err = answer.Typed(); err != nil {
		return Result{}, err
	}
	p, err := s.verifier.Begin(ctx, by, account)
	if err != nil {
		return Result{}, err
	}
	match, err := s.factors.Try(ctx, by, c, answer)
	if err != nil {
		return Result{}, s.factors.Refuse(ctx, c, p, err)
	}
	p.OwnMethods = append([]string{doorward.MethodPassword}, match.Methods...)
	result, err := a.signIn(ctx, h, proved{p, s.use(c, match, a.connection.TenantID)})
	if err != nil {
		return result, s.factors.Refuse(ctx, c, p, err)
	}
	s.factors.Tally(answer.Passed())
	return result, nil
}

// use uses up the challenge and the answer.
func (s *SignOn) use(c factor.Challenge, match factor.Match, tenantID string) func(context.Context, *access.Tx) error {
	return func(ctx context.Context, tx *access.Tx) error {
		if err := s.factors.TakeChallenge(ctx, tx, c); err != nil {
			return err
		}
		return match.Use(ctx, tx, tenantID)
	}
}

// ProvePasskey goes on after a passkey of the account, which answers a challenge of
// login.Login.BeginPasskey. Errors: challenge_over; invalid_code, also for a passkey of another account;
// too_many_attempts; those of Finish.
func (s *SignOn) ProvePasskey(ctx context.Context, by doorward.Caller, conID, cookie, challenge string, response []byte) (Result, error) {
	a, h, f, err := s.toProve(ctx, by, conID, cookie)
	if err != nil {
		return Result{}, err
	}
	c, err := s.factors.OpenUsernameless(ctx, challenge)
	if err != nil {
		return Result{}, err
	}
	p, err := s.verifier.BeginUsernameless(ctx, by)
	if err != nil {
		return Result{}, err
	}
	c, account, match, err := s.factors.TryUsernameless(ctx, by, c, response)
	if err == nil && (account.ID != f.Account.ID || account.ManagedBy != "") {
		err = doorward.Fail(doorward.CodeInvalidCode, "")
	}
	if err != nil {
		return Result{}, p.FailIfRefused(ctx, err)
	}
	p.Account, p.OwnMethods, c.TenantID = account, match.Methods, a.connection.TenantID
	result, err := a.signIn(ctx, h, proved{p, s.use(c, match, a.connection.TenantID)})
	return result, p.FailIfRefused(ctx, err)
}
