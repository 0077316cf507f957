package login_test

import (
	"testing"

	"github.com/doorward/doorward/app/apptest"
)

// TestRaceOneNotice: an unknown browser signs in many times at once. Its owner gets
// one mail per browser.
func TestRaceOneNotice(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		const callers = 16
		_, owner := f.Tenant() // has signed in once
		for _, client := range []int{1, 2} {
			before := len(f.Subjects(owner.User.Email))
			f.WantCodes(apptest.Concurrently(callers, func(i int) error {
				_, err := f.Node(i).Login.WithPassword(f.Context(), apptest.Anonymous(client), owner.User.Email, apptest.FirstPassword, "")
				return err
			}), apptest.Codes{"": callers})
			if got := len(f.Subjects(owner.User.Email)) - before; got != 1 {
				t.Errorf("%d mails, want one", got)
			}
		}
	})
}
