package directory_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/directory"
	people "github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// many makes more Users than one transaction gives roles.
func (f *fixture) many() (ids []string) {
	f.Helper()
	for i := range people.RolesAtOnce + 3 {
		ids = append(ids, f.person(fmt.Sprintf("p%d", i)))
	}
	return ids
}

func (f *fixture) wantRoles(ids []string, want doorward.Role) {
	f.Helper()
	for _, id := range ids {
		if got := f.role(id); got != want {
			f.Fatalf("the role of one of %d people is %s, want %s", len(ids), got, want)
		}
	}
}

// wantBatches fails if one transaction has given more roles than one may: all of its events have one time.
func (f *fixture) wantBatches() {
	f.Helper()
	events, err := f.DB.Read().EventsAfter(f.Context(), f.owner.TenantID, 0, 10_000)
	f.NoError(err)
	at := map[int64]int{}
	for _, e := range events {
		if e.Action == doorward.UserRole {
			at[e.At.UnixMicro()]++
		}
	}
	for _, n := range at {
		if n > people.RolesAtOnce {
			f.Errorf("one transaction has given %d roles, want at most %d", n, people.RolesAtOnce)
		}
	}
}

// A change of groups or mappings that gives many people another role does that in several transactions, before it is
// answered.
func TestManyRoles(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ids := f.many()
		group := f.group(scim.Group{DisplayName: "Sales", Members: ids})
		f.wantRoles(ids, doorward.RoleViewer)
		_, _, err := f.Node(1).Connections.Edit(f.Context(), f.owner.Caller, f.con, connection.Change{Draft: connection.Draft{Mappings: &[]doorward.GroupMapping{{Group: "sales", Role: doorward.RoleAdmin}}}})
		f.NoError(err)
		f.wantRoles(ids, doorward.RoleAdmin)
		f.NoError(f.Node(0).Directories.DeleteGroup(f.Context(), f.by, group))
		f.wantRoles(ids, doorward.RoleUser)
		f.wantBatches()
	})
}

// What a crash leaves due is given by a sweep, by whichever of several nodes.
func TestRaceDueRoles(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ids := f.many()
		group := f.group(scim.Group{DisplayName: "Sales"})
		for _, byDirectory := range []bool{true, false} {
			_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
				if _, err := tx.AddPlaces(f.Context(), group, ids); err != nil {
					return err
				}
				if !byDirectory { // these would lose the role again
					if _, err := tx.RemovePlaces(f.Context(), group, ids); err != nil {
						return err
					}
				}
				return tx.AddDueRoles(f.Context(), doorward.Connection{ID: f.con, TenantID: f.owner.TenantID}, byDirectory, ids)
			})
			f.NoError(err)
			for _, err := range apptest.Concurrently(4, func(i int) error {
				if byDirectory {
					return f.Node(i).Directories.Sweep(f.Context())
				}
				return f.Node(i).Connections.Sweep(f.Context())
			}) {
				f.NoError(err)
			}
			f.wantRoles(ids, map[bool]doorward.Role{true: doorward.RoleViewer, false: doorward.RoleUser}[byDirectory])
			if due, err := f.DB.Read().DueConnections(f.Context(), byDirectory); err != nil || len(due) > 0 {
				f.Errorf("after the sweeps roles of %d connections are due, %v", len(due), err)
			}
		}
		f.wantBatches()
	})
}

// A page ends before it holds too many members; the next begins with the group that it left out. A group alone is shown
// whatever its size.
func TestMembersListed(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		large, small := f.group(scim.Group{DisplayName: "Large"}), f.group(scim.Group{DisplayName: "Small"})
		add := func(group string, ids ...string) {
			_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error { _, err := tx.AddPlaces(f.Context(), group, ids); return err })
			f.NoError(err)
		}
		want := func(start int, withMembers bool, want ...string) {
			page, err := f.Node(0).Directories.Groups(f.Context(), f.by, nil, start, 10, withMembers)
			f.NoError(err)
			var got []string
			for _, g := range page.Groups {
				got = append(got, g.ID)
			}
			if !slices.Equal(got, want) || page.Total != 2 {
				f.Errorf("from %d on, with members %v: %v of %d, want %v of 2", start, withMembers, got, page.Total, want)
			}
		}
		ids := make([]string, directory.MembersListed)
		for i := range ids {
			ids[i] = fmt.Sprintf("usr_%d", i)
		}
		add(large, ids...)
		want(1, true, large, small)
		add(small, "usr_0")
		want(1, true, large)
		want(2, true, small)
		want(1, false, large, small)
		add(large, "usr_more")
		want(1, true, large)
	})
}
