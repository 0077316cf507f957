package store

import (
	"context"

	"github.com/doorward/doorward/internal/mailaddr"
)

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

// The condition is for membership m of account u, whose address is in the domain $2: sign-on is demanded
// of the member, and the member has no way back (section 6 of the contract of sign-on).
const isShutOut = `(u.managed_until_sign_on = m.tenant_id AND EXISTS (
    SELECT 1 FROM connections c JOIN sso_policies p ON p.tenant_id = c.tenant_id WHERE c.tenant_id = m.tenant_id AND c.status = 'active' AND p.mode <> 'off')
  OR NOT (m.role = 'OWNER' AND u.factors > 0) AND EXISTS (
    SELECT 1 FROM sso_policies p WHERE p.tenant_id = m.tenant_id AND p.mode = 'required' AND (p.guests = 'refused'
      OR EXISTS (SELECT 1 FROM domains d WHERE d.tenant_id = m.tenant_id AND d.domain = $2 AND d.status <> 'pending')
      OR EXISTS (SELECT 1 FROM identities i JOIN connections c ON c.id = i.connection_id WHERE i.tenant_id = m.tenant_id AND i.user_id = m.user_id AND c.status = 'active'))))`

const sqlOpensByPassword = `SELECT EXISTS (SELECT 1 FROM memberships m JOIN tenants t ON t.id = m.tenant_id JOIN users u ON u.id = m.user_id
WHERE m.user_id = $1 AND m.status = 'active' AND t.status = 'active' AND u.password_hash <> '' AND NOT ` + isShutOut + `)`

// OpensByPassword reports whether an active tenant opens a session by the password of the user with the
// canonical address.
func (r Reader) OpensByPassword(ctx context.Context, userID, email string) (bool, error) {
	return one(ctx, r, func(opens *bool) []any { return []any{opens} }, sqlOpensByPassword, userID, mailaddr.Domain(email))
}
