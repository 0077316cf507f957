package invite_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/user"
)

// listOf returns a list of people, every tenth with the role last.
func listOf(n int, last string) []invite.Planned {
	all := make([]invite.Planned, n)
	for i := range all {
		all[i] = invite.Planned{Line: i + 2, Email: fmt.Sprintf("person%d@example.com", i), Name: "=HYPERLINK(1) <b>", Role: "USER"}
		if i%10 == 9 {
			all[i].Role = last
		}
	}
	return all
}

// idsOf returns the invitations of the outcomes, which are all sent.
func idsOf(f *apptest.Fixture, sent []invite.Sent, want int) (ids []string) {
	f.Helper()
	for _, s := range sent {
		f.NoError(s.Err)
		ids = append(ids, s.Invitation.ID)
	}
	if len(sent) != want || slices.Contains(ids, "") {
		f.Fatalf("%d of %d are sent: %q", len(sent), want, ids)
	}
	return ids
}

// A list is sent in chunks, all with their events. Sent again on another node it sends nothing, and says the same.
func TestPlanIsSentOnce(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		people := listOf(103, "VIEWER")
		people[7].Fault = "left.twice"
		plan := f.Node(0).Invitations.NewPlan(owner.Caller, 3, "de", people)
		sent, err := f.Node(0).Invitations.SendPlan(f.Context(), owner.Caller, plan)
		f.NoError(err)
		ids := idsOf(f, sent, 102)
		before := f.RowsWithoutNodes()
		again, err := f.Node(1).Invitations.SendPlan(f.Context(), owner.Caller, plan)
		f.NoError(err)
		if !slices.Equal(ids, idsOf(f, again, 102)) {
			t.Error("the second time says something else")
		}
		if after := f.RowsWithoutNodes(); !slices.Equal(before, after) {
			t.Error("the second time has written something")
		}
		made, err := f.Node(0).Invitations.Get(f.Context(), owner.Caller, ids[9-1])
		f.NoError(err)
		if made.Email != "person9@example.com" || made.Role != "VIEWER" || made.Days != 3 || made.Locale != "de" || made.InvitedBy != owner.User.ID || made.Name != people[9].Name {
			t.Errorf("made is %+v", made)
		}
		if n := f.Int("SELECT count(*) FROM events WHERE action = 'user.invite' AND actor_id = $1", owner.User.ID); n != 102 {
			t.Errorf("%d events", n)
		}
		fresh := f.Node(0).Invitations.NewPlan(owner.Caller, 3, "de", people[:1])
		if third, err := f.Node(0).Invitations.SendPlan(f.Context(), owner.Caller, fresh); err != nil || apptest.Code(third[0].Err) != doorward.CodeInvitationPending {
			t.Errorf("the same list, read again: %v %v", third, err)
		}
	})
}

// What is refused stops the list where it is. Proved, it goes on there, and says of what it did before what it said.
func TestPlanGoesOnAfterAProof(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		f.UseMasterKey()
		_, owner := f.Tenant()
		device := f.Enrol(&owner)
		people := listOf(60, "USER")
		people[55].Role = "ADMIN"
		plan := f.Node(0).Invitations.NewPlan(owner.Caller, 3, "", people)
		clock.Move(20 * time.Minute)
		first, err := f.Node(0).Invitations.SendPlan(f.Context(), owner.Caller, plan)
		if apptest.Code(err) != doorward.CodeStepUpRequired {
			t.Fatalf("an ADMIN without a recent proof: %v", err)
		}
		ids := idsOf(f, first, 50)
		owner = f.SignInWith(owner, device)
		all, err := f.Node(1).Invitations.SendPlan(f.Context(), owner.Caller, plan)
		f.NoError(err)
		if !slices.Equal(ids, idsOf(f, all, 60)[:50]) {
			t.Error("the first 50 were sent again")
		}
	})
}

// Who may give which role is judged when the list is sent, of each person; refused ones stay refused.
func TestPlanIsJudgedAtTheWrite(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		admin := f.Join(owner, doorward.RoleAdmin)
		plan := f.Node(0).Invitations.NewPlan(admin.Caller, 3, "", []invite.Planned{
			{Line: 1, Email: "a@example.com", Role: "USER"}, {Line: 2, Email: "b@example.com", Role: "OWNER"}, {Line: 3, Email: "c@example.com", Role: "NONE"}, {Line: 4, Email: owner.User.Email, Role: "USER"},
		})
		want := []doorward.Code{"", doorward.CodeForbidden, doorward.CodeValidationFailed, doorward.CodeAlreadyMember}
		for range 2 {
			sent, err := f.Node(0).Invitations.SendPlan(f.Context(), admin.Caller, plan)
			f.NoError(err)
			for i, s := range sent {
				if apptest.Code(s.Err) != want[i] {
					t.Errorf("%d: %v, want %q", i, s.Err, want[i])
				}
			}
		}
		f.WantField(errorOf(f, admin, plan, 2), "/role", "invalid")
		_, _, err := f.Node(0).Users.Edit(f.Context(), owner.Caller, admin.User, user.Edit{Role: new(doorward.RoleUser)})
		f.NoError(err)
		later := f.Node(0).Invitations.NewPlan(admin.Caller, 3, "", []invite.Planned{{Line: 1, Email: "d@example.com", Role: "USER"}})
		if _, err := f.Node(1).Invitations.SendPlan(f.Context(), admin.Caller, later); apptest.Code(err) != doorward.CodeForbidden {
			t.Errorf("demoted since: %v", err)
		}
		if n := f.Int("SELECT count(*) FROM invitations WHERE email = 'd@example.com'"); n != 0 {
			t.Error("somebody who was demoted has invited")
		}
	})
}

// errorOf returns what became of one person of a list that was sent before.
func errorOf(f *apptest.Fixture, p apptest.Person, plan invite.Plan, n int) error {
	sent, err := f.Node(0).Invitations.SendPlan(f.Context(), p.Caller, plan)
	return errors.Join(err, sent[n].Err)
}

// A check of a long list sees the quota of people for all of it, and writes nothing.
func TestCheckOfAPlan(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		quota := int64(1 + 70) // the owner, and
		_, err := f.Node(0).Tenants.SetQuotas(f.Context(), doorward.OperatorAtTerminal(), acme.ID, map[doorward.Quota]int64{doorward.QuotaPeople: quota})
		f.NoError(err)
		plan := f.Node(0).Invitations.NewPlan(owner.Caller, 3, "", listOf(120, "USER"))
		before := f.RowsWithoutNodes()
		errs, err := f.Node(0).Invitations.CheckPlan(f.Context(), owner.Caller, plan.Offers())
		f.NoError(err)
		if after := f.RowsWithoutNodes(); !slices.Equal(before, after) {
			t.Error("a check has written")
		}
		sent, err := f.Node(0).Invitations.SendPlan(f.Context(), owner.Caller, plan)
		f.NoError(err)
		for i := range plan.People {
			if got, want := apptest.Code(errs[i]), apptest.Code(sent[i].Err); got != want || (got == "") != (i < 70) {
				t.Errorf("person %d: the check says %q, sending %q", i, got, want)
			}
		}
	})
}

// A sealed list opens for whom it was sealed, in that tenant, in its time, as it was.
func TestSealedPlan(t *testing.T) {
	apptest.OnSQLiteClock(t, apptest.NoLimits, apptest.NewMovedClock, func(f *apptest.Fixture, clock *apptest.MovedClock) {
		_, owner := f.Tenant()
		_, stranger := f.Tenant()
		admin := f.Join(owner, doorward.RoleAdmin)
		plan := f.Node(0).Invitations.NewPlan(owner.Caller, 3, "de", listOf(invite.MaxPlanned, "ADMIN"))
		sealed, err := f.Node(0).Invitations.SealPlan(f.Context(), plan)
		f.NoError(err)
		opens := func(p apptest.Person, text string) bool {
			opened, ok, err := f.Node(1).Invitations.OpenPlan(f.Context(), p.Caller, text)
			f.NoError(err)
			return ok && opened.ID == plan.ID && slices.Equal(opened.People, plan.People)
		}
		if !opens(owner, sealed) {
			t.Error("it doesn't open on another node")
		}
		elsewhere := owner
		elsewhere.Caller.TenantID = stranger.Caller.TenantID
		changed := strings.Replace(sealed, sealed[500:510], "AAAAAAAAAA", 1)
		for what, got := range map[string]bool{
			"another person": opens(admin, sealed), "a stranger": opens(stranger, sealed), "another tenant": opens(elsewhere, sealed),
			"changed": opens(owner, changed), "cut": opens(owner, sealed[:len(sealed)-4]), "none": opens(owner, ""), "no text": opens(owner, "{}"),
		} {
			if got {
				t.Error("it opens: " + what)
			}
		}
		clock.Move(invite.PlanLife)
		if opens(owner, sealed) {
			t.Error("it opens after its time")
		}
	})
}

// TestRacePlan: several requests on two nodes send one list at once, and again until each has sent it. Each person
// is invited once, and all requests say the same.
func TestRacePlan(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		_, owner := f.Tenant()
		plan := f.Node(0).Invitations.NewPlan(owner.Caller, 3, "", listOf(120, "VIEWER"))
		callers := apptest.Rounds(4, 12)
		results := make([][]invite.Sent, callers)
		errs := apptest.Concurrently(callers, func(i int) (err error) {
			for {
				results[i], err = f.Node(i).Invitations.SendPlan(f.Context(), owner.Caller, plan)
				if apptest.Code(err) != doorward.CodeIdempotencyInProgress {
					return err
				}
			}
		})
		f.WantCodes(errs, apptest.Codes{"": callers})
		ids := idsOf(f, results[0], 120)
		for _, r := range results[1:] {
			if !slices.Equal(ids, idsOf(f, r, 120)) {
				t.Error("two requests say different things")
			}
		}
		if n := f.CountRows("invitations"); n < 120 || n != f.Int("SELECT count(DISTINCT email) FROM invitations") {
			t.Errorf("%d invitations", n)
		}
		if n := f.Int("SELECT count(*) FROM mails WHERE recipient LIKE 'person%'"); n != 120 {
			t.Errorf("%d mails", n)
		}
	})
}
