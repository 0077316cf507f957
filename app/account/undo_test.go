package account_test

import (
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
)

// statusIn returns the status of the person's membership in the tenant.
func statusIn(f *apptest.Fixture, p apptest.Person, tenantID string) doorward.UserStatus {
	f.Helper()
	u, err := f.DB.Read().User(f.Context(), tenantID, p.User.ID)
	f.NoError(err)
	return u.Status
}

// countEvents counts the events of the action in the trail of the tenant; "" is the installation's.
func countEvents(f *apptest.Fixture, action doorward.Action, tenantID string) int {
	f.Helper()
	return f.Int(`SELECT count(*) FROM events WHERE action = $1 AND tenant_id = $2`, action, tenantID)
}

// TestUndoCarriesNoLaterMembershipBack: an undo suspends the memberships that began since the change was
// asked for, and those whose tenants don't allow the old address, and tells their managers.
func TestUndoCarriesNoLaterMembershipBack(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		later, laterOwner := f.Tenant()
		strict, strictOwner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		join := func(inviter apptest.Person, email string) {
			f.Helper()
			_, token := f.Invite(inviter, email, doorward.RoleAdmin)
			f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")))
		}
		join(strictOwner, ann.User.Email)
		f.EditTenant(strictOwner, func(s *doorward.TenantSettings) { s.AllowedDomains = []string{"other.example"} })
		to := "victim@other.example"
		code, undoCode := requestChange(f, ann, to)
		f.NoError(confirm(f, 0, ann, code))
		ann = f.SignIn(to, apptest.FirstPassword) // with the new address
		join(laterOwner, to)
		f.NoError(undo(f, 1, undoCode))
		for id, want := range map[string]doorward.UserStatus{acme.ID: doorward.UserActive, later.ID: doorward.UserSuspended, strict.ID: doorward.UserSuspended} {
			if got := statusIn(f, ann, id); got != want {
				f.Errorf("the membership in %s is %s, want %s", id, got, want)
			}
			if n, want := countEvents(f, doorward.UserSuspend, id), map[doorward.UserStatus]int{doorward.UserSuspended: 1}[want]; n != want {
				f.Errorf("%d suspensions in the trail of %s, want %d", n, id, want)
			}
		}
		for _, c := range []struct {
			email string
			told  int
		}{{owner.User.Email, 0}, {laterOwner.User.Email, 1}, {strictOwner.User.Email, 1}} {
			told := 0
			for _, subject := range f.Subjects(c.email) {
				if len(subject) > 12 && subject[:12] == "A membership" {
					told++
				}
			}
			if told != c.told {
				f.Errorf("%s got %d mails about a suspension, want %d", c.email, told, c.told)
			}
		}
	})
}

// TestUndoBeforeConfirming: the address hasn't changed, so only what has begun since is suspended.
func TestUndoBeforeConfirming(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		later, laterOwner := f.Tenant()
		ann := f.Join(owner, doorward.RoleUser)
		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.AllowedDomains = []string{"other.example"} })
		_, undoCode := requestChange(f, ann, "ann@other.example")
		_, token := f.Invite(laterOwner, ann.User.Email, doorward.RoleAdmin)
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, "")))
		f.NoError(undo(f, 1, undoCode))
		for id, want := range map[string]doorward.UserStatus{acme.ID: doorward.UserActive, later.ID: doorward.UserSuspended} {
			if got := statusIn(f, ann, id); got != want {
				f.Errorf("the membership in %s is %s, want %s", id, got, want)
			}
		}
	})
}

// TestUndoLeavesATenantOwnerless: the only OWNER of a tenant is suspended by an undo. The installation's
// trail says so, and the operator mends it.
func TestUndoLeavesATenantOwnerless(t *testing.T) {
	apptest.OnSQLite(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.AllowedDomains = []string{"other.example"} })
		code, undoCode := requestChange(f, owner, "owner@other.example")
		f.NoError(confirm(f, 0, owner, code))
		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.AllowedDomains = nil })
		bob := f.Join(f.SignIn("owner@other.example", apptest.FirstPassword), doorward.RoleUser)
		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.AllowedDomains = []string{"other.example"} })
		f.NoError(undo(f, 0, undoCode))
		if got := statusIn(f, owner, acme.ID); got != doorward.UserSuspended {
			f.Fatalf("the OWNER is %s", got)
		}
		if n := countEvents(f, doorward.TenantOwnerless, ""); n != 1 {
			f.Errorf("%d events tenant.ownerless, want 1", n)
		}
		ownerless := func() int {
			all, err := f.DB.Read().OwnerlessTenants(f.Context(), f.DB.Now(), 9)
			f.NoError(err)
			return len(all)
		}
		if n := ownerless(); n != 1 {
			f.Errorf("%d tenants without an OWNER, want 1", n)
		}
		f.NoError(f.Node(0).Users.SetRole(f.Context(), apptest.Operator, bob.User, doorward.RoleOwner))
		if n := ownerless(); n != 0 {
			f.Errorf("%d tenants without an OWNER after the operator has made one", n)
		}
	})
}

// methodsLeft signs in with the password and returns the methods that the second step offers. It fails
// if none is asked for, or if a factor could be set up instead.
func methodsLeft(f *apptest.Fixture, p apptest.Person) []string {
	f.Helper()
	outcome, err := f.Node(0).Login.WithPassword(f.Context(), apptest.Anonymous(0), p.User.Email, apptest.FirstPassword, "")
	f.NoError(err)
	second, ok := outcome.(login.SecondNeeded)
	if !ok {
		f.Fatalf("the login ends with %T, want login.SecondNeeded", outcome)
	}
	return second.Methods
}

// TestUndoDisablesFactors: an undo disables what was set up since the change was asked for, or in the week
// before. It still counts, so that nobody sets up another one with the password alone.
func TestUndoDisablesFactors(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		demand := func(since time.Time) {
			f.Helper()
			f.EditTenant(owner, func(s *doorward.TenantSettings) { s.SecondFactor.Since = since })
		}
		f.UseMasterKey()
		const day = 24 * time.Hour
		for name, c := range map[string]struct {
			first, second time.Duration // ages of the factors when the change is asked for; 0: set up afterwards
			want          []string
		}{
			"an old one and one since": {8 * day, 0, []string{doorward.ByCode}},
			"one in the week before":   {6 * day, 0, []string{}},
			"one since":                {0, 0, []string{}},
		} {
			ann := f.Join(owner, doorward.RoleUser)
			var apps []*apptest.Authenticator
			if c.first > 0 {
				apps = append(apps, f.Enrol(&ann))
				clock.Move(c.first)
				ann = f.SignInWith(ann, apps[0])
			}
			_, undoCode := requestChange(f, ann, f.NewEmail("thief"))
			apps = append(apps, f.Enrol(&ann))
			clock.Move(time.Minute)
			if c.first > 0 { // the codes of the first factor are replaced by the thief
				_, err := f.Node(0).Factors.NewRecoveryCodes(f.Context(), f.SignInWith(ann, apps[0]).Caller)
				f.NoError(err)
			}
			f.NoError(undo(f, 1, undoCode))
			demand(f.DB.Now().Add(-time.Hour))
			if got := methodsLeft(f, ann); !slices.Equal(got, c.want) {
				f.Errorf("%s: a login offers %q, want %q", name, got, c.want)
			}
			if n := f.Account(ann).Factors; n != len(apps) {
				f.Errorf("%s: %d factors count, want %d", name, n, len(apps))
			}
			if !slices.Contains(f.Subjects(ann.User.Email), "Second factors of your account were blocked") {
				f.Errorf("%s: no mail says that factors were disabled", name)
			}
			clock.Move(time.Minute)
			for i, app := range apps {
				challenge := f.Challenge(apptest.Anonymous(0), ann)
				answer := factor.Answer{Code: app.Code(f.DB.Now())}
				_, err := f.Node(0).Login.WithSecond(f.Context(), apptest.Anonymous(0), challenge.Token.Reveal(), answer, false)
				if isOld := i < len(apps)-1 && len(c.want) > 0; isOld != (err == nil) {
					f.Errorf("%s: a login with the factor %d: %v", name, i, err)
				}
			}
			demand(time.Time{})
		}
	})
}

// TestRaceUndoAgainstAcceptance: a change is undone while the account accepts an invitation. In either
// order the membership isn't active afterwards.
func TestRaceUndoAgainstAcceptance(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		other, otherOwner := f.Tenant()
		for range apptest.Rounds(6, 40) {
			ann := f.Join(owner, doorward.RoleUser)
			_, undoCode := requestChange(f, ann, f.NewEmail("thief"))
			_, token := f.Invite(otherOwner, ann.User.Email, doorward.RoleAdmin)
			errs := apptest.Concurrently(2, func(i int) error {
				if i == 0 {
					return apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), ann.Caller, token, ""))
				}
				return undo(f, i, undoCode)
			})
			f.NoError(errs[1])
			f.WantOnly(errs[:1], "", doorward.CodeUnauthenticated)
			if errs[0] == nil {
				if got := statusIn(f, ann, other.ID); got != doorward.UserSuspended {
					f.Fatalf("the membership that began since is %s", got)
				}
			}
		}
		f.WantNoDeadlocks()
	})
}
