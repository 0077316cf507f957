package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

const columnsOfQuotas = `t.quota_people, t.quota_api_keys, t.quota_webhooks`

func quotaColumns(q *doorward.Quotas) []any { return []any{&q.People, &q.APIKeys, &q.Webhooks} }

const sqlSetQuotas = `UPDATE tenants SET quota_people = $1, quota_api_keys = $2, quota_webhooks = $3 WHERE id = $4`

// SetQuotas replaces the quotas of a tenant. Call it under LockTenant.
func (tx *Tx) SetQuotas(ctx context.Context, tenantID string, q doorward.Quotas) error {
	return tx.run(ctx, sqlSetQuotas, q.People, q.APIKeys, q.Webhooks, tenantID)
}

const sqlCountPeople = `SELECT (SELECT count(*) FROM memberships WHERE tenant_id = $1),
  (SELECT count(*) FROM invitations WHERE tenant_id = $1 AND state = 'PENDING' AND expires_at > $2)`

// CountPeople counts the members of a tenant, suspended ones too, and the invitations that
// can be accepted at now.
func (r Reader) CountPeople(ctx context.Context, tenantID string, now time.Time) (members, invited int64, err error) {
	type counts struct{ members, invited int64 }
	columns := func(c *counts) []any { return []any{&c.members, &c.invited} }
	c, err := one(ctx, r, columns, sqlCountPeople, tenantID, micros(now))
	return c.members, c.invited, err
}
