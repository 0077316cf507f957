package member

import (
	"context"
	"errors"
	"slices"
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

// ApplyMappings makes the roles of the members of groups due, after the connection's mappings were edited: was is the
// connection as it was. Only groups that mean another role than before count. Some get their roles at once, and the others
// by FinishMappings, after the transaction.
func ApplyMappings(ctx context.Context, tx *access.Tx, was doorward.Connection) error {
	groups, _, err := tx.DirectoryGroups(ctx, was.ID, store.GroupFilter{}, 0, groupsMax)
	if err != nil || len(groups) == 0 {
		return err
	}
	is, err := tx.Connection(ctx, was.ID)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if _, err := MatchMappings(ctx, tx, is, g); err != nil {
			return err
		}
	}
	if is, err = tx.Connection(ctx, was.ID); err != nil {
		return err
	}
	for _, g := range groups {
		if slices.Equal(rolesOf(was, g.ID), rolesOf(is, g.ID)) {
			continue
		}
		ids, err := tx.Places(ctx, g.ID)
		if err == nil {
			err = tx.AddDueRoles(ctx, is, false, ids)
		}
		if err != nil {
			return err
		}
	}
	_, err = mapDueMappings(ctx, tx, tx.By, is)
	return err
}

// groupsMax bounds how many groups of a directory are read at once.
const groupsMax = 1 << 20

// rolesOf returns the roles that the connection's mappings give to a group, in their order.
func rolesOf(c doorward.Connection, groupID string) (roles []doorward.Role) {
	for _, m := range c.Mappings {
		if m.GroupID == groupID {
			roles = append(roles, m.Role)
		}
	}
	return roles
}

// MapJoined gives a new member the role that holds now by the groups of directories; or by the connection's jitRole,
// if a directory has invited the person.
func MapJoined(ctx context.Context, tx *access.Tx, u doorward.User) error {
	said, err := tx.DirectoryAliasesOf(ctx, u.TenantID, u.ID)
	if err != nil || len(said) == 0 {
		return err
	}
	roles, err := tx.MappedRolesOf(ctx, u.TenantID, u.ID)
	if err != nil || len(roles) == 0 && !said[0].Made {
		return err
	}
	c, err := tx.Connection(ctx, said[0].ConnectionID)
	if err != nil {
		return err
	}
	by := tx.By
	by.Principal = doorward.Principal{Kind: doorward.ByDirectory, ID: c.ID, TenantID: c.TenantID}
	return MapRoles(ctx, tx, by, c, []string{u.ID})
}

// MapFromDirectory forgets what an OWNER gave the member by hand, and gives the role that directories say. It reports
// whether a directory says one.
func MapFromDirectory(ctx context.Context, tx *access.Tx, u doorward.User) (bool, error) {
	said, err := tx.DirectoryAliasesOf(ctx, u.TenantID, u.ID)
	if err != nil {
		return false, err
	}
	roles, err := tx.MappedRolesOf(ctx, u.TenantID, u.ID)
	if err != nil || len(said)+len(roles) == 0 {
		return false, err
	}
	c := doorward.Connection{TenantID: u.TenantID}
	if len(said) > 0 {
		if c, err = tx.Connection(ctx, said[0].ConnectionID); err != nil {
			return false, err
		}
	}
	if err := tx.SetRoleFloor(ctx, u.TenantID, u.ID, ""); err != nil {
		return false, err
	}
	return true, MapRoles(ctx, tx, tx.By, c, []string{u.ID})
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
	role, err := RoleByGroups(ctx, tx, c, rules, userID)
	if err == nil {
		_, err = MapRole(ctx, tx, by, rules, u, role)
	}
	return err
}

// RoleByGroups returns the role that directories give somebody, with the connection's jitRole where no mapping names one of
// the groups; empty: none that may be given.
func RoleByGroups(ctx context.Context, tx *access.Tx, c doorward.Connection, rules *doorward.Rules, userID string) (doorward.Role, error) {
	roles, err := tx.MappedRolesOf(ctx, c.TenantID, userID)
	if err != nil {
		return "", err
	}
	if highest := HighestRole(rules, roles); highest != "" {
		return highest, nil
	}
	return AtMostAdmin(rules, c.JITRole), nil
}
