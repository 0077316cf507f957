package session_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
)

// TestRaceNoSwitchOutrunsTheEnd: a session is exchanged for one in the same tenant while all of
// them end. The new one has ended, too: it takes no password, so a thief of a session
// could go on with it.
func TestRaceNoSwitchOutrunsTheEnd(t *testing.T) {
	for name, end := range map[string]func(f *apptest.Fixture, owner, ann, again apptest.Person) error{
		"sign out": func(f *apptest.Fixture, owner, ann, _ apptest.Person) error {
			return apptest.ErrorOf(f.Node(1).Users.SignOut(f.Context(), owner.Caller, ann.User))
		},
		"suspend": func(f *apptest.Fixture, owner, ann, _ apptest.Person) error {
			return apptest.ErrorOf(f.Node(1).Users.Suspend(f.Context(), owner.Caller, ann.User))
		},
		"close": func(f *apptest.Fixture, owner, _, _ apptest.Person) error {
			_, _, err := f.Node(1).Tenants.Close(f.Context(), owner.Caller, owner.User.TenantName)
			return err
		},
		"own": func(f *apptest.Fixture, _, _, again apptest.Person) error {
			return apptest.ErrorOf(f.Node(1).Sessions.EndOthers(f.Context(), again.Caller))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := apptest.New(t, apptest.Postgres, apptest.NoLimits, time.Now)
			acme, owner := f.Tenant()
			ann := f.Join(owner, doorward.RoleOwner)
			again := f.SignIn(ann.User.Email, apptest.FirstPassword)
			var o apptest.OpenedSessions
			switched, ended := make(chan error, 1), make(chan error, 1)
			f.WhileTrailLocked(acme.ID, func(waitFor func(int, <-chan struct{})) {
				go func() {
					switched <- o.Add(f.Switch(0, ann.Caller, acme.ID))
				}()
				waitFor(1, nil)
				go func() { ended <- end(f, owner, ann, again) }()
				waitFor(2, nil)
			})
			f.WantCodes([]error{<-switched, <-ended}, apptest.Codes{"": 2})
			if n := f.CountValid(&o); n != 0 {
				t.Errorf("%d sessions go on", n)
			}
		})
	}
}
