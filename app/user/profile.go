package user

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// SetOwnName changes the caller's name in the tenant of the session, whatever the
// role. Errors: validation_failed, not_found, too_many_attempts.
func (u *Users) SetOwnName(ctx context.Context, by doorward.Caller, name string) error {
	if faults := doorward.CheckName("/name", &name); len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	self := doorward.User{ID: by.ID, TenantID: by.TenantID, Role: by.Role}
	_, err := u.writer.Do(ctx, by, doorward.UserProfile, object(self), func(tx *access.Tx) error {
		if err := tx.LockTenant(ctx, by.TenantID); err != nil {
			return err
		}
		member, err := current(ctx, tx.Reader, self)
		if err != nil {
			return err
		}
		if member.Name == name {
			tx.SkipEvent()
			return nil
		}
		if err := tx.CountChange(ctx); err != nil {
			return err
		}
		tx.Changed(doorward.FieldName, member.Name, name)
		return tx.RenameUser(ctx, member, name)
	})
	return err
}
