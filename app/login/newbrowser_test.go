package login_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// A session is marked as one of a new browser exactly if a notice of its login is worth one: not the first login of an
// account, no known browser, no client that has caused a notice today. A switch of tenants keeps the mark.
func TestSessionsOfNewBrowsers(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		_, otherOwner := f.Tenant()
		person := f.Join(owner, doorward.RoleUser)
		_, token := f.Invite(otherOwner, person.User.Email, doorward.RoleUser)
		_, err := apptest.Accepted(f.Node(0).Invitations.Accept(f.Context(), person.Caller, token, ""))
		f.NoError(err)
		isMarked := func(id string) bool {
			read, err := f.DB.Read().Session(f.Context(), id)
			f.NoError(err)
			return read.Session.NewBrowser
		}
		if isMarked(person.SessionID) {
			t.Error("the first login of the account is one of a new browser")
		}
		login := func(userAgent string, devices ...[]byte) (doorward.Caller, []byte) {
			by := apptest.Anonymous(0)
			by.UserAgent, by.Devices = userAgent, devices
			in, err := apptest.SignedIn(f.Node(0).Login.WithPassword(f.Context(), by, person.User.Email, apptest.FirstPassword, person.User.TenantID))
			f.NoError(err)
			if got, want := in.Session.NewBrowser, isMarked(in.Session.ID); got != want {
				t.Errorf("the session in memory is marked: %v, its row: %v", got, want)
			}
			by = apptest.Anonymous(0)
			by.Principal, by.UserAgent = doorward.PrincipalOf(in.User, in.Session), userAgent
			var device []byte
			if in.Device != nil {
				hash := in.Device.Hash()
				device = hash[:]
			}
			return by, device
		}
		fresh, device := login("Firefox/140.0")
		if !isMarked(fresh.SessionID) {
			t.Error("a browser that the account doesn't know is not marked")
		}
		if again, _ := login("Firefox/140.0"); isMarked(again.SessionID) {
			t.Error("a client that has caused a notice today is marked")
		}
		if known, _ := login("Firefox/141.0", device); isMarked(known.SessionID) {
			t.Error("a known browser is marked")
		}
		switched, err := f.Switch(0, fresh, otherOwner.User.TenantID)
		f.NoError(err)
		if !isMarked(switched.Session.ID) {
			t.Error("a switch of tenants loses the mark")
		}
		clock.Move(25 * time.Hour)
		if later, _ := login("Firefox/140.0"); !isMarked(later.SessionID) {
			t.Error("a client without its cookie is not marked the next day")
		}
	})
}
