package joining_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestFormerAddress: a provider that still says a member's former address makes no second account. The member proves the
// account; a new holder of the address, once the member has an identity, gets an account of their own.
func TestFormerAddress(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		s := newSite(f, "acme.example", doorward.JITDomains)
		ann := s.member("ann@acme.example", doorward.RoleUser)
		const private = "ann@private.example"
		f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), ann.Caller, private, false))
		_, err := f.Node(0).Accounts.ConfirmEmail(f.Context(), ann.Caller, f.MailToken(private))
		f.NoError(err)

		accounts := f.CountRows("users")
		who, found := s.look(says("1", "ann@acme.example"))
		if !found.MustProve() || found.UserID() != ann.User.ID || found.ShownAddress() != "ann@acme.example" {
			t.Fatalf("the former address: refused by %q, account %s, shown %s", found.Refused(), found.UserID(), found.ShownAddress())
		}
		if _, err := s.write(who, found); err == nil {
			t.Error("the account was opened without a proof")
		}
		if in := s.in(says("1", "ann@acme.example"), doorward.MethodPassword); in.User.ID != ann.User.ID || f.CountRows("users") != accounts {
			t.Errorf("the member came in as %s, of %d accounts", in.User.ID, f.CountRows("users"))
		}
		if in := s.in(says("1", "ann@acme.example")); in.User.ID != ann.User.ID {
			t.Errorf("the identity is %s", in.User.ID)
		}
		if in := s.in(says("2", "ann@acme.example")); in.User.ID == ann.User.ID || f.CountRows("users") != accounts+1 {
			t.Errorf("the new holder of the address came in as %s", in.User.ID)
		}
	})
}

// TestFormerAddressInTheDomain: who changes from one address of the domain to another is joined by the former one only after a
// proof, since somebody else may have it by now.
func TestFormerAddressInTheDomain(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		s := newSite(f, "acme.example", doorward.JITDomains)
		ann := s.member("ann@acme.example", doorward.RoleUser)
		const married = "ann.lee@acme.example"
		f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), ann.Caller, married, false))
		_, err := f.Node(0).Accounts.ConfirmEmail(f.Context(), ann.Caller, f.MailToken(married))
		f.NoError(err)
		if _, found := s.look(says("1", "ann@acme.example")); !found.MustProve() || found.UserID() != ann.User.ID {
			t.Errorf("the former address: refused by %q, account %s", found.Refused(), found.UserID())
		}
		if in := s.in(says("1", married)); in.User.ID != ann.User.ID {
			t.Errorf("by the address of now: %s", in.User.ID)
		}
	})
}

// TestFormerAddressInvitedAnew: an invitation to a former address, made after it was left, is for its new holder, who gets an
// account of their own, also while the former holder is suspended. Without one, nothing about that member is said.
func TestFormerAddressInvitedAnew(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		s := newSite(f, "acme.example", doorward.JITInvited)
		const address, private = "admin@acme.example", "ann@private.example"
		ann := s.member(address, doorward.RoleUser)
		f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), ann.Caller, private, false))
		_, err := f.Node(0).Accounts.ConfirmEmail(f.Context(), ann.Caller, f.MailToken(private))
		f.NoError(err)
		now, err := f.DB.Read().User(f.Context(), ann.User.TenantID, ann.User.ID)
		f.NoError(err)
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), s.owner.Caller, now)))
		s.refused("joining", says("1", address))
		if _, found := s.look(says("1", address)); found.UserID() != "" {
			t.Errorf("the refusal names the former holder, %s", found.UserID())
		}
		f.Invite(s.owner, address, doorward.RoleViewer)
		if in := s.in(says("1", address)); in.User.ID == ann.User.ID || in.User.Role != doorward.RoleViewer {
			t.Errorf("who was invited is %s, %s", in.User.ID, in.User.Role)
		}
	})
}
