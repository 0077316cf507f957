package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

const (
	addToUsage    = ` ON CONFLICT (subject_id, at, outcome) DO UPDATE SET times = usage_counts.times + excluded.times`
	sqlCountUsage = `INSERT INTO usage_counts (subject_id, at, outcome, times) VALUES ($1, $2, $3, $4)` + addToUsage
)

// CountUsage adds the count to that of its hour or day. It locks the row of the count: call it after all other writes
// to the subject, and for several subjects in the order of their ids.
func (tx *Tx) CountUsage(ctx context.Context, c doorward.UsageCount) error {
	return tx.run(ctx, sqlCountUsage, c.SubjectID, micros(c.At), string(c.Outcome), c.Times)
}

func usageFields(c *doorward.UsageCount) []any {
	return []any{&c.SubjectID, (*storedTime)(&c.At), &c.Outcome, &c.Times}
}

const (
	usageOrder            = ` ORDER BY u.at`
	usageOfTenant         = ` JOIN usage_counts u ON u.subject_id = s.id WHERE s.tenant_id = $1 AND u.at >= $2` + usageOrder
	selectUsage           = `SELECT u.subject_id, u.at, u.outcome, u.times FROM `
	sqlUsage              = selectUsage + `usage_counts u WHERE u.subject_id = $1 AND u.at >= $2` + usageOrder
	sqlUsageOfWebhooks    = selectUsage + `webhooks s` + usageOfTenant
	sqlUsageOfConnections = selectUsage + `connections s` + usageOfTenant
)

// Usage returns the counts of one webhook, connection or API key since an instant, the oldest first.
func (r Reader) Usage(ctx context.Context, subjectID string, since time.Time) ([]doorward.UsageCount, error) {
	return list(ctx, r, usageFields, sqlUsage, subjectID, micros(since))
}

// UsageOfWebhooks is Usage for all webhooks of the tenant.
func (r Reader) UsageOfWebhooks(ctx context.Context, tenantID string, since time.Time) ([]doorward.UsageCount, error) {
	return list(ctx, r, usageFields, sqlUsageOfWebhooks, tenantID, micros(since))
}

// UsageOfConnections is Usage for all connections of the tenant.
func (r Reader) UsageOfConnections(ctx context.Context, tenantID string, since time.Time) ([]doorward.UsageCount, error) {
	return list(ctx, r, usageFields, sqlUsageOfConnections, tenantID, micros(since))
}

// The usage of a trail is how often sessions were opened, and what was refused, by the hour; see doorward.UsageCount. An
// event isn't counted when it is written, since sign-ins would take longer: CountTrail adds many at once, and UsageOfTrail
// counts those that aren't added yet.
const (
	// usageOfEvent is the outcome as which an event is counted; empty: it isn't. As an expression it can't lead the
	// planner to an index other than that of the numbers.
	usageOfEvent = `CASE WHEN e.outcome = 'refused' THEN e.action WHEN e.action = 'session.open' THEN 'signed_in' ELSE '' END`
	// The two bounds are one range for PostgreSQL, which takes it for a small one, as it is.
	notInUsage      = `e.tenant_id = $1 AND e.seq > (SELECT usage_to FROM audit_chains WHERE tenant_id = $1) AND e.seq <= (SELECT last FROM audit_chains WHERE tenant_id = $1)`
	sqlUsageOfTrail = `SELECT CAST($1 AS TEXT), u.at - u.at % $3 AS since, u.outcome, CAST(sum(u.times) AS BIGINT) FROM (
  SELECT at, outcome, times FROM usage_counts WHERE subject_id = $1 AND at >= $2
  UNION ALL SELECT e.at, ` + usageOfEvent + `, e.times FROM events e WHERE ` + notInUsage + ` AND e.at >= $2) u
WHERE u.outcome <> '' GROUP BY since, u.outcome`
	sqlTrailsUncounted = `SELECT tenant_id AS id FROM audit_chains WHERE tenant_id <> '' AND last - usage_to >= $1 ORDER BY tenant_id LIMIT $2`
	sqlAdvanceUsage    = `UPDATE audit_chains SET usage_to = usage_to + $2 WHERE tenant_id = $1 AND last - usage_to >= $2 RETURNING usage_to`
	sqlCountEvents     = `INSERT INTO usage_counts (subject_id, at, outcome, times)
SELECT e.tenant_id, e.at - e.at % 3600000000 AS hour, ` + usageOfEvent + ` AS kind, CAST(sum(e.times) AS BIGINT) FROM events e
WHERE e.tenant_id = $1 AND e.seq > $2 AND e.seq <= $3 AND e.at >= $4 AND ` + usageOfEvent + ` <> '' GROUP BY e.tenant_id, hour, kind` + addToUsage
)

// UsageOfTrail returns how often sessions were opened in the tenant (doorward.UsageSignedIn) and each action was refused
// (its name), by times of the width, whole hours, since an instant at which one of them begins. It is in no order.
func (r Reader) UsageOfTrail(ctx context.Context, tenantID string, since time.Time, width time.Duration) ([]doorward.UsageCount, error) {
	return list(ctx, r, usageFields, sqlUsageOfTrail, tenantID, micros(since), width.Microseconds())
}

// uncountedEvents is how many events of a trail are added to its usage at once: until then each reader counts them.
const uncountedEvents = 1000

// TrailsUncounted returns at most limit tenants of whose trails enough events aren't in the usage for CountTrail.
func (r Reader) TrailsUncounted(ctx context.Context, limit int) ([]string, error) {
	return list(ctx, r, textField, sqlTrailsUncounted, uncountedEvents, limit)
}

// CountTrail adds the next events of the tenant's trail to its usage, those since an instant. It takes the lock on the chain
// first, for some milliseconds, and then those on the counts, which nobody takes before the lock on the chain. Errors:
// ErrNone if there are too few.
func (tx *Tx) CountTrail(ctx context.Context, tenantID string, since time.Time) error {
	to, err := one(ctx, tx.Reader, int64Column, sqlAdvanceUsage, tenantID, uncountedEvents)
	if err != nil {
		return err
	}
	return tx.run(ctx, sqlCountEvents, tenantID, to-uncountedEvents, to, micros(since))
}

const (
	sqlDeleteOldUsage = `DELETE FROM usage_counts WHERE at < $1 AND (subject_id, at, outcome) IN (
  SELECT subject_id, at, outcome FROM usage_counts WHERE at < $1 ORDER BY at LIMIT $2)`
	sqlDeleteUsageOf = `DELETE FROM usage_counts WHERE subject_id IN (
  SELECT s.id FROM (SELECT id FROM webhooks WHERE tenant_id = $1 UNION ALL SELECT id FROM connections WHERE tenant_id = $1
    UNION ALL SELECT id FROM api_keys WHERE tenant_id = $1) s
  WHERE EXISTS (SELECT 1 FROM usage_counts u WHERE u.subject_id = s.id) LIMIT $2)`
)

// DeleteOldUsage deletes at most limit counts of hours and days that began before an instant, and returns how many.
func (tx *Tx) DeleteOldUsage(ctx context.Context, before time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldUsage, micros(before), limit)
}

const (
	sqlTrimUsage   = `DELETE FROM usage_counts WHERE subject_id = $1 AND at <= $2`
	sqlDeleteUsage = `DELETE FROM usage_counts WHERE subject_id = $1`
)

// trimUsage deletes the counts of the hours that ended at an instant or before.
func (tx *Tx) trimUsage(ctx context.Context, subjectID string, before time.Time) error {
	return tx.run(ctx, sqlTrimUsage, subjectID, micros(before.Add(-time.Hour)))
}

func (tx *Tx) deleteUsage(ctx context.Context, subjectID string) error {
	return tx.run(ctx, sqlDeleteUsage, subjectID)
}

// DeleteUsageOf deletes the counts of at most limit webhooks, connections and API keys of the tenant, and returns how many
// counts; none are left if that is 0.
func (tx *Tx) DeleteUsageOf(ctx context.Context, tenantID string, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteUsageOf, tenantID, limit)
}
