package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

func domainFields(d *doorward.Domain) []any {
	return []any{
		&d.ID, &d.TenantID, &d.Name,
		nullableText{&d.ConnectionID},
		&d.Status, &d.Token, (*storedTime)(&d.CreatedAt),
		nullableTime{&d.VerifiedAt},
		nullableTime{&d.CheckedAt},
		nullableTime{&d.MissingSince},
		nullableTime{&d.LapsedAt},
		&d.Released,
	}
}

const (
	domainColumns = `id, tenant_id, domain, connection_id, status, token, created_at, verified_at, checked_at, missing_since, lapsed_at, released`
	selectDomain  = `SELECT ` + domainColumns + ` FROM domains
`
	sqlDomain = selectDomain + `WHERE id = $1`
)

// Domain returns the domain with the id, or ErrNone.
func (r Reader) Domain(ctx context.Context, id string) (doorward.Domain, error) {
	return one(ctx, r, domainFields, sqlDomain, id)
}

var domainPages = newPages(listing[doorward.Domain]{
	head:   selectDomain,
	count:  "FROM domains ",
	where:  "WHERE tenant_id = $1\n",
	args:   1,
	fields: domainFields,
	id:     "id",
	idOf:   func(d doorward.Domain) string { return d.ID },
	orders: []order[doorward.Domain]{
		{name: "createdAt", column: "created_at", number: func(d doorward.Domain) int64 { return micros(d.CreatedAt) }},
	},
	defaultOrder: "-createdAt",
})

// DomainPage returns domains of the tenant, usually the newest first. Errors: validation_failed, for an
// unknown order.
func (r Reader) DomainPage(ctx context.Context, tenantID string, w doorward.Window) (doorward.Page[doorward.Domain], error) {
	return domainPages.read(ctx, r, w, tenantID)
}

const sqlDomains = selectDomain + `WHERE tenant_id = $1 ORDER BY created_at, id`

// Domains returns all domains of the tenant, doorward.DomainsMax at most, the oldest first.
func (r Reader) Domains(ctx context.Context, tenantID string) ([]doorward.Domain, error) {
	return list(ctx, r, domainFields, sqlDomains, tenantID)
}

const sqlDomainHolder = selectDomain + `WHERE domain = $1 AND status <> 'pending'`

// DomainHolder returns the entry, verified or lapsed, of the tenant that holds exactly this domain, in the
// form of doorward.Domain.Name; or ErrNone.
func (r Reader) DomainHolder(ctx context.Context, name string) (doorward.Domain, error) {
	return one(ctx, r, domainFields, sqlDomainHolder, name)
}

const sqlVerifiedDomainsOf = selectDomain + `WHERE connection_id = $1 AND status = 'verified' ORDER BY created_at, id`

// VerifiedDomainsOf returns the verified domains whose people sign in by the connection, the oldest first.
func (r Reader) VerifiedDomainsOf(ctx context.Context, connectionID string) ([]doorward.Domain, error) {
	return list(ctx, r, domainFields, sqlVerifiedDomainsOf, connectionID)
}

const sqlCountDomains = `SELECT count(*) FROM domains WHERE tenant_id = $1`

// CountDomains counts the domains of the tenant, pending ones too.
func (r Reader) CountDomains(ctx context.Context, tenantID string) (int, error) {
	return one(ctx, r, countColumn, sqlCountDomains, tenantID)
}

const sqlConnectionIn = `SELECT count(*) FROM connections WHERE id = $1 AND tenant_id = $2`

// ConnectionIn reports whether the connection is one of the tenant's.
func (r Reader) ConnectionIn(ctx context.Context, tenantID, id string) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlConnectionIn, id, tenantID)
	return n > 0, err
}

// HeldDomain is a domain that a tenant has proved, as the operator sees it.
type HeldDomain struct {
	doorward.Domain
	TenantName string
}

const sqlHeldDomains = `SELECT d.id, d.tenant_id, d.domain, d.connection_id, d.status, d.token, d.created_at, d.verified_at, d.checked_at, d.missing_since, d.lapsed_at, d.released, t.name
FROM domains d JOIN tenants t ON t.id = d.tenant_id WHERE d.status <> 'pending' ORDER BY d.id`

// HeldDomains returns the verified and lapsed domains of all tenants, by name.
func (r Reader) HeldDomains(ctx context.Context) ([]HeldDomain, error) {
	fields := func(h *HeldDomain) []any { return append(domainFields(&h.Domain), &h.TenantName) }
	all, err := list(ctx, r, fields, sqlHeldDomains)
	slices.SortFunc(all, func(a, b HeldDomain) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

const sqlInsertDomain = `INSERT INTO domains (id, tenant_id, domain, status, token, created_at)
VALUES ($1, $2, $3, 'pending', $4, $5) ON CONFLICT (tenant_id, domain) DO NOTHING`

// InsertDomain adds a pending domain without a connection, and reports whether the tenant didn't have it.
func (tx *Tx) InsertDomain(ctx context.Context, d doorward.Domain) (bool, error) {
	return tx.affected(ctx, sqlInsertDomain, d.ID, d.TenantID, d.Name, d.Token, micros(d.CreatedAt))
}

const sqlSetDomainConnection = `UPDATE domains SET connection_id = $2 WHERE id = $1`

// SetDomainConnection sets the connection by which the domain's people sign in; empty: none.
func (tx *Tx) SetDomainConnection(ctx context.Context, id, connectionID string) error {
	if err := tx.noteDomain(ctx, id); err != nil {
		return err
	}
	return tx.run(ctx, sqlSetDomainConnection, id, nullable(connectionID))
}

const sqlVerifyDomain = `UPDATE domains SET status = 'verified', verified_at = CASE WHEN status = 'verified' THEN verified_at ELSE $2 END,
  checked_at = $2, missing_since = NULL, lapsed_at = NULL, released = FALSE, look_at = $3
WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM domains d WHERE d.domain = domains.domain AND d.status <> 'pending' AND d.id <> domains.id)`

// ErrHeld is returned by VerifyDomain.
var ErrHeld = errors.New("store: another tenant holds the domain")

// VerifyDomain makes the tenant of the entry the holder of the domain. The next daily look is at lookAt. Errors:
// ErrHeld, after which the transaction must be rolled back.
func (tx *Tx) VerifyDomain(ctx context.Context, id string, lookAt time.Time) error {
	verified, err := tx.affected(ctx, sqlVerifyDomain, id, micros(tx.Now), micros(lookAt))
	if postgresDuplicate(err) || err == nil && !verified {
		return ErrHeld
	}
	return err
}

const sqlRecordDomainLook = `UPDATE domains SET checked_at = $2,
  missing_since = CASE WHEN $3 THEN NULL ELSE coalesce(missing_since, $2) END, look_at = CASE WHEN look_at IS NULL THEN look_at ELSE $4 END
WHERE id = $1 AND (status = 'verified' OR status = 'lapsed' AND NOT $3)`

// RecordDomainLook records what a look at the record of a verified domain has found, or that the record of a
// lapsed one is still missing. The next daily look is at lookAt, unless the operator has released the domain.
func (tx *Tx) RecordDomainLook(ctx context.Context, id string, found bool, lookAt time.Time) error {
	return tx.run(ctx, sqlRecordDomainLook, id, micros(tx.Now), found, micros(lookAt))
}

const sqlMarkDomainChecked = `UPDATE domains SET checked_at = $2 WHERE id = $1 AND status = 'pending'`

// MarkDomainChecked records that the record of a pending domain was looked for.
func (tx *Tx) MarkDomainChecked(ctx context.Context, id string) error {
	return tx.run(ctx, sqlMarkDomainChecked, id, micros(tx.Now))
}

const sqlLapseDomain = `UPDATE domains SET status = 'lapsed', lapsed_at = $2, checked_at = $2, look_at = $4
WHERE id = $1 AND status = 'verified' AND missing_since <= $3`

// LapseDomain makes a verified domain lapse whose record has been missing since an instant or before, and
// reports whether it was one. The next daily look is at lookAt.
func (tx *Tx) LapseDomain(ctx context.Context, id string, since, lookAt time.Time) (bool, error) {
	return tx.affected(ctx, sqlLapseDomain, id, micros(tx.Now), micros(since), micros(lookAt))
}

const sqlReleaseDomain = `UPDATE domains SET status = 'lapsed', lapsed_at = coalesce(lapsed_at, $2), released = TRUE, look_at = NULL
WHERE id = $1 AND status <> 'pending' AND NOT released`

// ReleaseDomain makes a verified or lapsed domain free for the next tenant that proves it, and reports whether it
// wasn't yet.
func (tx *Tx) ReleaseDomain(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlReleaseDomain, id, micros(tx.Now))
}

const sqlDeleteDomain = `DELETE FROM domains WHERE id = $1`

// DeleteDomain deletes the entry.
func (tx *Tx) DeleteDomain(ctx context.Context, id string) error {
	if err := tx.noteDomain(ctx, id); err != nil {
		return err
	}
	return tx.run(ctx, sqlDeleteDomain, id)
}

const sqlDeleteFreeDomain = `DELETE FROM domains WHERE id = $1 AND status = 'lapsed' AND (released OR lapsed_at <= $2)`

// DeleteFreeDomain deletes an entry that is released, or has lapsed at an instant or before, and reports
// whether it was one.
func (tx *Tx) DeleteFreeDomain(ctx context.Context, id string, lapsed time.Time) (bool, error) {
	return tx.affected(ctx, sqlDeleteFreeDomain, id, micros(lapsed))
}

const sqlIsDomainDue = `SELECT count(*) FROM (SELECT 1 FROM domains WHERE look_at <= $1 LIMIT 1) due`

// IsDomainDue reports whether the daily look at some domain is due at now.
func (r Reader) IsDomainDue(ctx context.Context, now time.Time) (bool, error) {
	n, err := one(ctx, r, countColumn, sqlIsDomainDue, micros(now))
	return n > 0, err
}

// The condition is repeated outside: of two nodes, one claims a domain.
const sqlClaimDomains = `UPDATE domains SET look_at = $2 WHERE look_at <= $1 AND id IN
  (SELECT id FROM domains WHERE look_at <= $1 ORDER BY look_at LIMIT $3)
RETURNING ` + domainColumns

// ClaimDomains returns up to limit domains whose daily look is due, in no order, and puts it off to the time
// again: a look that can't say, or whose node is killed, is repeated then.
func (tx *Tx) ClaimDomains(ctx context.Context, again time.Time, limit int) ([]doorward.Domain, error) {
	return list(ctx, tx.Reader, domainFields, sqlClaimDomains, micros(tx.Now), micros(again), limit)
}
