package invite_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/store"
)

// TestOneRegistration: of many concurrent registrations with one link, one creates
// the account, and only its password works.
func TestOneRegistration(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		callers := apptest.Rounds(16, 32)
		_, owner := f.Tenant()
		for round := range 3 {
			email := fmt.Sprintf("new%d@example.com", round)
			_, token := f.Invite(owner, email, doorward.RoleUser)
			errs := apptest.Concurrently(callers, func(i int) error {
				_, err := f.Node(i).Invitations.Complete(f.Context(), apptest.Anonymous(i), token, apptest.Password(i), apptest.Password(i))
				return err
			})
			winner := f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeInvitationUsed: callers - 1})
			f.WantPassword(email, winner, callers)
		}
	})
}

// TestTwoRegistrations: a new person is invited to two tenants and completes both
// at once. One creates the account; the other must accept with it, and still can.
func TestTwoRegistrations(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, a := f.Tenant()
		_, b := f.Tenant()
		for round := range 5 {
			email := fmt.Sprintf("new%d@example.com", round)
			_, tokenA := f.Invite(a, email, doorward.RoleUser)
			_, tokenB := f.Invite(b, email, doorward.RoleUser)
			tokens := []string{tokenA, tokenB}
			errs := apptest.Concurrently(2, func(i int) error {
				_, err := f.Node(i).Invitations.Complete(f.Context(), apptest.Anonymous(i), tokens[i], apptest.Password(i), apptest.Password(i))
				return err
			})
			winner := f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeAccountExists: 1})
			f.WantPassword(email, winner, 2)
			_, err := f.Node(0).Invitations.Accept(f.Context(), apptest.Anonymous(0), tokens[1-winner], apptest.Password(winner))
			f.NoError(err)
		}
	})
}

// TestOneAcceptance: many accept one invitation at once, half of them with a
// password and half with a session.
func TestOneAcceptance(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		callers := apptest.Rounds(16, 32)
		acme, owner := f.Tenant()
		_, invitee := f.Tenant()
		_, token := f.Invite(owner, invitee.User.Email, doorward.RoleViewer)
		errs := apptest.Concurrently(callers, func(i int) error {
			by, password := apptest.Anonymous(i), apptest.FirstPassword
			if i%2 == 0 {
				by, password = invitee.Caller, ""
			}
			_, err := f.Node(i).Invitations.Accept(f.Context(), by, token, password)
			return err
		})
		f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeInvitationUsed: callers - 1})
		page, err := f.DB.Read().UserPage(f.Context(), acme.ID, store.UserFilter{}, doorward.Window{Limit: 1000})
		f.NoError(err)
		if len(page.Items) != 2 {
			f.Errorf("the tenant has %d members, want the owner and the invitee", len(page.Items))
		}
	})
}

// TestOneInvitation: two administrators invite one address many times at once.
// Each refusal names the invitation that exists.
func TestOneInvitation(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers = 16
		_, owner := f.Tenant()
		by := []apptest.Person{owner, f.Join(owner, doorward.RoleAdmin)}
		for round := range 5 {
			email := fmt.Sprintf("new%d@example.com", round)
			sent := make([]doorward.Invitation, callers)
			errs := apptest.Concurrently(callers, func(i int) (err error) {
				sent[i], err = f.Node(i).Invitations.Send(f.Context(), by[i%2].Caller, apptest.Offer(email, doorward.RoleUser))
				return err
			})
			winner := f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeInvitationPending: callers - 1})
			for i, err := range errs {
				var e *doorward.Error
				if errors.As(err, &e) && e.InvitationID != sent[winner].ID {
					f.Errorf("caller %d got the invitation %q, want %q", i, e.InvitationID, sent[winner].ID)
				}
			}
		}
	})
}

// TestSuspendedInviterInvitesNobody: an invitation is either revoked with its
// sender's membership or accepted before, never both.
func TestSuspendedInviterInvitesNobody(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		admin := f.Join(owner, doorward.RoleAdmin)
		_, invitee := f.Tenant()
		for range apptest.Rounds(8, 20) {
			admin = f.SignIn(admin.User.Email, apptest.FirstPassword)
			inv, token := f.Invite(admin, invitee.User.Email, doorward.RoleUser)
			var ended doorward.Ended
			errs := apptest.Concurrently(2, func(i int) (err error) {
				if i == 0 {
					_, err = f.Node(i).Invitations.Accept(f.Context(), invitee.Caller, token, "")
					return err
				}
				ended, err = f.Node(i).Users.Suspend(f.Context(), owner.Caller, admin.User)
				return err
			})
			f.NoError(errs[1])
			f.WantOnly(errs, "", doorward.CodeInvitationRevoked)
			if accepted := errs[0] == nil; accepted == (ended.Invitations == 1) {
				f.Fatalf("accepted: %v; %d invitations were revoked", accepted, ended.Invitations)
			}
			f.NoError(f.Node(0).Users.Resume(f.Context(), owner.Caller, admin.User))
			_, err := f.DB.Write(f.Context(), func(tx *store.Tx) error {
				if _, err := tx.DeleteMembership(f.Context(), inv.TenantID, invitee.User.ID); err != nil {
					return err
				}
				return tx.ClearThrottle(f.Context(), "resend:"+inv.TenantID+":"+inv.Email) // skips the limit per day
			})
			f.NoError(err)
		}
	})
}

// TestDemotedInviterInvitesNobody: an acceptance checks the inviter's role and
// adds the membership in one transaction, which a demotion can't interrupt.
func TestDemotedInviterInvitesNobody(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	_, owner := f.Tenant()
	admin := f.Join(owner, doorward.RoleAdmin)
	_, invitee := f.Tenant()
	_, token := f.Invite(admin, invitee.User.Email, doorward.RoleUser)

	// The account is locked, so that the acceptance stops after its check.
	var accepted, demoted error
	acceptance, demotion := make(chan struct{}), make(chan struct{})
	f.WhileLocked(func(tx *store.Tx) error {
		_, err := tx.LockAccount(f.Context(), invitee.User.ID)
		return err
	}, func(waitFor func(n int, stop <-chan struct{})) {
		go func() {
			defer close(acceptance)
			_, accepted = f.Node(0).Invitations.Accept(f.Context(), invitee.Caller, token, "")
		}()
		waitFor(1, acceptance)
		go func() {
			defer close(demotion)
			demoted = f.Node(1).Users.SetRole(f.Context(), owner.Caller, admin.User, doorward.RoleViewer)
		}()
		waitFor(2, demotion)
		select {
		case <-demotion:
			t.Error("the inviter was demoted between the check in the acceptance and its commit")
		default:
		}
	})
	<-acceptance
	<-demotion
	f.NoError(errors.Join(accepted, demoted))
}

// TestInviterIsCheckedAgain: an acceptance that waits for a lock checks the inviter's role
// afterwards. If the inviter was demoted, the invitation stays unchanged.
func TestInviterIsCheckedAgain(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	acme, owner := f.Tenant()
	admin := f.Join(owner, doorward.RoleAdmin)
	_, invitee := f.Tenant()
	inv, token := f.Invite(admin, invitee.User.Email, doorward.RoleUser)
	var accepted error
	acceptance := make(chan struct{})
	f.WhileLocked(func(tx *store.Tx) error {
		_, err := tx.SetUserRole(f.Context(), acme.ID, admin.User.ID, doorward.RoleViewer)
		return errors.Join(err, tx.LockTenant(f.Context(), acme.ID))
	}, func(waitFor func(n int, stop <-chan struct{})) {
		go func() {
			defer close(acceptance)
			_, accepted = f.Node(0).Invitations.Accept(f.Context(), invitee.Caller, token, "")
		}()
		waitFor(1, acceptance)
	})
	<-acceptance
	f.WantCodes([]error{accepted}, apptest.Codes{doorward.CodeInvitationRevoked: 1})
	current, err := f.DB.Read().Invitation(f.Context(), inv.ID)
	f.NoError(err)
	if current.State != doorward.InvitationPending {
		t.Errorf("the invitation is %s", current.State)
	}
}

// TestAddressChangesDuringAcceptance: an acceptance waits for a lock while the account gets
// another address. The invitation was to the old one, which the tenant's domains may demand,
// so it stays unchanged.
func TestAddressChangesDuringAcceptance(t *testing.T) {
	for name, proof := range map[string]struct {
		session bool
		code    doorward.Code
	}{"session": {true, doorward.CodeWrongAccount}, "password": {false, doorward.CodeInvalidCredentials}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
			acme, owner := f.Tenant()
			_, invitee := f.Tenant()
			to := "guest@elsewhere.example"
			f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), invitee.Caller, to, false))
			code := f.MailToken(to)
			f.EditTenant(owner, func(s *doorward.TenantSettings) { s.AllowedDomains = []string{"example.com"} })
			inv, token := f.Invite(owner, invitee.User.Email, doorward.RoleUser)
			caller, password := invitee.Caller, ""
			if !proof.session {
				caller, password = apptest.Anonymous(0), apptest.FirstPassword
			}
			accepted := make(chan error, 1)
			f.WhileLocked(func(tx *store.Tx) error { return tx.LockTenant(f.Context(), acme.ID) }, func(waitFor func(int, <-chan struct{})) {
				go func() {
					accepted <- apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), caller, token, password))
				}()
				waitFor(1, nil)
				f.NoError(apptest.ErrorOf(f.Node(1).Accounts.ConfirmEmail(f.Context(), invitee.Caller, code)))
			})
			f.WantCodes([]error{<-accepted}, apptest.Codes{proof.code: 1})
			current, err := f.DB.Read().Invitation(f.Context(), inv.ID)
			f.NoError(err)
			if current.State != doorward.InvitationPending {
				t.Errorf("the invitation is %s", current.State)
			}
		})
	}
}

// TestAddressChangesDuringRegistration: somebody in no tenant registers again with an
// invitation, while an undo gives the account to the reader of another mailbox. The password
// must not be set for that account.
func TestAddressChangesDuringRegistration(t *testing.T) {
	f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
	acme, owner := f.Tenant()
	invitee := f.Join(owner, doorward.RoleUser)
	to := f.NewEmail("moved")
	f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), invitee.Caller, to, false))
	confirm, undo := f.MailToken(to), f.MailToken(invitee.User.Email)
	f.NoError(apptest.ErrorOf(f.Node(0).Accounts.ConfirmEmail(f.Context(), invitee.Caller, confirm)))
	f.NoError(apptest.ErrorOf(f.Node(0).Users.Leave(f.Context(), invitee.Caller, acme.ID)))
	_, token := f.Invite(owner, to, doorward.RoleUser)
	completed := make(chan error, 1)
	f.WhileLocked(func(tx *store.Tx) error { return tx.LockTenant(f.Context(), acme.ID) }, func(waitFor func(int, <-chan struct{})) {
		go func() {
			completed <- apptest.ErrorOf(f.Node(0).Invitations.Complete(f.Context(), apptest.Anonymous(0), token, apptest.Password(1), apptest.Password(1)))
		}()
		waitFor(1, nil)
		f.NoError(apptest.ErrorOf(f.Node(1).Accounts.UndoEmail(f.Context(), apptest.Anonymous(1), undo)))
	})
	f.WantCodes([]error{<-completed}, apptest.Codes{doorward.CodeAccountExists: 1})
	if f.Account(invitee).PasswordHash != "" {
		t.Error("the account has the password of a stranger")
	}
	_, err := f.Node(1).Invitations.Complete(f.Context(), apptest.Anonymous(1), token, apptest.Password(1), apptest.Password(1))
	f.NoError(err) // the address is free
}
