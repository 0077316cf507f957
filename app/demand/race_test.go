package demand_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// TestRaceDemand: once a demand is answered on one node, no login on another opens a session, however long
// it has been under way: here one that was let in, and waits for the membership.
func TestRaceDemand(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	a := newAcme(f)
	ann := joinAs(f, a.owner, a.address("ann"), doorward.RoleUser)
	signedIn, answered := make(chan error, 1), make(chan struct{})
	isAnswered := false
	f.WhileLocked(func(tx *store.Tx) error {
		_, err := tx.RecordLogin(f.Context(), a.id, ann.User.ID)
		return err
	}, func(waitFor func(int, <-chan struct{})) {
		go func() { signedIn <- signInTo(f, 0, ann, a.id) }()
		waitFor(1, nil)
		go func() {
			defer close(answered)
			f.NoError(apptest.ErrorOf(f.Node(1).Demands.Put(f.Context(), a.owner.Caller, required, nil)))
		}()
		waitFor(2, answered)
		select {
		case <-answered:
			isAnswered = true
		default:
		}
	})
	<-answered
	if err := <-signedIn; err == nil && isAnswered {
		t.Error("a session was opened after the answer")
	}
	want(f, signInTo(f, 0, ann, a.id), doorward.CodeSSORequired)
}

// TestRaceWaysBack: of two OWNERs who give up their factors at once, in sessions in two tenants, one keeps it.
func TestRaceWaysBack(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	a := newAcme(f)
	_, second := f.Tenant()
	app := f.Enrol(&second)
	second = f.SignInWith(second, app)
	_, code := f.Invite(a.owner, second.User.Email, doorward.RoleOwner)
	f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), second.Caller, code, "")))
	a.demanded(f, doorward.GuestsAllowed)
	done := make(chan error, 2)
	remove := func(p apptest.Person, id string) {
		done <- apptest.ErrorOf(f.Node(0).Factors.Remove(f.Context(), p.Caller, id))
	}
	f.WhileTrailLocked(a.id, func(waitFor func(int, <-chan struct{})) {
		go remove(a.owner, a.app.ID)
		waitFor(1, nil)
		go remove(second, app.ID)
		waitFor(2, nil)
	})
	f.WantCodes([]error{<-done, <-done}, apptest.Codes{"": 1, doorward.CodeNoWayBack: 1})
}
