package signon

import (
	"bytes"
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/internal/samlsp/fault"
)

// proved is what the person has proved of the account, beside what the provider says: its OwnMethods. The
// zero value: nothing was tried.
type proved struct {
	proof.Proof
	use func(context.Context, *access.Tx) error
}

// isEnough reports whether the account was proved.
func (p proved) isEnough() bool { return len(p.OwnMethods) > 0 }

// enter opens the session, or asks for the second factor, and writes before that what was found to follow. If the
// account has changed since it was read, it reads again. Errors: joining.Refusal, those of
// login.Login.EnterWith.
func (s *SignOn) enter(ctx context.Context, by doorward.Caller, h held, f joining.Found, own proved) (login.Outcome, error) {
	for range maxTries {
		outcome, err := s.tryEnter(ctx, by, h, f, own)
		if !errors.Is(err, joining.ErrChanged) {
			return outcome, err
		}
		if h.Connection, err = s.connection(ctx, h.Connection.ID); err != nil {
			return nil, err
		}
		if f, err = s.joining.Look(ctx, h.Person); err != nil {
			return nil, err
		}
		if f.Refused() != "" {
			return nil, joining.Refusal{Check: f.Refused()}
		}
	}
	return nil, doorward.Unavailable(errTries)
}

func (s *SignOn) tryEnter(ctx context.Context, by doorward.Caller, h held, f joining.Found, own proved) (login.Outcome, error) {
	account := f.AccountFor(h.Person)
	p := own.Proof
	p.Account, p.Issuer, p.TenantID = account, doorward.Issuer(h.Connection.ID), h.Connection.TenantID
	p.Methods, p.ProviderAMR, p.AuthTime = []string{doorward.MethodFederated}, h.AMR, h.AuthTime
	p.ProviderSession, p.BegunAt, p.ProviderUntil = h.Session, h.BegunAt, h.Until
	if trustsFactor(h.Connection, h) {
		p.Methods = append(p.Methods, doorward.MethodSeveral)
	}
	return s.login.EnterWith(ctx, by, p, login.Within{
		Before: func(ctx context.Context, tx *access.Tx) error {
			if err := s.stillSignsIn(ctx, tx, h); err != nil {
				return err
			}
			return s.joining.Write(ctx, tx, h.Person, f, account, own.isEnough())
		},
		Use: own.use, Changed: joining.ErrChanged,
	})
}

// stillSignsIn locks the tenant, and the connection as one that signs people in, by the provider whose word was held,
// uses that up, and records the sign-in. Errors: joining.Refusal; joining.ErrChanged if the connection was edited since
// it was read.
func (s *SignOn) stillSignsIn(ctx context.Context, tx *access.Tx, h held) error {
	if err := tx.LockTenant(ctx, h.Connection.TenantID); err != nil {
		return err
	}
	active, err := tx.SignInByConnection(ctx, h.Connection.ID, h.SawGroups())
	if err != nil {
		return err
	}
	policy, err := tx.SSOPolicy(ctx, h.Connection.TenantID, tx.Now)
	if err != nil {
		return err
	}
	if !active || !policy.SignsIn() {
		return joining.Refusal{Check: CheckState}
	}
	if err := notEnded(ctx, tx, h); err != nil {
		return err
	}
	current, err := tx.Connection(ctx, h.Connection.ID)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(h.By, providerOf(current.InForce)):
		return joining.Refusal{Check: CheckState}
	case current.Version() != h.Connection.Version():
		return joining.ErrChanged
	}
	if err := s.stillSigned(ctx, tx, h); err != nil {
		return err
	}
	unused, err := tx.UseState(ctx, useHash("held", h.ID), h.At.Add(flow.Life))
	if err == nil && !unused {
		err = joining.Refusal{Check: CheckState}
	}
	return err
}

// stillSigned refuses what was signed by a certificate that was taken away since, and a session that would be over by the
// provider's word. Errors: joining.Refusal.
func (s *SignOn) stillSigned(ctx context.Context, tx *access.Tx, h held) error {
	if !h.Until.IsZero() && !tx.Now.Before(h.Until) {
		return joining.Refusal{Check: fault.CheckTime}
	}
	isTrusted, err := s.acs.Trusts(ctx, tx.Reader, h.Connection.ID, h.SignedBy)
	if err == nil && !isTrusted {
		err = joining.Refusal{Check: fault.CheckCertificate}
	}
	return err
}

// notEnded refuses a sign-in by a connection that was disabled since it began, or of which the provider has ended the
// subject, the address or one of the names since: nobody here may have them yet. login looks at the account and the
// provider's session of a sign-in. Errors: joining.Refusal.
func notEnded(ctx context.Context, tx *access.Tx, h held, names ...string) error {
	names = append(names, doorward.EndedEverybody, doorward.EndedSubject(h.Issuer, h.Subject))
	if address, err := mailaddr.Parse(h.Address); err == nil {
		names = append(names, doorward.EndedAddress(address))
	}
	for _, who := range names {
		ended, err := tx.SignInsEnded(ctx, h.Connection.ID, who, h.BegunAt)
		if err != nil {
			return err
		}
		if ended {
			return joining.Refusal{Check: CheckState}
		}
	}
	return nil
}
