package queue

import (
	"context"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
)

// Delivery is a delivery with the tenant of its webhook; empty: the installation.
type Delivery struct {
	doorward.WebhookDelivery
	TenantID string
}

// EachDelivery calls fn with the deliveries that the filter selects, by webhook, the oldest first, until fn fails.
// It returns fn's error. Errors: not_found, for an unknown tenant or webhook.
func (q *Queues) EachDelivery(ctx context.Context, f store.DeliveryFilter, fn func(Delivery) error) error {
	return q.eachWebhook(ctx, f, func(w store.WebhookName) error {
		for after := (doorward.WebhookDelivery{}); ; {
			page, err := q.db.Read().SelectedDeliveries(ctx, w.ID, f, q.db.Now(), after, pageSize)
			if err != nil {
				return err
			}
			for _, d := range page {
				if err := fn(Delivery{d, w.TenantID}); err != nil {
					return err
				}
				after = d
			}
			if len(page) < pageSize {
				return nil
			}
		}
	})
}

// eachWebhook calls fn with the webhooks that have deliveries that the filter selects.
func (q *Queues) eachWebhook(ctx context.Context, f store.DeliveryFilter, fn func(store.WebhookName) error) error {
	for _, scope := range []string{f.TenantID, f.WebhookID} {
		if _, err := q.find(ctx, scope); err != nil {
			return err
		}
	}
	for after := ""; ; {
		hooks, err := q.db.Read().WebhooksWith(ctx, f, q.db.Now(), after, pageSize)
		if err != nil || len(hooks) == 0 {
			return err
		}
		for _, w := range hooks {
			if err := fn(w); err != nil {
				return err
			}
			after = w.ID
		}
	}
}

// RetryDeliveries has deliveries that the filter selects tried again now, as the first time: pending ones, or those
// that failed or were dropped. Those of a webhook that is disabled, or whose tenant isn't active, stay as they
// are, and so do pending ones that are due within three minutes. The owner's trail has an event for each transaction.
// It returns how many, with an error those so far. Errors: not_found, for an unknown tenant or webhook.
func (q *Queues) RetryDeliveries(ctx context.Context, by doorward.Caller, f store.DeliveryFilter) (int64, error) {
	return q.eachDeliveryBatch(ctx, by, doorward.QueueRetry, fieldRetried, f, func(tx *access.Tx, webhookID string) (int64, error) {
		return tx.RetryDeliveries(ctx, webhookID, f, rowBatch)
	})
}

// DropDeliveries gives up pending deliveries that the filter selects. Trails, number and errors are as for
// RetryDeliveries.
func (q *Queues) DropDeliveries(ctx context.Context, by doorward.Caller, f store.DeliveryFilter) (int64, error) {
	return q.eachDeliveryBatch(ctx, by, doorward.QueueDrop, fieldDropped, f, func(tx *access.Tx, webhookID string) (int64, error) {
		return tx.DropSome(ctx, webhookID, f, rowBatch)
	})
}

func (q *Queues) eachDeliveryBatch(ctx context.Context, by doorward.Caller, act doorward.Action, field string, f store.DeliveryFilter, change func(*access.Tx, string) (int64, error)) (all int64, err error) {
	if err := q.countDeliveries(ctx, f); err != nil {
		return 0, err
	}
	err = q.eachWebhook(ctx, f, func(w store.WebhookName) error {
		on := doorward.Object{Type: "webhook", ID: w.ID, TenantID: w.TenantID}
		n, err := q.inBatches(ctx, by, act, on, func(tx *access.Tx) (int64, error) {
			return change(tx, w.ID)
		}, func(tx *access.Tx, n int64) error {
			record(tx, []doorward.Change{{Field: fieldQueue, To: string(store.WebhookQueue)}, {Field: field, To: strconv.FormatInt(n, 10)}})
			return nil
		})
		all += n
		return err
	})
	return all, err
}

// countDeliveries begins the step of the progress.
func (q *Queues) countDeliveries(ctx context.Context, f store.DeliveryFilter) error {
	var all int64
	err := q.eachWebhook(ctx, f, func(w store.WebhookName) error {
		n, err := q.db.Read().CountSelectedDeliveries(ctx, w.ID, f, q.db.Now())
		all += n
		return err
	})
	progress.Step(ctx, "deliveries", all, nil)
	return err
}
