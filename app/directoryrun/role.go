package directoryrun

import (
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/store"
)

// Roles that come back. Whose word gave one decides, and not which connection's run is undone.

// roleObstacle says why the person can't have the role from before the run: nothing is raised by an undo above what an OWNER
// gave by hand, or directories give now. One that no directory's groups had given comes back up to ADMIN.
func (u *undoing) roleObstacle(p *plan) (doorward.Undone, error) {
	was := p.before
	switch {
	case !u.rules.Has(was.Role):
		return doorward.UndoneRoleGone, nil
	case member.AtMostAdmin(u.rules, was.Role) == "":
		return doorward.UndoneRoleTooHigh, nil
	case was.Apart, was.Role == was.Floor:
		return "", nil
	}
	given, err := u.rolesGiven(p)
	if err != nil || slices.Contains(given, was.Role) {
		return "", err
	}
	allowed := member.WithFloor(u.rules, member.HighestRole(u.rules, given), was.Floor)
	if allowed == "" || !u.rules.Rank(allowed).Outranks(u.rules.Rank(was.Role)) {
		return doorward.UndoneRoleTooHigh, nil
	}
	return "", nil
}

// rolesGiven returns the roles that the tenant's directories give now to somebody with the places from before the run, and
// those that the person has: by mappings, or else by the jitRole of those that speak of the person.
func (u *undoing) rolesGiven(p *plan) (given []doorward.Role, err error) {
	connections, err := u.tx.ConnectionsOf(u.ctx, u.con.TenantID)
	if err != nil {
		return nil, err
	}
	for _, id := range []string{p.before.UserID, p.subjectID} { // of who was removed only the one or the other has places
		roles, err := u.tx.MappedRolesOf(u.ctx, u.con.TenantID, id)
		if err != nil {
			return nil, err
		}
		given = append(given, roles...)
	}
	speaks := map[string]bool{p.before.Said.ConnectionID: true}
	for _, said := range p.before.Others {
		speaks[said.ConnectionID] = true
	}
	for _, place := range p.before.Places {
		g, err := u.tx.DirectoryGroupOf(u.ctx, u.con.TenantID, place.GroupID)
		if err != nil && !errors.Is(err, store.ErrNone) {
			return nil, err
		}
		speaks[g.ConnectionID] = true
		for _, c := range connections {
			given = append(given, mapped(c, place.GroupID)...)
		}
	}
	if member.HighestRole(u.rules, given) != "" {
		return given, nil
	}
	for _, c := range connections {
		if speaks[c.ID] {
			given = append(given, c.JITRole)
		}
	}
	return given, nil
}

// mapped returns the roles that the connection's mappings give to the group.
func mapped(c doorward.Connection, groupID string) (roles []doorward.Role) {
	for _, m := range c.Mappings {
		if m.GroupID == groupID {
			roles = append(roles, m.Role)
		}
	}
	return roles
}

// isRoleDecided reports whether somebody has given the member another role since the run: it is neither the one that the run
// has left, nor the one that groups give.
func (u *undoing) isRoleDecided(p *plan) func() (bool, error) {
	return func() (bool, error) {
		if p.now.Role == p.after.Role {
			return false, nil
		}
		by, err := u.roleByGroups(p.now)
		return p.now.Role != by, err
	}
}

// roleByGroups returns the role that groups give the member now, or an OWNER gave by hand.
func (u *undoing) roleByGroups(now *doorward.DirectoryPerson) (doorward.Role, error) {
	by, err := member.RoleByGroups(u.ctx, u.tx, u.con, u.rules, now.UserID)
	return member.WithFloor(u.rules, by, now.Floor), err
}

// isRoleOfOthers reports whether a group of another connection gives the member more than the role from before the run, which
// it didn't then.
func (u *undoing) isRoleOfOthers(p *plan) func() (bool, error) {
	return func() (bool, error) {
		groups, err := u.groupsOfOthers(p)
		if err != nil || len(groups) == 0 {
			return false, err
		}
		connections, err := u.tx.ConnectionsOf(u.ctx, u.con.TenantID)
		var roles []doorward.Role
		for _, c := range connections {
			for _, g := range groups {
				roles = append(roles, mapped(c, g)...)
			}
		}
		highest := member.HighestRole(u.rules, roles)
		return highest != "" && u.rules.Rank(highest).Outranks(u.rules.Rank(p.before.Role)), err
	}
}

// groupsOfOthers returns the ids of the groups of other connections that the member is in.
func (u *undoing) groupsOfOthers(p *plan) (ids []string, err error) {
	places, err := u.tx.PlacesHeldIn(u.ctx, u.con.TenantID, p.now.UserID)
	for _, place := range places {
		_, err := u.tx.DirectoryGroup(u.ctx, u.con.ID, place.GroupID)
		if errors.Is(err, store.ErrNone) {
			ids = append(ids, place.GroupID)
		} else if err != nil {
			return nil, err
		}
	}
	return ids, err
}

// isSaidByOthers reports whether another directory speaks of the member whom the run has made.
func (u *undoing) isSaidByOthers(p *plan) func() (bool, error) {
	return func() (bool, error) {
		all, err := u.tx.DirectoryAliasesOf(u.ctx, u.con.TenantID, p.now.UserID)
		if err != nil || slices.ContainsFunc(all, func(d doorward.DirectoryUser) bool { return d.ConnectionID != u.con.ID }) {
			return true, err
		}
		groups, err := u.groupsOfOthers(p)
		return len(groups) > 0, err
	}
}

// follows reports whether the role of the member follows what an undo does in the group: a mapping means the group, and nobody
// has given another role since the run.
func (u *undoing) follows(groupID, memberID string) (bool, error) {
	if len(mapped(u.con, groupID)) == 0 {
		return false, nil
	}
	now, err := directory.State(u.ctx, u.tx, u.con, memberID, false)
	if err != nil || !isMember(now) {
		return false, err
	}
	effects, err := u.tx.DirectoryEffectsOf(u.ctx, u.run.ID, memberID)
	if err != nil {
		return false, err
	}
	var left *doorward.DirectoryPerson
	if n := len(effects); n > 0 {
		if left, err = parsed[doorward.DirectoryPerson](effects[n-1].After); err != nil {
			return false, err
		}
	}
	if left == nil {
		left = &doorward.DirectoryPerson{} // the run has left no role: it is then one by groups, or decided
	}
	decided, err := u.isRoleDecided(&plan{now: now, after: left})()
	return !decided, err
}
