package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
)

// What the operator does with the queues of mails and of webhooks' deliveries.

// Queue is a queue that the operator can pause.
type Queue string

// The queues.
const (
	MailQueue    Queue = "mail"
	WebhookQueue Queue = "webhook"
)

// QueuePause says that nothing of a queue is sent.
type QueuePause struct {
	Queue  Queue
	Scope  string // empty: all of the queue; of webhooks, the id of a tenant or of a webhook
	Since  time.Time
	Reason string // may be empty
}

func pauseFields(p *QueuePause) []any {
	return []any{&p.Queue, &p.Scope, (*storedTime)(&p.Since), &p.Reason}
}

// Conditions of statements that look for work, or claim it: nodes have no memory of pauses that could be outdated.
const (
	mailsGoOn      = ` AND NOT EXISTS (SELECT 1 FROM queue_pauses WHERE queue = 'mail')`
	deliveriesGoOn = ` AND NOT EXISTS (SELECT 1 FROM queue_pauses p WHERE p.queue = 'webhook' AND p.scope IN ('', w.tenant_id, w.id))`
)

const sqlQueuePauses = `SELECT queue, scope, since, reason FROM queue_pauses`

// QueuePauses returns all pauses, by queue and scope.
func (r Reader) QueuePauses(ctx context.Context) ([]QueuePause, error) {
	all, err := list(ctx, r, pauseFields, sqlQueuePauses)
	slices.SortFunc(all, func(a, b QueuePause) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Scope, b.Scope))
	})
	return all, err
}

const sqlPauseQueue = `INSERT INTO queue_pauses (queue, scope, since, reason) VALUES ($1, $2, $3, $4) ON CONFLICT (queue, scope) DO NOTHING`

// PauseQueue pauses the queue, and reports whether it wasn't paused. Tries under way go on.
func (tx *Tx) PauseQueue(ctx context.Context, p QueuePause) (bool, error) {
	return tx.affected(ctx, sqlPauseQueue, string(p.Queue), p.Scope, micros(tx.Now), p.Reason)
}

const (
	sqlResumeQueue = `DELETE FROM queue_pauses WHERE queue = $1 AND scope = $2`
	// An endpoint that failed before the pause had no chance to succeed in it: its failure counts from now.
	sqlFailAnew = `UPDATE webhooks SET failing_since = $1 WHERE failing_since IS NOT NULL AND $2 IN ('', tenant_id, id)`
)

// ResumeQueue ends a pause, and reports whether there was one.
func (tx *Tx) ResumeQueue(ctx context.Context, queue Queue, scope string) (bool, error) {
	tx.mailQueued, tx.deliveryQueued = tx.mailQueued || queue == MailQueue, tx.deliveryQueued || queue == WebhookQueue
	ended, err := tx.affected(ctx, sqlResumeQueue, string(queue), scope)
	if err == nil && ended && queue == WebhookQueue {
		err = tx.run(ctx, sqlFailAnew, micros(tx.Now), scope)
	}
	return ended, err
}

// MailFilter selects mails. The zero value selects all that are queued.
type MailFilter struct {
	ID       string
	Kind     MailKind
	TenantID string    // of the action that the mail is about
	To       string    // an address, or "@acme.example" for all of a domain; canonical
	Before   time.Time // queued before; zero: whenever they were
	Failed   bool      // those that were given up, in place of those that are queued
	Dropped  bool      // with Failed: those that the operator has dropped, in place of those that failed; with an ID either
}

// droppedMail is the error of a mail that the operator has dropped.
const droppedMail = "not sent: the operator has dropped it"

// IsDropped reports whether the operator has dropped the mail.
func (m Mail) IsDropped() bool {
	return m.State == doorward.DeliveryFailed && m.LastError == droppedMail
}

// args are $1 to $5 of selectedMails.
func (f MailFilter) args(now time.Time) []any {
	before := f.Before
	if before.IsZero() {
		before = now.Add(time.Microsecond)
	}
	return []any{micros(before), f.ID, string(f.Kind), f.TenantID, f.To}
}

// failedArgs are $1 to $6 of givenUp and selectedMails.
func (f MailFilter) failedArgs(now time.Time) []any { return append(f.args(now), f.Dropped) }

const (
	selectedMails = `created_at < $1 AND ($2 = '' OR id = $2) AND ($3 = '' OR kind = $3) AND ($4 = '' OR share = $4)
  AND ($5 = '' OR recipient = $5 OR substr($5, 1, 1) = '@' AND substr(recipient, length(recipient) - length($5) + 1) = $5) `
	// The index of finished mails has those with a recipient.
	givenUp = `state <> 'queued' AND recipient <> '' AND state = 'failed' AND ($2 <> '' OR (last_error = '` + droppedMail + `') = $6) AND `

	sqlListQueuedMails = selectMail + `WHERE state = 'queued' AND ` + selectedMails + `AND (next_at, id) > ($6, $7) ORDER BY next_at, id LIMIT $8`
	sqlListFailedMails = selectMail + `WHERE ` + givenUp + selectedMails + `AND (created_at, id) > ($7, $8) ORDER BY created_at, id LIMIT $9`
)

// SelectedMails returns mails that the filter selects, at most limit: queued ones in the order in which they are
// due, failed ones the oldest first. It continues after a mail; zero: from the beginning.
func (r Reader) SelectedMails(ctx context.Context, f MailFilter, now time.Time, after Mail, limit int) ([]Mail, error) {
	if f.Failed {
		return list(ctx, r, mailFields, sqlListFailedMails, append(f.failedArgs(now), micros(after.CreatedAt), after.ID, limit)...)
	}
	return list(ctx, r, mailFields, sqlListQueuedMails, append(f.args(now), micros(after.NextAt), after.ID, limit)...)
}

const (
	sqlCountQueuedMails = `SELECT count(*) FROM mails WHERE state = 'queued' AND ` + selectedMails
	sqlCountFailedMails = `SELECT count(*) FROM mails WHERE ` + givenUp + selectedMails
)

// CountSelectedMails returns how many mails the filter selects.
func (r Reader) CountSelectedMails(ctx context.Context, f MailFilter, now time.Time) (int64, error) {
	if f.Failed {
		return one(ctx, r, int64Column, sqlCountFailedMails, f.failedArgs(now)...)
	}
	return one(ctx, r, int64Column, sqlCountQueuedMails, f.args(now)...)
}

// soonDue is longer than a claim of a mail or of a delivery lasts (outbox.MaxTry, claimFor of app/webhook), and
// than a transaction. What is due later is not being tried now, and can be made due without being sent twice.
const soonDue = 3 * time.Minute

// mailClaim is how long a mail is claimed for a try (outbox.MaxTry): next_at of a failed one is that much after the
// beginning of its last try.
const mailClaim = 2 * time.Minute

// A digest that was never tried waits for the end of its hour.
const (
	dueLater = `state = 'queued' AND next_at > $7 AND (kind <> 'digest' OR tries > 0) `

	sqlRetryQueuedMails = `UPDATE mails SET next_at = $6, tries = 1 WHERE ` + dueLater + `AND id IN (
  SELECT id FROM mails WHERE ` + dueLater + `AND ` + selectedMails + `LIMIT $8)`
	sqlRetryFailedMails = `UPDATE mails SET state = 'queued', next_at = $7, tries = 1 WHERE state = 'failed' AND id IN (
  SELECT id FROM mails WHERE ` + givenUp + selectedMails + `AND next_at <= $8 LIMIT $9)`
	sqlDropMails = `UPDATE mails SET state = 'failed', last_error = '` + droppedMail + `' WHERE state = 'queued' AND id IN (
  SELECT id FROM mails WHERE state = 'queued' AND ` + selectedMails + `LIMIT $6)`
)

// RetryMails makes mails that the filter selects due now, with the pauses as after the first try. It leaves out
// queued ones that are due within three minutes, which may be under way, and failed ones whose last try began
// later than began. It returns how many, at most limit; fewer mean that none is left.
func (tx *Tx) RetryMails(ctx context.Context, f MailFilter, began time.Time, limit int) (int64, error) {
	tx.mailQueued = true
	now := micros(tx.Now)
	if f.Failed {
		return tx.exec(ctx, sqlRetryFailedMails, append(f.failedArgs(tx.Now), now, micros(began.Add(mailClaim)), limit)...)
	}
	return tx.exec(ctx, sqlRetryQueuedMails, append(f.args(tx.Now), now, micros(tx.Now.Add(soonDue)), limit)...)
}

// DropMails gives up queued mails that the filter selects, and returns how many, at most limit. One
// that is under way may still be sent, and is then marked as sent.
func (tx *Tx) DropMails(ctx context.Context, f MailFilter, limit int) (int64, error) {
	return tx.exec(ctx, sqlDropMails, append(f.args(tx.Now), limit)...)
}

// DeliveryFilter selects deliveries in one state.
type DeliveryFilter struct {
	State      doorward.DeliveryState // pending, failed or dropped
	WebhookID  string                 // empty: of all webhooks
	TenantID   string                 // empty: the installation; read only without AllTenants
	AllTenants bool
	Before     time.Time // queued before; zero: whenever they were
}

func (f DeliveryFilter) before(now time.Time) int64 {
	if f.Before.IsZero() {
		return micros(now) + 1
	}
	return micros(f.Before)
}

const sqlWebhooksWith = `SELECT w.id, w.tenant_id FROM webhooks w
WHERE w.id > $1 AND w.tenant_id <> '` + RetiredWebhooksTenant + `' AND ($2 = '' OR w.id = $2) AND ($3 OR w.tenant_id = $4)
  AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.state = $5 AND d.created_at < $6)
ORDER BY w.id LIMIT $7`

// WebhooksWith returns webhooks that have deliveries that the filter selects, in the order of their ids, after
// one id.
func (r Reader) WebhooksWith(ctx context.Context, f DeliveryFilter, now time.Time, after string, limit int) ([]WebhookName, error) {
	fields := func(w *WebhookName) []any { return []any{&w.ID, &w.TenantID} }
	return list(ctx, r, fields, sqlWebhooksWith, after, f.WebhookID, f.AllTenants, f.TenantID, string(f.State), f.before(now), limit)
}

const sqlSelectedDeliveries = selectDelivery + `WHERE d.webhook_id = $1 AND d.state = $2 AND d.created_at < $3 AND (d.created_at, d.id) > ($4, $5)
ORDER BY d.created_at, d.id LIMIT $6`

// SelectedDeliveries returns deliveries of a webhook that the filter selects, the oldest first, after one; zero:
// from the beginning.
func (r Reader) SelectedDeliveries(ctx context.Context, webhookID string, f DeliveryFilter, now time.Time, after doorward.WebhookDelivery, limit int) ([]doorward.WebhookDelivery, error) {
	return list(ctx, r, deliveryFields, sqlSelectedDeliveries, webhookID, string(f.State), f.before(now), micros(after.CreatedAt), after.ID, limit)
}

const sqlCountSelectedDeliveries = `SELECT count(*) FROM webhook_deliveries WHERE webhook_id = $1 AND state = $2 AND created_at < $3`

// CountSelectedDeliveries returns how many deliveries of a webhook the filter selects.
func (r Reader) CountSelectedDeliveries(ctx context.Context, webhookID string, f DeliveryFilter, now time.Time) (int64, error) {
	return one(ctx, r, int64Column, sqlCountSelectedDeliveries, webhookID, string(f.State), f.before(now))
}

const (
	sqlRetryDeliveries = `UPDATE webhook_deliveries SET state = 'pending', step = 0, tries = tries + 1, next_at = $4, urgent = FALSE
WHERE state = $2 AND (state <> 'pending' OR next_at > $5) AND EXISTS (
  SELECT 1 FROM webhooks w LEFT JOIN tenants t ON t.id = w.tenant_id WHERE w.id = $1 AND w.enabled AND (w.tenant_id = '' OR t.status = 'active')) AND id IN (
  SELECT id FROM webhook_deliveries WHERE webhook_id = $1 AND state = $2 AND created_at < $3 AND (state <> 'pending' OR next_at > $5) LIMIT $6)`
	sqlDropDeliveries = `UPDATE webhook_deliveries SET state = 'dropped' WHERE state = 'pending' AND id IN (
  SELECT id FROM webhook_deliveries WHERE webhook_id = $1 AND state = 'pending' AND created_at < $2 LIMIT $3)`
)

// RetryDeliveries makes deliveries of a webhook that the filter selects due now, and begins their schedule of
// retries again. Those of a webhook that is disabled, or whose tenant isn't active, are left out, and pending ones
// that are due within three minutes, as by RetryMails. It returns how many, at most limit; fewer mean that none is left.
func (tx *Tx) RetryDeliveries(ctx context.Context, webhookID string, f DeliveryFilter, limit int) (int64, error) {
	tx.deliveryQueued = true
	return tx.exec(ctx, sqlRetryDeliveries, webhookID, string(f.State), f.before(tx.Now), micros(tx.Now), micros(tx.Now.Add(soonDue)), limit)
}

// DropSome gives up pending deliveries of a webhook that the filter selects, and returns how many, at most limit.
func (tx *Tx) DropSome(ctx context.Context, webhookID string, f DeliveryFilter, limit int) (int64, error) {
	return tx.exec(ctx, sqlDropDeliveries, webhookID, f.before(tx.Now), limit)
}
