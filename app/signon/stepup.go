package signon

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/joining"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// stepUp proves the session again by a fresh sign-in of the same identity at its provider, which
// package oidcrp or samlsp has checked to be fresh. The session goes on under a new token. Whatever else the provider
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
	opened, err := a.s.login.StepUpBySSO(ctx, by, begun.Token.Reveal(), doorward.Assurance{ProviderAMR: h.AMR, ProviderSession: h.Session, ProviderUntil: h.Until}, func(tx *access.Tx) error { return a.stillStepsUp(ctx, tx, h) })
	if refused, isOver := errors.AsType[joining.Refusal](err); isOver {
		return Result{}, a.refuse(ctx, faultOf(refused.Check))
	}
	if err != nil {
		return Result{}, err
	}
	a.record(ctx, doorward.AttemptDone, answer.Fault{})
	return Result{Raised: &opened}, nil
}

// stillStepsUp locks the tenant, as the one who ends sign-ins does, and refuses one that the provider has ended since
// it began, or whose certificate was taken away: the session would go on under a session at the provider that is over. Errors: joining.Refusal.
func (a *attempt) stillStepsUp(ctx context.Context, tx *access.Tx, h held) error {
	if err := tx.LockTenant(ctx, a.connection.TenantID); err != nil {
		return err
	}
	if err := a.s.stillSigned(ctx, tx, h); err != nil {
		return err
	}
	names := []string{doorward.EndedUser(a.by.ID)}
	if h.Session != "" {
		names = append(names, doorward.EndedSession(h.Session))
	}
	return notEnded(ctx, tx, h, names...)
}
