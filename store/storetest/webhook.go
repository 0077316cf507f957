package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// webhook adds a webhook, of the installation for the empty tenant.
func (f *fixture) webhook(tenantID string, events ...string) doorward.Webhook {
	f.Helper()
	w := doorward.Webhook{
		ID: f.id(doorward.PrefixWebhook), TenantID: tenantID, URL: "https://hooks.example/a?b", Events: events, About: "Sync ✓",
		Include: []string{"email"}, Enabled: true, PublicKey: "whpk_x", CreatedAt: f.clock.read(), Health: doorward.WebhookNew,
	}
	f.write(func(tx *store.Tx) {
		noError(f, tx.InsertWebhook(f.Context(), w, store.WebhookSecrets{Secret: []byte("secret"), Private: []byte("private")}))
	})
	return w
}

func webhooks(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	first := f.webhook(acme.ID, "user.*", "*")
	f.clock.move(time.Second)
	second := f.webhook(acme.ID, "user.invite")
	f.webhook(zeta.ID, "*")
	own := f.webhook("", "*")
	f.wantNone(f.Read().Webhook(ctx, "whk_none"))
	equal(f, f.value(f.Read().Webhook(ctx, own.ID)), own)
	page, err := f.Read().WebhookPage(ctx, acme.ID, doorward.Window{Limit: 10})
	noError(f, err)
	equal(f, page.Items, []doorward.Webhook{second, first})
	equal(f, f.value(f.Read().CountWebhooks(ctx, acme.ID)), 2)
	var each []string
	noError(f, f.Read().EachWebhook(ctx, acme.ID, func(w doorward.Webhook) error { each = append(each, w.ID); return nil }))
	equal(f, each, []string{first.ID, second.ID})

	equal(f, f.value(f.Read().WebhookSecrets(ctx, first.ID)), store.WebhookSecrets{Secret: []byte("secret"), Private: []byte("private")})
	f.wantNone(f.Read().WebhookSecrets(ctx, "whk_none"))
	ends := f.clock.read().Add(time.Hour)
	f.write(func(tx *store.Tx) {
		noError(f, tx.RotateWebhook(ctx, first.ID, []byte("was"), ends, []byte("is")))
	})
	equal(f, f.value(f.Read().WebhookSecrets(ctx, first.ID)), store.WebhookSecrets{Secret: []byte("is"), Previous: []byte("was"), PreviousEnds: &ends, Private: []byte("private")})

	f.write(func(tx *store.Tx) { noError(f, tx.RecordWebhookFailure(ctx, first.ID)) })
	since := f.clock.read()
	f.clock.move(time.Hour)
	f.write(func(tx *store.Tx) {
		noError(f, tx.RecordWebhookFailure(ctx, first.ID))
		noError(f, tx.RecordWebhookSuccess(ctx, second.ID, true))
	})
	first.FailingSince, first.Health, first.PreviousEndsAt = &since, doorward.WebhookBad, &ends
	now := f.clock.read()
	second.LastSuccessAt, second.Health = &now, doorward.WebhookGood
	equal(f, f.value(f.Read().Webhook(ctx, first.ID)), first)
	equal(f, f.value(f.Read().Webhook(ctx, second.ID)), second)
	equal(f, f.value(f.Read().WebhooksFailing(ctx, since, 1, 10)), []doorward.Webhook{first})
	f.write(func(tx *store.Tx) {
		f.wantNoChange(tx.MarkWebhookNoticeSent(ctx, first.ID, 1, since.Add(-time.Second)))
		f.wantChange(tx.MarkWebhookNoticeSent(ctx, first.ID, 1, since))
		f.wantNoChange(tx.MarkWebhookNoticeSent(ctx, first.ID, 1, since))
	})
	equal(f, f.value(f.Read().WebhooksFailing(ctx, since, 1, 10)), []doorward.Webhook(nil))

	f.write(func(tx *store.Tx) {
		f.wantChange(tx.DisableWebhook(ctx, first.ID, doorward.DisabledGone))
		f.wantNoChange(tx.DisableWebhook(ctx, first.ID, doorward.DisabledGone))
	})
	first.Notices, first.Enabled, first.DisabledReason = 1, false, doorward.DisabledGone
	equal(f, f.value(f.Read().Webhook(ctx, first.ID)), first)
	first.URL, first.URLBy, first.Enabled, first.DisabledReason = "https://other.example/", "usr_bob", true, ""
	f.write(func(tx *store.Tx) { noError(f, tx.UpdateWebhook(ctx, first, true)) })
	first.FailingSince, first.Notices, first.Health = nil, 0, doorward.WebhookNew
	equal(f, f.value(f.Read().Webhook(ctx, first.ID)), first)

	f.write(func(tx *store.Tx) {
		all, err := tx.DisableAllWebhooks(ctx)
		equal(f, len(f.value(all, err).([]store.WebhookName)), 4)
		noError(f, tx.RetireWebhook(ctx, first.ID))
	})
	retired := f.value(f.Read().Webhook(ctx, first.ID)).(doorward.Webhook)
	equal(f, retired.TenantID, store.RetiredWebhooksTenant)
	equal(f, retired.Enabled, false)
	f.write(func(tx *store.Tx) {
		_, err := tx.DeleteWebhooksOf(ctx, store.RetiredWebhooksTenant, 10)
		noError(f, err)
		f.wantNone(tx.Webhook(ctx, first.ID))
	})
	disabled := f.value(f.Read().Webhook(ctx, second.ID)).(doorward.Webhook)
	equal(f, disabled.DisabledReason, doorward.DisabledRestored)
}

// record writes an event and returns it.
func (f *fixture) record(tenantID string, action doorward.Action) doorward.Event {
	f.Helper()
	e := doorward.Event{ID: f.id(doorward.PrefixEvent), Action: action, Outcome: doorward.Done, ActorType: doorward.System, Target: doorward.Object{Type: "x", TenantID: tenantID}, Changes: []doorward.Change{}}
	f.write(func(tx *store.Tx) { noError(f, tx.InsertEvent(f.Context(), e)) })
	return e
}

// deliveries are rows of the transaction that writes the event, for each enabled webhook of
// the tenant and of the installation that wants it.
func deliveries(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	f.record(acme.ID, doorward.UserInvite) // before there is a webhook
	users := f.webhook(acme.ID, "user.*")
	all := f.webhook("", "*")
	invited := f.record(acme.ID, doorward.UserInvite)
	f.record(acme.ID, doorward.SessionOpen)
	f.record(acme.ID, doorward.WebhookTest) // its request is sent without a delivery
	f.record(zeta.ID, doorward.UserInvite)
	f.record("", doorward.KeyCreate)
	deliveriesOf := func(w doorward.Webhook, state doorward.DeliveryState) (got []doorward.WebhookDelivery) {
		page, err := f.Read().DeliveryPage(ctx, w.ID, state, doorward.Window{Limit: 100})
		noError(f, err)
		return page.Items
	}
	equal(f, len(deliveriesOf(users, "")), 1)
	equal(f, len(deliveriesOf(all, doorward.DeliveryPending)), 4)
	equal(f, f.value(f.Read().Vitals(ctx, f.clock.read())).(store.Vitals).Deliveries, int64(5))
	now := f.clock.read()
	d := deliveriesOf(users, "")[0]
	equal(f, d, doorward.WebhookDelivery{ID: d.ID, WebhookID: users.ID, EventID: invited.ID, Type: doorward.UserInvite, State: doorward.DeliveryPending, Attempts: []doorward.DeliveryAttempt{}, NextAt: &now, CreatedAt: now})

	due := func(urgent bool) []store.QueuedDelivery {
		got, err := f.Read().DueDeliveries(ctx, urgent, store.QueuedDelivery{}, f.clock.read(), 100)
		noError(f, err)
		return got
	}
	equal(f, len(due(true)), 5)
	var queued store.QueuedDelivery
	for _, q := range due(false) {
		if q.ID == d.ID {
			queued = q
		}
	}
	equal(f, queued, store.QueuedDelivery{WebhookDelivery: d, DueAt: now, Urgent: true, TenantID: acme.ID})
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.ClaimDelivery(ctx, queued, now.Add(time.Minute)))
		f.wantNoChange(tx.ClaimDelivery(ctx, queued, now.Add(time.Minute)))
	})
	equal(f, len(due(false)), 4)
	equal(f, len(due(true)), 4)
	queued.Tries, queued.Step = 1, 1
	queued.Attempts = []doorward.DeliveryAttempt{{At: now, Status: 500, Ms: 3, Answer: "no\x00"}}
	f.write(func(tx *store.Tx) { noError(f, tx.FinishAttempt(ctx, queued, now.Add(5*time.Second))) })
	next := now.Add(5 * time.Second)
	d.Attempts, d.NextAt = queued.Attempts, &next
	equal(f, f.value(f.Read().Delivery(ctx, d.ID)), d)
	f.wantNone(f.Read().Delivery(ctx, "whd_none"))
	stale := queued
	stale.Tries, stale.State = 9, doorward.DeliveryDone
	f.write(func(tx *store.Tx) {
		noError(f, tx.FinishAttempt(ctx, stale, now))
		noError(f, tx.RetryDelivery(ctx, d.ID))
	})
	equal(f, deliveriesOf(users, doorward.DeliveryPending)[0].NextAt, &now)

	f.clock.move(time.Second)
	f.wantReplays(users, all, invited.ID)
	equal(f, len(deliveriesOf(users, "")), 4)

	f.write(func(tx *store.Tx) { noError(f, tx.DropDeliveriesOf(ctx, acme.ID)) })
	equal(f, len(deliveriesOf(users, doorward.DeliveryDropped)), 4)
	equal(f, len(deliveriesOf(all, doorward.DeliveryDropped)), 0)
	f.write(func(tx *store.Tx) {
		equal(f, f.value(tx.DropDeliveries(ctx, all.ID)), int64(6))
		equal(f, f.value(tx.DeleteOldDeliveries(ctx, now, 100)), int64(5))
		equal(f, f.value(tx.DeleteWebhooksOf(ctx, acme.ID, 100)), int64(3))
	})
	f.wantNone(f.Read().Webhook(ctx, users.ID))
	f.write(func(tx *store.Tx) { f.wantChange(tx.FreezeTenant(ctx, zeta.ID)) })
	f.webhook(zeta.ID, "*")
	f.record(zeta.ID, doorward.UserInvite)
	equal(f, f.value(f.Read().Vitals(ctx, f.clock.read())).(store.Vitals).Deliveries, int64(1)) // the installation's
}

// wantReplays checks which of the events that deliveries has recorded at one instant are
// selected. invited is the id of the second of its tenant. It queues three events for users, and
// two for all.
func (f *fixture) wantReplays(users, all doorward.Webhook, invited string) {
	ctx := f.Context()
	second := f.value(f.Read().Event(ctx, invited)).(doorward.Event)
	now, later := second.At, second.At.Add(time.Microsecond)
	replay := func(w doorward.Webhook, r store.Replay) (queued int64) {
		r.Actions = []doorward.Action{doorward.UserInvite, doorward.SessionOpen}
		ids, err := f.Read().EventsToReplay(ctx, r)
		noError(f, err)
		f.write(func(tx *store.Tx) { queued = f.value(tx.QueueReplay(ctx, w.ID, ids)).(int64) })
		return queued
	}
	equal(f, replay(users, store.Replay{TenantID: users.TenantID, Limit: 10}), int64(3))
	equal(f, replay(all, store.Replay{From: &now, Limit: 2}), int64(2))
	equal(f, replay(all, store.Replay{To: &now, Limit: 2}), int64(0))
	for _, r := range []struct {
		store.Replay
		want int
	}{
		{store.Replay{TenantID: users.TenantID, After: second.Seq, Limit: 10}, 1},
		{store.Replay{TenantID: users.TenantID, After: second.Seq, From: &later, Limit: 10}, 0},
		{store.Replay{TenantID: users.TenantID, From: &now, To: &later, Limit: 10}, 3},
		{store.Replay{TenantID: users.TenantID, Limit: 2}, 2},
		{store.Replay{TenantID: users.TenantID, From: &later, Limit: 10}, 0},
		{store.Replay{TenantID: users.TenantID, After: second.Seq, Limit: 10, Actions: doorward.EventActions(nil)}, 2},
		{store.Replay{Limit: 10}, 4},
	} {
		if r.Actions == nil {
			r.Actions = []doorward.Action{doorward.UserInvite, doorward.SessionOpen}
		}
		got, err := f.Read().EventsToReplay(ctx, r.Replay)
		noError(f, err)
		equal(f, len(got), r.want)
	}
}
