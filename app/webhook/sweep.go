package webhook

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// noticesAfter are the times without a success after which the managers of a webhook get a
// mail, once each. At the last one the webhook is disabled.
var noticesAfter = []time.Duration{time.Hour, 24 * time.Hour, DisabledAfter}

// DisabledAfter is the time without a success after which a webhook is disabled.
const DisabledAfter = 5 * 24 * time.Hour

// Sweep sends notices, disables webhooks that have failed for too long, and deletes old
// deliveries. Several nodes may do so at the same time.
func (w *Webhooks) Sweep(ctx context.Context) error {
	var errs []error
	// The last notice first: once it is marked as sent, the earlier ones are no longer due.
	for i := range slices.Backward(noticesAfter) {
		errs = append(errs, w.sweepFailing(ctx, i+1))
	}
	return errors.Join(append(errs, w.sweepOld(ctx), w.sweepRetired(ctx))...)
}

// sweepFailing sends the notice with the number, from 1 on, for each webhook that is due for it.
// With the last notice it disables the webhook.
func (w *Webhooks) sweepFailing(ctx context.Context, notice int) error {
	since := w.db.Now().Add(-noticesAfter[notice-1])
	return access.EachDue(func(hook doorward.Webhook) string { return hook.ID }, func(limit int) ([]doorward.Webhook, error) {
		return w.db.Read().WebhooksFailing(ctx, since, notice, limit)
	}, func(hook doorward.Webhook) error {
		due := func(tx *access.Tx) (bool, error) { return tx.MarkWebhookNoticeSent(ctx, hook.ID, notice, since) }
		if notice == len(noticesAfter) {
			return w.disable(ctx, hook, doorward.DisabledFailing, due)
		}
		return w.notify(ctx, hook, due)
	})
}

// notify mails the managers of the webhook that it is failing. due reports whether that mail
// still has to be sent, and marks it as sent.
func (w *Webhooks) notify(ctx context.Context, hook doorward.Webhook, due func(*access.Tx) (bool, error)) error {
	_, err := w.writer.Do(ctx, access.System, doorward.WebhookFailing, object(hook), func(tx *access.Tx) error {
		isDue, err := due(tx)
		if err != nil || !isDue {
			tx.SkipEvent()
			return err
		}
		tx.Changed(doorward.FieldURL, "", withoutQuery(hook.URL))
		tx.Changed(doorward.FieldFailingSince, "", hook.FailingSince.Format(time.RFC3339))
		return w.mail(ctx, tx, hook, store.MailWebhookFailing)
	})
	return err
}

// disable disables the webhook, drops its pending deliveries, and mails its managers. due is
// as for notify; nil means that it is due.
func (w *Webhooks) disable(ctx context.Context, hook doorward.Webhook, reason doorward.DisabledReason, due func(*access.Tx) (bool, error)) error {
	_, err := w.writer.Do(ctx, access.System, doorward.WebhookDisable, object(hook), func(tx *access.Tx) error {
		isDue := true
		err := lock(ctx, tx, hook.TenantID)
		if err == nil && due != nil {
			isDue, err = due(tx)
		}
		if err == nil && isDue {
			isDue, err = tx.DisableWebhook(ctx, hook.ID, reason)
		}
		if err != nil || !isDue {
			tx.SkipEvent()
			return err
		}
		tx.Changed(doorward.FieldURL, "", withoutQuery(hook.URL))
		tx.Changed(doorward.FieldReason, "", string(reason))
		if _, err := tx.DropDeliveries(ctx, hook.ID); err != nil {
			return err
		}
		return w.mail(ctx, tx, hook, store.MailWebhookDisabled)
	})
	return err
}

func (w *Webhooks) mail(ctx context.Context, tx *access.Tx, hook doorward.Webhook, kind store.MailKind) error {
	to, err := w.recipients(ctx, tx, hook, access.Managers...)
	for _, email := range to {
		err = errors.Join(err, tx.Notify(ctx, kind, email))
	}
	return err
}

func (w *Webhooks) sweepOld(ctx context.Context) error {
	return w.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
		return tx.DeleteOldDeliveries(ctx, tx.Now.Add(-w.keep), limit)
	})
}

// sweepRetired deletes what is left of deleted webhooks.
func (w *Webhooks) sweepRetired(ctx context.Context) error {
	return w.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) {
		return tx.DeleteWebhooksOf(ctx, store.RetiredWebhooksTenant, limit)
	})
}
