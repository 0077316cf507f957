package signon

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// stepUp proves the session again by a fresh sign-in of the same identity at its provider, which
// internal/oidcrp has checked to be fresh. The session goes on under a new token. Whatever else the provider
// says, that is no factor of the account.
func (a *attempt) stepUp(ctx context.Context, h held) (Result, error) {
	by := a.by
	if by.SessionID == "" || by.SessionID != a.flow.Session || string(by.Issuer) != a.connection.ID {
		return Result{}, a.refuse(ctx, faultOf(CheckState))
	}
	a.userID = by.ID
	identity, err := a.s.db.Read().Identity(ctx, a.connection.ID, h.Issuer, h.Subject)
	switch {
	case errors.Is(err, store.ErrNone), err == nil && identity.UserID != by.ID:
		return Result{}, a.refuse(ctx, faultOf(oidcrp.CheckSub))
	case err != nil:
		return Result{}, err
	}
	// The challenge that led here may be over: a sign-in at a provider can take longer.
	begun, err := a.s.login.BeginStepUp(ctx, by)
	if err != nil {
		return Result{}, err
	}
	opened, err := a.s.login.StepUpBySSO(ctx, by, begun.Token.Reveal(), doorward.Assurance{ProviderAMR: h.AMR, ProviderSession: h.Session})
	if err != nil {
		return Result{}, err
	}
	a.record(ctx, doorward.AttemptDone, oidcrp.Fault{})
	return Result{Raised: &opened}, nil
}
