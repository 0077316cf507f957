package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
)

const quotasColumns = `t.quota_people, t.quota_api_keys, t.quota_webhooks, t.quota_events_per_day`

func quotaFields(q *doorward.Quotas) []any {
	return []any{&q.People, &q.APIKeys, &q.Webhooks, &q.EventsPerDay}
}

const sqlSetQuotas = `UPDATE tenants SET quota_people = $1, quota_api_keys = $2, quota_webhooks = $3, quota_events_per_day = $4
WHERE id = $5`

// SetQuotas replaces the quotas of a tenant. Call it under LockTenant.
func (tx *Tx) SetQuotas(ctx context.Context, tenantID string, q doorward.Quotas) error {
	return tx.run(ctx, sqlSetQuotas, q.People, q.APIKeys, q.Webhooks, q.EventsPerDay, tenantID)
}

const sqlCountPeople = `SELECT (SELECT count(*) FROM memberships WHERE tenant_id = $1),
  (SELECT count(*) FROM invitations WHERE tenant_id = $1 AND state = 'PENDING' AND expires_at > $2)`

// CountPeople counts the members of a tenant, suspended ones too, and the invitations that
// can be accepted at now.
func (r Reader) CountPeople(ctx context.Context, tenantID string, now time.Time) (members, invited int64, err error) {
	type counts struct{ members, invited int64 }
	fields := func(c *counts) []any { return []any{&c.members, &c.invited} }
	c, err := one(ctx, r, fields, sqlCountPeople, tenantID, micros(now))
	return c.members, c.invited, err
}

// TenantUse is how much a tenant has of what quotas limit.
type TenantUse struct{ Members, Invited, APIKeys, Webhooks, Events int64 }

const sqlTenantUse = `SELECT (SELECT count(*) FROM (SELECT 1 FROM memberships WHERE tenant_id = $2 LIMIT $4) m),
  (SELECT count(*) FROM (SELECT 1 FROM invitations WHERE tenant_id = $2 AND state = 'PENDING' AND expires_at > $1 LIMIT $4) i),
  (SELECT count(*) FROM (SELECT 1 FROM api_keys WHERE ` + liveAPIKey + ` AND tenant_id = $2 LIMIT $4) k),
  (SELECT count(*) FROM webhooks WHERE tenant_id = $2),
  COALESCE((SELECT counted FROM audit_chains WHERE tenant_id = $2 AND counted_day - $3 IN (0, 1)), 0)`

// TenantUse returns what a tenant has at now, counted as its quotas count it: suspended members, too. Members,
// invitations and keys are counted up to most.
func (r Reader) TenantUse(ctx context.Context, tenantID string, now time.Time, most int64) (TenantUse, error) {
	fields := func(u *TenantUse) []any { return []any{&u.Members, &u.Invited, &u.APIKeys, &u.Webhooks, &u.Events} }
	return one(ctx, r, fields, sqlTenantUse, micros(now), tenantID, doorward.DayOf(now), most)
}

// countEvents adds $4 events of the day $3 to the row of the chain. The day never goes back by
// one: about midnight, transactions of two nodes may commit in another order than their times.
const (
	countEvents = `counted = $4 + CASE WHEN audit_chains.counted_day - $3 IN (0, 1) THEN audit_chains.counted ELSE 0 END,
  counted_day = CASE WHEN audit_chains.counted_day = $3 + 1 THEN audit_chains.counted_day ELSE $3 END`
	eventsAllowed    = `(SELECT quota_events_per_day FROM tenants WHERE id = $1)`
	sqlCountedEvents = `SELECT counted FROM audit_chains WHERE tenant_id = $1 AND counted_day - $2 IN (0, 1)`
)

// CountedEvents returns how many events of a tenant count in the day of UTC that now is in.
func (r Reader) CountedEvents(ctx context.Context, tenantID string, now time.Time) (int64, error) {
	n, err := one(ctx, r, countColumn, sqlCountedEvents, tenantID, doorward.DayOf(now))
	if errors.Is(err, ErrNone) {
		return 0, nil
	}
	return int64(n), err
}

// CountedEvents is Reader.CountedEvents with the events that the transaction will add.
func (tx *Tx) CountedEvents(ctx context.Context, tenantID string) (int64, error) {
	n, err := tx.Reader.CountedEvents(ctx, tenantID, tx.Now)
	return n + tx.counts[tenantID], err
}
