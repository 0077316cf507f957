package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"time"

	"github.com/doorward/doorward"
)

const (
	sqlInsertRemovedMember = `INSERT INTO removed_members (tenant_id, address_hash, removed_at) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, address_hash) DO UPDATE SET removed_at = $3`
	sqlIsRemovedMember     = `SELECT count(*) FROM removed_members WHERE tenant_id = $1 AND address_hash = $2`
	sqlRemovedSince        = `SELECT count(*) FROM removed_members WHERE tenant_id = $1 AND address_hash = $2 AND removed_at > $3`
	sqlDeleteRemovedMember = `DELETE FROM removed_members WHERE tenant_id = $1 AND address_hash = $2`
)

// addressHash is what is kept of the address, of the account's id, or of an identity's key, of somebody who was
// removed.
func addressHash(who string) []byte {
	sum := sha256.Sum256([]byte(who))
	return sum[:]
}

// RememberRemoval records that somebody was removed from the tenant: with the canonical address, the id of the
// account, or the key of an identity.
func (tx *Tx) RememberRemoval(ctx context.Context, tenantID, who string) error {
	return tx.run(ctx, sqlInsertRemovedMember, tenantID, addressHash(who), micros(tx.Now))
}

// RememberUndone is RememberRemoval for a membership that an undo ends: nobody has decided on the person, so that
// RemovedSince doesn't report it.
func (tx *Tx) RememberUndone(ctx context.Context, tenantID, who string) error {
	return tx.run(ctx, sqlInsertRemovedMember, tenantID, addressHash(who), 0)
}

// RemovedSince reports whether WasRemoved holds by a removal after an instant.
func (r Reader) RemovedSince(ctx context.Context, tenantID, who string, since time.Time) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlRemovedSince, tenantID, addressHash(who), micros(since))
	return n > 0, err
}

// WasRemoved reports whether that was recorded, and nobody of that address or account has become a member by hand
// since.
func (r Reader) WasRemoved(ctx context.Context, tenantID, who string) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlIsRemovedMember, tenantID, addressHash(who))
	return n > 0, err
}

// ForgetRemoval ends what RememberRemoval has recorded.
func (tx *Tx) ForgetRemoval(ctx context.Context, tenantID, who string) error {
	return tx.run(ctx, sqlDeleteRemovedMember, tenantID, addressHash(who))
}

const (
	sqlRoleFloor    = `SELECT CASE role_floor WHEN '' THEN role WHEN '-' THEN '' ELSE role_floor END FROM memberships WHERE tenant_id = $1 AND user_id = $2`
	sqlEndOldFloor  = `UPDATE memberships SET role_floor = '-' WHERE tenant_id = $1 AND user_id = $2 AND role_floor = ''`
	sqlSetRoleFloor = `UPDATE memberships SET role_floor = $3 WHERE tenant_id = $1 AND user_id = $2`
)

// RoleFloor returns the role that an OWNER, or the operator, last gave the member by hand; empty: none has. One
// that was given before that was recorded counts as such. Or ErrNone.
func (r Reader) RoleFloor(ctx context.Context, tenantID, userID string) (doorward.Role, error) {
	return one(ctx, r, func(role *doorward.Role) []any { return []any{role} }, sqlRoleFloor, tenantID, userID)
}

// SetRoleFloor records such a role: groups of a connection don't lower the member's below it. Empty: none.
func (tx *Tx) SetRoleFloor(ctx context.Context, tenantID, userID string, role doorward.Role) error {
	return tx.run(ctx, sqlSetRoleFloor, tenantID, userID, cmp.Or(role, "-"))
}

// EndOldRoleFloor is called when somebody else gives the member another role: if nothing was recorded of the
// earlier one, none counts from now on.
func (tx *Tx) EndOldRoleFloor(ctx context.Context, tenantID, userID string) error {
	return tx.run(ctx, sqlEndOldFloor, tenantID, userID)
}
