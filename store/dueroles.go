package store

import (
	"context"

	"github.com/doorward/doorward"
)

const (
	// The Users of the tenant $1 who are members, by any of their ids.
	sqlAddDueRoles = `INSERT INTO due_roles (tenant_id, connection_id, user_id, by_directory)
SELECT $1, $2, x.user_id, $53 FROM (
SELECT d.user_id AS user_id FROM directory_users d WHERE d.tenant_id = $1 AND d.user_id IS NOT NULL AND d.id IN (` + fiftyPeople + `)
UNION SELECT m.user_id FROM users u CROSS JOIN memberships m WHERE m.tenant_id = $1 AND m.user_id = u.id AND u.id IN (` + fiftyPeople + `)
) x WHERE TRUE ON CONFLICT (connection_id, by_directory, user_id) DO NOTHING`
	sqlDueRoles       = `SELECT user_id FROM due_roles WHERE connection_id = $1 AND by_directory = $2 ORDER BY user_id LIMIT $3`
	sqlDeleteDueRole  = `DELETE FROM due_roles WHERE connection_id = $1 AND by_directory = $2 AND user_id = $3`
	sqlIsRoleDue      = `SELECT count(*) FROM due_roles WHERE tenant_id = $1 AND user_id = $2`
	sqlDueConnections = `SELECT DISTINCT r.connection_id, r.tenant_id FROM due_roles r WHERE r.by_directory = $1 ORDER BY r.connection_id`
)

// AddDueRoles notes that the roles of Users of the connection's tenant, by any of their ids, are to be read from their groups.
// Those who aren't members are passed over.
func (tx *Tx) AddDueRoles(ctx context.Context, c doorward.Connection, byDirectory bool, ids []string) error {
	return inFifties([]any{c.TenantID, c.ID}, ids, func(args []any) error {
		return tx.run(ctx, sqlAddDueRoles, append(args, byDirectory)...)
	})
}

// DueRoles returns at most limit accounts whose roles are due.
func (r Reader) DueRoles(ctx context.Context, connectionID string, byDirectory bool, limit int) ([]string, error) {
	return list(ctx, r, textField, sqlDueRoles, connectionID, byDirectory, limit)
}

// IsRoleDue reports whether the role of the member is due, by any connection: nobody knows yet which one it is.
func (r Reader) IsRoleDue(ctx context.Context, tenantID, userID string) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlIsRoleDue, tenantID, userID)
	return n > 0, err
}

// DeleteDueRole notes that the role of the account is given.
func (tx *Tx) DeleteDueRole(ctx context.Context, connectionID string, byDirectory bool, userID string) error {
	return tx.run(ctx, sqlDeleteDueRole, connectionID, byDirectory, userID)
}

// DueConnections returns the connections, by id and tenant alone, of which roles are due.
func (r Reader) DueConnections(ctx context.Context, byDirectory bool) ([]doorward.Connection, error) {
	return list(ctx, r, func(c *doorward.Connection) []any { return []any{&c.ID, &c.TenantID} }, sqlDueConnections, byDirectory)
}
