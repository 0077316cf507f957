package access

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// Managers are the roles whose holders get notices about a tenant.
var Managers = []doorward.Role{doorward.RoleOwner, doorward.RoleAdmin}

// maxNotified bounds the notices to holders of one role.
const maxNotified = 100

// EmailsOf returns the addresses of the tenant's active members who hold one of the roles, at most 100
// for each role.
func EmailsOf(ctx context.Context, read store.Reader, tenantID string, roles ...doorward.Role) (to []string, err error) {
	for _, role := range roles {
		page, err := read.UserPage(ctx, tenantID, store.UserFilter{Role: role, Status: doorward.UserActive}, doorward.Window{Limit: maxNotified})
		if err != nil {
			return nil, err
		}
		for _, u := range page.Items {
			to = append(to, u.Email)
		}
	}
	return to, nil
}

// NotifyHolders is Notify to each address of EmailsOf.
func (tx *Tx) NotifyHolders(ctx context.Context, kind store.MailKind, tenantID string, roles ...doorward.Role) error {
	to, err := EmailsOf(ctx, tx.Reader, tenantID, roles...)
	for _, email := range to {
		err = errors.Join(err, tx.Notify(ctx, kind, email))
	}
	return err
}

// System is the caller of what Doorward does by itself.
var System = doorward.Caller{Principal: doorward.Principal{Kind: doorward.System}}
