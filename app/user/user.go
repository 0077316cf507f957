// Package user changes what people may do in a tenant: role, status,
// membership. Each change takes with it, in the same transaction, everything
// that rested on what it ends.
package user

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Users is the feature. Make it with New.
type Users struct {
	door *access.Door
	db   *store.DB
}

// New returns the feature.
func New(door *access.Door, db *store.DB) *Users { return &Users{door, db} }

// Ended counts what a change has ended.
type Ended struct {
	Sessions    int64
	Invitations int64
}

// Memberships returns the caller in every own tenant, the oldest membership
// first.
func (u *Users) Memberships(ctx context.Context, by doorward.Caller) ([]doorward.User, error) {
	return u.db.Read().Memberships(ctx, by.User.ID)
}

// Leave ends the caller's membership in the tenant. Errors: not_found,
// last_owner.
func (u *Users) Leave(ctx context.Context, by doorward.Caller, tenantID string) (Ended, error) {
	var ended Ended
	on := doorward.Object{Type: "user", ID: by.User.ID, TenantID: tenantID}
	err := u.door.Do(ctx, by, doorward.UserLeave, on, func(tx *access.Tx) error {
		if err := tx.LockTenant(ctx, tenantID); err != nil {
			return err
		}
		was, err := tx.DeleteMembership(ctx, tenantID, by.User.ID)
		if err != nil {
			return err
		}
		if !was {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		if err := keepOwner(ctx, tx, tenantID); err != nil {
			return err
		}
		ended, err = endAll(ctx, tx, on)
		return err
	})
	return ended, err
}

// Suspend keeps the user out of the tenant until Resume, and ends sessions
// there, invitations sent, and reset links when no active membership is left.
// Errors: not_found, last_owner, forbidden.
func (u *Users) Suspend(ctx context.Context, by doorward.Caller, target doorward.User) (Ended, error) {
	var ended Ended
	err := u.change(ctx, by, doorward.UserSuspend, target, "", func(tx *access.Tx, on doorward.Object) error {
		changed, err := tx.SetUserStatus(ctx, on.TenantID, on.ID, doorward.UserSuspended)
		if err != nil || !changed {
			return err
		}
		tx.Changed("status", string(doorward.UserActive), string(doorward.UserSuspended))
		ended, err = endAll(ctx, tx, on)
		return err
	})
	return ended, err
}

// Resume lets a suspended user in again.
func (u *Users) Resume(ctx context.Context, by doorward.Caller, target doorward.User) error {
	return u.change(ctx, by, doorward.UserResume, target, "", func(tx *access.Tx, on doorward.Object) error {
		changed, err := tx.SetUserStatus(ctx, on.TenantID, on.ID, doorward.UserActive)
		if changed {
			tx.Changed("status", string(doorward.UserSuspended), string(doorward.UserActive))
		}
		return err
	})
}

// SetRole gives the user another role; it ends no session and counts at once.
func (u *Users) SetRole(ctx context.Context, by doorward.Caller, target doorward.User, role doorward.Role) error {
	if !role.Valid() {
		return doorward.Invalid("/role", "invalid", "The roles are OWNER, ADMIN, USER and VIEWER, in capitals.")
	}
	return u.change(ctx, by, doorward.UserRole, target, role, func(tx *access.Tx, on doorward.Object) error {
		changed, err := tx.SetUserRole(ctx, on.TenantID, on.ID, role)
		if changed {
			tx.Changed("role", string(on.Held), string(role))
		}
		return err
	})
}

// change runs one change to a member under the lock on the tenant, judged by
// the role that the member holds then, and keeps an OWNER in the tenant.
func (u *Users) change(ctx context.Context, by doorward.Caller, act doorward.Action, target doorward.User, grants doorward.Role, fn func(*access.Tx, doorward.Object) error) error {
	on := doorward.Object{Type: "user", ID: target.ID, TenantID: target.TenantID, Held: target.Role, Granted: grants}
	return u.door.Do(ctx, by, act, on, func(tx *access.Tx) error {
		now, err := tx.User(ctx, on.TenantID, on.ID)
		if errors.Is(err, store.ErrNone) {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		if err != nil {
			return err
		}
		on := on
		on.Held = now.Role
		if err := access.Decide(tx.By, act, on); err != nil {
			return err
		}
		if err := fn(tx, on); err != nil {
			return err
		}
		return keepOwner(ctx, tx, on.TenantID)
	})
}

// keepOwner is last_owner unless an active OWNER remains. It counts under the
// lock on the tenant, after the change.
func keepOwner(ctx context.Context, tx *access.Tx, tenantID string) error {
	n, err := tx.CountActiveOwners(ctx, tenantID)
	if err == nil && n == 0 {
		err = doorward.Fail(doorward.CodeLastOwner, "")
	}
	return err
}

// endAll ends what rested on the membership.
func endAll(ctx context.Context, tx *access.Tx, on doorward.Object) (ended Ended, err error) {
	if ended.Sessions, err = tx.DeleteMemberSessions(ctx, on.TenantID, on.ID); err != nil {
		return ended, err
	}
	if ended.Invitations, err = tx.RevokeInvitationsBy(ctx, on.TenantID, on.ID); err != nil {
		return ended, err
	}
	left, err := tx.CountActiveMemberships(ctx, on.ID)
	if err != nil || left > 0 {
		return ended, err
	}
	return ended, tx.ExpireResets(ctx, on.ID)
}
