package account_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/account"
	"github.com/doorward/doorward/app/apptest"
)

// TestOperatorSetsEmail: everything that the old address has opened ends; factors stay unless they are to go. All
// tenants of the person have it in their trail, each once, one in which they are suspended, too. With NoUndo no
// earlier change can be undone either.
func TestOperatorSetsEmail(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		other, otherOwner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		_, token := f.Invite(otherOwner, ann.User.Email, doorward.RoleUser)
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")))
		f.NoError(apptest.ErrorOf(f.Node(0).Users.Suspend(f.Context(), apptest.Operator, doorward.User{ID: ann.User.ID, TenantID: other.ID})))
		f.Enrol(&ann)
		old, to := ann.User.Email, "moved@new.example"
		_, undoRequested := requestChange(f, ann, "thief@new.example")
		f.Exec(`UPDATE tenants SET allowed_domains = 'acme.example' WHERE id = '` + acme.ID + `'`)

		set := func(n account.NewEmail) error {
			return apptest.ErrorOf(f.Node(0).Accounts.SetEmail(f.Context(), apptest.Operator, n))
		}
		f.WantOnly([]error{set(account.NewEmail{From: old, To: to})}, doorward.CodeMembershipsAffected)
		f.WantOnly([]error{set(account.NewEmail{From: old, To: owner.User.Email, Suspend: true})}, doorward.CodeAccountExists)
		f.WantOnly([]error{set(account.NewEmail{From: "nobody@acme.example", To: to})}, doorward.CodeNotFound)
		if !f.IsValid(ann.Token) {
			f.Error("a refusal has ended the session")
		}
		before := map[string]int{acme.ID: countEvents(f, doorward.AccountEmail, acme.ID), other.ID: countEvents(f, doorward.AccountEmail, other.ID)}
		f.NoError(set(account.NewEmail{From: old, To: to, Suspend: true, NoUndo: true}))
		if f.IsValid(ann.Token) || statusIn(f, ann, acme.ID) != doorward.UserSuspended || f.Account(ann).Factors != 1 {
			f.Errorf("the account is %+v, its session valid: %v, its membership %s", f.Account(ann), f.IsValid(ann.Token), statusIn(f, ann, acme.ID))
		}
		for id, n := range before {
			if got := countEvents(f, doorward.AccountEmail, id) - n; got != 1 {
				f.Errorf("the trail of %s has %d events of the change", id, got)
			}
		}
		if err := undo(f, 1, undoRequested); apptest.Code(err) != doorward.CodeEmailChangeOver {
			f.Errorf("an earlier change is undone: %v", err)
		}
		if n := f.Int(`SELECT count(*) FROM challenges WHERE user_id = '` + ann.User.ID + `'`); n != 0 {
			f.Errorf("%d challenges are left", n)
		}

		f.NoError(set(account.NewEmail{From: to, To: old, ResetMFA: true}))
		if f.Account(ann).Factors != 0 {
			f.Error("the factors are still there")
		}
		f.NoError(undo(f, 1, f.MailToken(to)))
		if f.Account(ann).Email != to {
			f.Errorf("after the undo the address is %s", f.Account(ann).Email)
		}
	})
}

// TestOperatorOfNobody: each call about an unknown address says so.
func TestOperatorOfNobody(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		accounts := f.Node(0).Accounts
		_, _, link := accounts.ResetLink(f.Context(), apptest.Operator, "nobody@acme.example")
		f.WantCodes([]error{
			apptest.ErrorOf(accounts.SignOut(f.Context(), apptest.Operator, "nobody@acme.example")),
			apptest.ErrorOf(accounts.Show(f.Context(), "nobody@acme.example")),
			accounts.Unlock(f.Context(), apptest.Operator, "nobody@acme.example"), link,
		}, apptest.Codes{doorward.CodeNotFound: 4})
		if _, err := accounts.Show(f.Context(), "nobody"); apptest.Code(err) != doorward.CodeValidationFailed {
			t.Errorf("what is no address: %v", err)
		}
	})
}
