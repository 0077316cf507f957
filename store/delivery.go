package store

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// subscription is what queueing a delivery needs of a webhook.
type subscription struct {
	id     string
	events []string
	health doorward.WebhookHealth
}

// subscribed reports, with the chain's row, whether anybody gets a tenant's events: a
// transaction without webhooks needs no statement for them.
const subscribed = `EXISTS (SELECT 1 FROM webhooks w WHERE w.enabled AND w.tenant_id IN ('', $1))`

// A frozen or closing tenant gets nothing; the installation gets everything.
const sqlSubscriptions = `SELECT w.id, w.events, w.health FROM webhooks w LEFT JOIN tenants t ON t.id = w.tenant_id
WHERE w.enabled AND w.tenant_id IN ('', $1) AND (w.tenant_id = '' OR t.status = 'active') ORDER BY w.id`

const sqlQueueDelivery = `INSERT INTO webhook_deliveries (id, webhook_id, event_id, type, state, urgent, tries, step, next_at, created_at, attempts)
VALUES ($1, $2, $3, $4, 'pending', $5, 0, 0, $6, $6, '[]')`

// queueDeliveries queues the events, all of one tenant, for the webhooks that want them.
func (tx *Tx) queueDeliveries(ctx context.Context, tenantID string, events []doorward.Event) error {
	all, err := list(ctx, tx.Reader, func(s *subscription) []any {
		return []any{&s.id, wordsOf(&s.events, plainWord), &s.health}
	}, sqlSubscriptions, tenantID)
	if err != nil {
		return err
	}
	for _, e := range events {
		for _, s := range all {
			if e.Action == doorward.WebhookTest || !doorward.MatchesEvent(s.events, e.Action) {
				continue
			}
			tx.delivering = true
			err := tx.run(ctx, sqlQueueDelivery, doorward.NewID(doorward.PrefixDelivery), s.id, e.ID, e.Action, s.health != doorward.WebhookBad, micros(tx.Now))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// QueuedDelivery is a pending delivery with what its dispatch needs of the webhook.
type QueuedDelivery struct {
	doorward.WebhookDelivery
	DueAt    time.Time
	Urgent   bool
	Tries    int
	Step     int    // of the schedule of retries
	TenantID string // of the webhook
	Healthy  bool   // the endpoint's last attempt succeeded within a second
}

func queuedColumns(d *QueuedDelivery) []any {
	return append(deliveryColumns(&d.WebhookDelivery), (*storedTime)(&d.DueAt), &d.Urgent, &d.Tries, &d.Step, &d.TenantID, &d.Healthy)
}

func deliveryColumns(d *doorward.WebhookDelivery) []any {
	return []any{
		&d.ID, &d.WebhookID, &d.EventID, &d.Type, &d.State,
		jsonColumn[[]doorward.DeliveryAttempt]{&d.Attempts},
		nullableTime{&d.NextAt},
		(*storedTime)(&d.CreatedAt),
	}
}

const (
	columnsOfDelivery = `d.id, d.webhook_id, d.event_id, d.type, d.state, d.attempts,
  CASE WHEN d.state = 'pending' THEN d.next_at END, d.created_at`
	selectQueued = `SELECT ` + columnsOfDelivery + `, d.next_at, d.urgent, d.tries, d.step, w.tenant_id, w.health = 'good'
FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id `
	afterAndDue = `AND (d.next_at, d.id) > ($1, $2) AND d.next_at <= $3
ORDER BY d.next_at, d.id LIMIT $4`
	sqlDueDeliveries       = selectQueued + `WHERE d.state = 'pending' ` + afterAndDue
	sqlDueUrgentDeliveries = selectQueued + `WHERE d.state = 'pending' AND d.urgent ` + afterAndDue
)

// DueDeliveries returns deliveries to try at now, the longest waiting first: those after a
// DueAt and an ID, zero for all.
func (r Reader) DueDeliveries(ctx context.Context, urgent bool, after QueuedDelivery, now time.Time, limit int) ([]QueuedDelivery, error) {
	query := sqlDueDeliveries
	if urgent {
		query = sqlDueUrgentDeliveries
	}
	return list(ctx, r, queuedColumns, query, micros(after.DueAt), after.ID, micros(now), limit)
}

const sqlClaimDelivery = `UPDATE webhook_deliveries SET tries = tries + 1, next_at = $1, urgent = FALSE
WHERE id = $2 AND state = 'pending' AND tries = $3 AND next_at <= $4`

// ClaimDelivery claims the delivery for one attempt and reports whether no other worker has.
// If the worker dies, it is due again at until.
func (tx *Tx) ClaimDelivery(ctx context.Context, d QueuedDelivery, until time.Time) (bool, error) {
	return tx.affected(ctx, sqlClaimDelivery, micros(until), d.ID, d.Tries, micros(tx.Now))
}

const sqlFinishDelivery = `UPDATE webhook_deliveries SET state = CASE WHEN state = 'pending' OR $2 = 'delivered' THEN $2 ELSE state END,
  step = $3, next_at = $4, attempts = $5
WHERE id = $1 AND tries = $6`

// NoteAttempt stores the result of an attempt: the state, and if it is pending the next
// one. d.Tries is that of the claim. Nothing is stored if another worker has claimed it since.
func (tx *Tx) NoteAttempt(ctx context.Context, d QueuedDelivery, next time.Time) error {
	attempts, err := json.Marshal(d.Attempts)
	if err != nil {
		return err
	}
	return tx.run(ctx, sqlFinishDelivery, d.ID, string(d.State), d.Step, micros(next), string(attempts), d.Tries)
}

const sqlDelivery = `SELECT ` + columnsOfDelivery + ` FROM webhook_deliveries d WHERE d.id = $1`

// Delivery returns the delivery, or ErrNone.
func (r Reader) Delivery(ctx context.Context, id string) (doorward.WebhookDelivery, error) {
	return one(ctx, r, deliveryColumns, sqlDelivery, id)
}

const (
	selectDeliveriesOf = `SELECT ` + columnsOfDelivery + ` FROM webhook_deliveries d WHERE d.webhook_id = $1 AND ($2 = '' OR d.state = $2)
`
	sqlDeliveryPage = selectDeliveriesOf + `  AND ((d.created_at, d.id) < ($3, $4) OR $3 = 0)
ORDER BY d.created_at DESC, d.id DESC LIMIT $5`
	sqlDeliveryPageBefore = selectDeliveriesOf + `  AND (d.created_at, d.id) > ($3, $4)
ORDER BY d.created_at, d.id LIMIT $5`
)

// DeliveryPage returns deliveries of the webhook in a state, empty for all, the newest first.
func (r Reader) DeliveryPage(ctx context.Context, webhookID string, state doorward.DeliveryState, w doorward.Window) (doorward.Page[doorward.WebhookDelivery], error) {
	query, from := sqlDeliveryPage, boundary(w)
	if w.Back() {
		query = sqlDeliveryPageBefore
	}
	rows, err := list(ctx, r, deliveryColumns, query, webhookID, string(state), from.At, from.ID, w.Limit+1)
	return page(rows, w, func(d doorward.WebhookDelivery) doorward.Position {
		return doorward.Position{At: micros(d.CreatedAt), ID: d.ID}
	}), err
}

const sqlRetryDelivery = `UPDATE webhook_deliveries SET state = 'pending', step = 0, tries = tries + 1, next_at = $2, urgent = FALSE
WHERE id = $1 AND (state <> 'pending' OR next_at > $2)`

// RetryDelivery makes the delivery due now, with the whole schedule of retries before it. An
// attempt under way is not noted then. It does nothing to one that is due.
func (tx *Tx) RetryDelivery(ctx context.Context, id string) error {
	tx.delivering = true
	return tx.run(ctx, sqlRetryDelivery, id, micros(tx.Now))
}

// Replay selects events to be queued again.
type Replay struct {
	WebhookID, TenantID string
	After               int64 // a number in the tenant's trail
	From, To            *time.Time
	Actions             []doorward.Action
	Limit               int
}

// An id is made of 16 random characters and the last ten of the event's, which are random too.
const (
	replayed = `INSERT INTO webhook_deliveries (id, webhook_id, event_id, type, state, urgent, tries, step, next_at, created_at, attempts)
SELECT $1 || substr(e.id, length(e.id) - 9), $2, e.id, e.action, 'pending', FALSE, 0, 0, $3, $3, '[]' FROM events e
WHERE e.at >= $4 AND e.at < $5 AND replace($6, ' ' || e.action || ' ', '') <> $6
`
	sqlReplayTenant       = replayed + `  AND e.tenant_id = $8 AND e.seq > $9 ORDER BY e.seq LIMIT $7`
	sqlReplayInstallation = replayed + `ORDER BY e.at, e.id LIMIT $7`
)

// QueueReplay queues events of the past, the oldest first, and returns how many.
func (tx *Tx) QueueReplay(ctx context.Context, r Replay) (int64, error) {
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if r.From != nil {
		from = micros(*r.From)
	}
	if r.To != nil {
		to = micros(*r.To)
	}
	id := doorward.NewID(doorward.PrefixDelivery)[:len(doorward.PrefixDelivery)+16]
	args := []any{id, r.WebhookID, micros(tx.Now), from, to, " " + strings.ReplaceAll(joined(r.Actions, actionText), " ", "  ") + " ", r.Limit}
	tx.delivering = true
	if r.TenantID == "" {
		return tx.exec(ctx, sqlReplayInstallation, args...)
	}
	return tx.exec(ctx, sqlReplayTenant, append(args, r.TenantID, r.After)...)
}

const sqlDeleteOldDeliveries = `DELETE FROM webhook_deliveries WHERE id IN (
  SELECT id FROM webhook_deliveries WHERE state <> 'pending' AND created_at <= $1 ORDER BY created_at LIMIT $2)`

// DeleteOldDeliveries deletes finished deliveries from before an instant, at most limit, and
// returns how many.
func (tx *Tx) DeleteOldDeliveries(ctx context.Context, before time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldDeliveries, micros(before), limit)
}
