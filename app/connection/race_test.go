package connection_test

import (
	"fmt"
	"testing"
	"time"

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
		p := newProvider(t)
		for round := range apptest.Rounds(4, 20) {
			c := active(f, owner, p)
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

// TestRaceAttempts: of equal faults at once on two nodes none is lost.
func TestRaceAttempts(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		c := create(f, owner, connection.Draft{Type: "oidc", Name: new("x")})
		fault := doorward.Attempt{ConnectionID: c.ID, Kind: doorward.AttemptSignIn, Outcome: doorward.AttemptRefused, Check: "aud"}
		apptest.Concurrently(8, func(i int) error {
			one := fault
			one.RequestIDs = []string{fmt.Sprint("req_", i)}
			f.Node(i).Connections.Record(f.Context(), one)
			return nil
		})
		if n := f.Int(`SELECT coalesce(sum(count), 0) FROM connection_attempts WHERE connection_id = $1`, c.ID); n != 8 {
			t.Errorf("the protocol counts %d faults, want 8", n)
		}
	})
}

// TestRaceKeys: of nodes that sweep at once, one makes the next key.
func TestRaceKeys(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		c := create(f, owner, connection.Draft{Type: "oidc", Name: new("x"), ClientAuth: new("private_key_jwt")})
		clock.Move(89 * 24 * time.Hour)
		for _, err := range apptest.Concurrently(6, func(i int) error { return f.Node(i).Connections.Sweep(f.Context()) }) {
			f.NoError(err)
		}
		if n := f.Int(`SELECT count(*) FROM connection_keys WHERE connection_id = $1`, c.ID); n != 2 {
			t.Errorf("there are %d keys, want 2", n)
		}
	})
}
