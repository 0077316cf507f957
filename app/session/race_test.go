package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// TestRaceSessionLimit: after many concurrent logins, in any tenants, exactly as many
// sessions are left as the limit allows.
func TestRaceSessionLimit(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, ann := f.Tenant()
		tenants := []string{acme.ID}
		for range 4 {
			other, owner := f.Tenant()
			_, token := f.Invite(owner, ann.User.Email, doorward.RoleUser)
			_, err := f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")
			f.NoError(err)
			tenants = append(tenants, other.ID)
		}
		account := f.Account(ann)
		const perUser = 10 // the limit that apptest sets
		for round := range 6 {
			var o apptest.OpenedSessions
			errs := apptest.Concurrently(20, func(i int) error {
				to := tenants[i%len(tenants)]
				if round > 0 { // without hashing the logins are closer together
					return o.Add(f.Enter(i, account, to))
				}
				r, err := apptest.SignedIn(f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(i), ann.User.Email, apptest.FirstPassword, to))
				return o.Add(r.Opened, err)
			})
			f.WantCodes(errs, apptest.Codes{"": 20})
			rows, err := f.DB.Read().UserSessions(f.Context(), ann.User.ID)
			f.NoError(err)
			if n := f.CountValid(&o); n != perUser || len(rows) != perUser {
				f.Fatalf("of 20 new sessions %d are valid and %d are stored, want %d", n, len(rows), perUser)
			}
		}
	})
}

// TestRaceOneSwitch: of several concurrent switches of one session, one succeeds.
func TestRaceOneSwitch(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		zeta, invitee := f.Tenant()
		invitation, token := f.Invite(owner, invitee.User.Email, doorward.RoleViewer)
		_, err := f.Node(0).Invitations.Accept(f.Context(), invitee.Caller, token, "")
		f.NoError(err)
		var o apptest.OpenedSessions
		errs := apptest.Concurrently(8, func(i int) error {
			to := []string{invitation.TenantID, zeta.ID}[i%2]
			return o.Add(f.Switch(i, invitee.Caller, to))
		})
		f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeUnauthenticated: 7})
		if f.IsValid(invitee.Token) || f.CountValid(&o) != 1 {
			f.Errorf("the old session is valid: %v; %d new ones are", f.IsValid(invitee.Token), f.CountValid(&o))
		}
		switchInBothDirections(f, owner, invitee, invitation.TenantID, zeta.ID)
	})
}

// switchInBothDirections fails if switches in opposite directions deadlock: a switch between
// two tenants writes to both trails.
func switchInBothDirections(f *apptest.Fixture, owner, invitee apptest.Person, acme, zeta string) {
	f.Helper()
	invitee = f.SignIn(invitee.User.Email, apptest.FirstPassword)
	_, token := f.Invite(moved(f, invitee, zeta), owner.User.Email, doorward.RoleViewer)
	_, err := f.Node(0).Invitations.Accept(f.Context(), owner.Caller, token, "")
	f.NoError(err)
	both := []apptest.Person{moved(f, owner, acme), moved(f, f.SignIn(invitee.User.Email, apptest.FirstPassword), zeta)}
	f.WantCodes(apptest.Concurrently(2, func(i int) error {
		by, destinations := both[i].Caller, []string{zeta, acme, zeta}[i:]
		for n := range apptest.Rounds(20, 40) {
			opened, err := f.Switch(i, by, destinations[n%2])
			if err != nil {
				return err
			}
			by.Principal = doorward.PrincipalOf(opened.User, opened.Session)
		}
		return nil
	}), apptest.Codes{"": 2})
	f.WantNoDeadlocks()
}

// moved returns the person after a switch to the tenant.
func moved(f *apptest.Fixture, p apptest.Person, tenantID string) apptest.Person {
	f.Helper()
	s, err := f.Switch(0, p.Caller, tenantID)
	f.NoError(err)
	by := p.Caller.As(s.User)
	by.Principal = doorward.PrincipalOf(s.User, s.Session)
	return apptest.Person{Caller: by, Token: s.Token}
}

// TestRaceSignOutOfAPromotedMember: a member becomes OWNER while an ADMIN's request to end one of the
// member's sessions waits. An ADMIN may not sign out an OWNER, so the session stays.
func TestRaceSignOutOfAPromotedMember(t *testing.T) {
	t.Parallel()
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	admin, member := f.Join(owner, doorward.RoleAdmin), f.Join(owner, doorward.RoleUser)
	var refused error
	done := make(chan struct{})
	f.WhileLocked(func(tx *store.Tx) error {
		_, err := tx.SetUserRole(f.Context(), member.User.TenantID, member.User.ID, doorward.RoleOwner)
		return errors.Join(err, tx.LockTenant(f.Context(), member.User.TenantID))
	}, func(waitFor func(int, <-chan struct{})) {
		go func() {
			defer close(done)
			_, refused = f.Node(0).Sessions.EndOf(f.Context(), admin.Caller, member.User, member.SessionID)
		}()
		waitFor(1, done)
	})
	<-done
	f.WantCodes([]error{refused}, apptest.Codes{doorward.CodeForbidden: 1})
	if !f.IsValid(member.Token) {
		t.Error("the session has ended")
	}
}
