package invite

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// ByDirectory invites somebody in a transaction of a connection's directory, and returns the invitation: also one that is
// pending already, whose mail went out. email is canonical. Errors: validation_failed if the tenant's settings don't allow
// it, or don't any more; quota_exceeded, resend_too_soon.
func ByDirectory(ctx context.Context, tx *access.Tx, c doorward.Connection, email, name string) (doorward.Invitation, error) {
	return sendOrFind(ctx, tx, doorward.Invitation{TenantID: c.TenantID, Email: email, Name: name, Role: c.JITRole, ServiceKeyID: c.ID})
}

// Again is ByDirectory in place of an invitation that the directory has revoked. If somebody else had sent that one to the
// address, the new one is theirs, too: sender, role, name, language and days of validity come back.
func Again(ctx context.Context, tx *access.Tx, c doorward.Connection, revokedID, email, name string) (doorward.Invitation, error) {
	was, isOthers, err := ofOthers(ctx, tx.Reader, revokedID, email)
	if err != nil {
		return was, err
	}
	if !isOthers {
		return ByDirectory(ctx, tx, c, email, name)
	}
	return sendOrFind(ctx, tx, doorward.Invitation{
		TenantID: was.TenantID, Email: email, Name: was.Name, Locale: was.Locale, Role: was.Role, Days: was.Days, InvitedBy: was.InvitedBy, ServiceKeyID: was.ServiceKeyID,
	})
}

// MayComeBack reports whether Again may send the invitation: somebody else than a directory who had sent it must be allowed
// to do so now.
func MayComeBack(ctx context.Context, read store.Reader, revokedID, email string) (bool, error) {
	was, isOthers, err := ofOthers(ctx, read, revokedID, email)
	if err != nil || !isOthers {
		return err == nil, err
	}
	tenant, err := read.Tenant(ctx, was.TenantID)
	if err == nil {
		err = checkAuthorised(ctx, read, was, tenant)
	}
	if doorward.HasCode(err, doorward.CodeInvitationRevoked) {
		return false, nil
	}
	return err == nil, err
}

// ofOthers returns the invitation, and whether it is to the address and somebody else than a directory has sent it.
func ofOthers(ctx context.Context, read store.Reader, id, email string) (doorward.Invitation, bool, error) {
	inv, err := read.Invitation(ctx, id)
	if errors.Is(err, store.ErrNone) {
		return inv, false, nil
	}
	return inv, err == nil && inv.Email == email && !isByDirectory(inv), err
}

// sendOrFind completes the invitation, and sends it unless one to the address is pending, which it returns then.
func sendOrFind(ctx context.Context, tx *access.Tx, inv doorward.Invitation) (doorward.Invitation, error) {
	pending, err := tx.PendingInvitation(ctx, inv.TenantID, inv.Email)
	if err == nil && pending.StateAt(tx.Now) == doorward.InvitationPending {
		return pending, nil
	}
	if err != nil && !errors.Is(err, store.ErrNone) {
		return pending, err
	}
	tenant, err := tx.Tenant(ctx, inv.TenantID)
	if err == nil && !IsAllowed(tenant.Settings, inv.Email) {
		err = doorward.InvalidFields(Offer{}.violations(tenant.Settings, inv.Email)...)
	}
	if err == nil {
		err = checkQuota(ctx, tx, tenant)
	}
	if err != nil {
		return pending, err
	}
	inv.ID, inv.State, inv.Delivery, inv.CreatedAt = doorward.NewID(doorward.PrefixInvitation), doorward.InvitationPending, doorward.DeliveryQueued, tx.Now
	inv.Days = cmp.Or(inv.Days, Offer{}.days(tenant.Settings))
	inv.ExpiresAt = expiry(tx, inv)
	if err := countFurtherInvitation(ctx, tx, inv); err != nil {
		return inv, err
	}
	if err := insert(ctx, tx, inv); err != nil {
		return inv, err
	}
	return inv, tx.RecordAlso(ctx, doorward.UserInvite, object(inv),
		doorward.Change{Field: doorward.FieldEmail, To: inv.Email}, doorward.Change{Field: doorward.FieldRole, To: string(inv.Role)})
}

// EndPending revokes the pending invitation to the canonical address, if there is one.
func EndPending(ctx context.Context, tx *access.Tx, tenantID, email string) error {
	return endPending(ctx, tx, tenantID, email, func(doorward.Invitation) bool { return true })
}

// EndSent is EndPending for an invitation that the connection's directory has sent. Those of others stay.
func EndSent(ctx context.Context, tx *access.Tx, c doorward.Connection, email string) error {
	return endPending(ctx, tx, c.TenantID, email, func(inv doorward.Invitation) bool { return inv.ServiceKeyID == c.ID })
}

func endPending(ctx context.Context, tx *access.Tx, tenantID, email string, ends func(doorward.Invitation) bool) error {
	inv, err := tx.PendingInvitation(ctx, tenantID, email)
	if errors.Is(err, store.ErrNone) || err == nil && !ends(inv) {
		return nil
	}
	if err != nil {
		return err
	}
	revoked, err := tx.RevokeInvitation(ctx, inv.ID)
	if err != nil || !revoked {
		return err
	}
	return tx.RecordAlso(ctx, doorward.InvitationRevoke, object(inv),
		doorward.Change{Field: "status", From: string(doorward.InvitationPending), To: string(doorward.InvitationRevoked)})
}

// isByDirectory reports whether a directory has sent the invitation: ServiceKeyID is then the id of its connection.
func isByDirectory(inv doorward.Invitation) bool {
	return strings.HasPrefix(inv.ServiceKeyID, doorward.PrefixConnection)
}

// checkDirectory checks that the directory which has sent the invitation could send it now. Errors: invitation_revoked.
func checkDirectory(ctx context.Context, read store.Reader, inv doorward.Invitation, tenant doorward.Tenant) error {
	c, err := read.Connection(ctx, inv.ServiceKeyID)
	if err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	rules, fault := read.Rules(ctx, tenant.ID)
	if fault != nil {
		return fault
	}
	if err != nil || c.TenantID != tenant.ID || c.Status != doorward.ConnectionActive || rules.Rank(inv.Role).Outranks(doorward.RoleAdmin) {
		return doorward.Fail(doorward.CodeInvitationRevoked, "")
	}
	return nil
}
