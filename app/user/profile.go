package user

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// NameOneself gives the caller another name in the tenant of the session,
// whatever the role. Errors: validation_failed, not_found.
func (u *Users) NameOneself(ctx context.Context, by doorward.Caller, name string) error {
	if faults := doorward.CheckName("/name", name); len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	self := doorward.User{ID: by.ID, TenantID: by.TenantID, Role: by.Role}
	_, err := u.door.Do(ctx, by, doorward.UserProfile, object(self), func(tx *access.Tx) error {
		if err := tx.LockTenant(ctx, by.TenantID); err != nil {
			return err
		}
		now, err := current(ctx, tx.Reader, self)
		if err != nil {
			return err
		}
		if now.Name == name {
			tx.SkipEvent()
			return nil
		}
		tx.Changed("name", now.Name, name)
		return tx.RenameUser(ctx, now, name)
	})
	return err
}
