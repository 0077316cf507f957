package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// directoryGroup adds a group of the connection's directory.
func (f *fixture) directoryGroup(c doorward.Connection, name, externalID string) doorward.DirectoryGroup {
	f.Helper()
	f.clock.move(time.Second)
	now := f.clock.read()
	g := doorward.DirectoryGroup{
		ID: f.id(doorward.PrefixGroup), ConnectionID: c.ID, TenantID: c.TenantID, DisplayName: name, ExternalID: externalID, CreatedAt: now, ChangedAt: now,
	}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertDirectoryGroup(f.Context(), g)) })
	return g
}

func directoryGroups(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	first, second := f.connection(acme, "First"), f.connection(acme, "Second")
	sales := f.directoryGroup(first, "Sales ÄÖ", "e1")
	buyers := f.directoryGroup(first, "Buyers", "")
	others := f.directoryGroup(second, "sales äö", "e1")
	equal(f, f.value(f.Read().DirectoryGroup(ctx, first.ID, sales.ID)), any(sales))
	f.wantNone(f.Read().DirectoryGroup(ctx, second.ID, sales.ID))

	found := func(filter store.GroupFilter, offset, limit int) (ids []string, total int) {
		all, total, err := f.Read().DirectoryGroups(ctx, first.ID, filter, offset, limit)
		noError(f, err)
		for _, g := range all {
			ids = append(ids, g.ID)
		}
		return ids, total
	}
	f.write(func(tx *store.Tx) { f.value(tx.AddPlaces(ctx, sales.ID, []string{"usr_1"})) })
	for _, c := range []struct {
		filter store.GroupFilter
		want   []string
	}{
		{store.GroupFilter{}, []string{sales.ID, buyers.ID}},
		{store.GroupFilter{DisplayName: "sALES äö"}, []string{sales.ID}},
		{store.GroupFilter{ExternalID: "e1"}, []string{sales.ID}},
		{store.GroupFilter{ExternalID: "E1"}, nil},
		{store.GroupFilter{ID: others.ID}, nil},
		{store.GroupFilter{ID: buyers.ID}, []string{buyers.ID}},
		{store.GroupFilter{Member: "usr_1"}, []string{sales.ID}},
		{store.GroupFilter{ID: buyers.ID, Member: "usr_1"}, nil},
	} {
		ids, total := found(c.filter, 0, 10)
		equal(f, ids, c.want)
		equal(f, total, len(c.want))
	}
	ids, total := found(store.GroupFilter{}, 1, 1)
	equal(f, ids, []string{buyers.ID})
	equal(f, total, 2)
	ids, total = found(store.GroupFilter{}, 0, 0)
	equal(f, len(ids), 0)
	equal(f, total, 2)

	taken := func(g doorward.DirectoryGroup) any { return f.value(f.Read().DirectoryGroupTaken(ctx, g)) }
	equal(f, taken(sales), any(false))
	equal(f, taken(doorward.DirectoryGroup{ConnectionID: first.ID, DisplayName: "SALES ÄÖ"}), any(true))
	equal(f, taken(doorward.DirectoryGroup{ConnectionID: first.ID, DisplayName: "x", ExternalID: "e1"}), any(true))
	equal(f, taken(doorward.DirectoryGroup{ConnectionID: first.ID, DisplayName: "x"}), any(false))

	sales.DisplayName, sales.ExternalID, sales.ChangedAt = "Sellers", "", f.clock.read()
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateDirectoryGroup(ctx, sales)) })
	equal(f, f.value(f.Read().DirectoryGroup(ctx, first.ID, sales.ID)), any(sales))
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteDirectoryGroup(ctx, sales.ID))
		f.wantNoChange(tx.DeleteDirectoryGroup(ctx, sales.ID))
	})
	f.wantNone(f.Read().DirectoryGroup(ctx, first.ID, sales.ID))
	equal(f, f.value(f.Read().CountPlaces(ctx, sales.ID)), any(0))
}

// directoryPlaces: only the difference is reported, also where it takes several statements.
func directoryPlaces(f *fixture) {
	ctx := f.Context()
	c := f.connection(f.tenant("Acme"), "First")
	sales, buyers := f.directoryGroup(c, "Sales", ""), f.directoryGroup(c, "Buyers", "")
	many := []string{}
	for i := range 120 {
		many = append(many, fmt.Sprintf("usr_%03d", i))
	}
	sorted := func(ids []string, err error) []string {
		noError(f, err)
		slices.Sort(ids)
		return ids
	}
	f.write(func(tx *store.Tx) {
		equal(f, sorted(tx.AddPlaces(ctx, sales.ID, many[:3])), many[:3])
		equal(f, sorted(tx.AddPlaces(ctx, sales.ID, many)), many[3:])
		equal(f, len(sorted(tx.AddPlaces(ctx, sales.ID, many))), 0)
		equal(f, len(sorted(tx.AddPlaces(ctx, sales.ID, nil))), 0)
		f.value(tx.AddPlaces(ctx, buyers.ID, many[:1]))
	})
	equal(f, f.value(f.Read().Places(ctx, sales.ID)), any(many))
	equal(f, f.value(f.Read().CountPlaces(ctx, sales.ID)), any(120))
	of, err := f.Read().DirectoryGroupsOf(ctx, c.ID, append([]string{"usr_none"}, many...))
	noError(f, err)
	equal(f, of[many[0]], []doorward.DirectoryGroup{sales, buyers})
	equal(f, of[many[119]], []doorward.DirectoryGroup{sales})
	equal(f, len(of), 120)
	f.write(func(tx *store.Tx) {
		equal(f, sorted(tx.RemovePlaces(ctx, sales.ID, []string{many[7], "usr_none", many[5]})), []string{many[5], many[7]})
		equal(f, len(sorted(tx.RemovePlaces(ctx, sales.ID, []string{many[7]}))), 0)
	})
	equal(f, f.value(f.Read().CountPlaces(ctx, sales.ID)), any(118))
}

// placesOfMembers: a member is known by the id that the directory has made and by that of the account, and has no
// place once removed.
func placesOfMembers(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	c := f.connection(acme, "First") // Ops  team gives ADMIN
	second := f.connection(acme, "Second")
	ops, others := f.directoryGroup(c, "Ops  team", ""), f.directoryGroup(f.connection(zeta, "Other"), "All", "")
	ann := f.member(acme, "ann@acme.example", doorward.RoleUser)
	ben := f.member(acme, "ben@acme.example", doorward.RoleUser)
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertDirectoryUser(ctx, doorward.DirectoryUser{ID: "usr_alias", ConnectionID: c.ID, TenantID: acme.ID, UserID: ann.ID, UserName: "ann", Address: ann.Email, Attributes: "{}"}))
		noError(f, tx.InsertDirectoryUser(ctx, doorward.DirectoryUser{ID: "usr_invited", ConnectionID: c.ID, TenantID: acme.ID, UserName: "cy", Address: "cy@x.example", Attributes: "{}"}))
		noError(f, tx.MatchMapping(ctx, c.ID, "Ops  team", ops.ID))
		f.value(tx.AddPlaces(ctx, ops.ID, []string{"usr_alias", ben.ID}))
		f.value(tx.AddPlaces(ctx, others.ID, []string{ben.ID}))
	})
	people := func(connectionID string) map[string]store.DirectoryPerson {
		found, err := f.Read().DirectoryPeople(ctx, acme.ID, connectionID, []string{ann.ID, "usr_alias", "usr_invited", ben.ID, "usr_none"})
		noError(f, err)
		return found
	}
	asAnn, asBen := store.DirectoryPerson{ID: "usr_alias", UserID: ann.ID}, store.DirectoryPerson{ID: ben.ID, UserID: ben.ID}
	equal(f, people(c.ID), map[string]store.DirectoryPerson{ann.ID: asAnn, "usr_alias": asAnn, ben.ID: asBen, "usr_invited": {ID: "usr_invited"}})
	equal(f, people(second.ID), map[string]store.DirectoryPerson{ann.ID: asAnn, "usr_alias": asAnn, ben.ID: asBen})
	equal(f, f.value(f.Read().GroupsHeldOf(ctx, ann.ID)), any([]doorward.DirectoryGroup{ops}))
	equal(f, f.value(f.Read().GroupsHeldOf(ctx, ben.ID)), any([]doorward.DirectoryGroup{ops, others}))
	roles := func(id string) any { return f.value(f.Read().MappedRolesOf(ctx, acme.ID, id)) }
	equal(f, []any{roles(ann.ID), roles(ben.ID)}, []any{[]doorward.Role{doorward.RoleAdmin}, []doorward.Role{doorward.RoleAdmin}})
	f.write(func(tx *store.Tx) {
		f.value(tx.AddPlaces(ctx, ops.ID, []string{"usr_invited"}))
		noError(f, tx.LeaveGroups(ctx, second.ID, "usr_invited"))
	})
	equal(f, f.value(f.Read().CountPlaces(ctx, ops.ID)), any(3))
	f.write(func(tx *store.Tx) { noError(f, tx.LeaveGroups(ctx, c.ID, "usr_invited")) })
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DeleteMembership(ctx, acme.ID, ann.ID))
		f.wantChange(tx.DeleteMembership(ctx, acme.ID, ben.ID))
	})
	equal(f, f.value(f.Read().CountPlaces(ctx, ops.ID)), any(0))
	equal(f, f.value(f.Read().CountPlaces(ctx, others.ID)), any(1))
}

// mappedGroups: a mapping means a group by its id, also after a change of the connection.
func mappedGroups(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	c := f.connection(acme, "First") // Ops  team gives ADMIN, ops  team VIEWER
	ops, all := f.directoryGroup(c, "Ops  team", ""), f.directoryGroup(c, "All", "")
	roles := func(id string) any { return f.value(f.Read().MappedRolesOf(ctx, acme.ID, id)) }
	f.write(func(tx *store.Tx) {
		noError(f, tx.MatchMapping(ctx, c.ID, "Ops  team", ops.ID))
		noError(f, tx.MatchMapping(ctx, c.ID, "ops  team", all.ID))
		f.value(tx.AddPlaces(ctx, ops.ID, []string{"usr_1"}))
		f.value(tx.AddPlaces(ctx, all.ID, []string{"usr_1", "usr_2"}))
	})
	equal(f, roles("usr_1"), any([]doorward.Role{doorward.RoleAdmin, doorward.RoleViewer}))
	equal(f, roles("usr_2"), any([]doorward.Role{doorward.RoleViewer}))
	c = f.stored(c)
	equal(f, c.Mappings, []doorward.GroupMapping{
		{Group: "All", Role: doorward.RoleViewer, GroupID: all.ID, Given: "ops  team"}, {Group: "Ops  team", Role: doorward.RoleAdmin, GroupID: ops.ID},
	})
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateConnection(ctx, c)) })
	equal(f, f.stored(c).Mappings, c.Mappings)
	f.write(func(tx *store.Tx) {
		renamed := ops
		renamed.DisplayName = "Operations"
		noError(f, tx.UpdateDirectoryGroup(ctx, renamed))
	})
	c.Mappings[1].Group, c.Mappings[1].Given = "Operations", "Ops  team"
	equal(f, f.stored(c).Mappings, c.Mappings)
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateConnection(ctx, c)) })
	equal(f, f.stored(c).Mappings, c.Mappings)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.UnmatchGroup(ctx, c.ID, ops.ID))
		f.wantNoChange(tx.UnmatchGroup(ctx, c.ID, ops.ID))
	})
	equal(f, roles("usr_1"), any([]doorward.Role{doorward.RoleViewer}))
}

func dueRoles(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	con := f.connection(acme, "First")
	ann, bob, eve := f.member(acme, "ann@acme.example", doorward.RoleUser), f.member(acme, "bob@acme.example", doorward.RoleUser), f.member(f.tenant("Other"), "eve@acme.example", doorward.RoleUser)
	f.write(func(tx *store.Tx) {
		said := doorward.DirectoryUser{ID: f.id(doorward.PrefixUser), ConnectionID: con.ID, TenantID: acme.ID, UserID: bob.ID, UserName: "bob", Address: "bob@acme.example", Attributes: "{}", CreatedAt: tx.Now}
		noError(f, tx.InsertDirectoryUser(ctx, said))
		noError(f, tx.AddDueRoles(ctx, con, true, []string{ann.ID, said.ID, eve.ID, "usr_none"}))
		noError(f, tx.AddDueRoles(ctx, con, true, []string{bob.ID})) // again, by another id
		noError(f, tx.AddDueRoles(ctx, con, false, []string{ann.ID}))
	})
	both := []string{ann.ID, bob.ID}
	slices.Sort(both)
	equal(f, f.value(f.Read().DueRoles(ctx, con.ID, true, 10)), any(both))
	equal(f, f.value(f.Read().DueRoles(ctx, con.ID, true, 1)), any(both[:1]))
	equal(f, f.value(f.Read().DueConnections(ctx, false)), any([]doorward.Connection{{ID: con.ID, TenantID: acme.ID}}))
	f.write(func(tx *store.Tx) { noError(f, tx.DeleteDueRole(ctx, con.ID, false, ann.ID)) })
	equal(f, f.value(f.Read().DueConnections(ctx, false)), any([]doorward.Connection(nil)))
	for id, isDue := range map[string]bool{ann.ID: true, bob.ID: true, eve.ID: false} {
		equal(f, f.value(f.Read().IsRoleDue(ctx, acme.ID, id)), any(isDue))
	}
	equal(f, f.value(f.Read().IsRoleDue(ctx, "tnt_none", ann.ID)), any(false))
	equal(f, f.value(f.Read().DueRoles(ctx, con.ID, true, 10)), any(both))
}
