package store

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward"
)

func groupFields(g *doorward.DirectoryGroup) []any {
	return []any{&g.ID, &g.ConnectionID, &g.TenantID, &g.DisplayName, &g.ExternalID, (*storedTime)(&g.CreatedAt), (*storedTime)(&g.ChangedAt)}
}

const (
	groupColumns = `g.id, g.connection_id, g.tenant_id, g.display_name, g.external_id, g.created_at, g.changed_at`
	selectGroup  = `SELECT ` + groupColumns + ` FROM directory_groups g `
	// An empty parameter is no condition.
	whereGroups = `WHERE g.connection_id = $1 AND ($2 = '' OR g.id = $2) AND ($3 = '' OR g.name_key = $3) AND ($4 = '' OR g.external_id = $4)
  AND ($5 = '' OR EXISTS (SELECT 1 FROM directory_places p WHERE p.group_id = g.id AND p.member_id = $5))`

	sqlDirectoryGroup  = selectGroup + `WHERE g.connection_id = $1 AND g.id = $2`
	sqlGroupOfTenant   = selectGroup + `WHERE g.tenant_id = $1 AND g.id = $2`
	sqlDirectoryGroups = selectGroup + whereGroups + ` ORDER BY g.created_at, g.id LIMIT $6 OFFSET $7`
	sqlCountGroups     = `SELECT count(*) FROM directory_groups g ` + whereGroups
	sqlGroupTaken      = `SELECT count(*) FROM directory_groups g WHERE g.connection_id = $1 AND g.id <> $2
  AND (g.name_key = $3 OR g.external_id <> '' AND g.external_id = $4)`
)

// GroupFilter selects groups of a connection. What is empty is no condition.
type GroupFilter struct {
	ID, DisplayName, ExternalID string // the name without letter case
	Member                      string // the id of a User who is in it
}

// DirectoryGroup returns the group of the connection, or ErrNone.
func (r Reader) DirectoryGroup(ctx context.Context, connectionID, id string) (doorward.DirectoryGroup, error) {
	return one(ctx, r, groupFields, sqlDirectoryGroup, connectionID, id)
}

// DirectoryGroupOf returns the group of any directory of the tenant, or ErrNone.
func (r Reader) DirectoryGroupOf(ctx context.Context, tenantID, id string) (doorward.DirectoryGroup, error) {
	return one(ctx, r, groupFields, sqlGroupOfTenant, tenantID, id)
}

// DirectoryGroups returns at most limit groups of the connection after the first offset ones, the oldest first,
// and how many there are in all.
func (r Reader) DirectoryGroups(ctx context.Context, connectionID string, f GroupFilter, offset, limit int) ([]doorward.DirectoryGroup, int, error) {
	args := []any{connectionID, f.ID, nameKey(f.DisplayName), f.ExternalID, f.Member}
	total, err := one(ctx, r, countColumn, sqlCountGroups, args...)
	if err != nil || limit == 0 {
		return nil, total, err
	}
	all, err := list(ctx, r, groupFields, sqlDirectoryGroups, append(args, limit, offset)...)
	return all, total, err
}

// DirectoryGroupTaken reports whether another group of the connection has the name, without letter case, or the
// externalId.
func (r Reader) DirectoryGroupTaken(ctx context.Context, g doorward.DirectoryGroup) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlGroupTaken, g.ConnectionID, g.ID, nameKey(g.DisplayName), g.ExternalID)
	return n > 0, err
}

// nameKey is a name as names are compared.
func nameKey(name string) string { return strings.ToLower(name) }

const (
	sqlInsertGroup = `INSERT INTO directory_groups (id, connection_id, tenant_id, display_name, name_key, external_id, created_at, changed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	sqlUpdateGroup = `UPDATE directory_groups SET display_name = $2, name_key = $3, external_id = $4, changed_at = $5 WHERE id = $1`
	sqlDeleteGroup = `DELETE FROM directory_groups WHERE id = $1`
)

// InsertDirectoryGroup adds the group, of which DirectoryGroupTaken says that it isn't there.
func (tx *Tx) InsertDirectoryGroup(ctx context.Context, g doorward.DirectoryGroup) error {
	return tx.run(ctx, sqlInsertGroup, g.ID, g.ConnectionID, g.TenantID, g.DisplayName, nameKey(g.DisplayName), g.ExternalID, micros(g.CreatedAt), micros(g.ChangedAt))
}

// UpdateDirectoryGroup writes name, externalId and the instant of the change.
func (tx *Tx) UpdateDirectoryGroup(ctx context.Context, g doorward.DirectoryGroup) error {
	return tx.run(ctx, sqlUpdateGroup, g.ID, g.DisplayName, nameKey(g.DisplayName), g.ExternalID, micros(g.ChangedAt))
}

// DeleteDirectoryGroup deletes the group with all places in it, and reports whether it existed. Mappings that
// mean it are to be unmatched.
func (tx *Tx) DeleteDirectoryGroup(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlDeleteGroup, id)
}

// Places in groups. Statements name placesAtOnce members; what is over repeats the last one, which changes
// nothing.
const (
	placesAtOnce = 50

	fiftyMembers = `$2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51`

	sqlPlaces      = `SELECT member_id FROM directory_places WHERE group_id = $1 ORDER BY member_id`
	sqlCountPlaces = `SELECT count(*) FROM directory_places WHERE group_id = $1`
	sqlPlacesOf    = `SELECT p.member_id, ` + groupColumns + ` FROM directory_groups g JOIN directory_places p ON p.group_id = g.id
WHERE g.connection_id = $1 AND p.member_id IN (` + fiftyMembers + `) ORDER BY g.created_at, g.id`
	sqlAddPlaces = `INSERT INTO directory_places (group_id, member_id) VALUES
($1, $2),($1, $3),($1, $4),($1, $5),($1, $6),($1, $7),($1, $8),($1, $9),($1, $10),($1, $11),($1, $12),($1, $13),($1, $14),($1, $15),($1, $16),($1, $17),($1, $18),($1, $19),($1, $20),($1, $21),($1, $22),($1, $23),($1, $24),($1, $25),($1, $26),($1, $27),($1, $28),($1, $29),($1, $30),($1, $31),($1, $32),($1, $33),($1, $34),($1, $35),($1, $36),($1, $37),($1, $38),($1, $39),($1, $40),($1, $41),($1, $42),($1, $43),($1, $44),($1, $45),($1, $46),($1, $47),($1, $48),($1, $49),($1, $50),($1, $51)
ON CONFLICT (group_id, member_id) DO NOTHING RETURNING member_id`
	sqlRemovePlaces   = `DELETE FROM directory_places WHERE group_id = $1 AND member_id IN (` + fiftyMembers + `) RETURNING member_id`
	sqlRemovePlacesOf = `DELETE FROM directory_places WHERE group_id IN (SELECT id FROM directory_groups WHERE tenant_id = $1) AND member_id IN (` + idsOfMember + `)`
	sqlLeaveGroups    = `DELETE FROM directory_places WHERE member_id = $2 AND group_id IN (SELECT id FROM directory_groups WHERE connection_id = $1)`
	// The ids of the account $2 as a User of the tenant $1.
	idsOfMember = `SELECT $2 UNION ALL SELECT d.id FROM directory_users d WHERE d.tenant_id = $1 AND d.user_id = $2`

	sqlGroupsHeld = selectGroup + `WHERE g.id IN (SELECT p.group_id FROM directory_places p WHERE p.member_id IN (SELECT $1 UNION ALL SELECT d.id FROM directory_users d WHERE d.user_id = $1))
ORDER BY g.created_at, g.id`

	fiftyPeople = `$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52`
	// The people of the tenant $1 whom the connection $2 sees, by any of their ids: the id that was given, the account,
	// and the id that the connection's directory knows.
	sqlDirectoryPeople = `SELECT p.id, p.user_id, coalesce((SELECT d.id FROM directory_users d WHERE d.connection_id = $2 AND d.tenant_id = $1 AND d.user_id = p.user_id),
  (SELECT min(d.id) FROM directory_users d WHERE d.tenant_id = $1 AND d.user_id = p.user_id), p.id) FROM (
SELECT d.id AS id, coalesce(d.user_id, '') AS user_id, d.created_at AS made_at FROM directory_users d
  WHERE d.tenant_id = $1 AND (d.connection_id = $2 OR d.user_id IS NOT NULL) AND d.id IN (` + fiftyPeople + `)
UNION ALL SELECT m.user_id, m.user_id, m.created_at FROM memberships m WHERE m.tenant_id = $1 AND m.user_id IN (` + fiftyPeople + `)
) p ORDER BY p.made_at, p.id`
)

// inFifties calls do with the arguments of a statement for fifty members: the first ones, then their ids.
func inFifties(first []any, ids []string, do func(args []any) error) error {
	for len(ids) > 0 {
		n := min(len(ids), placesAtOnce)
		args := slices.Clone(first)
		for i := range placesAtOnce {
			args = append(args, ids[min(i, n-1)])
		}
		if err := do(args); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// Places returns the ids of those in the group, sorted.
func (r Reader) Places(ctx context.Context, groupID string) ([]string, error) {
	return list(ctx, r, textField, sqlPlaces, groupID)
}

// CountPlaces returns how many are in the group.
func (r Reader) CountPlaces(ctx context.Context, groupID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountPlaces, groupID)
}

// DirectoryGroupsOf returns the groups of the connection that the members are in, by the members' ids, the oldest
// first.
func (r Reader) DirectoryGroupsOf(ctx context.Context, connectionID string, memberIDs []string) (map[string][]doorward.DirectoryGroup, error) {
	type place struct {
		memberID string
		doorward.DirectoryGroup
	}
	fields := func(p *place) []any { return append([]any{&p.memberID}, groupFields(&p.DirectoryGroup)...) }
	of := map[string][]doorward.DirectoryGroup{}
	err := inFifties([]any{connectionID}, memberIDs, func(args []any) error {
		places, err := list(ctx, r, fields, sqlPlacesOf, args...)
		for _, p := range places {
			of[p.memberID] = append(of[p.memberID], p.DirectoryGroup)
		}
		return err
	})
	return of, err
}

// GroupsHeldOf returns the groups of directories of all tenants that the account is in, the oldest first.
func (r Reader) GroupsHeldOf(ctx context.Context, userID string) ([]doorward.DirectoryGroup, error) {
	return list(ctx, r, groupFields, sqlGroupsHeld, userID)
}

// AddPlaces puts members into the group, and returns those that weren't in it.
func (tx *Tx) AddPlaces(ctx context.Context, groupID string, memberIDs []string) (added []string, err error) {
	return tx.changePlaces(ctx, sqlAddPlaces, groupID, memberIDs)
}

// RemovePlaces takes members out of the group, and returns those that were in it.
func (tx *Tx) RemovePlaces(ctx context.Context, groupID string, memberIDs []string) (removed []string, err error) {
	return tx.changePlaces(ctx, sqlRemovePlaces, groupID, memberIDs)
}

func (tx *Tx) changePlaces(ctx context.Context, query, groupID string, memberIDs []string) (changed []string, err error) {
	err = inFifties([]any{groupID}, memberIDs, func(args []any) error {
		some, err := list(ctx, tx.Reader, textField, query, args...)
		changed = append(changed, some...)
		return err
	})
	return changed, err
}

// removePlacesOf takes a member out of all groups of all directories of the tenant.
func (tx *Tx) removePlacesOf(ctx context.Context, tenantID, userID string) error {
	return tx.run(ctx, sqlRemovePlacesOf, tenantID, userID)
}

// LeaveGroups takes somebody who isn't a member of the tenant out of all groups of the connection.
func (tx *Tx) LeaveGroups(ctx context.Context, connectionID, memberID string) error {
	return tx.run(ctx, sqlLeaveGroups, connectionID, memberID)
}

// DirectoryPerson is a person by the id that a connection's directory knows, and the account; empty: no member yet.
type DirectoryPerson struct{ ID, UserID string }

// DirectoryPeople returns the people of the tenant whom the connection's directory sees, by those of the ids that name
// somebody: one of a User, or of an account.
func (r Reader) DirectoryPeople(ctx context.Context, tenantID, connectionID string, ids []string) (map[string]DirectoryPerson, error) {
	type row struct {
		given string
		DirectoryPerson
	}
	fields := func(p *row) []any { return []any{&p.given, &p.UserID, &p.ID} }
	found := map[string]DirectoryPerson{}
	err := inFifties([]any{tenantID, connectionID}, ids, func(args []any) error {
		people, err := list(ctx, r, fields, sqlDirectoryPeople, args...)
		for _, p := range people {
			found[p.given] = p.DirectoryPerson
		}
		return err
	})
	return found, err
}

const (
	sqlMatchMapping  = `UPDATE connection_mappings SET group_id = $3 WHERE connection_id = $1 AND group_name = $2`
	sqlUnmatchGroup  = `UPDATE connection_mappings SET group_id = '' WHERE connection_id = $1 AND group_id = $2`
	sqlMappedRolesOf = `SELECT DISTINCT m.role FROM directory_places p JOIN directory_groups g ON g.id = p.group_id
JOIN connection_mappings m ON m.connection_id = g.connection_id AND m.group_id = g.id WHERE g.tenant_id = $1 AND p.member_id IN (` + idsOfMember + `)`
)

// MatchMapping records that the mapping of a name means the group from now on.
func (tx *Tx) MatchMapping(ctx context.Context, connectionID, name, groupID string) error {
	return tx.run(ctx, sqlMatchMapping, connectionID, name, groupID)
}

// UnmatchGroup makes the mappings that mean the group wait for another one, and reports whether one meant it.
func (tx *Tx) UnmatchGroup(ctx context.Context, connectionID, groupID string) (bool, error) {
	return tx.affected(ctx, sqlUnmatchGroup, connectionID, groupID)
}

// MappedRolesOf returns the roles that mappings give to the groups that the member is in, of all directories of the
// tenant, sorted.
func (r Reader) MappedRolesOf(ctx context.Context, tenantID, userID string) ([]doorward.Role, error) {
	roles, err := list(ctx, r, func(role *doorward.Role) []any { return []any{role} }, sqlMappedRolesOf, tenantID, userID)
	slices.Sort(roles)
	return roles, err
}
