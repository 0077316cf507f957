package signon

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// facts are known, and the rows that it was read from.
type facts struct {
	known
	plan     plan
	identity doorward.Identity // the zero Identity: none
	tenant   doorward.Tenant
	rules    *doorward.Rules // of the tenant
	// inviterOwns reports whether an OWNER, or the operator, has sent the invitation.
	inviterOwns bool
}

// userID returns the id of the account; empty: there is none.
func (f facts) userID() string {
	if f.account == nil {
		return ""
	}
	return f.account.ID
}

// look is read outside of a transaction, of one state of the database: else another tab of the same new person
// could make the account between two queries, which would look like somebody else's.
func (s *SignOn) look(ctx context.Context, h held) (f facts, err error) {
	err = s.db.Snapshot(ctx, func(read store.Reader) (err error) {
		f, err = s.read(ctx, read, h)
		return err
	})
	return f, err
}

// read reads what the database says of whom the provider names, and decides. It writes nothing.
func (s *SignOn) read(ctx context.Context, read store.Reader, h held) (facts, error) {
	h.now = s.db.Now()
	f := facts{known: known{jit: h.connection.JIT}}
	if address, err := mailaddr.Parse(h.Address); err == nil {
		f.address = address
	}
	for _, part := range []func(context.Context, store.Reader, held) error{f.readTenant, f.readAccount, f.readDomain, f.readInvitation} {
		if err := part(ctx, read, h); err != nil {
			return f, err
		}
	}
	if f.account != nil && !f.identified {
		can, err := s.canProve(ctx, read, *f.account)
		if err != nil {
			return f, err
		}
		f.canProve = can
	}
	f.plan = f.known.plan()
	return f, nil
}

func (f *facts) readTenant(ctx context.Context, read store.Reader, h held) (err error) {
	if f.tenant, err = read.Tenant(ctx, h.connection.TenantID); errors.Is(err, store.ErrNone) {
		return doorward.Fail(doorward.CodeNotFound, "") // destroyed with its connections since
	}
	if err == nil {
		f.rules, err = read.Rules(ctx, f.tenant.ID)
	}
	return err
}

// readAccount reads the account of the identity, or else that of the address, with its memberships.
func (f *facts) readAccount(ctx context.Context, read store.Reader, h held) (err error) {
	f.identity, err = read.Identity(ctx, h.connection.ID, h.Issuer, h.Subject)
	var account doorward.Account
	switch {
	case err == nil:
		f.identified = true
		account, err = read.Account(ctx, f.identity.UserID)
	case errors.Is(err, store.ErrNone) && f.address != "":
		account, err = read.AccountByEmail(ctx, f.address)
	}
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	f.account, f.managed = &account, account.ManagedBy == h.connection.TenantID
	memberships, err := read.Memberships(ctx, account.ID)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		if m.TenantID == h.connection.TenantID {
			f.member = &m
		} else {
			f.elsewhere = true
		}
	}
	return f.readIdentities(ctx, read, h)
}

// readIdentities reads whether another subject of the provider is the account. After a switch to another
// issuer or client an identity counts only once it has signed in since.
func (f *facts) readIdentities(ctx context.Context, read store.Reader, h held) error {
	all, err := read.IdentitiesOf(ctx, f.account.ID)
	f.hasIdentity = slices.ContainsFunc(all, func(i doorward.Identity) bool {
		return i.ConnectionID == h.connection.ID && i.LastUsedAt.After(h.connection.SwitchedAt)
	})
	return err
}

// readDomain reads who has proved the domain of the address. A lapsed one counts for nobody.
func (f *facts) readDomain(ctx context.Context, read store.Reader, h held) error {
	if f.address == "" {
		return nil
	}
	domain, err := read.DomainHolder(ctx, mailaddr.Domain(f.address))
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	isOurs := domain.TenantID == h.connection.TenantID && domain.Status == doorward.DomainVerified
	f.inConnection = isOurs && domain.ConnectionID == h.connection.ID
	f.inTenant = f.inConnection || isOurs && domain.ConnectionID == ""
	f.allowed = invite.IsAllowed(f.tenant.Settings, f.address)
	return err
}

// readInvitation reads a pending invitation to the address, unless it offers a rank above ADMIN, or its
// sender could no longer send it; and whether somebody with the address was removed.
func (f *facts) readInvitation(ctx context.Context, read store.Reader, h held) (err error) {
	if f.address == "" || f.member != nil {
		return nil
	}
	if f.removed, err = f.wasRemoved(ctx, read, h); err != nil {
		return err
	}
	inv, err := invite.Acceptable(ctx, read, f.tenant, f.address, h.now)
	switch {
	case doorward.HasCode(err, doorward.CodeInvitationNotFound):
		return nil
	case err != nil:
		return err
	case atMostAdmin(f.rules, inv.Role) == "":
		return nil
	}
	f.invitation = &inv
	f.inviterOwns, err = invite.IsByOwner(ctx, read, inv)
	return err
}

// wasRemoved reports whether somebody was removed who had the address, the account of the identity, whatever its
// address is by now, or an identity of this subject, which may be deleted by now.
func (f *facts) wasRemoved(ctx context.Context, read store.Reader, h held) (bool, error) {
	who := []string{f.address, doorward.Identity{Issuer: h.Issuer, Subject: h.Subject}.Key()}
	if f.account != nil {
		who = append(who, f.account.Email, f.account.ID)
	}
	for _, one := range who {
		if removed, err := read.WasRemoved(ctx, f.tenant.ID, one); err != nil || removed {
			return removed, err
		}
	}
	return false, nil
}

// canProve reports whether the account has something to prove it with. A managed account has no password,
// and its passkeys are second factors.
func (s *SignOn) canProve(ctx context.Context, read store.Reader, a doorward.Account) (bool, error) {
	switch {
	case a.PasswordHash != "":
		return true, nil
	case a.ManagedBy != "" || a.Factors == 0 || !s.factors.PasskeysAllowed():
		return false, nil
	}
	all, err := read.Factors(ctx, a.ID)
	return slices.ContainsFunc(all, func(f store.Factor) bool { return f.Kind == doorward.Passkey && f.Usable() }), err
}
