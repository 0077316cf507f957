package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

func setupLinkFields(l *doorward.SetupLink) []any {
	return []any{
		&l.ID, &l.TenantID, &l.ConnectionID, &l.MakerID, (*storedTime)(&l.CreatedAt), (*storedTime)(&l.EndsAt),
		nullableTime{&l.BegunAt},
		&l.MakerEmail, &l.TenantName,
	}
}

const (
	selectSetupLink = `SELECT l.id, l.tenant_id, l.connection_id, l.maker_id, l.created_at, l.ends_at, l.begun_at, u.email, t.name
FROM setup_links l JOIN users u ON u.id = l.maker_id JOIN tenants t ON t.id = l.tenant_id `

	sqlSetupLink             = selectSetupLink + `WHERE l.id = $1`
	sqlSetupLinkByToken      = selectSetupLink + `WHERE l.token_hash = $1`
	sqlSetupLinkByBrowser    = selectSetupLink + `WHERE l.browser_hash = $1`
	sqlSetupLinkOfConnection = selectSetupLink + `WHERE l.connection_id = $1`

	sqlInsertSetupLink = `INSERT INTO setup_links (id, tenant_id, connection_id, maker_id, token_hash, created_at, ends_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)`
	sqlBeginSetupLink     = `UPDATE setup_links SET browser_hash = $2, begun_at = $3 WHERE id = $1 AND begun_at IS NULL`
	sqlDeleteSetupLink    = `DELETE FROM setup_links WHERE id = $1`
	sqlDeleteSetupLinksOf = `DELETE FROM setup_links WHERE tenant_id = $1 AND maker_id = $2`
	sqlSetupLinksOf       = selectSetupLink + `WHERE l.tenant_id = $1 AND l.maker_id = $2 ORDER BY l.id`
	sqlSetupLinksMadeBy   = selectSetupLink + `WHERE l.maker_id = $1 ORDER BY l.created_at, l.id`
	sqlSetupLinksIn       = selectSetupLink + `WHERE l.tenant_id = $1 ORDER BY l.created_at, l.id`
	sqlDeleteOldLinks     = `DELETE FROM setup_links WHERE id IN (SELECT id FROM setup_links WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2)`
)

// SetupLink returns the set-up link, which may have passed its end, or ErrNone.
func (r Reader) SetupLink(ctx context.Context, id string) (doorward.SetupLink, error) {
	return one(ctx, r, setupLinkFields, sqlSetupLink, id)
}

// SetupLinkByToken is SetupLink by the hash of the link's token.
func (r Reader) SetupLinkByToken(ctx context.Context, hash []byte) (doorward.SetupLink, error) {
	return one(ctx, r, setupLinkFields, sqlSetupLinkByToken, hash)
}

// SetupLinkByBrowser is SetupLink by the hash that BeginSetupLink was given.
func (r Reader) SetupLinkByBrowser(ctx context.Context, hash []byte) (doorward.SetupLink, error) {
	return one(ctx, r, setupLinkFields, sqlSetupLinkByBrowser, hash)
}

// SetupLinkOfConnection is SetupLink by the id of the connection.
func (r Reader) SetupLinkOfConnection(ctx context.Context, connectionID string) (doorward.SetupLink, error) {
	return one(ctx, r, setupLinkFields, sqlSetupLinkOfConnection, connectionID)
}

// SetupLinksMadeBy returns the links that the user has made in any tenant, the oldest first.
func (r Reader) SetupLinksMadeBy(ctx context.Context, userID string) ([]doorward.SetupLink, error) {
	return list(ctx, r, setupLinkFields, sqlSetupLinksMadeBy, userID)
}

// SetupLinksIn returns the links of the tenant, one for each connection at most, the oldest first.
func (r Reader) SetupLinksIn(ctx context.Context, tenantID string) ([]doorward.SetupLink, error) {
	return list(ctx, r, setupLinkFields, sqlSetupLinksIn, tenantID)
}

// InsertSetupLink adds the link. The connection must have none.
func (tx *Tx) InsertSetupLink(ctx context.Context, l doorward.SetupLink, tokenHash []byte) error {
	return tx.run(ctx, sqlInsertSetupLink, l.ID, l.TenantID, l.ConnectionID, l.MakerID, tokenHash, micros(l.CreatedAt), micros(l.EndsAt))
}

// BeginSetupLink binds the link to the browser with the hash, and reports whether it was bound to none: of
// two browsers at once one begins.
func (tx *Tx) BeginSetupLink(ctx context.Context, id string, browserHash []byte) (bool, error) {
	return tx.affected(ctx, sqlBeginSetupLink, id, browserHash, micros(tx.Now))
}

// DeleteSetupLink deletes the link, and reports whether it existed.
func (tx *Tx) DeleteSetupLink(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlDeleteSetupLink, id)
}

// DeleteSetupLinksOf deletes the links that the user has made in the tenant, and returns them.
func (tx *Tx) DeleteSetupLinksOf(ctx context.Context, tenantID, userID string) ([]doorward.SetupLink, error) {
	all, err := list(ctx, tx.Reader, setupLinkFields, sqlSetupLinksOf, tenantID, userID)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all, tx.run(ctx, sqlDeleteSetupLinksOf, tenantID, userID)
}

// DeleteOldSetupLinks deletes links that have ended at an instant or before, at most limit, and returns how
// many.
func (tx *Tx) DeleteOldSetupLinks(ctx context.Context, until time.Time, limit int) (int64, error) {
	return tx.exec(ctx, sqlDeleteOldLinks, micros(until), limit)
}
