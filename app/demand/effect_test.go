package demand_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/user"
)

// TestLastWayBack: while sign-on is demanded, nothing takes the last way back of an OWNER, except what the
// operator does, and a person's erasure.
func TestLastWayBack(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		a := newAcme(f)
		second := joinAs(f, a.owner, a.address("second"), doorward.RoleOwner)
		users := f.Node(0).Users
		by := second.Caller // a session from before the demand
		refused := map[string]func() error{
			"a factor": func() error {
				return apptest.ErrorOf(f.Node(0).Factors.Remove(f.Context(), a.owner.Caller, a.app.ID))
			},
			"a suspension": func() error { return apptest.ErrorOf(users.Suspend(f.Context(), by, a.owner.User)) },
			"a role":       func() error { return users.SetRole(f.Context(), by, a.owner.User, doorward.RoleAdmin) },
			"a removal": func() error {
				return apptest.ErrorOf(users.Remove(f.Context(), by, a.owner.User, user.Handover{}, nil))
			},
			"leaving": func() error { return apptest.ErrorOf(users.Leave(f.Context(), a.owner.Caller, a.id)) },
		}
		a.demanded(f, doorward.GuestsAllowed)
		for name, try := range refused {
			if got := apptest.Code(try()); got != doorward.CodeNoWayBack {
				t.Errorf("%s is answered %q", name, got)
			}
		}
		f.Enrol(&second)
		want(f, refused["a factor"](), "")
		_, err := users.EraseAddress(f.Context(), apptest.Operator, second.User.Email)
		f.NoError(err)
	})
}

// takeAway performs the statements as an action of the caller.
func takeAway(f *apptest.Fixture, by doorward.Caller, tenantID string, fn func(*access.Tx) error) error {
	on := doorward.Object{Type: "tenant", ID: tenantID, TenantID: tenantID}
	return apptest.ErrorOf(f.Node(0).Access.Do(f.Context(), by, doorward.SSOPolicyChange, on, fn))
}

// TestHomeKept: while sign-on is demanded, a connection by which people of a domain sign in stays active,
// and the last domain stays. Other connections, and domains that are given to another, don't.
func TestHomeKept(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		a := newAcme(f)
		idle := f.Connection(a.owner)
		domain := ""
		f.NoError(f.SQL().QueryRow(`SELECT id FROM domains WHERE tenant_id = $1`, a.id).Scan(&domain))
		disable := func(con string) func(*access.Tx) error {
			return func(tx *access.Tx) error {
				_, err := tx.SetConnectionStatus(f.Context(), con, doorward.ConnectionDisabled)
				return err
			}
		}
		move := func(to string) func(*access.Tx) error {
			return func(tx *access.Tx) error { return tx.SetDomainConnection(f.Context(), domain, to) }
		}
		a.demanded(f, doorward.GuestsAllowed)
		for name, try := range map[string]func(*access.Tx) error{
			"disabling": disable(a.con),
			"emptying":  move(""),
			"deleting": func(tx *access.Tx) error {
				_, err := tx.DeleteConnection(f.Context(), a.con)
				return err
			},
			"the last domain": func(tx *access.Tx) error { return tx.DeleteDomain(f.Context(), domain) },
		} {
			if got := apptest.Code(takeAway(f, a.owner.Caller, a.id, try)); got != doorward.CodeSSORequiredHere {
				t.Errorf("%s is answered %q", name, got)
			}
		}
		want(f, takeAway(f, a.owner.Caller, a.id, move(idle)), "")
		want(f, takeAway(f, a.owner.Caller, a.id, disable(a.con)), "")
		want(f, takeAway(f, a.owner.Caller, a.id, disable(idle)), doorward.CodeSSORequiredHere)
		want(f, takeAway(f, apptest.Operator, a.id, disable(idle)), "")
	})
}
