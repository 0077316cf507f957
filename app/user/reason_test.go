package user_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/member"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
)

// An administrator's reason and a directory's are apart: all must be gone, neither side lifts the other's while the
// directory runs, and an OWNER may override it.
func TestReasonsOfSuspension(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		tenant, owner := f.Tenant()
		admin, bob := f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleUser)
		con := f.Connection(owner)
		f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error { // by which the directory runs
			return tx.InsertSCIMSecret(f.Context(), doorward.SCIMSecret{ID: "scs_1", ConnectionID: con, CreatedAt: tx.Now}, []byte("a hash"))
		}))
		switchOff := func() {
			f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error {
				m, err := tx.User(f.Context(), tenant.ID, bob.User.ID)
				f.NoError(err)
				_, err = member.Hold(f.Context(), &access.Tx{Tx: tx}, m, con)
				return err
			}))
		}
		set := func(by apptest.Person, status doorward.UserStatus, override bool) error {
			_, _, err := f.Node(0).Users.Edit(f.Context(), by.Caller, bob.User, user.Edit{Status: &status, Override: override})
			return err
		}
		want := func(step string, reasons ...string) {
			f.Helper()
			got, err := f.Node(1).Users.Get(f.Context(), owner.Caller, bob.User.ID)
			f.NoError(err)
			if !slices.Equal(got.Suspensions(), reasons) || (got.Status == doorward.UserActive) != (len(reasons) == 0) {
				f.Fatalf("%s: %s, suspended by %q, want %q", step, got.Status, got.Suspensions(), reasons)
			}
		}
		refuse := func(step string, err error, code doorward.Code) {
			f.Helper()
			if apptest.Code(err) != code {
				f.Fatalf("%s: %v, want %s", step, err, code)
			}
		}

		switchOff()
		want("the directory switches off", con)
		refuse("an ADMIN resumes", set(admin, doorward.UserActive, false), doorward.CodeManagedByDirectory)
		refuse("an ADMIN overrides", set(admin, doorward.UserActive, true), doorward.CodeForbidden)
		refuse("an OWNER resumes without override", set(owner, doorward.UserActive, false), doorward.CodeManagedByDirectory)
		want("after the refusals", con)
		f.NoError(set(admin, doorward.UserSuspended, false))
		want("an ADMIN suspends, too", doorward.ByAdministrator, con)
		f.NoError(set(admin, doorward.UserActive, false))
		want("an ADMIN lifts the own reason alone", con)
		f.NoError(set(owner, doorward.UserActive, true))
		want("an OWNER overrides")

		switchOff()
		f.NoError(set(admin, doorward.UserSuspended, false))
		f.Exec("UPDATE connections SET status = 'disabled' WHERE id = '" + con + "'")
		f.NoError(set(admin, doorward.UserActive, false))
		want("the directory doesn't run any more")

		switchOff() // what a node of the version before writes: the status alone
		f.Exec("UPDATE memberships SET status = 'active' WHERE user_id = '" + bob.User.ID + "'")
		want("an earlier version resumes")
		f.NoError(set(admin, doorward.UserSuspended, false))
		want("and an ADMIN suspends", doorward.ByAdministrator)
	})
}
