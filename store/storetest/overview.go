package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func countsOfATenant(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	ann := f.member(acme, "ann@acme.example", doorward.RoleOwner)
	bob := f.member(acme, "bob@acme.example", doorward.RoleUser)
	f.member(acme, "cat@acme.example", doorward.RoleUser)
	f.member(zeta, "zoe@zeta.example", doorward.RoleOwner)
	f.write(func(tx *store.Tx) { f.wantChange(tx.SetUserStatus(ctx, acme.ID, bob.ID, doorward.UserSuspended)) })
	counts, err := f.Read().CountMembers(ctx, acme.ID)
	slices.SortFunc(counts, func(a, b store.MemberCount) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Status, b.Status))
	})
	equal(f, f.value(counts, err), []store.MemberCount{
		{Role: doorward.RoleOwner, Status: doorward.UserActive, People: 1},
		{Role: doorward.RoleUser, Status: doorward.UserActive, People: 1},
		{Role: doorward.RoleUser, Status: doorward.UserSuspended, People: 1},
	})

	f.session(ann)
	f.session(ann)
	f.session(bob)
	f.session(f.member(zeta, "ann@zeta.example", doorward.RoleUser))
	now := f.clock.read()
	equal(f, f.value(f.Read().CountMemberSessions(ctx, aDay, acme.ID, ann.ID, now)), int64(2))
	equal(f, f.value(f.Read().CountMemberSessions(ctx, aDay, zeta.ID, ann.ID, now)), int64(0))
	equal(f, f.value(f.Read().CountTenantSessions(ctx, aDay, acme.ID, now)), int64(3))

	countsOfInvitations(f, acme, zeta, ann)
}

// countsOfInvitations: three counts leave out expired and revoked invitations: all, those
// whose mail has failed, and those that Ann has sent.
func countsOfInvitations(f *fixture, acme, zeta doorward.Tenant, ann doorward.User) {
	ctx := f.Context()
	equal(f, f.value(f.Read().CountPendingInvitations(ctx, acme.ID, f.clock.read())), store.PendingInvitations{})
	lost, over, gone := f.invitation(acme, "lost@acme.example"), f.invitation(acme, "over@acme.example"), f.invitation(acme, "gone@acme.example")
	f.invitation(acme, "here@acme.example")
	f.invitation(zeta, "there@zeta.example")
	hers := f.draft(acme, "hers@acme.example")
	hers.InvitedBy = ann.ID
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.InsertInvitation(ctx, hers))
		noError(f, tx.QueueMail(ctx, store.MailInvitation, lost.Email, lost.ID))
		over.InvitedBy, over.ExpiresAt = ann.ID, f.clock.read().Add(time.Minute)
		f.wantChange(tx.RenewInvitation(ctx, over))
		f.wantChange(tx.RevokeInvitation(ctx, gone.ID))
	})
	equal(f, f.value(f.Read().CountPendingInvitations(ctx, acme.ID, f.clock.read())), store.PendingInvitations{Pending: 4})
	equal(f, f.value(f.Read().CountInvitationsBy(ctx, acme.ID, ann.ID, f.clock.read())), int64(2))
	queued, err := f.Read().DueMails(ctx, store.Mail{}, f.clock.read(), 9)
	noError(f, err)
	f.write(func(tx *store.Tx) { noError(f, tx.MarkMailFailed(ctx, queued[0].ID, "550 nobody here")) })
	equal(f, f.value(f.Read().LastInvitationFault(ctx, acme.ID, f.clock.read())), "550 nobody here")
	f.wantNone(f.Read().LastInvitationFault(ctx, zeta.ID, f.clock.read()))
	now := f.clock.move(time.Minute)
	equal(f, f.value(f.Read().CountPendingInvitations(ctx, acme.ID, now)), store.PendingInvitations{Pending: 3, Failed: 1})
	equal(f, f.value(f.Read().CountInvitationsBy(ctx, acme.ID, ann.ID, now)), int64(1))
	equal(f, f.value(f.Read().CountInvitationsBy(ctx, zeta.ID, ann.ID, now)), int64(0))
}

// invitationsByDelivery: the newest of several mails counts, and an invitation
// without a mail yet counts as queued.
func invitationsByDelivery(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	lost, again, gone := f.invitation(acme, "lost@acme.example"), f.invitation(acme, "again@acme.example"), f.invitation(acme, "gone@acme.example")
	bare := f.invitation(acme, "bare@acme.example")
	for _, i := range []doorward.Invitation{lost, again, again, gone} {
		f.clock.move(time.Second)
		f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailInvitation, i.Email, i.ID)) })
	}
	queued, err := f.Read().DueMails(ctx, store.Mail{}, f.clock.read(), 9)
	noError(f, err)
	f.write(func(tx *store.Tx) {
		for n := range 4 {
			if n == 2 {
				noError(f, tx.MarkMailSent(ctx, queued[n].ID))
				continue
			}
			noError(f, tx.MarkMailFailed(ctx, queued[n].ID, "550 nobody here"))
		}
		f.wantChange(tx.RevokeInvitation(ctx, gone.ID))
	})
	wantInvitations(f, acme, store.InvitationFilter{Delivery: doorward.DeliveryQueued}, bare.ID)
	wantInvitations(f, acme, store.InvitationFilter{Delivery: doorward.DeliverySent}, again.ID)
	wantInvitations(f, acme, store.InvitationFilter{Delivery: doorward.DeliveryFailed}, lost.ID, gone.ID)
	wantInvitations(f, acme, store.InvitationFilter{Delivery: doorward.DeliveryFailed, State: doorward.InvitationPending}, lost.ID)
	wantInvitations(f, acme, store.InvitationFilter{Delivery: doorward.DeliverySent, State: doorward.InvitationAccepted})
	wantInvitations(f, acme, store.InvitationFilter{Delivery: "none"})
	equal(f, f.value(f.Read().CountPendingInvitations(ctx, acme.ID, f.clock.read())), store.PendingInvitations{Pending: 3, Failed: 1})
}

// wantInvitations fails unless the filter selects these ids, in any order.
func wantInvitations(f *fixture, tenant doorward.Tenant, filter store.InvitationFilter, want ...string) {
	f.Helper()
	page, err := f.Read().InvitationPage(f.Context(), tenant.ID, filter, f.clock.read(), doorward.Window{Limit: 9})
	noError(f, err)
	var ids []string
	for _, i := range page.Items {
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	slices.Sort(want)
	equal(f, ids, want)
}

// daysOfSomebody: what somebody has done in a tenant, and what was done to them there, is counted by day; of more than
// the limit only the newest.
func daysOfSomebody(f *fixture) {
	ctx := f.Context()
	first := f.clock.read()
	happens := func(tenantID, actor, target string, action doorward.Action, outcome doorward.Outcome, times string) {
		e := doorward.Event{ID: f.id("evt_"), Action: action, Outcome: outcome, ActorType: doorward.ByUser, ActorID: actor, Target: doorward.Object{Type: "user", ID: target, TenantID: tenantID}, Changes: []doorward.Change{}}
		if times != "" {
			e.Changes = append(e.Changes, doorward.Change{Field: doorward.FieldCount, To: times})
		}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertEvent(ctx, e)) })
	}
	happens("tnt_a", "usr_ann", "ses_1", doorward.SessionOpen, doorward.Done, "")
	f.clock.move(day)
	happens("tnt_a", "usr_ann", "ses_2", doorward.SessionOpen, doorward.Done, "")
	happens("tnt_b", "usr_ann", "ses_3", doorward.SessionOpen, doorward.Done, "") // another tenant's
	happens("tnt_a", "usr_bob", "usr_ann", doorward.UserRole, doorward.Done, "")
	happens("tnt_a", "", "usr_ann", doorward.SessionRefuse, doorward.Refused, "7")
	happens("tnt_a", "", "usr_ann", doorward.SessionRefuse, doorward.Refused, "")

	counted := func(filter store.EventFilter, since time.Time, most int) []store.EventDay {
		filter.From = &since
		days, err := f.Read().EventDays(ctx, "tnt_a", filter, most)
		noError(f, err)
		slices.SortFunc(days, func(a, b store.EventDay) int {
			return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Action, b.Action))
		})
		return days
	}
	today := first.Unix() / 86400
	of := func(n, events, times int64, action doorward.Action, outcome doorward.Outcome) store.EventDay {
		return store.EventDay{Day: today + n, Times: times, Action: action, Outcome: outcome, Events: events}
	}
	by, about := store.EventFilter{Actor: "usr_ann"}, store.EventFilter{Target: "usr_ann"}
	opened := of(1, 1, 1, doorward.SessionOpen, doorward.Done)
	equal(f, counted(by, first, 9), []store.EventDay{of(0, 1, 1, doorward.SessionOpen, doorward.Done), opened})
	equal(f, counted(by, first.Add(time.Microsecond), 9), []store.EventDay{opened})
	equal(f, counted(by, first, 1), []store.EventDay{opened})
	refused := of(1, 2, 8, doorward.SessionRefuse, doorward.Refused)
	equal(f, counted(about, first, 9), []store.EventDay{refused, of(1, 1, 1, doorward.UserRole, doorward.Done)})
	equal(f, counted(about, first, 2), []store.EventDay{refused})
}

func countsOfEvents(f *fixture) {
	ctx := f.Context()
	n := 0
	happens := func(tenantID string, action doorward.Action, outcome doorward.Outcome) {
		n++
		e := doorward.Event{ID: fmt.Sprint("evt_", n), Action: action, Outcome: outcome, Target: doorward.Object{TenantID: tenantID}, RequestID: fmt.Sprint("req_", n), Changes: []doorward.Change{}}
		f.write(func(tx *store.Tx) { noError(f, tx.InsertEvent(ctx, e)) })
	}
	first := f.clock.read()
	happens("tnt_a", doorward.SessionOpen, doorward.Done)
	happens("tnt_a", doorward.SessionOpen, doorward.Done)
	happens("tnt_b", doorward.SessionOpen, doorward.Done)
	happens("tnt_a", doorward.SessionEnd, doorward.Done)
	happens("tnt_a", doorward.UserRole, doorward.Refused)
	today, oneDay := first.UTC().Truncate(24*time.Hour), 24*time.Hour
	midnight := today.Add(oneDay)
	f.clock.move(midnight.Sub(first) - time.Microsecond)
	happens("tnt_a", doorward.SessionOpen, doorward.Done)
	f.clock.move(time.Microsecond)
	happens("tnt_a", doorward.SessionOpen, doorward.Done)
	happens("tnt_a", doorward.SessionOpen, doorward.Refused)
	happens("tnt_a", doorward.UserRole, doorward.Refused)
	happens("tnt_b", doorward.UserRole, doorward.Refused)

	of := func(at time.Time, outcome doorward.UsageOutcome, times int64) doorward.UsageCount {
		return doorward.UsageCount{SubjectID: "tnt_a", At: at, Outcome: outcome, Times: times}
	}
	refused, opened := doorward.UsageOutcome(doorward.UserRole), doorward.UsageOutcome(doorward.SessionOpen)
	later := []doorward.UsageCount{of(midnight, opened, 1), of(midnight, doorward.UsageSignedIn, 1), of(midnight, refused, 1)}
	equal(f, f.usageOfTrail("tnt_a", today, oneDay), append([]doorward.UsageCount{of(today, doorward.UsageSignedIn, 3), of(today, refused, 1)}, later...))
	equal(f, f.usageOfTrail("tnt_a", midnight, time.Hour), later)
	equal(f, f.usageOfTrail("tnt_c", today, oneDay), []doorward.UsageCount(nil))

	for _, c := range []struct {
		filter store.EventFilter
		want   []string
	}{
		{store.EventFilter{Outcome: doorward.Refused}, []string{"evt_9", "evt_8", "evt_5"}},
		{store.EventFilter{Request: "req_4"}, []string{"evt_4"}},
		{store.EventFilter{Request: "req_4", Outcome: doorward.Refused}, nil},
	} {
		page, err := f.Read().EventPage(ctx, "tnt_a", c.filter, doorward.Window{Limit: 9})
		var ids []string
		for _, e := range page.Items {
			ids = append(ids, e.ID)
		}
		equal(f, f.value(ids, err), c.want)
	}
}
