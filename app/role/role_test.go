package role_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/app/policy"
	"github.com/doorward/doorward/app/role"
)

// callerOn returns the caller of a request with the person's session, as the node sees it.
func callerOn(f *apptest.Fixture, node int, p apptest.Person) doorward.Caller {
	f.Helper()
	s, err := f.Node(node).Sessions.Check(f.Context(), p.Token)
	f.NoError(err)
	by := p.Caller
	by.Principal = s
	return by
}

func create(f *apptest.Fixture, by apptest.Person, name string, permissions ...string) role.Role {
	f.Helper()
	r, err := f.Node(0).Roles.Create(f.Context(), callerOn(f, 0, by), role.Draft{Name: name, Permissions: permissions})
	f.NoError(err)
	return r
}

func join(f *apptest.Fixture, by apptest.Person, name doorward.Role) apptest.Person {
	f.Helper()
	by.Caller = callerOn(f, 0, by)
	return f.Join(by, name)
}

// TestChangeCountsOnEveryNode: once a change has returned, no node allows what a role has lost,
// or refuses what it has gained.
func TestChangeCountsOnEveryNode(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		r := create(f, owner, "READER", "audit.read", "tenant.read")
		reader := join(f, owner, "READER")
		for round := range apptest.Rounds(10, 50) {
			want := round%2 == 0
			permissions := []string{"tenant.read"}
			if want {
				permissions = append(permissions, "audit.read")
			}
			_, _, err := f.Node(round).Roles.Edit(f.Context(), callerOn(f, round, owner), r.ID, role.Edit{Permissions: &permissions})
			f.NoError(err)
			for i := range f.Nodes {
				by := callerOn(f, i, reader)
				if got := decide.May(&by.Principal, &decide.Question{Action: doorward.AuditRead, On: by.Tenant()}).Allowed; got != want {
					t.Fatalf("round %d, node %d allows audit.read: %v, want %v", round, i, got, want)
				}
			}
		}
	})
}

// TestRenameAndReplace: members, invitations and keys get the new name of a role, and the role
// that replaces a deleted one.
func TestRenameAndReplace(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		r := create(f, owner, "DESK", "message.read")
		member := join(f, owner, "DESK")
		by := owner
		by.Caller = callerOn(f, 0, owner)
		email := f.NewEmail("later")
		_, token := f.Invite(by, email, "DESK")
		key, _, err := f.Node(0).APIKeys.Create(f.Context(), by.Caller, apikey.Draft{Name: "k", Role: "DESK", Permissions: []string{"message.read"}})
		f.NoError(err)
		want := func(name doorward.Role) {
			t.Helper()
			u, err := f.DB.Read().User(f.Context(), member.User.TenantID, member.User.ID)
			f.NoError(err)
			k, err := f.Node(1).APIKeys.Get(f.Context(), callerOn(f, 1, owner), key.ID)
			f.NoError(err)
			if u.Role != name || k.Role != name || callerOn(f, 1, member).Role != name {
				t.Fatalf("member %s, key %s, in memory %s; want %s", u.Role, k.Role, callerOn(f, 1, member).Role, name)
			}
		}
		want("DESK")
		name := "COUNTER"
		_, _, err = f.Node(0).Roles.Edit(f.Context(), callerOn(f, 0, owner), r.ID, role.Edit{Name: &name})
		f.NoError(err)
		want("COUNTER")
		_, err = f.Node(0).Roles.Delete(f.Context(), callerOn(f, 0, owner), r.ID, "")
		wantCode(t, err, doorward.CodeRoleInUse)
		for _, bad := range []doorward.Role{"COUNTER", "NONE", "OWNER"} { // a key can't be OWNER
			_, err = f.Node(0).Roles.Delete(f.Context(), callerOn(f, 0, owner), r.ID, bad)
			wantCode(t, err, doorward.CodeValidationFailed)
		}
		_, err = f.Node(0).Roles.Delete(f.Context(), callerOn(f, 0, owner), r.ID, doorward.RoleViewer)
		f.NoError(err)
		want(doorward.RoleViewer)
		_, err = f.Node(0).Invitations.Complete(f.Context(), apptest.Anonymous(0), token, apptest.FirstPassword, apptest.FirstPassword)
		f.NoError(err)
		if got := f.SignIn(email, apptest.FirstPassword).User.Role; got != doorward.RoleViewer {
			t.Fatalf("the invited person is %s", got)
		}
	})
}

// TestPoliciesOnHolders: a policy that forbids to change people's roles, invitations or keys also
// forbids to change or replace a role that some have, but not one that nobody has.
func TestPoliciesOnHolders(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		desk, hall, shop := create(f, owner, "DESK", "message.read"), create(f, owner, "HALL", "message.read"), create(f, owner, "SHOP", "message.read")
		unused := create(f, owner, "UNUSED", "message.read")
		join(f, owner, "DESK")
		owner.Caller = callerOn(f, 0, owner)
		f.Invite(owner, f.NewEmail("later"), "HALL")
		_, _, err := f.Node(0).APIKeys.Create(f.Context(), owner.Caller, apikey.Draft{Name: "k", Role: "SHOP", Permissions: []string{"message.read"}})
		f.NoError(err)
		edit := func(r role.Role, e role.Edit) error {
			_, err := f.Node(0).Roles.Plan(f.Context(), callerOn(f, 0, owner), r.ID, e)
			_, _, edited := f.Node(0).Roles.Edit(f.Context(), callerOn(f, 0, owner), r.ID, e)
			if apptest.Code(err) != apptest.Code(edited) {
				t.Errorf("the plan of the edit says %v, the edit %v", err, edited)
			}
			return edited
		}
		remove := func(r role.Role) error {
			return apptest.ErrorOf(f.Node(0).Roles.Delete(f.Context(), callerOn(f, 0, owner), r.ID, doorward.RoleViewer))
		}
		permissions, name, about := []string{"message.read", "report.read"}, "RENAMED", "At the desk"
		var none []string
		for _, test := range []struct {
			action string
			r      role.Role
		}{{"user.role", desk}, {"user.manage", desk}, {"user.invite", hall}, {"apikey.update", shop}} {
			_, err := f.Node(0).Policies.Put(f.Context(), callerOn(f, 0, owner), policy.Draft{Text: `@id("a") forbid(principal, action == Action::"` + test.action + `", resource);`}, none)
			f.NoError(err)
			wantCode(t, edit(test.r, role.Edit{Permissions: &permissions}), doorward.CodeDeniedByPolicy)
			wantCode(t, edit(test.r, role.Edit{Name: &name}), doorward.CodeDeniedByPolicy)
			wantCode(t, remove(test.r), doorward.CodeDeniedByPolicy)
			f.NoError(edit(test.r, role.Edit{About: &about}))
		}
		f.NoError(edit(desk, role.Edit{Permissions: &permissions})) // by the last policy
		f.NoError(edit(unused, role.Edit{Permissions: &permissions, Name: &name}))
		f.NoError(remove(unused))
	})
}

// TestDemandFollowsRoles: a demand for second factors also covers a role under its new name.
// The last role that it covers can't be deleted, since without any it would cover everybody.
func TestDemandFollowsRoles(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		desk, shop := create(f, owner, "DESK", "message.read"), create(f, owner, "SHOP", "message.read")
		member := join(f, owner, "DESK")
		f.EditTenant(owner, func(s *doorward.TenantSettings) {
			s.SecondFactor = doorward.SecondFactor{Since: f.DB.Now(), Roles: []doorward.Role{"DESK", "SHOP"}, GraceDays: 30}
		})
		want := func(names string) {
			f.Helper()
			tenant, err := f.DB.Read().Tenant(f.Context(), owner.User.TenantID)
			f.NoError(err)
			if got := tenant.Settings.SecondFactor.RoleNames(); got != names {
				f.Fatalf("the demand covers %q, want %q", got, names)
			}
		}
		remove := func(r role.Role, by doorward.Role) error {
			return apptest.ErrorOf(f.Node(0).Roles.Delete(f.Context(), callerOn(f, 0, owner), r.ID, by))
		}
		name := "WINDOW"
		_, _, err := f.Node(0).Roles.Edit(f.Context(), callerOn(f, 0, owner), desk.ID, role.Edit{Name: &name})
		f.NoError(err)
		want("SHOP WINDOW")
		for i := range f.Nodes {
			if !callerOn(f, i, member).DemandsFactor {
				f.Errorf("node %d demands no second factor under the new name", i)
			}
		}
		f.NoError(remove(shop, ""))
		want("WINDOW")
		wantCode(t, remove(desk, doorward.RoleViewer), doorward.CodeRoleInUse)
		want("WINDOW")
		f.EditTenant(owner, func(s *doorward.TenantSettings) {
			s.SecondFactor.Roles = []doorward.Role{"WINDOW", doorward.RoleViewer}
		})
		f.NoError(remove(desk, doorward.RoleViewer))
		want("VIEWER")
		if !callerOn(f, 1, member).DemandsFactor {
			f.Error("a VIEWER is not covered")
		}
	})
}

// TestNobodyGivesMoreThanTheyHave: nobody creates, widens or gives a role that grants more than
// their own, or changes a built-in one.
func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		top := create(f, owner, "PAYER", "billing.read")
		own := create(f, owner, "DESK", "user.read", "tenant.read", "message.read", "report.read", "role.manage")
		admin, desk := f.Join(owner, doorward.RoleAdmin), join(f, owner, "DESK")
		roles := f.Node(0).Roles
		edit := func(p apptest.Person, id string, permissions ...string) error {
			_, _, err := roles.Edit(f.Context(), callerOn(f, 0, p), id, role.Edit{Permissions: &permissions})
			return err
		}
		add := func(p apptest.Person, permissions ...string) error {
			_, err := roles.Create(f.Context(), callerOn(f, 0, p), role.Draft{Name: "MORE", Permissions: permissions})
			return err
		}
		wantCode(t, add(admin, "billing.read"), doorward.CodeForbidden)
		wantCode(t, add(desk, "audit.read"), doorward.CodeForbidden)
		wantCode(t, edit(admin, top.ID, "message.read"), doorward.CodeForbidden)
		wantCode(t, edit(desk, own.ID, "audit.read", "role.manage"), doorward.CodeForbidden)
		wantCode(t, edit(admin, "rol_owner", "message.read"), doorward.CodeForbidden)
		_, err := roles.Delete(f.Context(), callerOn(f, 0, admin), own.ID, doorward.RoleOwner)
		wantCode(t, err, doorward.CodeForbidden)
		_, err = roles.Create(f.Context(), callerOn(f, 0, owner), role.Draft{Name: "ADMIN", Permissions: []string{"no.such"}})
		wantCode(t, err, doorward.CodeValidationFailed)
	})
}

// TestVersionWithoutThePermission: the version of a role depends only on what callers see, even
// while the model lacks one of its permissions. An edit of the name keeps that permission.
func TestVersionWithoutThePermission(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		r := create(f, owner, "DESK", "message.read", "user.read")
		apply := func(text string) {
			const force = true
			_, err := f.Node(0).Models.Apply(f.Context(), doorward.OperatorAtTerminal(), text, nil, force)
			f.NoError(err)
		}
		apply("actions: {}")
		name := "COUNTER"
		seen, err := f.Node(0).Roles.Get(f.Context(), callerOn(f, 0, owner), r.ID)
		f.NoError(err)
		edit := role.Edit{Name: &name, Versions: []string{seen.Version()}}
		plan, err := f.Node(0).Roles.Plan(f.Context(), callerOn(f, 0, owner), r.ID, edit)
		f.NoError(err)
		if plan.Was.Name != "DESK" || plan.Is.Name != "COUNTER" || len(plan.Is.Permissions) != 1 {
			t.Errorf("the plan is %+v", plan)
		}
		_, _, err = f.Node(0).Roles.Edit(f.Context(), callerOn(f, 0, owner), r.ID, edit)
		f.NoError(err)
		_, _, err = f.Node(0).Roles.Edit(f.Context(), callerOn(f, 0, owner), r.ID, edit)
		wantCode(t, err, doorward.CodePreconditionFailed)
		apply("actions:\n  message.read: {roles: [OWNER]}\n")
		if back, err := f.Node(1).Roles.Get(f.Context(), callerOn(f, 1, owner), r.ID); err != nil || len(back.Permissions) != 2 {
			t.Errorf("the permission is lost: %+v, %v", back, err)
		}
	})
}

// TestNothingKeepsADeletedRole: a role is deleted while somebody is invited into it, a member
// is given it, and a key is made with it. None of them has the role afterwards.
func TestNothingKeepsADeletedRole(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		member := f.Join(owner, doorward.RoleUser)
		for range apptest.Rounds(5, 50) {
			r := create(f, owner, "BRIEF", "message.read")
			callers := []doorward.Caller{callerOn(f, 0, owner), callerOn(f, 1, owner), callerOn(f, 0, owner), callerOn(f, 1, owner)}
			email := f.NewEmail("late")
			apptest.Concurrently(4, func(i int) (err error) {
				switch n := f.Node(i); i {
				case 0:
					_, err = n.Roles.Delete(f.Context(), callers[i], r.ID, doorward.RoleViewer)
				case 1:
					_, err = n.Invitations.Send(f.Context(), callers[i], apptest.Offer(email, "BRIEF"))
				case 2:
					err = n.Users.SetRole(f.Context(), callers[i], member.User, "BRIEF")
				case 3:
					_, _, err = n.APIKeys.Create(f.Context(), callers[i], apikey.Draft{Name: "k", Role: "BRIEF", Permissions: []string{"message.read"}})
				}
				return err
			})
			for _, table := range []string{"memberships", "invitations", "api_keys"} {
				if n := f.Int("SELECT count(*) FROM " + table + " WHERE role = 'BRIEF'"); n > 0 {
					t.Fatalf("%d %s have a role that was deleted", n, table)
				}
			}
			f.NoError(f.Node(0).Users.SetRole(f.Context(), callerOn(f, 0, owner), member.User, doorward.RoleUser))
		}
	})
}

func wantCode(t *testing.T, err error, code doorward.Code) {
	t.Helper()
	if !doorward.HasCode(err, code) {
		t.Fatalf("%v, want %s", err, code)
	}
}
