package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

const sqlCountUsage = `INSERT INTO usage_counts (subject_id, at, outcome, times) VALUES ($1, $2, $3, $4)
ON CONFLICT (subject_id, at, outcome) DO UPDATE SET times = usage_counts.times + excluded.times`

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

// DeleteUsageOf deletes the counts of at most limit webhooks, connections and API keys of the tenant, and returns how many
// counts; none are left if that is 0.
func (tx *Tx) DeleteUsageOf(ctx context.Context, tenantID string, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteUsageOf, tenantID, limit)
}
