package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

func tenantColumns(t *doorward.Tenant) []any {
	head := []any{&t.ID, &t.Name, &t.Status, (*instant)(&t.CreatedAt), maybe{&t.ClosedAt}}
	return append(append(head, settingsColumns(&t.Settings)...), brandColumns(&t.Brand)...)
}

// settingsColumns follow the names of columnsOfSettings.
func settingsColumns(s *doorward.TenantSettings) []any {
	return []any{span{&s.SessionIdle}, span{&s.SessionAbsolute}, numberOrNone{&s.InvitationDays}, (*words)(&s.AllowedDomains)}
}

const (
	columnsOfSettings = `t.session_idle, t.session_absolute, t.invitation_days, t.allowed_domains`
	selectTenant      = `SELECT t.id, t.name, t.status, t.created_at, t.closed_at, ` + columnsOfSettings + `, ` + columnsOfBrand + `
FROM tenants t LEFT JOIN logos l ON l.tenant_id = t.id `
)

// span scans a length of time that may be absent, as 0.
type span struct{ to *time.Duration }

// Scan is for database/sql.
func (s span) Scan(v any) error {
	var n sql.NullInt64
	err := n.Scan(v)
	*s.to = time.Duration(n.Int64) * time.Microsecond
	return err
}

// numberOrNone scans a number that may be absent, as 0.
type numberOrNone struct{ to *int }

// Scan is for database/sql.
func (n numberOrNone) Scan(v any) error {
	var x sql.NullInt64
	err := x.Scan(v)
	*n.to = int(x.Int64)
	return err
}

// words scans words with a space between.
type words []string

// Scan is for database/sql.
func (w *words) Scan(v any) error {
	var text string
	err := textOrNone{&text}.Scan(v)
	*w = nil
	if text != "" {
		*w = strings.Fields(text)
	}
	return err
}

const sqlTenant = selectTenant + `WHERE t.id = $1`

// Tenant returns the tenant, or ErrNone.
func (r Reader) Tenant(ctx context.Context, id string) (doorward.Tenant, error) {
	return one(ctx, r, tenantColumns, sqlTenant, id)
}

const sqlTenants = selectTenant + `ORDER BY t.created_at, t.id`

// Tenants returns all tenants, the oldest first.
func (r Reader) Tenants(ctx context.Context) ([]doorward.Tenant, error) {
	return list(ctx, r, tenantColumns, sqlTenants)
}

const sqlTenantPage = selectTenant + `WHERE (t.created_at, t.id) > ($1, $2) ORDER BY t.created_at, t.id LIMIT $3`

// TenantPage returns tenants, the oldest first.
func (r Reader) TenantPage(ctx context.Context, w doorward.Window) (doorward.Page[doorward.Tenant], error) {
	rows, err := list(ctx, r, tenantColumns, sqlTenantPage, w.After.At, w.After.ID, w.Limit+1)
	return page(rows, w, func(t doorward.Tenant) doorward.Position { return doorward.Position{At: micros(t.CreatedAt), ID: t.ID} }), err
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

const sqlSetTenantStatus = `UPDATE tenants SET status = $1, closed_at = $3 WHERE id = $2 AND status <> $1`

// SetTenantStatus reports whether the status was another one before. A tenant
// that is closing from now on notes when that began.
func (tx *Tx) SetTenantStatus(ctx context.Context, id string, to doorward.TenantStatus) (bool, error) {
	tx.announce(ChangeTenant, id)
	var closed any
	if to == doorward.TenantClosing {
		closed = micros(tx.Now)
	}
	return tx.hit(ctx, sqlSetTenantStatus, to, id, closed)
}

const sqlEditTenant = `UPDATE tenants SET name = $1, session_idle = $2, session_absolute = $3, invitation_days = $4, allowed_domains = $5,
  accent = $6
WHERE id = $7`

// EditTenant replaces name, settings and accent.
func (tx *Tx) EditTenant(ctx context.Context, t doorward.Tenant) error {
	tx.announce(ChangeTenant, t.ID)
	s := t.Settings
	return tx.must(ctx, sqlEditTenant, t.Name, orNull(s.SessionIdle.Microseconds()), orNull(s.SessionAbsolute.Microseconds()),
		orNull(int64(s.InvitationDays)), strings.Join(s.AllowedDomains, " "), t.Brand.Accent, t.ID)
}

// orNull stores 0 as NULL.
func orNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}
