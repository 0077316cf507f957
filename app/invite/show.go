package invite

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Shown is what the holder of a token may know before accepting.
type Shown struct {
	doorward.Invitation
	TenantName string
	Brand      doorward.Brand  // of the tenant
	Inviter    string          // name or address; empty for the operator and services
	Rules      *doorward.Rules // of the tenant
	HasAccount bool            // the invited address has an account with a password, in any tenant
	IsManaged  bool            // it has an account that a tenant's sign-on has made, which needs a password first
}

// Show returns the invitation of a token, if it can be accepted now, and changes
// nothing. Errors: invitation_not_found, invitation_expired, invitation_revoked,
// invitation_used, tenant_frozen, tenant_closing.
func (i *Invitations) Show(ctx context.Context, token string) (Shown, error) {
	inv, tenant, err := i.open(ctx, token)
	if err != nil {
		return Shown{}, err
	}
	s := Shown{Invitation: inv, TenantName: tenant.Name, Brand: tenant.Brand, Rules: tenant.Rules}
	if s.Inviter, err = i.inviterName(ctx, inv); err != nil {
		return Shown{}, err
	}
	_, err = i.accountWithoutPassword(ctx, inv.Email)
	s.HasAccount, s.IsManaged = doorward.HasCode(err, doorward.CodeAccountExists), doorward.HasCode(err, doorward.CodeManagedAccount)
	if s.HasAccount || s.IsManaged {
		err = nil
	}
	return s, err
}

// inviterName returns the name or address of the member who has sent the invitation; empty if
// there is none.
func (i *Invitations) inviterName(ctx context.Context, inv doorward.Invitation) (string, error) {
	user, err := i.db.Read().User(ctx, inv.TenantID, inv.InvitedBy)
	switch {
	case errors.Is(err, store.ErrNone):
		return "", nil
	case err != nil || user.Name == "":
		return user.Email, err
	}
	return user.Name, nil
}
