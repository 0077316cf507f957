package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

func countsOfATenant(w *world) {
	ctx := w.Context()
	acme, zeta := w.tenant("Acme"), w.tenant("Zeta")
	ann := w.member(acme, "ann@acme.example", doorward.RoleOwner)
	bob := w.member(acme, "bob@acme.example", doorward.RoleUser)
	w.member(acme, "cat@acme.example", doorward.RoleUser)
	w.member(zeta, "zoe@zeta.example", doorward.RoleOwner)
	w.write(func(tx *store.Tx) { yes(w)(tx.SetUserStatus(ctx, acme.ID, bob.ID, doorward.UserSuspended)) })
	counts, err := w.Read().CountMembers(ctx, acme.ID)
	slices.SortFunc(counts, func(a, b store.MemberCount) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Status, b.Status))
	})
	same(w, []store.MemberCount{
		{Role: doorward.RoleOwner, Status: doorward.UserActive, People: 1},
		{Role: doorward.RoleUser, Status: doorward.UserActive, People: 1},
		{Role: doorward.RoleUser, Status: doorward.UserSuspended, People: 1},
	})(counts, err)

	w.session(ann)
	w.session(ann)
	w.session(bob)
	w.session(w.member(zeta, "ann@zeta.example", doorward.RoleUser))
	now := w.clock.read()
	same(w, int64(2))(w.Read().CountMemberSessions(ctx, aDay, acme.ID, ann.ID, now))
	same(w, int64(0))(w.Read().CountMemberSessions(ctx, aDay, zeta.ID, ann.ID, now))
	same(w, int64(3))(w.Read().CountTenantSessions(ctx, aDay, acme.ID, now))

	waitingOf(w, acme, zeta, ann)
}

func waitingOf(w *world, acme, zeta doorward.Tenant, ann doorward.User) {
	ctx := w.Context()
	same(w, store.Waiting{})(w.Read().WaitingInvitations(ctx, acme.ID, w.clock.read()))
	lost, over, gone := w.invitation(acme, "lost@acme.example"), w.invitation(acme, "over@acme.example"), w.invitation(acme, "gone@acme.example")
	w.invitation(acme, "here@acme.example")
	w.invitation(zeta, "there@zeta.example")
	hers := w.draft(acme, "hers@acme.example")
	hers.InvitedBy = ann.ID
	w.write(func(tx *store.Tx) {
		yes(w)(tx.InsertInvitation(ctx, hers))
		ok(w, tx.QueueMail(ctx, store.MailInvitation, lost.Email, lost.ID))
		yes(w)(tx.RenewInvitation(ctx, over.ID, ann.ID, w.clock.read().Add(time.Minute)))
		yes(w)(tx.RevokeInvitation(ctx, gone.ID))
	})
	same(w, store.Waiting{Pending: 4})(w.Read().WaitingInvitations(ctx, acme.ID, w.clock.read()))
	same(w, int64(2))(w.Read().CountInvitationsBy(ctx, acme.ID, ann.ID, w.clock.read()))
	queued, err := w.Read().DueMails(ctx, store.Mail{}, w.clock.read(), 9)
	ok(w, err)
	w.write(func(tx *store.Tx) { ok(w, tx.MailFailed(ctx, queued[0].ID, "550 nobody here")) })
	now := w.clock.move(time.Minute)
	same(w, store.Waiting{Pending: 3, Failed: 1})(w.Read().WaitingInvitations(ctx, acme.ID, now))
	same(w, int64(1))(w.Read().CountInvitationsBy(ctx, acme.ID, ann.ID, now))
	same(w, int64(0))(w.Read().CountInvitationsBy(ctx, zeta.ID, ann.ID, now))
}

// invitationsByDelivery: of several mails the newest counts, and an invitation whose
// mail isn't there yet waits for it.
func invitationsByDelivery(w *world) {
	ctx := w.Context()
	acme := w.tenant("Acme")
	lost, again, gone := w.invitation(acme, "lost@acme.example"), w.invitation(acme, "again@acme.example"), w.invitation(acme, "gone@acme.example")
	bare := w.invitation(acme, "bare@acme.example")
	for _, to := range []doorward.Invitation{lost, again, again, gone} {
		w.clock.move(time.Second)
		w.write(func(tx *store.Tx) { ok(w, tx.QueueMail(ctx, store.MailInvitation, to.Email, to.ID)) })
	}
	queued, err := w.Read().DueMails(ctx, store.Mail{}, w.clock.read(), 9)
	ok(w, err)
	w.write(func(tx *store.Tx) {
		for n := range 4 {
			if n == 2 {
				ok(w, tx.MailSent(ctx, queued[n].ID))
				continue
			}
			ok(w, tx.MailFailed(ctx, queued[n].ID, "550 nobody here"))
		}
		yes(w)(tx.RevokeInvitation(ctx, gone.ID))
	})
	chosenInvitations(w, acme, store.InvitationFilter{Delivery: doorward.DeliveryQueued}, bare.ID)
	chosenInvitations(w, acme, store.InvitationFilter{Delivery: doorward.DeliverySent}, again.ID)
	chosenInvitations(w, acme, store.InvitationFilter{Delivery: doorward.DeliveryFailed}, lost.ID, gone.ID)
	chosenInvitations(w, acme, store.InvitationFilter{Delivery: doorward.DeliveryFailed, State: doorward.InvitationPending}, lost.ID)
	chosenInvitations(w, acme, store.InvitationFilter{Delivery: doorward.DeliverySent, State: doorward.InvitationAccepted})
	chosenInvitations(w, acme, store.InvitationFilter{Delivery: "none"})
	same(w, store.Waiting{Pending: 3, Failed: 1})(w.Read().WaitingInvitations(ctx, acme.ID, w.clock.read()))
}

// chosenInvitations wants the filter to choose those with the ids, in any order.
func chosenInvitations(w *world, of doorward.Tenant, f store.InvitationFilter, want ...string) {
	w.Helper()
	page, err := w.Read().InvitationPage(w.Context(), of.ID, f, w.clock.read(), doorward.Window{Limit: 9})
	ok(w, err)
	var ids []string
	for _, i := range page.Items {
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	slices.Sort(want)
	same(w, want)(ids, nil)
}

func countsOfEvents(w *world) {
	ctx := w.Context()
	n := 0
	happens := func(tenantID string, act doorward.Action, outcome doorward.Outcome) {
		n++
		e := doorward.Event{ID: fmt.Sprint("evt_", n), Action: act, Outcome: outcome, Target: doorward.Object{TenantID: tenantID}, RequestID: fmt.Sprint("req_", n), Changes: []doorward.Change{}}
		w.write(func(tx *store.Tx) { ok(w, tx.InsertEvent(ctx, e)) })
	}
	first := w.clock.read()
	day := first.Unix() / 86400
	happens("tnt_a", doorward.SessionOpen, doorward.Done)
	happens("tnt_a", doorward.SessionOpen, doorward.Done)
	happens("tnt_b", doorward.SessionOpen, doorward.Done)
	happens("tnt_a", doorward.SessionEnd, doorward.Done)
	happens("tnt_a", doorward.UserRole, doorward.Refused)
	midnight := time.Unix((day+1)*86400, 0)
	last := w.clock.move(midnight.Sub(first) - time.Microsecond)
	happens("tnt_a", doorward.SessionOpen, doorward.Done)
	w.clock.move(time.Microsecond)
	happens("tnt_a", doorward.SessionOpen, doorward.Done)
	happens("tnt_a", doorward.SessionOpen, doorward.Refused)
	happens("tnt_a", doorward.UserRole, doorward.Refused)
	happens("tnt_b", doorward.UserRole, doorward.Refused)

	opened := func(tenantID string, since time.Time) ([]store.DayCount, error) {
		days, err := w.Read().CountByDay(ctx, tenantID, doorward.SessionOpen, since)
		slices.SortFunc(days, func(a, b store.DayCount) int { return cmp.Compare(a.Day, b.Day) })
		return days, err
	}
	same(w, []store.DayCount{{Day: day, Times: 3}, {Day: day + 1, Times: 1}})(opened("tnt_a", first))
	same(w, []store.DayCount{{Day: day, Times: 1}, {Day: day + 1, Times: 1}})(opened("tnt_a", last))
	same(w, []store.DayCount(nil))(opened("tnt_c", first))

	refused := func(since time.Time) (map[doorward.Action]int64, error) {
		counts, err := w.Read().CountRefusals(ctx, "tnt_a", since)
		all := map[doorward.Action]int64{}
		for _, c := range counts {
			all[c.Action] = c.Times
		}
		return all, err
	}
	same(w, map[doorward.Action]int64{doorward.UserRole: 2, doorward.SessionOpen: 1})(refused(first))
	same(w, map[doorward.Action]int64{doorward.UserRole: 1, doorward.SessionOpen: 1})(refused(last))

	for _, c := range []struct {
		filter store.EventFilter
		want   []string
	}{
		{store.EventFilter{Outcome: doorward.Refused}, []string{"evt_9", "evt_8", "evt_5"}},
		{store.EventFilter{Request: "req_4"}, []string{"evt_4"}},
		{store.EventFilter{Request: "req_4", Outcome: doorward.Refused}, nil},
	} {
		page, err := w.Read().EventPage(ctx, "tnt_a", c.filter, doorward.Window{Limit: 9})
		var ids []string
		for _, e := range page.Items {
			ids = append(ids, e.ID)
		}
		same(w, c.want)(ids, err)
	}
}
