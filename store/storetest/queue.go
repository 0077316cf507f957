package storetest

import (
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// selected returns the recipients of the mails that a filter selects.
func (f *fixture) selected(filter store.MailFilter) (to []string) {
	f.Helper()
	for _, m := range f.value(f.Read().SelectedMails(f.Context(), filter, f.clock.read(), store.Mail{}, 10)).([]store.Mail) {
		to = append(to, m.Recipient)
	}
	equal(f, f.value(f.Read().CountSelectedMails(f.Context(), filter, f.clock.read())), int64(len(to)))
	return to
}

func selectedMails(f *fixture) {
	ctx := f.Context()
	f.write(func(tx *store.Tx) {
		tx.MailShare = "tnt_1"
		noError(f, tx.QueueMail(ctx, store.MailInvitation, "ann@acme.example", "inv_1"))
	})
	f.clock.move(time.Hour)
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailReset, "joann@acme.example", "")) })
	f.clock.move(time.Second)
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailDigest, "bob@zeta.example", "")) })
	all := f.value(f.Read().SelectedMails(ctx, store.MailFilter{}, f.clock.read(), store.Mail{}, 10)).([]store.Mail)
	if len(all) != 3 {
		f.Fatalf("%+v", all)
	}
	equal(f, f.value(f.Read().SelectedMails(ctx, store.MailFilter{}, f.clock.read(), all[0], 1)), all[1:2])
	for _, test := range []struct {
		filter store.MailFilter
		want   []string
	}{
		{store.MailFilter{ID: all[0].ID}, []string{"ann@acme.example"}},
		{store.MailFilter{Kind: store.MailReset}, []string{"joann@acme.example"}},
		{store.MailFilter{TenantID: "tnt_1"}, []string{"ann@acme.example"}},
		{store.MailFilter{To: "ann@acme.example"}, []string{"ann@acme.example"}},
		{store.MailFilter{To: "@zeta.example"}, []string{"bob@zeta.example"}},
		{store.MailFilter{To: "@people.of.a.long.domain.zeta.example"}, nil},
		{store.MailFilter{Before: noon.Add(time.Minute)}, []string{"ann@acme.example"}},
		{store.MailFilter{Failed: true}, nil},
	} {
		equal(f, f.selected(test.filter), test.want)
	}

	// What may be under way stays; what is due later becomes due. A digest that waits for its hour does not.
	later := f.clock.read().Add(time.Hour)
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.ClaimMail(ctx, all[0], f.clock.read().Add(2*time.Minute)))
		noError(f, tx.ScheduleMailRetry(ctx, all[1].ID, later, "421 try later"))
		noError(f, tx.ScheduleMailRetry(ctx, all[2].ID, later, ""))
	})
	began := f.clock.read()
	retry := func(filter store.MailFilter) (n int64) {
		f.write(func(tx *store.Tx) { n = f.value(tx.RetryMails(ctx, filter, began, 10)).(int64) })
		return n
	}
	equal(f, retry(store.MailFilter{Kind: store.MailDigest}), int64(0))
	equal(f, retry(store.MailFilter{}), int64(1))
	equal(f, retry(store.MailFilter{}), int64(0))
	due := f.due()
	if len(due) != 1 || due[0].ID != all[1].ID || due[0].Tries != 1 {
		f.Errorf("due: %+v", due)
	}

	drop := func(filter store.MailFilter, limit int) (n int64) {
		f.write(func(tx *store.Tx) { n = f.value(tx.DropMails(ctx, filter, limit)).(int64) })
		return n
	}
	equal(f, drop(store.MailFilter{To: "@acme.example"}, 1), int64(1))
	equal(f, drop(store.MailFilter{To: "@acme.example"}, 10), int64(1))
	equal(f, f.selected(store.MailFilter{Failed: true, Dropped: true}), []string{"ann@acme.example", "joann@acme.example"})
	equal(f, f.selected(store.MailFilter{Failed: true}), []string(nil))
	for _, m := range all {
		isDropped := m.Recipient == "ann@acme.example" || m.Recipient == "joann@acme.example"
		if isDropped != (len(f.selected(store.MailFilter{Failed: true, ID: m.ID})) == 1) {
			f.Errorf("%s is selected by its id: %v", m.Recipient, !isDropped)
		}
	}
	f.clock.move(2 * time.Minute)
	equal(f, retry(store.MailFilter{Failed: true}), int64(0))
	equal(f, retry(store.MailFilter{Failed: true, Dropped: true, To: "ann@acme.example"}), int64(1))

	// What fails again after the retry began is not retried again.
	again := f.due()[0]
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.ClaimMail(ctx, again, f.clock.read().Add(2*time.Minute)))
		noError(f, tx.MarkMailFailed(ctx, again.ID, "550 no"))
	})
	equal(f, retry(store.MailFilter{Failed: true, To: "ann@acme.example"}), int64(0))
}

func pausedQueues(f *fixture) {
	ctx := f.Context()
	f.write(func(tx *store.Tx) { noError(f, tx.QueueMail(ctx, store.MailReset, "ann@acme.example", "rst_1")) })
	mail := f.due()[0]
	reason := store.QueuePause{Queue: store.MailQueue, Reason: "the server moves"}
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.PauseQueue(ctx, reason))
		f.wantNoChange(tx.PauseQueue(ctx, reason))
	})
	reason.Since = f.clock.read()
	equal(f, f.value(f.Read().QueuePauses(ctx)), []store.QueuePause{reason})
	vitals := f.value(f.Read().Vitals(ctx, f.clock.read())).(store.Vitals)
	equal(f, []int{vitals.MailPauses, vitals.WebhookPauses}, []int{1, 0})
	equal(f, f.due(), []store.Mail(nil))
	equal(f, f.value(f.Read().DueUrgentMails(ctx, store.Mail{}, f.clock.read(), 10)), []store.Mail(nil))
	equal(f, f.value(f.Read().DueMailsOf(ctx, "rst_1", store.Mail{}, f.clock.read(), 10)), []store.Mail(nil))
	f.write(func(tx *store.Tx) { f.wantNoChange(tx.ClaimMail(ctx, mail, noon.Add(day))) }) // read before the pause
	f.write(func(tx *store.Tx) {
		f.wantChange(tx.ResumeQueue(ctx, store.MailQueue, ""))
		f.wantNoChange(tx.ResumeQueue(ctx, store.MailQueue, ""))
	})
	equal(f, f.due(), []store.Mail{mail})
}

func pausedDeliveries(f *fixture) {
	ctx := f.Context()
	acme := f.tenant("Acme")
	first, own := f.webhook(acme.ID, "*"), f.webhook("", "*")
	f.record(acme.ID, doorward.UserInvite)
	due := f.value(f.Read().DueDeliveries(ctx, false, store.QueuedDelivery{}, f.clock.read(), 10)).([]store.QueuedDelivery)
	if len(due) != 2 {
		f.Fatalf("%+v", due)
	}
	vitals := f.value(f.Read().Vitals(ctx, f.clock.read())).(store.Vitals)
	equal(f, []any{vitals.Deliveries, vitals.OldestDelivery, vitals.DeliveryDue}, []any{int64(2), due[0].CreatedAt, due[0].CreatedAt})
	f.write(func(tx *store.Tx) { noError(f, tx.RecordWebhookFailure(ctx, first.ID)) })
	for scope, left := range map[string]int{"": 0, acme.ID: 1, first.ID: 1, own.ID: 1} {
		f.write(func(tx *store.Tx) {
			f.wantChange(tx.PauseQueue(ctx, store.QueuePause{Queue: store.WebhookQueue, Scope: scope}))
		})
		for _, urgent := range []bool{false, true} {
			equal(f, len(f.value(f.Read().DueDeliveries(ctx, urgent, store.QueuedDelivery{}, f.clock.read(), 10)).([]store.QueuedDelivery)), left)
		}
		for _, d := range due { // read before the pause
			if isPaused := scope == "" || scope == d.WebhookID || scope == d.TenantID; isPaused {
				f.write(func(tx *store.Tx) { f.wantNoChange(tx.ClaimDelivery(ctx, d, noon.Add(day))) })
			}
		}
		failing := 1
		if scope != own.ID {
			failing = 0
		}
		f.clock.move(time.Hour)
		now := f.clock.read()
		equal(f, len(f.value(f.Read().WebhooksFailing(ctx, now, 1, 10)).([]doorward.Webhook)), failing)
		f.write(func(tx *store.Tx) { f.wantChange(tx.ResumeQueue(ctx, store.WebhookQueue, scope)) })
		if since := f.value(f.Read().Webhook(ctx, first.ID)).(doorward.Webhook).FailingSince; since.Equal(now) != (scope != own.ID) {
			f.Errorf("after the pause of %q it has been failing since %v", scope, since)
		}
	}
	f.write(func(tx *store.Tx) {
		for _, scope := range []string{acme.ID, first.ID, own.ID} {
			f.wantChange(tx.PauseQueue(ctx, store.QueuePause{Queue: store.WebhookQueue, Scope: scope}))
		}
		_, err := tx.DeleteWebhooksOf(ctx, acme.ID, 10)
		noError(f, err)
	})
	equal(f, len(f.value(f.Read().QueuePauses(ctx)).([]store.QueuePause)), 1)
}

func selectedDeliveries(f *fixture) {
	ctx := f.Context()
	acme, zeta := f.tenant("Acme"), f.tenant("Zeta")
	first, second, own := f.webhook(acme.ID, "*"), f.webhook(zeta.ID, "*"), f.webhook("", "*")
	f.record(acme.ID, doorward.UserInvite)
	f.clock.move(time.Hour)
	f.record(zeta.ID, doorward.UserInvite)
	hooksOf := func(filter store.DeliveryFilter) (ids []string) {
		f.Helper()
		filter.State = doorward.DeliveryPending
		for _, w := range f.value(f.Read().WebhooksWith(ctx, filter, f.clock.read(), "", 10)).([]store.WebhookName) {
			ids = append(ids, w.ID)
		}
		return ids
	}
	equal(f, len(hooksOf(store.DeliveryFilter{AllTenants: true})), 3)
	equal(f, hooksOf(store.DeliveryFilter{}), []string{own.ID})
	equal(f, hooksOf(store.DeliveryFilter{TenantID: zeta.ID}), []string{second.ID})
	equal(f, hooksOf(store.DeliveryFilter{AllTenants: true, WebhookID: first.ID}), []string{first.ID})
	equal(f, hooksOf(store.DeliveryFilter{TenantID: zeta.ID, Before: noon.Add(time.Minute)}), []string(nil))

	pending := store.DeliveryFilter{State: doorward.DeliveryPending, AllTenants: true}
	equal(f, f.value(f.Read().CountSelectedDeliveries(ctx, own.ID, pending, f.clock.read())), int64(2))
	all := f.value(f.Read().SelectedDeliveries(ctx, own.ID, pending, f.clock.read(), doorward.WebhookDelivery{}, 10)).([]doorward.WebhookDelivery)
	equal(f, len(all), 2)
	equal(f, f.value(f.Read().SelectedDeliveries(ctx, own.ID, pending, f.clock.read(), all[0], 10)), all[1:])

	due := f.value(f.Read().DueDeliveries(ctx, false, store.QueuedDelivery{}, f.clock.read(), 10)).([]store.QueuedDelivery)
	f.write(func(tx *store.Tx) {
		for _, d := range due {
			f.wantChange(tx.ClaimDelivery(ctx, d, f.clock.read().Add(time.Minute)))
			d.Tries++
			if d.WebhookID == first.ID {
				noError(f, tx.FinishAttempt(ctx, d, f.clock.read().Add(time.Hour)))
			}
		}
	})
	retry := func(id string, filter store.DeliveryFilter) (n int64) {
		f.write(func(tx *store.Tx) { n = f.value(tx.RetryDeliveries(ctx, id, filter, 10)).(int64) })
		return n
	}
	equal(f, retry(own.ID, pending), int64(0)) // they may be under way
	equal(f, retry(first.ID, pending), int64(1))
	equal(f, retry(first.ID, pending), int64(0))
	var dropped []int64
	f.write(func(tx *store.Tx) {
		for range 2 {
			dropped = append(dropped, f.value(tx.DropSome(ctx, own.ID, pending, 1)).(int64))
		}
		dropped = append(dropped, f.value(tx.DropSome(ctx, own.ID, pending, 1)).(int64))
	})
	equal(f, dropped, []int64{1, 1, 0})
	gone := store.DeliveryFilter{State: doorward.DeliveryDropped, AllTenants: true}
	equal(f, len(f.value(f.Read().SelectedDeliveries(ctx, own.ID, gone, f.clock.read(), doorward.WebhookDelivery{}, 10)).([]doorward.WebhookDelivery)), 2)
	enable := func(is bool) {
		f.write(func(tx *store.Tx) {
			hook := f.value(tx.Webhook(ctx, own.ID)).(doorward.Webhook)
			hook.Enabled = is
			noError(f, tx.UpdateWebhook(ctx, hook, false))
		})
	}
	enable(false)
	equal(f, retry(own.ID, gone), int64(0))
	enable(true)
	equal(f, retry(own.ID, gone), int64(2))
	f.write(func(tx *store.Tx) { f.value(tx.DropSome(ctx, own.ID, pending, 10)) })
	for _, d := range due {
		if d.WebhookID == second.ID {
			d.State, d.Tries = doorward.DeliveryGivenUp, d.Tries+1
			f.write(func(tx *store.Tx) { noError(f, tx.FinishAttempt(ctx, d, f.clock.read())) })
		}
	}
	equal(f, retry(second.ID, store.DeliveryFilter{State: doorward.DeliveryGivenUp}), int64(1))
	equal(f, len(f.value(f.Read().DueDeliveries(ctx, false, store.QueuedDelivery{}, f.clock.read(), 10)).([]store.QueuedDelivery)), 2)
}
