package store

import (
	"context"

	"github.com/doorward/doorward"
)

func tenantColumns(t *doorward.Tenant) []any {
	return []any{&t.ID, &t.Name, &t.Status, (*instant)(&t.CreatedAt)}
}

const sqlTenant = `SELECT id, name, status, created_at FROM tenants WHERE id = $1`

// Tenant returns the tenant, or ErrNone.
func (r Reader) Tenant(ctx context.Context, id string) (doorward.Tenant, error) {
	return one(ctx, r, tenantColumns, sqlTenant, id)
}

const sqlTenants = `SELECT id, name, status, created_at FROM tenants ORDER BY created_at, id`

// Tenants returns all tenants, the oldest first.
func (r Reader) Tenants(ctx context.Context) ([]doorward.Tenant, error) {
	return list(ctx, r, tenantColumns, sqlTenants)
}

const sqlInsertTenant = `INSERT INTO tenants (id, name, status, created_at) VALUES ($1, $2, $3, $4)`

// InsertTenant adds the tenant.
func (tx *Tx) InsertTenant(ctx context.Context, t doorward.Tenant) error {
	return tx.must(ctx, sqlInsertTenant, t.ID, t.Name, t.Status, micros(t.CreatedAt))
}

const sqlLockTenant = `UPDATE tenants SET revision = revision + 1 WHERE id = $1`

// LockTenant makes the acts of administration in a tenant follow one another
// until the transaction ends, so that each sees the roles that the one before
// left. It is a write because SQLite has no SELECT … FOR UPDATE.
func (tx *Tx) LockTenant(ctx context.Context, id string) error {
	return tx.must(ctx, sqlLockTenant, id)
}

const sqlSetTenantStatus = `UPDATE tenants SET status = $1 WHERE id = $2 AND status <> $1`

// SetTenantStatus reports whether the status was another one before.
func (tx *Tx) SetTenantStatus(ctx context.Context, id string, to doorward.TenantStatus) (bool, error) {
	tx.announce(ChangeTenant, id)
	return tx.hit(ctx, sqlSetTenantStatus, to, id)
}
