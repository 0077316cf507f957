package directory_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/store"
)

// fixture has a tenant with an enabled directory, and a proved domain acme.example.
type fixture struct {
	*apptest.Fixture
	owner apptest.Person
	con   string
	by    doorward.Caller // the directory
}

func newFixture(base *apptest.Fixture) *fixture {
	base.Helper()
	f := withDirectory(base)
	id := doorward.NewID(doorward.PrefixDomain)
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertDomain(f.Context(), doorward.Domain{ID: id, TenantID: f.owner.TenantID, Name: "acme.example", Token: id, CreatedAt: tx.Now})
		return errors.Join(err, tx.VerifyDomain(f.Context(), id, tx.Now))
	})
	f.NoError(err)
	return f
}

// withDirectory has a tenant with an enabled directory, and no domain.
func withDirectory(f *apptest.Fixture) *fixture {
	f.Helper()
	_, owner := f.Tenant()
	made, err := f.Node(0).Connections.Create(f.Context(), owner.Caller, connection.Draft{Type: "scim", Name: new("Directory"), Mappings: &[]doorward.GroupMapping{
		{Group: "sales", Role: doorward.RoleViewer}, {Group: "e-admins", Role: doorward.RoleAdmin},
	}})
	f.NoError(err)
	secret, err := f.Node(0).Directories.AddSecret(f.Context(), owner.Caller, made.ID, nil)
	f.NoError(err)
	_, _, err = f.Node(0).Connections.Edit(f.Context(), owner.Caller, made.ID, connection.Change{Draft: connection.Draft{Status: new("active")}})
	f.NoError(err)
	by, err := f.Node(0).Directories.Check(f.Context(), doorward.Caller{}, secret.Text)
	f.NoError(err)
	by.Principal.Rules = owner.Rules
	return &fixture{f, owner, made.ID, by}
}

// person makes a User, and returns the id.
func (f *fixture) person(name string) string {
	f.Helper()
	u, err := f.Node(0).Directories.Make(f.Context(), f.by, scim.User{UserName: name + "@acme.example"})
	f.NoError(err)
	return u.ID
}

func (f *fixture) group(g scim.Group) string {
	f.Helper()
	made, err := f.Node(0).Directories.MakeGroup(f.Context(), f.by, g)
	f.NoError(err)
	return made.ID
}

// patch sends operations, given as JSON, to a node.
func (f *fixture) patch(i int, group, operations string) error {
	parsed, err := scim.ParsePatch([]byte(`{"Operations": [` + operations + `]}`))
	if err != nil {
		return err
	}
	_, err = f.Node(i).Directories.PatchGroup(f.Context(), f.by, group, parsed)
	return err
}

func member(verb, id string) string {
	return fmt.Sprintf(`{"op": %q, "path": "members", "value": [{"value": %q}]}`, verb, id)
}

func (f *fixture) role(id string) doorward.Role {
	f.Helper()
	u, err := f.DB.Read().User(f.Context(), f.owner.TenantID, id)
	f.NoError(err)
	return u.Role
}

func (f *fixture) wantRole(id string, want doorward.Role) {
	f.Helper()
	if got := f.role(id); got != want {
		f.Errorf("the role is %s, want %s", got, want)
	}
}

// The highest role of the mapped groups holds, and the connection's jitRole without one. A mapping follows a group that is
// renamed, and no other one that takes its name.
func TestRolesByGroups(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ann, ben := f.person("ann"), f.person("ben")
		f.wantRole(ann, doorward.RoleUser)
		sales := f.group(scim.Group{DisplayName: "SALES", Members: []string{ann}})
		f.wantRole(ann, doorward.RoleViewer)
		admins := f.group(scim.Group{DisplayName: "Admins", ExternalID: "e-admins"})
		f.NoError(f.patch(0, admins, member("add", ann)))
		f.wantRole(ann, doorward.RoleAdmin)
		f.NoError(f.patch(0, admins, member("remove", ann)))
		f.wantRole(ann, doorward.RoleViewer)

		f.NoError(f.patch(0, sales, `{"op": "replace", "path": "displayName", "value": "Sellers"}`))
		other := f.group(scim.Group{DisplayName: "Sales", Members: []string{ben}})
		f.wantRole(ben, doorward.RoleUser)
		f.NoError(f.patch(0, sales, member("add", ben)))
		f.wantRole(ben, doorward.RoleViewer)
		f.NoError(f.Node(0).Directories.DeleteGroup(f.Context(), f.by, other))
		f.wantRole(ben, doorward.RoleViewer)
		f.NoError(f.Node(0).Directories.DeleteGroup(f.Context(), f.by, sales))
		f.wantRole(ben, doorward.RoleUser)
		f.wantRole(f.owner.ID, doorward.RoleOwner)
	})
}

// A mapping shows the present name of its group if it doesn't have the externalId, and unless another mapping has that name.
func TestMappingsShowPresentNames(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		sales, admins := f.group(scim.Group{DisplayName: "Sales"}), f.group(scim.Group{DisplayName: "Admins", ExternalID: "e-admins"})
		change := func(group, path, value string) {
			f.NoError(f.patch(0, group, fmt.Sprintf(`{"op": "replace", "path": %q, "value": %q}`, path, value)))
		}
		want := func(groups ...string) {
			f.Helper()
			c, err := f.DB.Read().Connection(f.Context(), f.con)
			f.NoError(err)
			var got []string
			for _, m := range c.Mappings {
				got = append(got, m.Group)
			}
			if !slices.Equal(got, groups) {
				f.Errorf("the mappings are of %q, want %q", got, groups)
			}
		}
		want("e-admins", "sales")
		change(sales, "displayName", "Sellers")
		change(admins, "displayName", "Staff")
		want("Sellers", "e-admins")
		change(admins, "externalId", "x-admins")
		want("Sellers", "Staff")
		f.NoError(f.patch(0, admins, `{"op": "replace", "path": "externalId", "value": "e-admins"}`))
		change(sales, "displayName", "e-admins")
		want("e-admins", "sales")
		mallory := f.person("mallory")
		f.NoError(f.patch(0, sales, member("add", mallory)))
		f.wantRole(mallory, doorward.RoleViewer)
	})
}

// No OWNER loses the role, and nobody what an OWNER gave by hand.
func TestGroupsLowerNobodyByHand(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		carl := f.Join(f.owner, doorward.RoleAdmin)
		f.group(scim.Group{DisplayName: "Sales", Members: []string{carl.ID, f.owner.ID}})
		f.wantRole(carl.ID, doorward.RoleAdmin)
		f.wantRole(f.owner.ID, doorward.RoleOwner)
	})
}

// An OWNER gives a floor by hand, and leaves the role to the directory again.
func TestRoleFromDirectory(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ann := f.person("ann")
		edit := func(by apptest.Person, e user.Edit) error {
			t.Helper()
			target, err := f.DB.Read().User(f.Context(), f.owner.TenantID, ann)
			f.NoError(err)
			_, _, err = f.Node(0).Users.Edit(f.Context(), by.Caller, target, e)
			return err
		}
		f.NoError(edit(f.owner, user.Edit{Role: new(doorward.RoleAdmin)}))
		sales := f.group(scim.Group{DisplayName: "Sales", Members: []string{ann}})
		f.wantRole(ann, doorward.RoleAdmin)
		if err := edit(f.Join(f.owner, doorward.RoleAdmin), user.Edit{FromDirectory: true}); !doorward.HasCode(err, doorward.CodeForbidden) {
			t.Errorf("an ADMIN leaves the role to the directory: %v", err)
		}
		f.WantField(edit(f.owner, user.Edit{FromDirectory: true, Role: new(doorward.RoleUser)}), "/fromDirectory", "invalid")
		f.NoError(edit(f.owner, user.Edit{FromDirectory: true}))
		f.wantRole(ann, doorward.RoleViewer)
		f.NoError(f.patch(0, sales, member("remove", ann)))
		f.wantRole(ann, doorward.RoleUser)
	})
}

// An OWNER says by hand that somebody has the role that a group gives: it stays without the group, and the trail says by
// whom. Said again it changes nothing; said by an ADMIN it holds nothing.
func TestSameRoleByHand(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		admin := f.Join(f.owner, doorward.RoleAdmin)
		ann, ben, carl := f.person("ann"), f.person("ben"), f.person("carl")
		admins := f.group(scim.Group{DisplayName: "Admins", ExternalID: "e-admins", Members: []string{ann, carl}})
		say := func(by apptest.Person, id string, e user.Edit) {
			t.Helper()
			target, err := f.DB.Read().User(f.Context(), f.owner.TenantID, id)
			f.NoError(err)
			_, _, err = f.Node(0).Users.Edit(f.Context(), by.Caller, target, e)
			f.NoError(err)
		}
		toAdmin := user.Edit{Role: new(doorward.RoleAdmin)}
		say(f.owner, ann, user.Edit{Role: new(doorward.RoleAdmin), DryRun: true})
		if _, err := f.DB.Read().RoleByHand(f.Context(), f.owner.TenantID, ann); !errors.Is(err, store.ErrNone) {
			t.Errorf("a dry run has noted it: %v", err)
		}
		say(f.owner, ann, toAdmin)
		say(admin, ben, user.Edit{Role: new(doorward.RoleUser)})
		outcomes, err := f.Node(0).Users.ChangeAll(f.Context(), f.owner.Caller, []string{ann, carl}, user.Bulk{Role: toAdmin.Role})
		f.NoError(err)
		if !outcomes[0].Unchanged || outcomes[1].Unchanged {
			t.Errorf("of several, who is new: %+v", outcomes)
		}
		said, err := f.DB.Read().RoleByHand(f.Context(), f.owner.TenantID, ann)
		f.NoError(err)
		want := []doorward.Change{{Field: doorward.FieldRoleByHand, To: "ADMIN"}}
		if said.ActorID != f.owner.User.ID || !slices.Equal(said.Changes, want) {
			t.Errorf("the trail says %+v", said)
		}
		f.NoError(f.patch(0, admins, member("remove", ann)))
		f.NoError(f.patch(0, admins, member("remove", carl)))
		f.group(scim.Group{DisplayName: "Sales", Members: []string{ben}})
		f.wantRole(ann, doorward.RoleAdmin)
		f.wantRole(ben, doorward.RoleViewer)
		f.wantRole(carl, doorward.RoleAdmin)
		say(f.owner, ann, user.Edit{FromDirectory: true})
		f.wantRole(ann, doorward.RoleUser)
		said, err = f.DB.Read().RoleByHand(f.Context(), f.owner.TenantID, ann)
		f.NoError(err)
		if want := []doorward.Change{{Field: doorward.FieldRoleByHand, From: "ADMIN"}}; !slices.Equal(said.Changes, want) {
			t.Errorf("after the role was left to the directory the trail says %+v", said)
		}
	})
}

// To hold a role of a group by hand takes the proof that giving it takes.
func TestSameRoleByHandIsProved(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ann := f.person("ann")
		f.group(scim.Group{DisplayName: "Admins", ExternalID: "e-admins", Members: []string{ann}})
		f.Enrol(&f.owner)
		f.owner.Caller.HasFactor, f.owner.Caller.AuthAt, f.owner.Caller.FactorAt = true, time.Time{}, time.Time{}
		f.Exec(`UPDATE sessions SET created_at = 1, proved_at = 1, factor_at = 1`)
		target, err := f.DB.Read().User(f.Context(), f.owner.TenantID, ann)
		f.NoError(err)
		if err := f.Node(0).Users.SetRole(f.Context(), f.owner.Caller, target, doorward.RoleAdmin); !doorward.HasCode(err, doorward.CodeStepUpRequired) {
			t.Errorf("a session without a proof holds the role: %v", err)
		}
	})
}

// An invitation takes the role that holds when it is accepted.
func TestRoleAtAcceptance(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		eve, err := f.Node(0).Directories.Make(f.Context(), f.by, scim.User{UserName: "eve@partner.example"})
		f.NoError(err)
		f.group(scim.Group{DisplayName: "A", ExternalID: "e-admins", Members: []string{eve.ID}})
		joined, err := f.Node(0).Invitations.Complete(f.Context(), doorward.Caller{}, f.MailToken("eve@partner.example"), apptest.Password(0), apptest.Password(0))
		f.NoError(err)
		f.wantRole(joined.ID, doorward.RoleAdmin)
	})
}

// An edit of the mappings counts at once, for groups that are there.
func TestEditedMappings(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ann := f.person("ann")
		ops := f.group(scim.Group{DisplayName: "Ops", Members: []string{ann}})
		edit := func(mappings ...doorward.GroupMapping) {
			f.Helper()
			_, _, err := f.Node(0).Connections.Edit(f.Context(), f.owner.Caller, f.con, connection.Change{Draft: connection.Draft{Mappings: &mappings}})
			f.NoError(err)
		}
		edit(doorward.GroupMapping{Group: "OPS", Role: doorward.RoleAdmin})
		f.wantRole(ann, doorward.RoleAdmin)
		f.NoError(f.patch(0, ops, `{"op": "replace", "path": "displayName", "value": "Operations"}`))
		edit(doorward.GroupMapping{Group: "OPS", Role: doorward.RoleViewer})
		f.wantRole(ann, doorward.RoleViewer)
		edit(doorward.GroupMapping{Group: "Operations", Role: doorward.RoleAdmin})
		f.wantRole(ann, doorward.RoleAdmin)
		_, _, err := f.Node(0).Connections.Edit(f.Context(), f.owner.Caller, f.con, connection.Change{Draft: connection.Draft{Mappings: &[]doorward.GroupMapping{
			{Group: "OPS", Role: doorward.RoleAdmin}, {Group: "Operations", Role: doorward.RoleViewer},
		}}})
		f.WantField(err, "/mappings/1/group", "taken")
		edit()
		f.wantRole(ann, doorward.RoleUser)
	})
}

// All or nothing: with an unknown member nothing of a request counts. Who is removed from the tenant is in no group.
func TestGroupsAreConsistent(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ann, ben := f.person("ann"), f.person("ben")
		g := f.group(scim.Group{DisplayName: "G", Members: []string{ann}})
		var fault *scim.Error
		err := f.patch(0, g, member("add", ben)+`, {"op": "replace", "path": "displayName", "value": "H"}, `+member("add", "usr_none"))
		if !errors.As(err, &fault) || fault.Status != 400 {
			t.Errorf("an unknown member: %v", err)
		}
		wantMembers := func(want ...string) {
			t.Helper()
			slices.Sort(want)
			got, err := f.Node(0).Directories.Group(f.Context(), f.by, g, true)
			f.NoError(err)
			if got.DisplayName != "G" || !slices.Equal(got.Members, want) {
				t.Errorf("the group %s has %v, want %v", got.DisplayName, got.Members, want)
			}
		}
		wantMembers(ann)
		f.NoError(f.patch(0, g, member("remove", ben)+`, `+member("remove", "usr_none")))
		wantMembers(ann)
		f.NoError(f.patch(0, g, fmt.Sprintf(`{"op": "replace", "path": "members", "value": [{"value": %q}, {"value": %q}]}`, ben, f.owner.ID)))
		wantMembers(ben, f.owner.ID)
		f.NoError(f.Node(0).Directories.Remove(f.Context(), f.by, ben))
		wantMembers(f.owner.ID)
		_, err = f.Node(0).Directories.MakeGroup(f.Context(), f.by, scim.Group{DisplayName: "g"})
		if !errors.As(err, &fault) || fault.Status != 409 {
			t.Errorf("a taken name: %v", err)
		}
	})
}

// The answer to a PUT leaves members out above a thousand, and writes the difference alone.
func TestManyMembers(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		g := f.group(scim.Group{DisplayName: "All"})
		many := []string{}
		for i := range 1001 {
			many = append(many, fmt.Sprintf("usr_%04d", i))
		}
		_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
			_, err := tx.AddPlaces(f.Context(), g, many)
			return err
		})
		f.NoError(err)
		for _, n := range []int{1001, 1000} {
			var got directory.Group
			statements := f.StatementsOf(func() {
				got, err = f.Node(0).Directories.ReplaceGroup(f.Context(), f.by, g, scim.Group{DisplayName: "All", Members: many[:n]})
			})
			f.NoError(err)
			if (n > 1000) != (got.Members == nil) || n <= 1000 && len(got.Members) != n {
				t.Errorf("of %d members the answer has %d", n, len(got.Members))
			}
			if len(statements) > 60 {
				t.Errorf("to write the difference took %d statements", len(statements))
			}
		}
	})
}

// A directory sees its own groups only, and another one has its own names.
func TestGroupsBelongToTheirConnection(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		g := f.group(scim.Group{DisplayName: "Sales", ExternalID: "1"})
		other := withDirectory(base) // in another tenant
		second := *f
		made, err := f.Node(0).Connections.Create(f.Context(), f.owner.Caller, connection.Draft{Type: "scim", Name: new("Second")})
		f.NoError(err)
		secret, err := f.Node(0).Directories.AddSecret(f.Context(), f.owner.Caller, made.ID, nil)
		f.NoError(err)
		second.by, err = f.Node(0).Directories.Check(f.Context(), doorward.Caller{}, secret.Text)
		f.NoError(err)
		if _, err := f.Node(0).Directories.MakeGroup(f.Context(), second.by, scim.Group{DisplayName: "X"}); !doorward.HasCode(err, doorward.CodeForbidden) {
			t.Errorf("the directory of a draft makes a group: %v", err)
		}
		_, _, err = f.Node(0).Connections.Edit(f.Context(), f.owner.Caller, made.ID, connection.Change{Draft: connection.Draft{Status: new("active")}})
		f.NoError(err)
		if second.by, err = f.Node(0).Directories.Check(f.Context(), doorward.Caller{}, secret.Text); err != nil {
			t.Fatal(err)
		}
		for _, stranger := range []*fixture{other, &second} {
			_, err := f.Node(0).Directories.Group(f.Context(), stranger.by, g, true)
			patched, deleted := stranger.patch(0, g, member("add", f.owner.ID)), f.Node(0).Directories.DeleteGroup(f.Context(), stranger.by, g)
			for _, err := range []error{err, patched, deleted} {
				if !doorward.HasCode(err, doorward.CodeNotFound) {
					t.Errorf("another directory at a group: %v", err)
				}
			}
			page, err := f.Node(0).Directories.Groups(f.Context(), stranger.by, scim.Filter{{Attribute: scim.ID, Text: g}}, 1, 10, true)
			if err != nil || page.Total != 0 {
				t.Errorf("another directory finds %d groups: %v", page.Total, err)
			}
			stranger.group(scim.Group{DisplayName: "sales", ExternalID: "1"})
			var fault *scim.Error
			_, err = f.Node(0).Directories.MakeGroup(f.Context(), other.by, scim.Group{DisplayName: "Y" + stranger.con, Members: []string{f.owner.ID}})
			if !errors.As(err, &fault) || fault.Status != 400 {
				t.Errorf("a group with a member of another tenant: %v", err)
			}
		}
	})
}

// A filter that nothing can meet selects nobody.
func TestFiltersOfGroups(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ann := f.person("ann")
		g := f.group(scim.Group{DisplayName: "Sales", Members: []string{ann}})
		f.group(scim.Group{DisplayName: "Other"})
		for text, want := range map[string]int{
			`displayName eq "SALES"`: 1, `displayName eq ""`: 0, `externalId eq ""`: 0, `members eq ""`: 0, `members eq "usr_none"`: 0,
			`displayName eq "Sales" and displayName eq "Other"`: 0, `id eq "` + g + `" and members eq "` + ann + `"`: 1, `members.value eq "` + f.owner.ID + `"`: 0,
		} {
			filter, err := scim.ParseFilter(scim.Groups, text)
			f.NoError(err)
			page, err := f.Node(0).Directories.Groups(f.Context(), f.by, filter, 1, 10, false)
			if err != nil || page.Total != want || len(page.Groups) != want {
				t.Errorf("%s: %d groups, %v", text, page.Total, err)
			}
		}
		page, err := f.Node(0).Directories.Groups(f.Context(), f.by, nil, 2, 10, true)
		if err != nil || page.Total != 2 || len(page.Groups) != 1 || page.Groups[0].DisplayName != "Other" {
			t.Errorf("from the second on: %+v, %v", page, err)
		}
		u, err := f.Node(0).Directories.User(f.Context(), f.by, ann)
		if err != nil || len(u.Groups) != 1 || u.Groups[0].ID != g {
			t.Errorf("the User is in %v, %v", u.Groups, err)
		}
	})
}

// 32 changes of one group at once, over three nodes, lose nobody.
func TestRaceGroupOfThreeNodes(t *testing.T) {
	for _, e := range apptest.Engines {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			e.Nodes = 3
			f := newFixture(apptest.New(t, e, apptest.NoLimits, time.Now))
			leaver := f.person("leaver")
			g := f.group(scim.Group{DisplayName: "All", Members: []string{leaver}})
			want := []string{}
			for i := range 31 {
				want = append(want, f.person(fmt.Sprintf("p%d", i)))
			}
			errs := apptest.Concurrently(32, func(i int) error {
				if i == 31 {
					return f.patch(i, g, member("remove", leaver))
				}
				return f.patch(i, g, member("add", want[i]))
			})
			for _, err := range errs {
				f.NoError(err)
			}
			got, err := f.Node(0).Directories.Group(f.Context(), f.by, g, true)
			f.NoError(err)
			if slices.Sort(want); !slices.Equal(got.Members, want) {
				t.Errorf("%d members, want %d", len(got.Members), len(want))
			}
			f.WantNoDeadlocks()
		})
	}
}

// A write keeps who came and who left, for the undo of a run.
func TestEffectsOfGroups(t *testing.T) {
	apptest.OnSQLite(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ann, ben := f.person("ann"), f.person("ben")
		g := f.group(scim.Group{DisplayName: "G", Members: []string{ann}})
		f.NoError(f.patch(0, g, member("remove", ann)+", "+member("add", ben)))
		runs, err := f.Node(0).DirectoryRuns.List(f.Context(), f.owner.Caller, f.con, doorward.Window{Limit: 9})
		f.NoError(err)
		if len(runs.Items) != 1 || runs.Items[0].Made != 2 || runs.Items[0].Changed != 2 || !runs.Items[0].IsOpen {
			t.Fatalf("the runs are %+v", runs.Items)
		}
		all, err := f.Node(0).DirectoryRuns.Effects(f.Context(), f.owner.Caller, f.con, runs.Items[0].ID, doorward.Window{Limit: 9, Sort: "-at"})
		f.NoError(err)
		if last := all.Items[0]; last.SubjectID != g || !slices.Equal(last.Joined, []string{ben}) || !slices.Equal(last.Gone, []string{ann}) {
			t.Errorf("the last effect is %+v", last)
		}
	})
}

// Who was removed and made again is another User: a provider that still has the old id, of which the account's is one, finds
// nobody by it, and removes nobody.
func TestFormerID(t *testing.T) {
	apptest.OnEach(t, func(base *apptest.Fixture) {
		f := newFixture(base)
		ctx, directories := f.Context(), f.Node(1).Directories
		former := f.person("ann")
		f.NoError(directories.Remove(ctx, f.by, former))
		again := f.person("ann")
		if again == former {
			t.Fatal("the User has the former id")
		}
		m, err := f.Node(0).Users.Get(ctx, f.owner.Caller, former)
		if f.NoError(err); m.Email != "ann@acme.example" {
			t.Fatalf("the account of the new membership is %+v", m)
		}
		notFound := func(what string, err error) {
			t.Helper()
			if apptest.Code(err) != doorward.CodeNotFound {
				t.Errorf("%s by the former id: %v", what, err)
			}
		}
		_, err = directories.User(ctx, f.by, former)
		notFound("GET", err)
		_, err = directories.Replace(ctx, f.by, former, said("ann@acme.example", false))
		notFound("PUT", err)
		notFound("DELETE", directories.Remove(ctx, f.by, former))
		group := f.group(scim.Group{DisplayName: "sales", Members: []string{again}})
		if err := f.patch(0, group, member("add", former)); err == nil {
			t.Error("the former id comes into a group")
		}
		f.NoError(f.patch(0, group, member("remove", former)))
		for id, want := range map[string]int{former: 0, again: 1} {
			filter, err := scim.ParseFilter(scim.Groups, `members eq "`+id+`"`)
			f.NoError(err)
			groups, err := directories.Groups(ctx, f.by, filter, 1, 9, false)
			if f.NoError(err); len(groups.Groups) != want {
				t.Errorf("%s is in %d groups", id, len(groups.Groups))
			}
		}
		u, err := directories.User(ctx, f.by, again)
		if f.NoError(err); !*u.Active || f.role(former) != doorward.RoleViewer {
			t.Errorf("the new User is %+v, as %s", u, f.role(former))
		}
		f.NoError(directories.Remove(ctx, f.by, again))
	})
}
