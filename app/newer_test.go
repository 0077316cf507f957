package app_test

import (
	"context"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// A newer version runs beside this one and has given a tenant or a person a
// status that this one doesn't know. It may mean anything, so nobody is let in;
// nothing is lost either, and with a status that is known all is as before.
func TestUnknownStatusLetsNobodyIn(t *testing.T) {
	onEach(t, func(w *world) {
		acme, owner := w.tenant()
		ann := w.join(owner, doorward.RoleUser)
		_, offered := w.invite(owner, "new@example.com", doorward.RoleUser)
		set := func(to doorward.TenantStatus) {
			w.exec(`UPDATE tenants SET status = $1 WHERE id = $2`, to, acme.ID)
			w.ok(w.on(0).Access.Upkeep(w.Context(), func(tx *store.Tx) error { return tx.EditTenant(w.Context(), acme) })) // is announced
		}
		accept := func() doorward.Code {
			_, err := w.on(0).Invitations.Complete(context.Background(), stranger(1), offered, first, first)
			return code(err)
		}
		set("archived")
		if w.passes(ann.token) || w.passes(owner.token) {
			t.Error("sessions go on in a tenant with a status that nobody knows")
		}
		for _, got := range []doorward.Code{w.tries(ann.Email, first), w.tries(owner.Email, first), accept()} {
			if got != doorward.CodeTenantFrozen {
				t.Errorf("a tenant with a status that nobody knows ends with %q", got)
			}
		}
		set(doorward.TenantActive)
		if !w.passes(ann.token) || accept() != "" {
			t.Error("the tenant is not as before")
		}
		w.ok(w.on(0).Access.Upkeep(w.Context(), func(tx *store.Tx) error {
			_, err := tx.SetUserStatus(w.Context(), acme.ID, ann.ID, "absent")
			return err
		}))
		if w.passes(ann.token) || w.tries(ann.Email, first) != doorward.CodeMembershipSuspended {
			t.Error("a person with a status that nobody knows is let in")
		}
	})
}
