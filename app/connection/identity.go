package connection

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// LinkedIdentity is an identity with the address that its account has now.
type LinkedIdentity = store.LinkedIdentity

// Identities returns who has signed in by a connection, the newest identity first. Errors: not_found;
// validation_failed for an unknown order.
func (c *Connections) Identities(ctx context.Context, by doorward.Caller, id string, w doorward.Window) (doorward.Page[LinkedIdentity], error) {
	read := c.db.Read()
	if _, err := find(ctx, read, by, id); err != nil {
		return doorward.Page[LinkedIdentity]{}, err
	}
	return read.IdentityPage(ctx, id, w)
}

// Identity returns an identity in the caller's tenant. Errors: not_found.
func (c *Connections) Identity(ctx context.Context, by doorward.Caller, id string) (doorward.Identity, error) {
	return findIdentity(ctx, c.db.Read(), by, id)
}

// IdentitiesOf returns who a member is at the connections of the caller's tenant, the oldest first.
func (c *Connections) IdentitiesOf(ctx context.Context, by doorward.Caller, userID string) ([]doorward.Identity, error) {
	all, err := c.db.Read().IdentitiesOf(ctx, userID)
	return slices.DeleteFunc(all, func(i doorward.Identity) bool { return i.TenantID != by.TenantID }), err
}

// Unlink deletes an identity, and ends the person's sessions of its connection on every node before it
// returns. Errors: not_found.
func (c *Connections) Unlink(ctx context.Context, by doorward.Caller, id string) (ended Ended, err error) {
	found, err := findIdentity(ctx, c.db.Read(), by, id)
	if err != nil {
		return ended, err
	}
	on := doorward.Object{Type: "user", ID: found.UserID, TenantID: found.TenantID}
	ended.Revocation, err = c.writer.Do(ctx, by, doorward.IdentityUnlink, on, func(tx *access.Tx) error {
		was, err := findIdentity(ctx, tx.Reader, by, id)
		if err != nil {
			return err
		}
		if _, err := tx.DeleteIdentity(ctx, id); err != nil {
			return err
		}
		tx.Changed(doorward.FieldConnection, was.ConnectionID, "")
		ended.Sessions, err = tx.DeleteIssuerSessionsOf(ctx, c.life, was.TenantID, doorward.Issuer(was.ConnectionID), was.UserID)
		tx.RecordEnded(doorward.Ended{Sessions: ended.Sessions})
		return err
	})
	return ended, err
}

// findIdentity returns an identity in the caller's tenant. Errors: not_found.
func findIdentity(ctx context.Context, read store.Reader, by doorward.Caller, id string) (doorward.Identity, error) {
	found, err := read.IdentityByID(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && found.TenantID != by.TenantID {
		return doorward.Identity{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return found, err
}
