package signon

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// stepUp proves the session again by a fresh sign-in of the same identity at its provider, which
// internal/oidcrp has checked to be fresh. The session goes on under a new token.
func (a *attempt) stepUp(ctx context.Context, h held) (Result, error) {
	by := a.by
	if by.SessionID == "" || by.SessionID != a.flow.Session || string(by.Issuer) != a.connection.ID {
		return Result{}, a.refuse(ctx, oidcrp.Fault{Check: string(CheckState)})
	}
	opened := a.s.sessions.Renewal()
	on := doorward.Object{Type: "session", ID: by.SessionID, TenantID: by.TenantID}
	revocation, err := a.s.writer.Do(ctx, by, doorward.SessionStepUp, on, func(tx *access.Tx) error {
		return a.raise(ctx, tx, h, &opened)
	})
	a.userID = by.ID
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return Result{}, a.refuse(ctx, oidcrp.Fault{Check: string(refused.check)})
	case err != nil:
		return Result{}, err
	}
	opened.Revocation = revocation
	a.s.sessions.Keep(opened)
	a.record(ctx, doorward.AttemptDone, oidcrp.Fault{})
	return Result{Raised: &opened}, nil
}

// raise writes the new proof of the session, if the identity is the account's. A factor that the provider has
// asked for raises the level where the tenant trusts it, but is no factor of the account.
func (a *attempt) raise(ctx context.Context, tx *access.Tx, h held, opened *session.Opened) error {
	if err := tx.LockTenant(ctx, a.connection.TenantID); err != nil {
		return err
	}
	if err := a.s.stillSignsIn(ctx, tx, h); err != nil {
		return err
	}
	if _, err := tx.LockAccount(ctx, a.by.ID); err != nil {
		return err
	}
	identity, err := tx.Identity(ctx, a.connection.ID, h.Issuer, h.Subject)
	if errors.Is(err, store.ErrNone) || err == nil && identity.UserID != a.by.ID {
		return refusal{CheckSub}
	}
	if err != nil {
		return err
	}
	if _, err := tx.TouchIdentity(ctx, identity.ID); err != nil {
		return err
	}
	tx.RecordUserAgent()
	trusted := trustsFactor(a.connection, h.asserted())
	return session.Raise(ctx, tx, opened, a.by.SessionID, func(was doorward.Assurance) doorward.Assurance {
		was.ProvedAt, was.ProviderAMR = tx.Now, h.AMR
		if trusted {
			was = was.Trusting()
		}
		return was
	})
}
