package invite

import (
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
	pending, err := tx.PendingInvitation(ctx, c.TenantID, email)
	if err == nil && pending.StateAt(tx.Now) == doorward.InvitationPending {
		return pending, nil
	}
	if err != nil && !errors.Is(err, store.ErrNone) {
		return pending, err
	}
	tenant, err := tx.Tenant(ctx, c.TenantID)
	if err == nil && !IsAllowed(tenant.Settings, email) {
		err = doorward.InvalidFields(Offer{}.violations(tenant.Settings, email)...)
	}
	if err == nil {
		err = checkQuota(ctx, tx, tenant)
	}
	if err != nil {
		return pending, err
	}
	inv := doorward.Invitation{
		ID: doorward.NewID(doorward.PrefixInvitation), TenantID: c.TenantID, Email: email, Name: name, Role: c.JITRole, State: doorward.InvitationPending,
		Delivery: doorward.DeliveryQueued, Days: Offer{}.days(tenant.Settings), ServiceKeyID: c.ID, CreatedAt: tx.Now,
	}
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
