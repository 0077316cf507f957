package storetest

import (
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// hold queues a notice of an event and holds it back, to be told in an hour.
func (f *fixture) hold(kind store.MailKind, recipient string, e doorward.Event) {
	f.Helper()
	ctx := f.Context()
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, kind, recipient, e.ID)) })
	due := f.due()
	notice := due[len(due)-1]
	f.write(func(tx *store.Tx) { noError(f, tx.HoldNotice(ctx, notice, e, tx.Now.Add(time.Hour))) })
}

// heldNotices: notices that are held back are no mails; the recipient's digest tells them, by kind and
// object. One that comes after the digest was claimed begins another.
func heldNotices(f *fixture) {
	ctx := f.Context()
	first := f.event("tnt_1", "usr_1")
	f.clock.move(-time.Second)
	before := f.event("tnt_1", "usr_1")
	f.clock.move(2 * time.Second)
	second := f.event("tnt_1", "usr_1")
	f.clock.move(-time.Second)
	other, last := f.event("tnt_2", "usr_1"), f.event("tnt_2", "usr_1")
	f.hold(store.MailRoleChanged, "ann@acme.example", first)
	f.clock.move(time.Minute)
	f.hold(store.MailRoleChanged, "ann@acme.example", second)
	f.hold(store.MailRoleChanged, "ann@acme.example", before) // two workers don't keep the order
	f.hold(store.MailRoleChanged, "ann@acme.example", other)
	f.hold(store.MailSuspended, "ann@acme.example", last)
	f.hold(store.MailSuspended, "bob@acme.example", other)
	equal(f, f.due(), []store.Mail(nil))
	f.clock.move(59 * time.Minute)
	due := f.due()
	equal(f, due, []store.Mail{{
		ID: due[0].ID, Kind: store.MailDigest, Recipient: "ann@acme.example", State: doorward.DeliveryQueued, NextAt: noon.Add(time.Hour), CreatedAt: noon,
	}})
	want := []store.HeldNotice{
		{Kind: store.MailRoleChanged, EventID: second.ID, Notices: 3},
		{Kind: store.MailRoleChanged, EventID: other.ID, Notices: 1},
		{Kind: store.MailSuspended, EventID: last.ID, Notices: 1},
	}
	equal(f, f.value(f.Read().HeldNotices(ctx, due[0].ID)), want)

	f.write(func(tx *store.Tx) { f.wantChange(tx.ClaimMail(ctx, due[0], tx.Now.Add(time.Minute))) })
	f.hold(store.MailRoleChanged, "ann@acme.example", first)
	equal(f, f.value(f.Read().HeldNotices(ctx, due[0].ID)), want)
	f.clock.move(time.Hour)
	for _, m := range f.due() { // the claimed digest, whose try has not ended; bob's; the next one
		f.write(func(tx *store.Tx) { noError(f, tx.MarkMailSent(ctx, m.ID)) })
	}
	equal(f, f.value(CountMails(ctx, f.Read(), doorward.DeliverySent)), 3)
	f.write(func(tx *store.Tx) { equal(f, f.value(tx.DeleteOldMails(ctx, f.clock.read(), 9)), int64(3)) })
	equal(f, f.value(f.Read().HeldNotices(ctx, due[0].ID)), []store.HeldNotice(nil))
}

// heldNoticesEnd: notices that are held back end with their event, and with the address.
func heldNoticesEnd(f *fixture) {
	ctx := f.Context()
	ended, kept := f.event("tnt_1", "usr_1"), f.event("tnt_2", "usr_1")
	f.hold(store.MailSignedIn, "ann@acme.example", ended)
	f.hold(store.MailSignedIn, "ann@acme.example", kept)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DeleteChain(ctx, "tnt_1")), int64(1))
		f.value(tx.HitThrottle(ctx, store.NoticeBucket("ann@acme.example", doorward.SessionOpen), day))
		f.value(tx.HitThrottle(ctx, store.NoticeBucket("ann@acme.example.org", doorward.SessionOpen), day))
	})
	f.clock.move(time.Hour)
	digest := f.due()[0].ID
	equal(f, f.value(f.Read().HeldNotices(ctx, digest)), []store.HeldNotice{{Kind: store.MailSignedIn, EventID: kept.ID, Notices: 1}})
	f.write(func(tx *store.Tx) { noError(f, tx.ForgetAddress(ctx, "ann@acme.example")) })
	equal(f, f.due(), []store.Mail(nil))
	equal(f, f.value(f.Read().HeldNotices(ctx, digest)), []store.HeldNotice(nil))
	f.wantNone(f.Read().Throttle(ctx, store.NoticeBucket("ann@acme.example", doorward.SessionOpen)))
	f.value(f.Read().Throttle(ctx, store.NoticeBucket("ann@acme.example.org", doorward.SessionOpen)))
}

// manyHeldNotices: notices to one recipient that are held back at the same time are all in one digest.
func manyHeldNotices(f *fixture) {
	const rounds, callers = 5, 16
	ctx := f.Context()
	events := make([]doorward.Event, callers)
	for i := range events {
		events[i] = f.event("tnt_1", "usr_1")
	}
	for round := range rounds { // the first one also opens connections
		to := fmt.Sprintf("ann%d@acme.example", round)
		f.contest(callers, func(tx *store.Tx, i int) (bool, error) {
			return true, tx.HoldNotice(ctx, store.Mail{ID: fmt.Sprint("msg_", i), Kind: store.MailRoleChanged, Recipient: to}, events[i], noon.Add(time.Hour))
		})
	}
	f.clock.move(time.Hour)
	digests := f.due()
	equal(f, len(digests), rounds)
	for _, digest := range digests {
		held, err := f.Read().HeldNotices(ctx, digest.ID)
		noError(f, err)
		equal(f, []int{len(held), held[0].Notices}, []int{1, callers})
	}
}
