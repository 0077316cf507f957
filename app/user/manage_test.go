package user_test

import (
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/user"
)

// OWNERs manage everybody. ADMINs manage USERs and VIEWERs, and give any role but OWNER. USERs and
// VIEWERs manage nobody. A caller who may not learns nothing about other faults of the change.
func TestWhoMayManageWhom(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.SQLite, apptest.NoLimits, time.Now) // with one node, no change waits for another
	_, owner := f.Tenant()
	users, name, long := f.Node(0).Users, "x", strings.Repeat("x", 101)
	active, suspended := doorward.UserActive, doorward.UserSuspended
	edit := func(e user.Edit) func(by apptest.Person, target doorward.User) error {
		return func(by apptest.Person, target doorward.User) error {
			_, _, err := users.Edit(f.Context(), by.Caller, target, e)
			return err
		}
	}
	type action struct {
		name    string
		grants  doorward.Role
		do      func(by apptest.Person, target doorward.User) error
		invalid bool
	}
	actions := []action{
		{name: "rename", do: edit(user.Edit{Name: &name})},
		{name: "change nothing", do: edit(user.Edit{})},
		{name: "suspend", do: edit(user.Edit{Status: &suspended})},
		{name: "resume", do: edit(user.Edit{Status: &active})},
	}
	for _, role := range doorward.Roles {
		actions = append(actions,
			action{name: "give " + string(role), grants: role, do: edit(user.Edit{Role: &role})},
			action{name: "change all to " + string(role), grants: role, do: edit(user.Edit{Role: &role, Status: &suspended, Name: &name})},
			action{name: "give too long a name and " + string(role), grants: role, do: edit(user.Edit{Role: &role, Name: &long}), invalid: true})
	}
	actions = append(actions,
		action{name: "sign out", do: func(by apptest.Person, target doorward.User) error {
			return apptest.ErrorOf(users.SignOut(f.Context(), by.Caller, target))
		}},
		action{name: "remove", do: func(by apptest.Person, target doorward.User) error {
			return apptest.ErrorOf(users.Remove(f.Context(), by.Caller, target, user.Handover{}, nil))
		}})
	mayManage := func(caller, current, granted doorward.Role) bool {
		return caller == doorward.RoleOwner || caller == doorward.RoleAdmin && current != doorward.RoleOwner && current != doorward.RoleAdmin && granted != doorward.RoleOwner
	}
	for _, caller := range doorward.Roles {
		by := f.Join(owner, caller)
		for _, current := range doorward.Roles {
			target := f.Join(owner, current).User
			for _, a := range actions {
				f.NoError(users.SetRole(f.Context(), apptest.Operator, target, current))
				want := doorward.Code("")
				if !mayManage(caller, current, a.grants) {
					want = doorward.CodeForbidden
				} else if a.invalid {
					want = doorward.CodeValidationFailed
				}
				if got := apptest.Code(a.do(by, target)); got != want {
					t.Errorf("%s: %s of a %s: %q, want %q", caller, a.name, current, got, want)
				}
			}
		}
		if caller != doorward.RoleOwner { // others don't manage themselves
			for _, a := range actions {
				if got := apptest.Code(a.do(by, by.User)); got != doorward.CodeForbidden {
					t.Errorf("%s: %s of oneself: %q, want forbidden", caller, a.name, got)
				}
			}
		}
	}
}
