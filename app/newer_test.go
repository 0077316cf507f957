package app_test

import (
	"context"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// A newer version that runs beside this one may set a status that this one doesn't know. This
// version then refuses access, since the status may mean anything. It loses no data, and a known
// status restores access.
func TestUnknownStatusLetsNobodyIn(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		_, token := f.Invite(owner, "new@example.com", doorward.RoleUser)
		set := func(to doorward.TenantStatus) {
			f.Exec(`UPDATE tenants SET status = $1 WHERE id = $2`, to, acme.ID)
			f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error { return tx.EditTenant(f.Context(), acme) })) // announces the change
		}
		accept := func() doorward.Code {
			_, err := f.Node(0).Invitations.Complete(context.Background(), apptest.Anonymous(1), token, apptest.FirstPassword, apptest.FirstPassword)
			return apptest.Code(err)
		}
		set("archived")
		if f.IsValid(ann.Token) || f.IsValid(owner.Token) {
			t.Error("sessions are valid in a tenant with an unknown status")
		}
		for _, got := range []doorward.Code{f.TryLogin(ann.User.Email, apptest.FirstPassword), f.TryLogin(owner.User.Email, apptest.FirstPassword), accept()} {
			if got != doorward.CodeTenantFrozen {
				t.Errorf("a login or acceptance in a tenant with an unknown status ends with %q", got)
			}
		}
		set(doorward.TenantActive)
		if !f.IsValid(ann.Token) || accept() != "" {
			t.Error("the session or the invitation is invalid although the status is known again")
		}
		f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error {
			_, err := tx.SetUserStatus(f.Context(), acme.ID, ann.User.ID, "absent")
			return err
		}))
		if f.IsValid(ann.Token) || f.TryLogin(ann.User.Email, apptest.FirstPassword) != doorward.CodeMembershipSuspended {
			t.Error("a person with an unknown status has access")
		}
	})
}
