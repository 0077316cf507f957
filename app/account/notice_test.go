package account_test

import (
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestUndoNotifiesAgain: after an undo, a login sends a notice even if a thief has used up the
// ten notices of the last 24 hours. The thief may still know the password.
func TestUndoNotifiesAgain(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.ProductionLimits, apptest.NewMovedClock, func(f *apptest.Fixture, _ *apptest.MovedClock) {
		_, owner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		email := ann.User.Email
		notices := func() (n int) {
			for _, subject := range f.Subjects(email) {
				if subject == "New sign-in to your account" {
					n++
				}
			}
			return n
		}
		for i := range 12 {
			caller := apptest.Anonymous(0)
			caller.UserAgent = "browser " + string(rune('a'+i))
			f.NoError(apptest.ErrorOf(f.Node(0).Login.WithPassword(f.Context(), caller, email, apptest.FirstPassword, "")))
		}
		ann = f.SignIn(email, apptest.FirstPassword) // the twelve logins have ended the first session
		before := notices()
		f.NoError(f.Node(0).Accounts.ChangeEmail(f.Context(), ann.Caller, f.NewEmail("new"), false))
		f.NoError(apptest.ErrorOf(f.Node(0).Accounts.UndoEmail(f.Context(), apptest.Anonymous(1), f.MailToken(email))))
		f.SignIn(email, apptest.FirstPassword)
		if got := notices(); got != before+1 {
			f.Errorf("%d notices after the undo, want %d", got, before+1)
		}
	})
}
