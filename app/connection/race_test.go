package connection_test

import (
	"fmt"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/store"
)

type roleEdit = role.Edit

// makeRole makes a role of the tenant and returns its id.
func makeRole(f *apptest.Fixture, by apptest.Person, name string, permissions ...doorward.Action) string {
	f.Helper()
	texts := make([]string, len(permissions))
	for i, p := range permissions {
		texts[i] = string(p)
	}
	made, err := f.Node(0).Roles.Create(f.Context(), by.Caller, role.Draft{Name: name, Permissions: texts})
	f.NoError(err)
	return made.ID
}

// TestRaceDisable: whichever of a sign-in and the end of its connection comes first, no session is left
// when the end is answered.
func TestRaceDisable(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		p := f.Provider()
		for round := range apptest.Rounds(4, 20) {
			c := f.Active(owner, p)
			errs := apptest.Concurrently(9, func(i int) error {
				switch {
				case i > 0:
					return openSession(f, owner, c.ID, fmt.Sprint(round, " ", i))
				case round%2 == 0:
					_, err := f.Node(0).Connections.Delete(f.Context(), owner.Caller, c.ID, false)
					return err
				}
				_, _, err := f.Node(0).Connections.Edit(f.Context(), owner.Caller, c.ID, connection.Change{Draft: connection.Draft{Status: new("disabled")}})
				return err
			})
			for _, err := range errs {
				f.NoError(err)
			}
			if n := f.Int(`SELECT count(*) FROM sessions WHERE issuer = $1`, c.ID); n != 0 {
				t.Errorf("round %d: %d sessions are left", round, n)
			}
			if round%2 == 1 {
				_, err := f.Node(0).Connections.Delete(f.Context(), owner.Caller, c.ID, false)
				f.NoError(err)
			}
		}
		f.WantNoDeadlocks()
	})
}

// openSession opens a session by the connection, if it is active, as a sign-in does.
func openSession(f *apptest.Fixture, p apptest.Person, id, token string) error {
	_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
		isActive, err := tx.SignInByConnection(f.Context(), id, false)
		if err != nil || !isActive {
			return err
		}
		s := doorward.Session{
			ID: doorward.NewID(doorward.PrefixSession), UserID: p.User.ID, TenantID: p.User.TenantID, CreatedAt: tx.Now, LastSeenAt: tx.Now,
			Assurance: doorward.Assurance{Issuer: doorward.Issuer(id), AAL: 1, AMR: []string{"fed"}, ProvedAt: tx.Now},
		}
		return tx.InsertSession(f.Context(), s, []byte(id+token))
	})
	return err
}
