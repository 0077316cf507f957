package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// WebhookSecrets are the sealed secrets of a webhook.
type WebhookSecrets struct {
	Secret       []byte
	Previous     []byte // before the last rotation; nil: none
	PreviousEnds *time.Time
	Private      []byte // seed of the Ed25519 key
}

func webhookFields(w *doorward.Webhook) []any {
	return []any{
		&w.ID, &w.TenantID, &w.URL, wordsOf(&w.Events, parsePlainText), &w.About, wordsOf(&w.Include, parsePlainText), &w.Enabled, &w.DisabledReason,
		&w.PublicKey, (*storedTime)(&w.CreatedAt),
		nullableTime{&w.LastSuccessAt},
		nullableTime{&w.FailingSince},
		&w.Notices, &w.Health,
		nullableTime{&w.PreviousEndsAt},
		nullableText{&w.CreatedBy},
		&w.URLBy,
	}
}

const (
	selectWebhook = `SELECT id, tenant_id, url, events, about, include, enabled, disabled_reason,
  public_key, created_at, last_success_at, failing_since, notices, health, previous_ends_at, created_by, url_by FROM webhooks
`
	sqlWebhook = selectWebhook + `WHERE id = $1`
)

// Webhook returns the webhook, or ErrNone.
func (r Reader) Webhook(ctx context.Context, id string) (doorward.Webhook, error) {
	return one(ctx, r, webhookFields, sqlWebhook, id)
}

var webhookPages = newPages(listing[doorward.Webhook]{
	head:   selectWebhook,
	count:  "FROM webhooks ",
	where:  "WHERE tenant_id = $1\n",
	args:   1,
	fields: webhookFields,
	id:     "id",
	idOf:   func(w doorward.Webhook) string { return w.ID },
	orders: []order[doorward.Webhook]{
		{name: "createdAt", column: "created_at", number: func(w doorward.Webhook) int64 { return micros(w.CreatedAt) }},
	},
	defaultOrder: "-createdAt",
})

// WebhookPage returns webhooks of the tenant, usually the newest first. The empty tenant is
// the installation. Errors: validation_failed, for an unknown order.
func (r Reader) WebhookPage(ctx context.Context, tenantID string, w doorward.Window) (doorward.Page[doorward.Webhook], error) {
	return webhookPages.read(ctx, r, w, tenantID)
}

const sqlCountWebhooks = `SELECT count(*) FROM webhooks WHERE tenant_id = $1`

// CountWebhooks counts the webhooks of the tenant, disabled ones too.
func (r Reader) CountWebhooks(ctx context.Context, tenantID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountWebhooks, tenantID)
}

const sqlWebhooksMadeBy = `SELECT id, url FROM webhooks
WHERE tenant_id = $1 AND enabled AND (created_by = $2 OR url_by = $2) ORDER BY created_at, id`

// WebhooksMadeBy returns the enabled webhooks of the tenant that the user has made, or to which the
// user has given the present URL.
func (r Reader) WebhooksMadeBy(ctx context.Context, tenantID, userID string) ([]doorward.MadeWebhook, error) {
	fields := func(w *doorward.MadeWebhook) []any { return []any{&w.ID, &w.URL} }
	return list(ctx, r, fields, sqlWebhooksMadeBy, tenantID, userID)
}

const sqlWebhookSecrets = `SELECT secret_sealed, previous_sealed, previous_ends_at, private_sealed FROM webhooks WHERE id = $1`

// WebhookSecrets returns the sealed secrets of a webhook, or ErrNone.
func (r Reader) WebhookSecrets(ctx context.Context, id string) (WebhookSecrets, error) {
	return one(ctx, r, func(s *WebhookSecrets) []any {
		return []any{&s.Secret, &s.Previous, nullableTime{&s.PreviousEnds}, &s.Private}
	}, sqlWebhookSecrets, id)
}

const sqlInsertWebhook = `INSERT INTO webhooks (id, tenant_id, url, events, about, include, enabled, public_key, secret_sealed, private_sealed, created_at, created_by, url_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// InsertWebhook adds the webhook with its sealed secrets.
func (tx *Tx) InsertWebhook(ctx context.Context, w doorward.Webhook, s WebhookSecrets) error {
	return tx.run(ctx, sqlInsertWebhook, w.ID, w.TenantID, w.URL, joined(w.Events, plainText), w.About, joined(w.Include, plainText), w.Enabled,
		w.PublicKey, s.Secret, s.Private, micros(w.CreatedAt), w.CreatedBy, w.URLBy)
}

const sqlUpdateWebhook = `UPDATE webhooks SET url = $2, events = $3, about = $4, include = $5, enabled = $6, disabled_reason = $7,
  failing_since = CASE WHEN $8 THEN NULL ELSE failing_since END, notices = CASE WHEN $8 THEN 0 ELSE notices END,
  health = CASE WHEN $8 THEN 'new' ELSE health END, url_by = $9
WHERE id = $1`

// UpdateWebhook writes what can be edited. With fresh, for an endpoint that is enabled again
// or has another URL, it resets failures, notices and health.
func (tx *Tx) UpdateWebhook(ctx context.Context, w doorward.Webhook, fresh bool) error {
	return tx.run(ctx, sqlUpdateWebhook, w.ID, w.URL, joined(w.Events, plainText), w.About, joined(w.Include, plainText), w.Enabled, string(w.DisabledReason), fresh, w.URLBy)
}

const sqlRotateWebhook = `UPDATE webhooks SET previous_sealed = $2, previous_ends_at = $3, secret_sealed = $4,
  disabled_reason = CASE WHEN disabled_reason = 'key_lost' THEN '' ELSE disabled_reason END WHERE id = $1`

// RotateWebhook replaces the secret. previous is the replaced one, sealed for the column
// previous_sealed; it is used, too, until ends.
func (tx *Tx) RotateWebhook(ctx context.Context, id string, previous []byte, ends time.Time, secret []byte) error {
	return tx.run(ctx, sqlRotateWebhook, id, previous, micros(ends), secret)
}

const sqlReplaceWebhookSecrets = `UPDATE webhooks SET secret_sealed = $2, private_sealed = $3, public_key = $4, previous_sealed = NULL, previous_ends_at = NULL,
  enabled = FALSE, disabled_reason = 'key_lost' WHERE id = $1`

// ReplaceWebhookSecrets disables the webhook, whose secrets nothing can open any more, and gives it others,
// with their public key. Its receiver knows neither.
func (tx *Tx) ReplaceWebhookSecrets(ctx context.Context, id, publicKey string, s WebhookSecrets) error {
	return tx.run(ctx, sqlReplaceWebhookSecrets, id, s.Secret, s.Private, publicKey)
}

const sqlDropPending = `UPDATE webhook_deliveries SET state = 'dropped' WHERE webhook_id = $1 AND state = 'pending'`

// DropDeliveries gives up the pending deliveries of a webhook, and returns how many.
func (tx *Tx) DropDeliveries(ctx context.Context, webhookID string) (int64, error) {
	return tx.exec(ctx, sqlDropPending, webhookID)
}

const sqlDropPendingOfTenant = `UPDATE webhook_deliveries SET state = 'dropped'
WHERE state = 'pending' AND webhook_id IN (SELECT id FROM webhooks WHERE tenant_id = $1)`

// DropDeliveriesOf gives up the pending deliveries of a tenant's webhooks.
func (tx *Tx) DropDeliveriesOf(ctx context.Context, tenantID string) error {
	return tx.run(ctx, sqlDropPendingOfTenant, tenantID)
}

// RetiredWebhooksTenant is the tenant id of webhooks that are to be deleted, see RetireWebhook.
const RetiredWebhooksTenant = "deleted"

const sqlRetireWebhook = `UPDATE webhooks SET tenant_id = '` + RetiredWebhooksTenant + `', enabled = FALSE WHERE id = $1`

// RetireWebhook takes the webhook out of its tenant and disables it. DeleteWebhooksOf with
// RetiredWebhooksTenant deletes its rows.
func (tx *Tx) RetireWebhook(ctx context.Context, id string) error {
	return tx.run(ctx, sqlRetireWebhook, id)
}

const (
	sqlDeleteDeliveriesOf = `DELETE FROM webhook_deliveries WHERE id IN (
  SELECT d.id FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE w.tenant_id = $1 LIMIT $2)`
	sqlForgetPauses = `DELETE FROM queue_pauses WHERE queue = 'webhook' AND (scope = $1 OR scope IN (SELECT id FROM webhooks WHERE tenant_id = $1))`

	sqlDeleteWebhooksOf = `DELETE FROM webhooks WHERE tenant_id = $1`
)

// DeleteWebhooksOf deletes up to limit deliveries to webhooks of the tenant, and the webhooks
// with the last of them and the pauses. It returns the number deleted; fewer than limit means that nothing
// is left.
func (tx *Tx) DeleteWebhooksOf(ctx context.Context, tenantID string, limit int) (int64, error) {
	n, err := tx.exec(ctx, sqlDeleteDeliveriesOf, tenantID, limit)
	if err != nil || n == int64(limit) {
		return n, err
	}
	if err := tx.run(ctx, sqlForgetPauses, tenantID); err != nil {
		return n, err
	}
	return n, tx.run(ctx, sqlDeleteWebhooksOf, tenantID)
}

const sqlDisableWebhook = `UPDATE webhooks SET enabled = FALSE, disabled_reason = $2 WHERE id = $1 AND enabled`

// DisableWebhook disables the webhook for a reason, and reports whether it was enabled.
func (tx *Tx) DisableWebhook(ctx context.Context, id string, reason doorward.DisabledReason) (bool, error) {
	return tx.affected(ctx, sqlDisableWebhook, id, string(reason))
}

const sqlDisableAllWebhooks = `UPDATE webhooks SET enabled = FALSE, disabled_reason = 'restored' WHERE enabled RETURNING id, tenant_id`

// WebhookName names a webhook to an operator.
type WebhookName struct{ ID, TenantID string }

// DisableAllWebhooks disables the webhooks of all tenants and of the installation after a
// restore, and gives up their pending deliveries. It returns those that were enabled, in the
// order of their ids.
func (tx *Tx) DisableAllWebhooks(ctx context.Context) ([]WebhookName, error) {
	if err := tx.run(ctx, sqlDropAllPending); err != nil {
		return nil, err
	}
	fields := func(w *WebhookName) []any { return []any{&w.ID, &w.TenantID} }
	all, err := list(ctx, tx.Reader, fields, sqlDisableAllWebhooks)
	slices.SortFunc(all, func(a, b WebhookName) int { return strings.Compare(a.ID, b.ID) })
	return all, err
}

const sqlDropAllPending = `UPDATE webhook_deliveries SET state = 'dropped' WHERE state = 'pending'`

const (
	sqlWebhookSucceeded = `UPDATE webhooks SET last_success_at = $2, failing_since = NULL, notices = 0, health = $3 WHERE id = $1`
	sqlWebhookFailed    = `UPDATE webhooks SET failing_since = CASE WHEN failing_since IS NULL THEN $2 ELSE failing_since END, health = 'bad'
WHERE id = $1 AND (failing_since IS NULL OR health <> 'bad')`
)

// RecordWebhookSuccess records a success of the endpoint. Its health is bad unless that was quick.
func (tx *Tx) RecordWebhookSuccess(ctx context.Context, id string, quick bool) error {
	health := doorward.WebhookBad
	if quick {
		health = doorward.WebhookGood
	}
	return tx.run(ctx, sqlWebhookSucceeded, id, micros(tx.Now), string(health))
}

// RecordWebhookFailure records a failure of the endpoint.
func (tx *Tx) RecordWebhookFailure(ctx context.Context, id string) error {
	return tx.run(ctx, sqlWebhookFailed, id, micros(tx.Now))
}

const sqlWebhooksFailing = selectWebhook + `w WHERE enabled AND failing_since <= $1 AND notices < $2` + deliveriesGoOn + ` ORDER BY created_at, id LIMIT $3`

// WebhooksFailing returns enabled webhooks that have been failing since an instant or before,
// and about which fewer than notices mails were sent. It leaves out those that are paused.
func (r Reader) WebhooksFailing(ctx context.Context, since time.Time, notices, limit int) ([]doorward.Webhook, error) {
	return list(ctx, r, webhookFields, sqlWebhooksFailing, micros(since), notices, limit)
}

const sqlMarkWebhookNoticeSent = `UPDATE webhooks SET notices = $2 WHERE id = $1 AND enabled AND failing_since <= $3 AND notices < $2`

// MarkWebhookNoticeSent records that the notice with this number is sent, and reports
// whether it was still due.
func (tx *Tx) MarkWebhookNoticeSent(ctx context.Context, id string, notice int, since time.Time) (bool, error) {
	return tx.affected(ctx, sqlMarkWebhookNoticeSent, id, notice, micros(since))
}

const sqlEachWebhook = selectWebhook + `WHERE tenant_id = $1 ORDER BY created_at, id`

// EachWebhook calls fn with the webhooks of a tenant until fn fails, and returns fn's error.
func (r Reader) EachWebhook(ctx context.Context, tenantID string, fn func(doorward.Webhook) error) error {
	return each(ctx, r, webhookFields, fn, sqlEachWebhook, tenantID)
}
