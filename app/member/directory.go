package member

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// What a connection's directory does to members, and the undo of what it has done. Each records its event; the caller has
// locked the tenant.

// Object is a member as the object of an event.
func Object(m doorward.User) doorward.Object {
	return doorward.Object{Type: "user", ID: m.ID, TenantID: m.TenantID, Held: m.Role}
}

// SwitchOff suspends the member m by the reason of a connection, and ends their access. Errors: last_owner, no_way_back.
func SwitchOff(ctx context.Context, tx *access.Tx, life store.SessionLifetime, owners Owners, m doorward.User, connectionID string) error {
	if _, err := tx.LockAccount(ctx, m.ID); err != nil {
		return err
	}
	changed, err := Hold(ctx, tx, m, connectionID)
	if err != nil || !changed {
		return err
	}
	if m.Status == doorward.UserActive {
		if err := owners.Keep(ctx, tx, m.TenantID, m.Role); err != nil {
			return err
		}
	}
	ended, err := EndAccess(ctx, tx, life, Object(m), nil)
	if err != nil {
		return err
	}
	return recordStatus(ctx, tx, doorward.UserSuspend, m, access.EndedChanges(ended)...)
}

// SwitchOn ends the reason of a connection. Those of others stay.
func SwitchOn(ctx context.Context, tx *access.Tx, m doorward.User, connectionID string) error {
	if !slices.Contains(m.Suspensions(), connectionID) {
		return nil
	}
	if _, err := Lift(ctx, tx, m, connectionID); err != nil {
		return err
	}
	return recordStatus(ctx, tx, doorward.UserResume, m)
}

func recordStatus(ctx context.Context, tx *access.Tx, action doorward.Action, was doorward.User, more ...doorward.Change) error {
	is, err := tx.User(ctx, was.TenantID, was.ID)
	if err != nil {
		return err
	}
	return tx.RecordAlso(ctx, action, Object(was), append(StatusChanges(was, is), more...)...)
}

// Remove ends the membership of m, with all access. Errors: not_found, last_owner, no_way_back.
func Remove(ctx context.Context, tx *access.Tx, life store.SessionLifetime, owners Owners, m doorward.User) error {
	ended, err := End(ctx, tx, life, owners, Object(m), nil)
	if err == nil {
		err = ClearIfOrphaned(ctx, tx, m.ID)
	}
	if err != nil {
		return err
	}
	changes := append([]doorward.Change{{Field: doorward.FieldRole, From: string(m.Role)}}, access.EndedChanges(ended)...)
	return tx.RecordAlso(ctx, doorward.UserRemove, Object(m), changes...)
}
