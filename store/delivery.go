package store

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
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

// subscribed is a column of the statement that advances the chain of events. It says whether
// any webhook may get the tenant's events; if none does, no further statement is needed.
const subscribed = `EXISTS (SELECT 1 FROM webhooks w WHERE w.enabled AND w.tenant_id IN ('', $1))`

// A frozen or closing tenant gets nothing; the installation gets everything.
const sqlSubscriptions = `SELECT w.id, w.events, w.health FROM webhooks w LEFT JOIN tenants t ON t.id = w.tenant_id
WHERE w.enabled AND w.tenant_id IN ('', $1) AND (w.tenant_id = '' OR t.status = 'active') ORDER BY w.id`

const sqlQueueDelivery = `INSERT INTO webhook_deliveries (id, webhook_id, event_id, type, state, urgent, tries, step, next_at, created_at, attempts)
VALUES ($1, $2, $3, $4, 'pending', $5, 0, 0, $6, $6, '[]')`

// queueDeliveries queues the events, all of one tenant, for the webhooks that want them.
func (tx *Tx) queueDeliveries(ctx context.Context, tenantID string, events []doorward.Event) error {
	all, err := list(ctx, tx.Reader, func(s *subscription) []any {
		return []any{&s.id, wordsOf(&s.events, parsePlainText), &s.health}
	}, sqlSubscriptions, tenantID)
	if err != nil {
		return err
	}
	for _, e := range events {
		for _, s := range all {
			if e.Action == doorward.WebhookTest || !doorward.MatchesEvent(s.events, e.Action) {
				continue
			}
			tx.deliveryQueued = true
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
	Urgent   bool   // never tried, not a replay, and the webhook's health wasn't bad when it was queued
	Tries    int    // claims so far; RetryDelivery adds one, so that an older claim stores nothing
	Step     int    // of the schedule of retries
	TenantID string // of the webhook
	Healthy  bool   // the endpoint's last attempt succeeded within a second
}

func queuedFields(d *QueuedDelivery) []any {
	return append(deliveryFields(&d.WebhookDelivery), (*storedTime)(&d.DueAt), &d.Urgent, &d.Tries, &d.Step, &d.TenantID, &d.Healthy)
}

func deliveryFields(d *doorward.WebhookDelivery) []any {
	return []any{
		&d.ID, &d.WebhookID, &d.EventID, &d.Type, &d.State,
		jsonColumn[[]doorward.DeliveryAttempt]{&d.Attempts},
		nullableTime{&d.NextAt},
		(*storedTime)(&d.CreatedAt),
	}
}

const (
	deliveryColumns = `d.id, d.webhook_id, d.event_id, d.type, d.state, d.attempts,
  CASE WHEN d.state = 'pending' THEN d.next_at END, d.created_at`
	selectQueued = `SELECT ` + deliveryColumns + `, d.next_at, d.urgent, d.tries, d.step, w.tenant_id, w.health = 'good'
FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id `
	afterAndDue = `AND (d.next_at, d.id) > ($1, $2) AND d.next_at <= $3` + deliveriesGoOn + `
ORDER BY d.next_at, d.id LIMIT $4`
	sqlDueDeliveries       = selectQueued + `WHERE d.state = 'pending' ` + afterAndDue
	sqlDueUrgentDeliveries = selectQueued + `WHERE d.state = 'pending' AND d.urgent ` + afterAndDue
)

// DueDeliveries returns deliveries to try at now, or only the urgent ones, the longest
// waiting first, without those that are paused. It continues after the DueAt and ID of after; zero: from the beginning.
func (r Reader) DueDeliveries(ctx context.Context, urgent bool, after QueuedDelivery, now time.Time, limit int) ([]QueuedDelivery, error) {
	query := sqlDueDeliveries
	if urgent {
		query = sqlDueUrgentDeliveries
	}
	return list(ctx, r, queuedFields, query, micros(after.DueAt), after.ID, micros(now), limit)
}

const sqlClaimDelivery = `UPDATE webhook_deliveries SET tries = tries + 1, next_at = $1, urgent = FALSE
WHERE id = $2 AND state = 'pending' AND tries = $3 AND next_at <= $4
  AND NOT EXISTS (SELECT 1 FROM queue_pauses p WHERE p.queue = 'webhook' AND p.scope IN ('', $5, webhook_deliveries.webhook_id))`

// ClaimDelivery claims the delivery for one attempt. It reports false if another worker has
// claimed it, it is no longer pending and due, or it is paused. If the worker dies, it is due again at until.
func (tx *Tx) ClaimDelivery(ctx context.Context, d QueuedDelivery, until time.Time) (bool, error) {
	return tx.affected(ctx, sqlClaimDelivery, micros(until), d.ID, d.Tries, micros(tx.Now), d.TenantID)
}

const sqlFinishDelivery = `UPDATE webhook_deliveries SET state = CASE WHEN state = 'pending' OR $2 = 'delivered' THEN $2 ELSE state END,
  step = $3, next_at = $4, attempts = $5
WHERE id = $1 AND tries = $6`

// FinishAttempt stores the result of an attempt, and when the next one is due if the state
// is pending. d.Tries must be that of the claim: nothing is stored if another worker has
// claimed the delivery since. A delivery that was dropped since stays dropped, unless this
// attempt has delivered it.
func (tx *Tx) FinishAttempt(ctx context.Context, d QueuedDelivery, next time.Time) error {
	attempts, err := json.Marshal(d.Attempts)
	if err != nil {
		return err
	}
	return tx.run(ctx, sqlFinishDelivery, d.ID, string(d.State), d.Step, micros(next), string(attempts), d.Tries)
}

const sqlDelivery = selectDelivery + `WHERE d.id = $1`

// Delivery returns the delivery, or ErrNone.
func (r Reader) Delivery(ctx context.Context, id string) (doorward.WebhookDelivery, error) {
	return one(ctx, r, deliveryFields, sqlDelivery, id)
}

const selectDelivery = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries d `

// deliveryPages lists the deliveries of a webhook, deliveryPagesIn those in one state. Few of
// many may be in that state, so this list has its own index.
var deliveryPages, deliveryPagesIn = newDeliveryPages("", 1), newDeliveryPages(" AND d.state = $2", 2)

func newDeliveryPages(condition string, args int) pages[doorward.WebhookDelivery] {
	return newPages(listing[doorward.WebhookDelivery]{
		head: selectDelivery, count: "FROM webhook_deliveries d ",
		where: "WHERE d.webhook_id = $1" + condition + "\n", args: args,
		fields: deliveryFields, id: "d.id", idOf: func(d doorward.WebhookDelivery) string { return d.ID },
		orders:       []order[doorward.WebhookDelivery]{{name: "createdAt", column: "d.created_at", number: func(d doorward.WebhookDelivery) int64 { return micros(d.CreatedAt) }}},
		defaultOrder: "-createdAt",
	})
}

// DeliveryPage returns deliveries of the webhook in a state, or in all for an empty one,
// usually the newest first. Errors: validation_failed, for an unknown order.
func (r Reader) DeliveryPage(ctx context.Context, webhookID string, state doorward.DeliveryState, w doorward.Window) (doorward.Page[doorward.WebhookDelivery], error) {
	if state == "" {
		return deliveryPages.read(ctx, r, w, webhookID)
	}
	return deliveryPagesIn.read(ctx, r, w, webhookID, string(state))
}

const sqlRetryDelivery = `UPDATE webhook_deliveries SET state = 'pending', step = 0, tries = tries + 1, next_at = $2, urgent = FALSE
WHERE id = $1 AND (state <> 'pending' OR next_at > $2)`

// RetryDelivery makes the delivery due now and begins the schedule of retries again. The
// result of an attempt under way is then not stored. It does nothing to a delivery that is
// due.
func (tx *Tx) RetryDelivery(ctx context.Context, id string) error {
	tx.deliveryQueued = true
	return tx.run(ctx, sqlRetryDelivery, id, micros(tx.Now))
}

// Replay selects events to be queued again.
type Replay struct {
	TenantID string     // empty: all tenants
	After    int64      // a number in the tenant's trail; 0: from its beginning. Not used for all tenants
	From, To *time.Time // To is exclusive
	Actions  []doorward.Action
	Limit    int
}

// replayedEvent is an event to be queued again, with its place in the order.
type replayedEvent struct {
	id string
	at int64 // a time, or a number in the trail
}

func replayedFields(e *replayedEvent) []any { return []any{&e.id, &e.at} }

// There is a query for each index, so that none reads many rows to return a few: by time, by
// outcome and time, by number in the trail, and by action. The last is used for up to
// fewActions. In the list $3 each action has a space on both sides: it contains an action if
// removing the action changes it.
const (
	matching         = `AND replace($3, ' ' || e.action || ' ', '') <> $3 `
	inTrail          = `AND e.tenant_id = $5 AND e.seq > $6 `
	sqlReplayAll     = `SELECT e.id, e.at FROM events e WHERE e.at >= $1 AND e.at < $2 ` + matching + `ORDER BY e.at, e.id LIMIT $4`
	sqlReplayOutcome = `SELECT e.id, e.at FROM events e WHERE e.at >= $1 AND e.at < $2 ` + matching + inTrail + `AND e.outcome = $7 ORDER BY e.at LIMIT $4`
	sqlReplayTrail   = `SELECT e.id, e.seq FROM events e WHERE e.at >= $1 AND e.at < $2 ` + matching + inTrail + `ORDER BY e.seq LIMIT $4`
	sqlReplayAction  = `SELECT e.id, e.seq FROM events e WHERE e.at >= $1 AND e.at < $2 AND e.action = $3 ` + inTrail + `ORDER BY e.seq LIMIT $4`
	fewActions       = 8
)

// EventsToReplay returns the ids of the selected events, the oldest first.
func (r Reader) EventsToReplay(ctx context.Context, p Replay) (ids []string, err error) {
	all, err := r.replayed(ctx, p)
	slices.SortStableFunc(all, func(a, b replayedEvent) int { return cmp.Compare(a.at, b.at) })
	for _, e := range all[:min(len(all), p.Limit)] {
		ids = append(ids, e.id)
	}
	return ids, err
}

func (r Reader) replayed(ctx context.Context, p Replay) (all []replayedEvent, err error) {
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if p.From != nil {
		from = micros(*p.From)
	}
	if p.To != nil {
		to = micros(*p.To)
	}
	read := func(query, actions string, more ...any) error {
		found, err := list(ctx, r, replayedFields, query, append([]any{from, to, actions, p.Limit}, more...)...)
		all = append(all, found...)
		return err
	}
	actions := " " + strings.ReplaceAll(joined(p.Actions, actionText), " ", "  ") + " "
	switch {
	case p.TenantID == "":
		err = read(sqlReplayAll, actions)
	case p.From != nil: // the index of a tenant's events by time has the outcome before the time
		err = read(sqlReplayOutcome, actions, p.TenantID, p.After, string(doorward.Done))
		if err == nil {
			err = read(sqlReplayOutcome, actions, p.TenantID, p.After, string(doorward.Refused))
		}
	case len(p.Actions) > fewActions:
		err = read(sqlReplayTrail, actions, p.TenantID, p.After)
	default:
		for i := 0; i < len(p.Actions) && err == nil; i++ {
			err = read(sqlReplayAction, string(p.Actions[i]), p.TenantID, p.After)
		}
	}
	return all, err
}

// replayBatch is how many events one statement queues.
const replayBatch = 50

// An id is made of 16 random characters and the last ten of the event's, which are random too.
const sqlQueueReplay = `INSERT INTO webhook_deliveries (id, webhook_id, event_id, type, state, urgent, tries, step, next_at, created_at, attempts)
SELECT $1 || substr(e.id, length(e.id) - 9), $2, e.id, e.action, 'pending', FALSE, 0, 0, $3, $3, '[]' FROM events e
WHERE e.id IN ($4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
  $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37,
  $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53)`

// QueueReplay queues the events again, even those that the webhook has had, and returns how
// many it has queued.
func (tx *Tx) QueueReplay(ctx context.Context, webhookID string, events []string) (queued int64, err error) {
	id := doorward.NewID(doorward.PrefixDelivery)[:len(doorward.PrefixDelivery)+16]
	tx.deliveryQueued = true
	for batch := range slices.Chunk(events, replayBatch) {
		args := []any{id, webhookID, micros(tx.Now)}
		for i := range replayBatch { // the last event fills a shorter batch
			args = append(args, batch[min(i, len(batch)-1)])
		}
		n, err := tx.exec(ctx, sqlQueueReplay, args...)
		if err != nil {
			return queued, err
		}
		queued += n
	}
	return queued, nil
}

// The condition is repeated outside: a delivery that is retried while it is deleted stays.
const sqlDeleteOldDeliveries = `DELETE FROM webhook_deliveries WHERE state <> 'pending' AND id IN (
  SELECT id FROM webhook_deliveries WHERE state <> 'pending' AND created_at <= $1 ORDER BY created_at LIMIT $2)`

// DeleteOldDeliveries deletes finished deliveries that were queued at an instant or before. It
// returns how many, at most limit.
func (tx *Tx) DeleteOldDeliveries(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldDeliveries, micros(until), limit)
}
