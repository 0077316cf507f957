package member

import (
	"context"
	"errors"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Roles by the groups of directories. All of this needs the lock on the tenant.

// MatchMappings makes the connection's mappings that wait for a group mean g, if they have its name, without letter
// case, or its externalId. It reports whether one does.
func MatchMappings(ctx context.Context, tx *access.Tx, c doorward.Connection, g doorward.DirectoryGroup) (matched bool, err error) {
	for _, m := range c.Mappings {
		if m.GroupID != "" || !strings.EqualFold(m.Group, g.DisplayName) && m.Group != g.ExternalID {
			continue
		}
		if err := tx.MatchMapping(ctx, c.ID, m.Group, g.ID); err != nil {
			return false, err
		}
		matched = true
	}
	return matched, nil
}

// MapRoles gives each of the people the highest role of the groups that they are in, or the connection's jitRole
// where no mapping names one of these. By is who has changed groups or mappings. Those who aren't members are passed
// over.
func MapRoles(ctx context.Context, tx *access.Tx, by doorward.Caller, c doorward.Connection, userIDs []string) error {
	if len(userIDs) == 0 {
		return nil
	}
	rules, err := tx.Rules(ctx, c.TenantID)
	if err != nil {
		return err
	}
	for _, id := range userIDs {
		if err := mapRoleOf(ctx, tx, by, c, rules, id); err != nil {
			return err
		}
	}
	return nil
}

func mapRoleOf(ctx context.Context, tx *access.Tx, by doorward.Caller, c doorward.Connection, rules *doorward.Rules, userID string) error {
	u, err := tx.User(ctx, c.TenantID, userID)
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	role, err := roleByGroups(ctx, tx, c, rules, userID)
	if err == nil {
		_, err = MapRole(ctx, tx, by, rules, u, role)
	}
	return err
}

// roleByGroups returns the role that directories give somebody; empty: none that may be given.
func roleByGroups(ctx context.Context, tx *access.Tx, c doorward.Connection, rules *doorward.Rules, userID string) (doorward.Role, error) {
	roles, err := tx.MappedRolesOf(ctx, c.TenantID, userID)
	if err != nil {
		return "", err
	}
	if highest := HighestRole(rules, roles); highest != "" {
		return highest, nil
	}
	return AtMostAdmin(rules, c.JITRole), nil
}
