package directory

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// Group is a group as the directory is answered.
type Group struct {
	doorward.DirectoryGroup
	Members []string // ids of Users, sorted; nil: left out
}

// MembersShown is the greatest number of members that the answer to a POST or a PUT of a group has.
const MembersShown = 1000

// MembersListed is the greatest number of members that a list of several groups has, of all of them together: their ids and
// addresses are some 15 MB of JSON.
const MembersListed = 100_000

// GroupPage is a part of a list of groups.
type GroupPage struct {
	Total  int
	Groups []Group
}

// Groups returns the groups of the directory that the filter selects, from the one with the number start on, counted
// from 1, in the order in which they were made: count at most, and fewer where they have more members than MembersListed
// (RFC 7644, 3.4.2.4: a page may be shorter than count). Errors: unavailable.
func (d *Directories) Groups(ctx context.Context, by doorward.Caller, filter scim.Filter, start, count int, withMembers bool) (page GroupPage, err error) {
	f, some := groupFilter(filter)
	if !some || by.SeesNobody {
		return page, nil
	}
	err = d.db.Snapshot(ctx, func(read store.Reader) error {
		page = GroupPage{}
		if f.Member != "" {
			people, err := read.DirectoryPeople(ctx, by.TenantID, by.ConnectionID, []string{f.Member})
			p, known := people[f.Member]
			if err != nil || !known || isFormer(f.Member, p) {
				return err
			}
			f.Member = p.ID
		}
		groups, total, err := read.DirectoryGroups(ctx, by.ConnectionID, f, start-1, count)
		page.Total = total
		for _, g := range groups {
			page.Groups = append(page.Groups, Group{DirectoryGroup: g})
		}
		if err == nil && withMembers {
			err = page.readMembers(ctx, read)
		}
		return err
	})
	return page, err
}

// readMembers reads who is in the groups, and ends the page before the group with which it would have too many members for
// one answer. The first group is shown whatever its size.
func (p *GroupPage) readMembers(ctx context.Context, read store.Reader) error {
	members := 0
	for i := range p.Groups {
		g := &p.Groups[i]
		n, err := read.CountPlaces(ctx, g.ID)
		if err != nil {
			return err
		}
		if members += n; members > MembersListed && i > 0 {
			p.Groups = p.Groups[:i]
			return nil
		}
		if g.Members, err = read.Places(ctx, g.ID); err != nil {
			return err
		}
	}
	return nil
}

// groupFilter returns the filter as the store has it, and whether any group can meet it: none has two names, nor an empty
// one.
func groupFilter(filter scim.Filter) (f store.GroupFilter, some bool) {
	fields := map[scim.Attribute]*string{scim.ID: &f.ID, scim.DisplayName: &f.DisplayName, scim.ExternalID: &f.ExternalID, scim.Member: &f.Member}
	for _, c := range filter {
		field := fields[c.Attribute]
		if field == nil || c.Text == "" || *field != "" && *field != c.Text {
			return f, false
		}
		*field = c.Text
	}
	return f, true
}

// Group returns the group with the id. Errors: not_found, unavailable.
func (d *Directories) Group(ctx context.Context, by doorward.Caller, id string, withMembers bool) (g Group, err error) {
	err = d.db.Snapshot(ctx, func(read store.Reader) error {
		g = Group{}
		if g.DirectoryGroup, err = read.DirectoryGroup(ctx, by.ConnectionID, id); err != nil || !withMembers {
			return err
		}
		g.Members, err = read.Places(ctx, id)
		return err
	})
	return g, notFound(err)
}

// MakeGroup makes a group. Errors: uniqueness, invalidValue for unknown members, and those of write.
func (d *Directories) MakeGroup(ctx context.Context, by doorward.Caller, said scim.Group) (g Group, err error) {
	id := doorward.NewID(doorward.PrefixGroup)
	err = d.write(ctx, by, doorward.UserRole, id, func(w *work) error {
		made := doorward.DirectoryGroup{ID: id, ConnectionID: w.con.ID, TenantID: w.con.TenantID, CreatedAt: w.tx.Now}
		g, err = w.changeGroup(made, scim.GroupChange{DisplayName: &said.DisplayName, ExternalID: &said.ExternalID, In: said.Members})
		return err
	})
	return g, err
}

// ReplaceGroup makes the group what the directory says: without members it is empty then. Errors: not_found, and those of
// MakeGroup.
func (d *Directories) ReplaceGroup(ctx context.Context, by doorward.Caller, id string, said scim.Group) (Group, error) {
	return d.onGroup(ctx, by, id, func(*work) (scim.GroupChange, error) {
		return scim.GroupChange{DisplayName: &said.DisplayName, ExternalID: &said.ExternalID, Whole: true, In: said.Members}, nil
	})
}

// PatchGroup applies the operations, all or none. Errors: those of ReplaceGroup and of scim.PatchGroup.
func (d *Directories) PatchGroup(ctx context.Context, by doorward.Caller, id string, operations []scim.Operation) (Group, error) {
	return d.onGroup(ctx, by, id, func(w *work) (scim.GroupChange, error) { return scim.PatchGroup(operations, w.con.EmptyByRemove) })
}

func (d *Directories) onGroup(ctx context.Context, by doorward.Caller, id string, change func(*work) (scim.GroupChange, error)) (g Group, err error) {
	absent := 0
	err = d.write(ctx, by, doorward.UserRole, id, func(w *work) error {
		before, err := w.tx.DirectoryGroup(ctx, w.con.ID, id)
		if err != nil {
			return err
		}
		to, err := change(w)
		if err != nil {
			return err
		}
		g, err = w.changeGroup(before, to)
		absent = w.absent
		return err
	})
	if err == nil && absent > 0 {
		d.Record(ctx, by, doorward.Attempt{
			Outcome: doorward.AttemptDone, Check: CheckMembers, Advice: AdviceMembers, Seen: "members were removed from a group that they aren't in", Subject: g.DisplayName,
		})
	}
	return g, err
}

// DeleteGroup deletes the group: its members lose the roles that only it gave. Errors: not_found, and those of write.
func (d *Directories) DeleteGroup(ctx context.Context, by doorward.Caller, id string) error {
	return d.write(ctx, by, doorward.UserRole, id, func(w *work) error {
		g, err := w.tx.DirectoryGroup(ctx, w.con.ID, id)
		if err != nil {
			return err
		}
		were, err := w.tx.Places(ctx, id)
		if err != nil {
			return err
		}
		was := stateOfGroup(g)
		for _, m := range w.con.Mappings {
			if m.GroupID == id {
				was.Mapped, w.gave = append(was.Mapped, m.Written()), append(w.gave, m.Role)
			}
		}
		mapped, err := w.tx.UnmatchGroup(ctx, w.con.ID, id)
		if err != nil {
			return err
		}
		if _, err := w.tx.DeleteDirectoryGroup(ctx, id); err != nil {
			return err
		}
		if err := w.groupEffect(doorward.DirectoryRemoved, was, nil, nil, were); err != nil || !mapped {
			return err
		}
		return w.mapRoles(were)
	})
}

// changeGroup writes the group, which is new if it was never changed, and the difference of its members.
func (w *work) changeGroup(before doorward.DirectoryGroup, to scim.GroupChange) (Group, error) {
	after, isNew := before, before.ChangedAt.IsZero()
	if to.DisplayName != nil {
		after.DisplayName = *to.DisplayName
	}
	if to.ExternalID != nil {
		after.ExternalID = *to.ExternalID
	}
	if taken, err := w.tx.DirectoryGroupTaken(w.ctx, after); err != nil || taken {
		return Group{}, orTaken(err)
	}
	in, out, err := w.difference(before.ID, to)
	if err != nil {
		return Group{}, err
	}
	if isNew {
		after.ChangedAt = w.tx.Now
		err = w.tx.InsertDirectoryGroup(w.ctx, after)
	}
	if err == nil {
		in, err = w.tx.AddPlaces(w.ctx, after.ID, in)
	}
	if err == nil {
		w.absent = len(out)
		out, err = w.tx.RemovePlaces(w.ctx, after.ID, out)
		w.absent -= len(out)
	}
	if err == nil && !isNew && (after != before || len(in)+len(out) > 0) {
		after.ChangedAt = w.tx.Now
		err = w.tx.UpdateDirectoryGroup(w.ctx, after)
	}
	if err != nil {
		return Group{}, err
	}
	return w.settleGroup(before, after, in, out)
}

// settleGroup records what has changed, and gives the roles that follow.
func (w *work) settleGroup(before, after doorward.DirectoryGroup, in, out []string) (Group, error) {
	kind, was := doorward.DirectoryChanged, stateOfGroup(before)
	if before.ChangedAt.IsZero() {
		kind, was = doorward.DirectoryMade, nil
	}
	if before != after {
		if err := w.groupEffect(kind, was, stateOfGroup(after), in, out); err != nil {
			return Group{}, err
		}
	}
	if err := w.mapGroup(after, slices.Concat(in, out)); err != nil {
		return Group{}, err
	}
	g := Group{DirectoryGroup: after}
	n, err := w.tx.CountPlaces(w.ctx, after.ID)
	if err == nil && n <= MembersShown {
		g.Members, err = w.tx.Places(w.ctx, after.ID)
	}
	return g, err
}

// mapGroup gives roles to people who came into the group or left it, if a mapping means it; to all in it, if one does so
// from now on.
func (w *work) mapGroup(g doorward.DirectoryGroup, changed []string) error {
	waiting := slices.ContainsFunc(w.con.Mappings, func(m doorward.GroupMapping) bool { return m.GroupID == "" })
	wasMapped := false
	for _, m := range w.con.Mappings {
		if m.GroupID == g.ID {
			wasMapped, w.gave = true, append(w.gave, m.Role)
		}
	}
	matched := false
	if waiting {
		var err error
		if matched, err = member.MatchMappings(w.ctx, w.tx, w.con, g); err != nil {
			return err
		}
	}
	switch {
	case matched:
		all, err := w.tx.Places(w.ctx, g.ID)
		if err != nil {
			return err
		}
		return w.mapRoles(slices.Compact(slices.Sorted(slices.Values(slices.Concat(all, changed)))))
	case wasMapped:
		return w.mapRoles(changed)
	}
	return nil
}

// mapRoles gives each of the Users the role of their groups, and records that as changes of the people. Of many the roles are
// due after the transaction.
func (w *work) mapRoles(ids []string) error {
	if len(ids) > member.RolesAtOnce {
		w.isDue = true
		return w.tx.AddDueRoles(w.ctx, w.con, true, ids)
	}
	people, err := w.tx.DirectoryPeople(w.ctx, w.con.TenantID, w.con.ID, ids)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(people)) {
		p := people[id]
		if p.UserID == "" {
			continue
		}
		if err := w.on(p.ID, func() error { return member.MapRoles(w.ctx, w.tx, w.tx.By, w.con, []string{p.UserID}) }); err != nil {
			return err
		}
	}
	return nil
}

// difference returns the ids of Users who are to come into the group and of those who are to go. Errors: invalidValue for
// one who isn't known.
func (w *work) difference(groupID string, to scim.GroupChange) (in, out []string, err error) {
	is := map[string]bool{}
	if to.Whole {
		all, err := w.tx.Places(w.ctx, groupID)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range all {
			is[id] = true
		}
	}
	come := slices.DeleteFunc(slices.Clone(to.In), func(id string) bool { return is[id] })
	people, err := w.tx.DirectoryPeople(w.ctx, w.con.TenantID, w.con.ID, slices.Concat(come, to.Out))
	if err != nil {
		return nil, nil, err
	}
	for _, id := range come {
		p, known := people[id]
		if !known || isFormer(id, p) {
			return nil, nil, refuse(scim.InvalidValue, AdviceMember, "A member isn't known here. Nothing was changed: provision the person first.")
		}
		in = append(in, p.ID)
	}
	for _, id := range to.Out {
		if p, known := people[id]; known && !isFormer(id, p) {
			id = p.ID
		}
		out = append(out, id)
	}
	if to.Whole {
		for _, id := range slices.Concat(to.In, in) {
			delete(is, id)
		}
		out = slices.Sorted(maps.Keys(is))
	}
	return in, out, nil
}

// isFormer reports whether the id is the account's alone, and so names nobody to directories: see find.
func isFormer(id string, p store.DirectoryPerson) bool { return id == p.UserID && id != p.ID }

// orTaken returns err, or that another group has the name or the externalId.
func orTaken(err error) error {
	if err != nil {
		return err
	}
	return &scim.Error{Status: http.StatusConflict, Type: scim.Uniqueness, Detail: "Another group has this displayName or externalId."}
}

func stateOfGroup(g doorward.DirectoryGroup) *doorward.DirectoryGroupState {
	return &doorward.DirectoryGroupState{ID: g.ID, DisplayName: g.DisplayName, ExternalID: g.ExternalID}
}

// groupsOf fills in the groups that people are in.
func groupsOf(ctx context.Context, read store.Reader, connectionID string, users []User) error {
	ids := make([]string, len(users))
	for i, u := range users {
		ids[i] = u.ID
	}
	of, err := read.DirectoryGroupsOf(ctx, connectionID, ids)
	for i := range users {
		users[i].Groups = of[users[i].ID]
	}
	return err
}
