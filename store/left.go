package store

import (
	"context"

	"github.com/doorward/doorward"
)

// The methods here find what a person who is erased leaves in a tenant.

const sqlAPIKeysSeenBy = `SELECT k.id FROM api_keys k WHERE k.tenant_id = $2 AND ` + liveAPIKey + `
AND coalesce((SELECT e.actor_id FROM events e WHERE e.tenant_id = $2 AND e.target_id = k.id AND e.action IN ('apikey.create', 'apikey.rotate') AND e.outcome = 'done'
  ORDER BY e.seq DESC LIMIT 1), k.created_by) = $3
ORDER BY k.created_at, k.id LIMIT $4`

// APIKeysSeenBy returns the ids of keys that have not ended and whose newest secret was shown to
// the user, at most limit.
func (tx *Tx) APIKeysSeenBy(ctx context.Context, tenantID, userID string, limit int) ([]string, error) {
	return list(ctx, tx.Reader, textField, sqlAPIKeysSeenBy, micros(tx.Now), tenantID, userID, limit)
}

// GivenRole is the role of a member, and the one before it.
type GivenRole struct {
	UserID   string
	From, To doorward.Role
}

const sqlRolesGivenBy = `SELECT m.user_id, m.role, e.changes
FROM (SELECT target_id, max(seq) AS seq FROM events WHERE tenant_id = $1 AND action = 'user.role' AND outcome = 'done'
  AND (actor_id = $2 OR actor_id IN (SELECT id FROM api_keys WHERE tenant_id = $1 AND owner_id = $2)) GROUP BY target_id) g
JOIN events e ON e.tenant_id = $1 AND e.seq = g.seq JOIN memberships m ON m.tenant_id = $1 AND m.user_id = g.target_id ORDER BY g.seq DESC`

// RolesGivenBy returns the members whose present role the user, or an API key of the user, has
// given, or has made one that groups of directories don't lower.
func (r Reader) RolesGivenBy(ctx context.Context, tenantID, userID string) (given []GivenRole, err error) {
	type row struct {
		GivenRole
		changes []doorward.Change
	}
	fields := func(r *row) []any { return []any{&r.UserID, &r.To, lenientChanges{&r.changes}} }
	all, err := list(ctx, r, fields, sqlRolesGivenBy, tenantID, userID)
	for _, g := range all {
		for _, c := range g.changes {
			if (c.Field == doorward.FieldRole || c.Field == doorward.FieldRoleByHand) && c.To == string(g.To) {
				given = append(given, GivenRole{g.UserID, doorward.Role(c.From), g.To})
				break
			}
		}
	}
	return given, err
}

const sqlPeopleInvitedBy = `SELECT m.user_id AS id FROM invitations i
JOIN events e ON e.target_id = i.id AND e.action = 'invitation.accept' AND e.outcome = 'done'
JOIN memberships m ON m.tenant_id = i.tenant_id AND m.user_id = e.actor_id
WHERE i.tenant_id = $1 AND i.invited_by = $2 AND i.state = 'ACCEPTED' ORDER BY i.accepted_at DESC, m.user_id LIMIT $3`

// PeopleInvitedBy returns the ids of members who have come by an invitation of the user, the newest
// first, at most limit.
func (r Reader) PeopleInvitedBy(ctx context.Context, tenantID, userID string, limit int) ([]string, error) {
	return list(ctx, r, textField, sqlPeopleInvitedBy, tenantID, userID, limit)
}
