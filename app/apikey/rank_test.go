package apikey_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/store"
)

// TestRaceRankOfAKeyThatChanges: the role of a key gets another name and the rank of OWNER while an
// ADMIN's change of the key waits. The ADMIN may no longer change it, and gets no secret of it.
func TestRaceRankOfAKeyThatChanges(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	admin := f.Join(owner, doorward.RoleAdmin)
	brief, err := f.Node(0).Roles.Create(f.Context(), owner.Caller, role.Draft{Name: "BRIEF", Permissions: []string{"message.read"}})
	f.NoError(err)
	owner = f.SignIn(owner.User.Email, apptest.FirstPassword) // with the rules that have the role
	admin = f.SignIn(admin.User.Email, apptest.FirstPassword)
	key, _, err := f.Node(0).APIKeys.Create(f.Context(), owner.Caller, apikey.Draft{Name: "bills", Role: "BRIEF", Permissions: []string{"message.read"}})
	f.NoError(err)

	// Of the built-in roles only OWNER has billing.read, so a role with it has the rank of OWNER.
	raised := brief.CustomRole
	raised.Name, raised.Permissions = "BILLS", []doorward.Action{doorward.BillingRead, doorward.MessageRead}
	changes := map[string]func() error{
		"rotate": func() error { return apptest.ErrorOf(f.Node(0).APIKeys.Rotate(f.Context(), admin.Caller, key.ID, nil)) },
		"edit": func() error {
			return errorOf3(f.Node(0).APIKeys.Edit(f.Context(), admin.Caller, key.ID, apikey.Edit{Status: ptr("disabled")}))
		},
		"revoke": func() error { return apptest.ErrorOf(f.Node(0).APIKeys.Revoke(f.Context(), admin.Caller, key.ID)) },
	}
	done, finished := make(chan error, len(changes)), make(chan struct{}, len(changes))
	f.WhileLocked(func(tx *store.Tx) error { // as package role edits the role
		if err := tx.LockTenant(f.Context(), key.TenantID); err != nil {
			return err
		}
		if err := tx.MoveRole(f.Context(), key.TenantID, brief.Name, raised.Name); err != nil {
			return err
		}
		return apptest.ErrorOf(tx.UpdateCustomRole(f.Context(), key.TenantID, raised))
	}, func(waitFor func(n int, stop <-chan struct{})) {
		for _, change := range changes {
			go func() {
				done <- change()
				finished <- struct{}{}
			}()
		}
		waitFor(len(changes), finished)
	})
	for range changes {
		if err := <-done; !doorward.HasCode(err, doorward.CodeForbidden) {
			t.Errorf("a change by the ADMIN: %v, want forbidden", err)
		}
	}
}
