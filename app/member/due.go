package member

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// RolesAtOnce is how many people one transaction gives roles. A thousand take longer than a lease of a second on a busy
// machine, and all other writes of SQLite wait for a transaction, also the heartbeat without which checks are refused.
const RolesAtOnce = 100

// MapDueRoles gives roles to some of those whose roles are due, by give for each one, under the lock on the tenant, and
// reports whether there may be more.
func MapDueRoles(ctx context.Context, tx *access.Tx, c doorward.Connection, byDirectory bool, give func(userID string) error) (more bool, err error) {
	due, err := tx.DueRoles(ctx, c.ID, byDirectory, RolesAtOnce)
	if err != nil {
		return false, err
	}
	for _, userID := range due {
		if err := give(userID); err != nil {
			return false, err
		}
		if err := tx.DeleteDueRole(ctx, c.ID, byDirectory, userID); err != nil {
			return false, err
		}
	}
	return len(due) == RolesAtOnce, nil
}

// FinishDue gives roles that are due by give, which gives some of them and reports whether there may be more, in one
// transaction after the other. Of what give does, it records what give records. Errors: unavailable, and those of give.
func FinishDue(ctx context.Context, writer *access.Writer, on doorward.Object, give func(*access.Tx) (more bool, err error)) error {
	for more := true; more; {
		_, err := writer.Do(ctx, access.System, doorward.ConnectionUpdate, on, func(tx *access.Tx) (err error) {
			tx.SkipEvent()
			more, err = give(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// FinishMappings gives everybody the role that an edit of the connection's mappings has made due. What a crash leaves, a
// sweep goes on with. By is who has changed the mappings. Errors: unavailable.
func FinishMappings(ctx context.Context, db *store.DB, writer *access.Writer, by doorward.Caller, c doorward.Connection) error {
	due, err := db.Read().DueRoles(ctx, c.ID, false, 1)
	if err != nil {
		return doorward.Unavailable(err)
	}
	if len(due) == 0 {
		return nil
	}
	on := doorward.Object{Type: "connection", ID: c.ID, TenantID: c.TenantID}
	return FinishDue(ctx, writer, on, func(tx *access.Tx) (more bool, err error) {
		is, err := tx.Connection(ctx, c.ID)
		if errors.Is(err, store.ErrNone) {
			return false, nil // it is gone, with what was due
		}
		if err != nil {
			return false, err
		}
		return mapDueMappings(ctx, tx, by, is)
	})
}

// mapDueMappings is MapDueRoles after an edit of mappings.
func mapDueMappings(ctx context.Context, tx *access.Tx, by doorward.Caller, c doorward.Connection) (more bool, err error) {
	by.Principal = doorward.Principal{Kind: doorward.ByConnection, ID: c.ID, TenantID: c.TenantID}
	rules, err := tx.Rules(ctx, c.TenantID)
	if err != nil {
		return false, err
	}
	return MapDueRoles(ctx, tx, c, false, func(userID string) error { return mapRoleOf(ctx, tx, by, c, rules, userID) })
}
