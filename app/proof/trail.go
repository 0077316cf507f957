package proof

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// HomeTenant returns the tenant whose trail records the user's own actions and failures: the preferred
// tenant if the user is in it; else the one with the latest login, or the oldest, of those in which the
// user is active, if there are any. It is empty for a user in no tenant.
func HomeTenant(ctx context.Context, read store.Reader, userID, preferred string) (string, error) {
	memberships, err := read.Memberships(ctx, userID)
	var home doorward.User
	for _, m := range memberships {
		if m.TenantID == preferred {
			return preferred, err
		}
		later := m.LastLoginAt != nil && (home.LastLoginAt == nil || m.LastLoginAt.After(*home.LastLoginAt))
		if home.TenantID == "" || isActive(m) && !isActive(home) || later && isActive(m) == isActive(home) {
			home = m
		}
	}
	return home.TenantID, err
}

// RecordElsewhere records an action on the account in the trail of each tenant in which its owner is
// active, except the one that has the action already. None learns of another.
func RecordElsewhere(ctx context.Context, tx *access.Tx, action doorward.Action, userID, tenantID string, changes ...doorward.Change) error {
	memberships, err := tx.Memberships(ctx, userID)
	for _, m := range memberships {
		if err == nil && m.TenantID != tenantID && isActive(m) {
			err = tx.RecordAlso(ctx, action, doorward.Object{Type: "user", ID: userID, TenantID: m.TenantID}, changes...)
		}
	}
	return err
}

// isActive reports whether the membership is one, in a tenant that is.
func isActive(m doorward.User) bool {
	return m.Status == doorward.UserActive && m.TenantStatus == doorward.TenantActive
}
