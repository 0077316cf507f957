package store

import "context"

const sqlManagedUntilSignOn = `UPDATE users SET managed_until_sign_on = '' WHERE id = $1 AND managed_until_sign_on = $2`

// EndManagedUntil is called when somebody has signed in by a connection of the tenant with the id by. If that
// tenant managed the account until its first password, the password opens sessions there from now on. It
// reports whether that was missing.
func (tx *Tx) EndManagedUntil(ctx context.Context, userID, by string) (bool, error) {
	return tx.affected(ctx, sqlManagedUntilSignOn, userID, by)
}

const sqlSigningConnections = `SELECT c.id, EXISTS (SELECT 1 FROM identities i WHERE i.connection_id = c.id AND i.user_id = $2)
FROM connections c JOIN sso_policies p ON p.tenant_id = c.tenant_id
WHERE c.tenant_id = $1 AND c.status = 'active' AND p.mode <> 'off' ORDER BY c.created_at, c.id`

// SigningConnection returns the connection by which the user signs in to the tenant: one that knows the
// user already, else the oldest. It is empty if no connection of the tenant signs people in.
func (r Reader) SigningConnection(ctx context.Context, tenantID, userID string) (id string, err error) {
	type connection struct {
		id      string
		isKnown bool
	}
	all, err := list(ctx, r, func(c *connection) []any { return []any{&c.id, &c.isKnown} }, sqlSigningConnections, tenantID, userID)
	for _, c := range all {
		if c.isKnown {
			return c.id, err
		}
	}
	if len(all) > 0 {
		id = all[0].id
	}
	return id, err
}
