package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
)

func tenantFields(t *doorward.Tenant) []any {
	head := []any{&t.ID, &t.Name, &t.Status, (*storedTime)(&t.CreatedAt), nullableTime{&t.ClosedAt}, nullableTime{&t.DestroyAt}}
	return slices.Concat(head, settingsFields(&t.Settings), quotaFields(&t.Quotas), brandFields(&t.Brand), rulesFields(&t.Rules))
}

// settingsFields has the order of settingsColumns: to scan them, and to write them.
func settingsFields(s *doorward.TenantSettings) []any {
	f := &s.SecondFactor
	return []any{
		inMicros{&s.SessionIdle},
		inMicros{&s.SessionAbsolute},
		nullableInt{&s.InvitationDays},
		(*words)(&s.AllowedDomains),
		optionalTime{&f.Since},
		roleWords{&f.Roles},
		&f.GraceDays, &f.RememberDays,
		inMinutes{&s.StepUp},
		nullableInt{&s.KeepEventsDays},
	}
}

const (
	settingsColumns = `session_idle, session_absolute, invitation_days, allowed_domains, mfa_since, mfa_roles, mfa_grace_days, mfa_remember_days, step_up_minutes, keep_events_days`
	selectTenant    = `SELECT t.id, t.name, t.status, t.created_at, t.closed_at, t.destroy_at, ` + settingsColumns + `, ` + quotasColumns + `, ` + brandColumns + `, ` + rulesColumns + `
FROM tenants t LEFT JOIN logos l ON l.tenant_id = t.id `
)

// inMicros is a length of time in a column; 0 is NULL.
type inMicros struct{ time *time.Duration }

// Scan implements sql.Scanner.
func (d inMicros) Scan(v any) error {
	var n sql.NullInt64
	err := n.Scan(v)
	*d.time = time.Duration(n.Int64) * time.Microsecond
	return err
}

// Value implements driver.Valuer.
func (d inMicros) Value() (driver.Value, error) { return orNull(d.time.Microseconds()), nil }

// inMinutes is a length of time in a column, in minutes.
type inMinutes struct{ time *time.Duration }

// Scan implements sql.Scanner.
func (m inMinutes) Scan(v any) error {
	var n int
	err := nullableInt{&n}.Scan(v)
	*m.time = time.Duration(n) * time.Minute
	return err
}

// Value implements driver.Valuer.
func (m inMinutes) Value() (driver.Value, error) { return int64(*m.time / time.Minute), nil }

// nullableInt is a number in a column; 0 is NULL.
type nullableInt struct{ dest *int }

// Scan implements sql.Scanner.
func (n nullableInt) Scan(v any) error {
	var x sql.NullInt64
	err := x.Scan(v)
	*n.dest = int(x.Int64)
	return err
}

// Value implements driver.Valuer.
func (n nullableInt) Value() (driver.Value, error) { return orNull(int64(*n.dest)), nil }

// words are words in a column, separated by spaces.
type words []string

// Scan implements sql.Scanner.
func (w *words) Scan(v any) error {
	var text string
	err := nullableText{&text}.Scan(v)
	*w = nil
	if text != "" {
		*w = strings.Fields(text)
	}
	return err
}

// Value implements driver.Valuer.
func (w *words) Value() (driver.Value, error) { return strings.Join(*w, " "), nil }

// roleWords are roles in a column, separated by spaces.
type roleWords struct{ dest *[]doorward.Role }

// Scan implements sql.Scanner.
func (r roleWords) Scan(v any) error {
	var names words
	err := names.Scan(v)
	*r.dest = nil
	for _, name := range names {
		*r.dest = append(*r.dest, doorward.Role(name))
	}
	return err
}

// Value implements driver.Valuer.
func (r roleWords) Value() (driver.Value, error) {
	return doorward.SecondFactor{Roles: *r.dest}.RoleNames(), nil
}

const sqlTenant = selectTenant + `WHERE t.id = $1`

// Tenant returns the tenant, or ErrNone.
func (r Reader) Tenant(ctx context.Context, id string) (doorward.Tenant, error) {
	return one(ctx, r, tenantFields, sqlTenant, id)
}

// TenantFilter selects tenants; empty fields select all.
type TenantFilter struct {
	IDs    []string
	Status doorward.TenantStatus
	Text   string // words of the name or the id, without regard to case and accents
}

// A text contains an id if removing it makes the text shorter, see sqlDueMails.
var tenantPages = newPages(listing[doorward.Tenant]{
	head:  selectTenant,
	count: `FROM tenants t `,
	where: "WHERE ($1 = '' OR replace($1, ' ' || t.id || ' ', '') <> $1) AND ($2 = '' OR t.status = $2)\n" +
		contains("t.search", 3),
	args:   2 + maxWords,
	fields: tenantFields,
	id:     "t.id",
	idOf:   func(t doorward.Tenant) string { return t.ID },
	orders: []order[doorward.Tenant]{
		{name: "createdAt", column: "t.created_at", number: func(t doorward.Tenant) int64 { return micros(t.CreatedAt) }},
		{name: "name", column: "t.name_key", key: func(t doorward.Tenant) string { return fold.Key(t.Name) }},
	},
	defaultOrder: "createdAt",
})

// TenantPage returns tenants, usually the oldest first. Errors: validation_failed, for an unknown order.
func (r Reader) TenantPage(ctx context.Context, f TenantFilter, w doorward.Window) (doorward.Page[doorward.Tenant], error) {
	text := ""
	for _, id := range f.IDs {
		text += " " + id + " "
	}
	return tenantPages.read(ctx, r, w, append([]any{text, string(f.Status)}, searchArgs(f.Text)...)...)
}

const sqlInsertTenant = `INSERT INTO tenants (id, name, status, created_at, name_key, search, search_key) VALUES ($1, $2, $3, $4, $5, $6, $5)`

// InsertTenant adds the tenant.
func (tx *Tx) InsertTenant(ctx context.Context, t doorward.Tenant) error {
	return tx.run(ctx, sqlInsertTenant, t.ID, t.Name, t.Status, micros(t.CreatedAt), fold.Key(t.Name), searchable(t.Name, t.ID))
}

// The version before can't write what a tenant is searched by: search_key is the name_key that it belongs to.
const (
	sqlUnsearchableTenants = `SELECT id, name FROM tenants WHERE search_key <> name_key ORDER BY id LIMIT $1`
	sqlMakeSearchable      = `UPDATE tenants SET search = $3, search_key = $4, name_key = $4 WHERE id = $1 AND name = $2`
)

// MakeTenantsSearchable makes up to limit tenants searchable that an earlier version has created or renamed, and
// returns how many.
func (tx *Tx) MakeTenantsSearchable(ctx context.Context, limit int) (int64, error) {
	due, err := list(ctx, tx.Reader, func(t *doorward.Tenant) []any { return []any{&t.ID, &t.Name} }, sqlUnsearchableTenants, limit)
	for _, t := range due {
		if err == nil {
			err = tx.run(ctx, sqlMakeSearchable, t.ID, t.Name, searchable(t.Name, t.ID), fold.Key(t.Name))
		}
	}
	return int64(len(due)), err
}

const sqlLockTenant = `UPDATE tenants SET revision = revision + 1 WHERE id = $1`

// LockTenant serializes administrative actions in a tenant until the transaction
// ends, so that each sees the roles that the previous one has left. It is a write
// because SQLite has no SELECT … FOR UPDATE.
func (tx *Tx) LockTenant(ctx context.Context, id string) error {
	return tx.run(ctx, sqlLockTenant, id)
}

const sqlCountTenants = `SELECT count(*) FROM tenants`

// CountTenants returns how many tenants there are, of any status.
func (r Reader) CountTenants(ctx context.Context) (int, error) {
	return one(ctx, r, countColumn, sqlCountTenants)
}

const sqlTenantsAfter = `SELECT id FROM tenants WHERE id > $1 ORDER BY id LIMIT $2`

// TenantsAfter returns the ids of up to limit tenants, in order, that are greater than after.
func (r Reader) TenantsAfter(ctx context.Context, after string, limit int) ([]string, error) {
	return list(ctx, r, textField, sqlTenantsAfter, after, limit)
}

// Freezing and closing are independent: closed_at marks a closed tenant, and the
// status "frozen" a frozen one, closed or not.
const (
	sqlFreezeTenant = `UPDATE tenants SET status = 'frozen' WHERE id = $1 AND status <> 'frozen'`

	sqlThawTenant = `UPDATE tenants SET status = CASE WHEN closed_at IS NULL THEN 'active' ELSE 'closing' END,
  destroy_at = CASE WHEN closed_at > 0 AND destroy_at < $2 THEN $2 ELSE destroy_at END
WHERE id = $1 AND status = 'frozen'`

	sqlCloseTenant = `UPDATE tenants SET status = CASE WHEN status = 'active' THEN 'closing' ELSE status END, closed_at = $2, destroy_at = $3
WHERE id = $1 AND closed_at IS NULL`

	sqlRestoreTenant = `UPDATE tenants SET status = CASE WHEN status = 'closing' THEN 'active' ELSE status END, closed_at = NULL, destroy_at = NULL
WHERE id = $1 AND closed_at > 0 AND destroy_at > $2`
)

// FreezeTenant freezes the tenant, and reports false if it was frozen already.
func (tx *Tx) FreezeTenant(ctx context.Context, id string) (bool, error) {
	tx.announce(ChangeTenant, id)
	return tx.affected(ctx, sqlFreezeTenant, id)
}

// ThawTenant thaws the tenant, and reports whether it was frozen. If it is closed, its data
// is destroyed no earlier than notBefore.
func (tx *Tx) ThawTenant(ctx context.Context, id string, notBefore time.Time) (bool, error) {
	tx.announce(ChangeTenant, id)
	return tx.affected(ctx, sqlThawTenant, id, micros(notBefore))
}

// CloseTenant closes the tenant and sets when its data is destroyed. It reports false if the
// tenant was closed already.
func (tx *Tx) CloseTenant(ctx context.Context, id string, destroyAt time.Time) (bool, error) {
	tx.announce(ChangeTenant, id)
	return tx.affected(ctx, sqlCloseTenant, id, micros(tx.Now), micros(destroyAt))
}

// RestoreTenant opens a closed tenant again, and reports whether it was closed and the time
// of its destruction had not come.
func (tx *Tx) RestoreTenant(ctx context.Context, id string) (bool, error) {
	tx.announce(ChangeTenant, id)
	return tx.affected(ctx, sqlRestoreTenant, id, micros(tx.Now))
}

const sqlEditTenant = `UPDATE tenants SET name = $2, name_key = $3, search_key = $3, search = $4, accent = $5,
  (` + settingsColumns + `) = ($6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
WHERE id = $1`

// EditTenant replaces name, settings and accent.
func (tx *Tx) EditTenant(ctx context.Context, t doorward.Tenant) error {
	tx.announce(ChangeTenant, t.ID)
	before, err := tx.Tenant(ctx, t.ID)
	if err != nil {
		return err
	}
	tx.Effects.Settings = append(tx.Effects.Settings, doorward.SettingsEffect{Before: before.Settings, After: t.Settings})
	return tx.run(ctx, sqlEditTenant, append([]any{t.ID, t.Name, fold.Key(t.Name), searchable(t.Name, t.ID), t.Brand.Accent}, settingsFields(&t.Settings)...)...)
}

// orNull stores 0 as NULL.
func orNull(n int64) driver.Value {
	if n == 0 {
		return nil
	}
	return n
}
