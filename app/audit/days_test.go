package audit_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/store"
)

// The days of a person have what the trail of the caller's tenant has, and nothing of other tenants: invitation and
// sign-ins, refusals as often as they happened, changes by the person and by others.
func TestDaysOfPerson(t *testing.T) {
	noon := time.Date(2031, 3, 1, 12, 0, 0, 0, time.UTC)
	apptest.OnEachClock(t, apptest.HighLimits, func() *apptest.StoppedClock { return apptest.StopClockAt(noon) }, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		_, owner := f.Tenant()
		person := f.Join(owner, doorward.RoleUser)
		invitations, err := f.Node(0).Invitations.List(f.Context(), owner.Caller, invite.Filter{}, doorward.Window{Limit: 9})
		f.NoError(err)
		joined := invitations.Items[slices.IndexFunc(invitations.Items, func(i doorward.Invitation) bool { return i.Email == person.User.Email })].ID

		_, err = f.Node(0).Invitations.Send(f.Context(), person.Caller, apptest.Offer("eve@acme.example", doorward.RoleUser))
		if apptest.Code(err) != doorward.CodeForbidden { // refused to the person, not at the account
			t.Errorf("a USER invites: %v", err)
		}
		clock.Move(24 * time.Hour)
		for range 3 {
			f.TryLogin(person.User.Email, "a wrong password")
		}
		owner = f.SignIn(owner.User.Email, apptest.FirstPassword)
		role := doorward.RoleAdmin
		_, _, err = f.Node(0).Users.Edit(f.Context(), owner.Caller, person.User, user.Edit{Role: &role})
		f.NoError(err)

		of := func(by apptest.Person) audit.PersonDays {
			found, err := f.Node(0).Audit.OfPerson(f.Context(), by.Caller, person.User, 3)
			f.NoError(err)
			return found
		}
		at := func(n int) time.Time { return noon.Truncate(24*time.Hour).AddDate(0, 0, n) }
		want := audit.PersonDays{Days: []audit.PersonDay{
			{Day: at(-1)},
			{Day: at(0), SignIns: 1, Changes: []audit.DayChange{{Action: doorward.InvitationAccept, Target: joined, Times: 1}, {Action: doorward.UserInvite, Target: joined, Times: 1}}},
			{Day: at(1), Refused: 3, Changes: []audit.DayChange{{Action: doorward.UserRole, Target: person.User.ID, Times: 1}}},
		}}
		if diff := cmp.Diff(want, of(owner)); diff != "" {
			t.Error(diff)
		}
		_, stranger := f.Tenant()
		if diff := cmp.Diff(audit.PersonDays{Days: []audit.PersonDay{{Day: at(-1)}, {Day: at(0)}, {Day: at(1)}}}, of(stranger)); diff != "" {
			t.Errorf("another tenant sees:\n%s", diff)
		}
		there, token := f.Invite(stranger, person.User.Email, doorward.RoleUser) // a member of both, from here on
		f.NoError(apptest.ErrorOf(f.Node(0).Invitations.Accept(f.Context(), apptest.Anonymous(0), token, apptest.FirstPassword)))
		entered := audit.PersonDay{Day: at(1), Changes: []audit.DayChange{{Action: doorward.InvitationAccept, Target: there.ID, Times: 1}, {Action: doorward.UserInvite, Target: there.ID, Times: 1}}}
		if diff := cmp.Diff(audit.PersonDays{Days: []audit.PersonDay{{Day: at(-1)}, {Day: at(0)}, entered}}, of(stranger)); diff != "" {
			t.Errorf("the tenant that the person has joined sees:\n%s", diff)
		}
		if diff := cmp.Diff(want, of(owner)); diff != "" {
			t.Errorf("the first tenant sees of the other:\n%s", diff)
		}
		f.EditTenant(owner, func(s *doorward.TenantSettings) { s.KeepEventsDays = 30 })
		found, err := f.Node(0).Audit.OfPerson(f.Context(), owner.Caller, person.User, 90)
		f.NoError(err)
		if len(found.Days) != 30 || found.KeptDays != 30 || !found.Days[29].Day.Equal(at(1)) || found.Days[29].Refused != 3 {
			t.Errorf("a trail of 30 days: %d days, kept %d, the last %+v", len(found.Days), found.KeptDays, found.Days[len(found.Days)-1])
		}
		if found := of(owner); found.KeptDays != 0 || len(found.Days) != 3 {
			t.Errorf("three days of thirty that are kept: %+v", found)
		}
	})
}

// Of very many events only the newest are counted, and the days say so.
func TestDaysOfBusyPerson(t *testing.T) {
	onSQLite(t, func(r *fixture) {
		now := r.db.Now()
		_, err := r.db.Write(r.Context(), func(tx *store.Tx) error {
			for n := range doorward.MaxTotal + 2 {
				e := event("tnt_a", n)
				e.Target.ID, e.Action = fmt.Sprint("ses_", n), doorward.SessionOpen
				e.At = now.Add(-time.Duration(doorward.MaxTotal+2-n) * time.Microsecond)
				tx.InsertPastEvent(e)
			}
			return nil
		})
		r.noError(err)
		found, err := r.OfPerson(r.Context(), doorward.Caller{Principal: doorward.Principal{TenantID: "tnt_a"}}, doorward.User{ID: "usr_ann"}, 90)
		r.noError(err)
		sum := 0
		for _, d := range found.Days {
			sum += d.SignIns
		}
		if !found.IsCapped || sum != doorward.MaxTotal+1 || found.KeptDays != 0 || len(found.Days) != 90 {
			r.Errorf("capped: %v, %d sign-ins, %d days", found.IsCapped, sum, len(found.Days))
		}
	})
}
