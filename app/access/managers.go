package access

import (
	"context"

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
