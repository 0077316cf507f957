package joining

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/store"
)

// Found is what the database says of a person whom a provider names, at one moment, and what follows from it.
type Found struct {
	known
	Tenant   doorward.Tenant
	plan     plan
	identity doorward.Identity // the zero Identity: none
	rules    *doorward.Rules   // of the tenant
	now      time.Time         // of the moment
	// inviterOwns reports whether an OWNER, or the operator, has sent the invitation.
	inviterOwns bool
}

// ShownAddress is how a page names the account to the person at the provider: an address that the provider has said, unless the
// account is the identity's. The present address of a former holder is never shown.
func (f Found) ShownAddress() string {
	if f.Account == nil || f.former || f.described {
		return f.Address
	}
	return f.Account.Email
}

// UserID returns the id of the account; empty: there is none, or the person is refused who says the former address of a
// member, and is likely somebody else.
func (f Found) UserID() string {
	if f.Account == nil || f.former && f.Refused() != "" {
		return ""
	}
	return f.Account.ID
}

// Refused returns the check that refuses the person; empty: none does.
func (f Found) Refused() string { return f.plan.check }

// MustProve reports whether the person has to prove the account before it is joined to the identity.
func (f Found) MustProve() bool { return f.plan.step == prove }

// Look reads and decides outside of a transaction, of one state of the database: else another tab of the same new
// person could make the account between two queries, which would look like somebody else's. Errors: not_found if
// the tenant is gone; unavailable.
func (j *Joining) Look(ctx context.Context, who Person) (f Found, err error) {
	err = j.db.Snapshot(ctx, func(read store.Reader) (err error) {
		f, err = j.read(ctx, read, who)
		return err
	})
	return f, err
}

// read reads what the database says of the person, and decides. It writes nothing.
func (j *Joining) read(ctx context.Context, read store.Reader, who Person) (Found, error) {
	f := Found{known: known{jit: who.Connection.JIT}, now: j.db.Now()}
	if address, err := mailaddr.Parse(who.Address); err == nil {
		f.Address = address
	}
	for _, part := range []func(context.Context, store.Reader, Person) error{f.readTenant, f.readAccount, f.readDomain} {
		if err := part(ctx, read, who); err != nil {
			return f, err
		}
	}
	if err := f.readInvitation(ctx, read, who); err != nil {
		return f, err
	}
	if f.Account != nil && !f.identified {
		can, err := j.canProve(ctx, read, *f.Account)
		if err != nil {
			return f, err
		}
		f.CanProve = can
	}
	f.plan = f.known.plan()
	return f, nil
}

func (f *Found) readTenant(ctx context.Context, read store.Reader, who Person) (err error) {
	if f.Tenant, err = read.Tenant(ctx, who.Connection.TenantID); errors.Is(err, store.ErrNone) {
		return doorward.Fail(doorward.CodeNotFound, "") // destroyed with its connections since
	}
	if err == nil {
		f.rules, err = read.Rules(ctx, f.Tenant.ID)
	}
	return err
}

// readAccount reads the account of the identity, or else that of the address, with its memberships.
func (f *Found) readAccount(ctx context.Context, read store.Reader, who Person) (err error) {
	f.identity, err = read.Identity(ctx, who.Connection.ID, who.Issuer, who.Subject)
	var account doorward.Account
	switch {
	case err == nil:
		f.identified = true
		account, err = read.Account(ctx, f.identity.UserID)
	case errors.Is(err, store.ErrNone) && f.Address != "":
		account, err = f.holder(ctx, read, who)
	}
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	f.Account, f.managed = &account, account.ManagedBy == who.Connection.TenantID
	memberships, err := read.Memberships(ctx, account.ID)
	if err != nil {
		return err
	}
	for _, m := range memberships {
		if m.TenantID == who.Connection.TenantID {
			f.member = &m
		} else {
			f.elsewhere = true
		}
	}
	return f.readIdentities(ctx, read, who)
}

// holder returns the account that the address leads to: that of the member whom the connection's directory calls so, or else
// that which has it, or had it. Errors: store.ErrNone.
func (f *Found) holder(ctx context.Context, read store.Reader, who Person) (doorward.Account, error) {
	said, err := read.MadeByDirectory(ctx, who.Connection.ID, who.Connection.TenantID, f.Address)
	if err == nil {
		f.described = true
		return read.Account(ctx, said.UserID)
	}
	if !errors.Is(err, store.ErrNone) {
		return doorward.Account{}, err
	}
	account, err := read.AccountByEmail(ctx, f.Address)
	if errors.Is(err, store.ErrNone) {
		account, err = f.formerHolder(ctx, read, who)
	}
	return account, err
}

// formerHolder returns the account of a member here who had the address before it was changed, else the member would get a
// second account by the first sign-in. One that has an identity of this connection already, or left the address before
// somebody was invited by it, is somebody else: the address has a new holder. Errors: store.ErrNone.
func (f *Found) formerHolder(ctx context.Context, read store.Reader, who Person) (none doorward.Account, err error) {
	id, err := read.FormerHolder(ctx, who.Connection.TenantID, f.Address)
	if err != nil {
		return none, err
	}
	isOther, err := countsHere(ctx, read, id, who)
	if err == nil && !isOther {
		isOther, err = f.invitedSince(ctx, read, id)
	}
	if err == nil && isOther {
		err = store.ErrNone
	}
	if err != nil {
		return none, err
	}
	f.former = true
	return read.Account(ctx, id)
}

// invitedSince reports whether an invitation to the address can be accepted now that was made after the member left the
// address: nobody invites a member, so it means a new holder.
func (f *Found) invitedSince(ctx context.Context, read store.Reader, userID string) (bool, error) {
	inv, err := invite.Acceptable(ctx, read, f.Tenant, f.Address, f.now)
	if doorward.HasCode(err, doorward.CodeInvitationNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	left, err := read.AddressLeftAt(ctx, f.Tenant.ID, userID, f.Address)
	return inv.CreatedAt.After(left), err
}

// readIdentities reads whether another subject of the provider is the account. After a switch to another
// issuer or client an identity counts only once it has signed in since.
func (f *Found) readIdentities(ctx context.Context, read store.Reader, who Person) (err error) {
	f.hasIdentity, err = countsHere(ctx, read, f.Account.ID, who)
	return err
}

// countsHere reports whether the account has an identity of the connection that counts.
func countsHere(ctx context.Context, read store.Reader, userID string, who Person) (bool, error) {
	all, err := read.IdentitiesOf(ctx, userID)
	return slices.ContainsFunc(all, func(i doorward.Identity) bool {
		return i.ConnectionID == who.Connection.ID && i.LastUsedAt.After(who.Connection.SwitchedAt)
	}), err
}

// readDomain reads who has proved the domain of the address. A lapsed one counts for nobody.
func (f *Found) readDomain(ctx context.Context, read store.Reader, who Person) error {
	if f.Address == "" {
		return nil
	}
	domain, err := read.DomainHolder(ctx, mailaddr.Domain(f.Address))
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	isOurs := domain.TenantID == who.Connection.TenantID && domain.Status == doorward.DomainVerified
	f.inConnection = isOurs && domain.ConnectionID == who.Connection.ID
	f.inTenant = f.inConnection || isOurs && domain.ConnectionID == ""
	f.allowed = invite.IsAllowed(f.Tenant.Settings, f.Address)
	return err
}

// readInvitation reads a pending invitation to the address, unless it offers a rank above ADMIN, or its
// sender could no longer send it; and whether somebody with the address was removed.
func (f *Found) readInvitation(ctx context.Context, read store.Reader, who Person) (err error) {
	if f.Address == "" || f.member != nil {
		return nil
	}
	if f.removed, err = f.wasRemoved(ctx, read, who); err != nil {
		return err
	}
	inv, err := invite.Acceptable(ctx, read, f.Tenant, f.Address, f.now)
	switch {
	case doorward.HasCode(err, doorward.CodeInvitationNotFound):
		return nil
	case err != nil:
		return err
	case member.AtMostAdmin(f.rules, inv.Role) == "":
		return nil
	}
	f.invitation = &inv
	f.inviterOwns, err = invite.IsByOwner(ctx, read, inv)
	return err
}

// wasRemoved reports whether somebody was removed who had the address, the account of the identity, whatever its
// address is by now, or an identity of this subject, which may be deleted by now.
func (f *Found) wasRemoved(ctx context.Context, read store.Reader, who Person) (bool, error) {
	names := []string{f.Address, doorward.Identity{Issuer: who.Issuer, Subject: who.Subject}.Key()}
	if f.Account != nil {
		names = append(names, f.Account.Email, f.Account.ID)
	}
	for _, name := range names {
		if removed, err := read.WasRemoved(ctx, f.Tenant.ID, name); err != nil || removed {
			return removed, err
		}
	}
	return false, nil
}

// canProve reports whether the account has something to prove it with. A managed account has no password,
// and its passkeys are second factors.
func (j *Joining) canProve(ctx context.Context, read store.Reader, a doorward.Account) (bool, error) {
	switch {
	case a.PasswordHash != "":
		return true, nil
	case a.ManagedBy != "" || a.Factors == 0 || !j.factors.PasskeysAllowed():
		return false, nil
	}
	all, err := read.Factors(ctx, a.ID)
	return slices.ContainsFunc(all, func(f store.Factor) bool { return f.Kind == doorward.Passkey && f.Usable() }), err
}
