package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// SCIMCredential is a secret of a connection's directory with what a check of it needs.
type SCIMCredential struct {
	Secret     doorward.SCIMSecret
	Connection doorward.Connection // its own columns, without parameters and mappings
	Tenant     doorward.TenantStatus
}

func scimSecretFields(s *doorward.SCIMSecret) []any {
	return []any{&s.ID, &s.ConnectionID, &s.Hint, (*storedTime)(&s.CreatedAt), nullableTime{&s.ExpiresAt}, nullableTime{&s.LastUsedAt}, &s.BySetupLink}
}

func scimCredentialFields(c *SCIMCredential) []any {
	return append(scimSecretFields(&c.Secret), &c.Connection.ID, &c.Connection.TenantID, &c.Connection.Status, &c.Connection.Name, (*storedTime)(&c.Connection.CreatedAt), &c.Tenant)
}

const (
	scimSecretColumns = `SELECT x.id, x.connection_id, x.hint, x.created_at, x.expires_at, x.last_used_at, x.by_setup_link`
	selectSCIMSecret  = scimSecretColumns + ` FROM scim_secrets x `

	sqlSCIMSecrets   = selectSCIMSecret + `WHERE x.connection_id = $1 ORDER BY x.created_at DESC, x.id DESC`
	sqlSCIMSecretsOf = selectSCIMSecret + `JOIN connections c ON c.id = x.connection_id WHERE c.tenant_id = $1 ORDER BY x.created_at DESC, x.id DESC`
	sqlSCIMByHash    = scimSecretColumns + `, c.id, c.tenant_id, c.status, c.name, c.created_at, t.status
FROM scim_secrets x JOIN connections c ON c.id = x.connection_id JOIN tenants t ON t.id = c.tenant_id WHERE x.hash = $1`
	sqlSCIMHashes       = `SELECT hash FROM scim_secrets WHERE connection_id = $1 AND ($2 = '' OR id = $2)`
	sqlInsertSCIMSecret = `INSERT INTO scim_secrets (id, connection_id, hash, hint, created_at, expires_at, by_setup_link) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	sqlDeleteSCIMSecret = `DELETE FROM scim_secrets WHERE connection_id = $1 AND id = $2`
	sqlTouchSCIMSecret  = `UPDATE scim_secrets SET last_used_at = $2 WHERE hash = $1 AND (last_used_at IS NULL OR last_used_at < $2)`
	sqlExpiringSCIM     = `SELECT x.id, x.connection_id, x.hint, x.created_at, x.expires_at, x.last_used_at, c.tenant_id, c.name, x.notices
FROM scim_secrets x JOIN connections c ON c.id = x.connection_id
WHERE x.expires_at > $1 AND x.expires_at <= $2 AND x.notices < $3 ORDER BY x.expires_at, x.id LIMIT $4`
	sqlMarkSCIMNotice = `UPDATE scim_secrets SET notices = $2 WHERE id = $1 AND notices < $2`
)

// SCIMSecrets returns the secrets of the connection's directory, the newest first, also those that have ended.
func (r Reader) SCIMSecrets(ctx context.Context, connectionID string) ([]doorward.SCIMSecret, error) {
	return list(ctx, r, scimSecretFields, sqlSCIMSecrets, connectionID)
}

// SCIMSecretsOf is SCIMSecrets for all connections of the tenant.
func (r Reader) SCIMSecretsOf(ctx context.Context, tenantID string) ([]doorward.SCIMSecret, error) {
	return list(ctx, r, scimSecretFields, sqlSCIMSecretsOf, tenantID)
}

// SCIMSecretByHash returns the secret, which may have ended, with its connection, or ErrNone.
func (r Reader) SCIMSecretByHash(ctx context.Context, hash []byte) (SCIMCredential, error) {
	return one(ctx, r, scimCredentialFields, sqlSCIMByHash, hash)
}

// InsertSCIMSecret adds the secret with the hash.
func (tx *Tx) InsertSCIMSecret(ctx context.Context, s doorward.SCIMSecret, hash []byte) error {
	var expires any
	if s.ExpiresAt != nil {
		expires = micros(*s.ExpiresAt)
	}
	return tx.run(ctx, sqlInsertSCIMSecret, s.ID, s.ConnectionID, hash, s.Hint, micros(s.CreatedAt), expires, s.BySetupLink)
}

// DeleteSCIMSecret deletes the secret of the connection, which no node accepts any more, and reports whether it existed.
func (tx *Tx) DeleteSCIMSecret(ctx context.Context, connectionID, id string) (bool, error) {
	if err := tx.announceSCIMSecrets(ctx, connectionID, id); err != nil {
		return false, err
	}
	return tx.affected(ctx, sqlDeleteSCIMSecret, connectionID, id)
}

// announceSCIMSecrets makes all nodes forget the secret, or with an empty id all of the connection.
func (tx *Tx) announceSCIMSecrets(ctx context.Context, connectionID, id string) error {
	return each(ctx, tx.Reader, bytesColumn, func(hash []byte) error {
		tx.announce(ChangeSession, SessionSubject(hash))
		return nil
	}, sqlSCIMHashes, connectionID, id)
}

// TouchSCIMSecrets records uses, except where a later one is recorded.
func (tx *Tx) TouchSCIMSecrets(ctx context.Context, uses []Use) error {
	for _, u := range uses {
		if err := tx.run(ctx, sqlTouchSCIMSecret, u.Hash[:], micros(u.At)); err != nil {
			return err
		}
	}
	return nil
}

// ExpiringSCIMSecrets is ExpiringSecrets for the secrets of directories.
func (r Reader) ExpiringSCIMSecrets(ctx context.Context, now, until time.Time, notices, limit int) ([]ExpiringSecret, error) {
	return list(ctx, r, expiringSecretFields, sqlExpiringSCIM, micros(now), micros(until), notices, limit)
}

// MarkSCIMNotice is MarkSecretNotice for the secrets of directories.
func (tx *Tx) MarkSCIMNotice(ctx context.Context, id string, notice int) (bool, error) {
	return tx.affected(ctx, sqlMarkSCIMNotice, id, notice)
}
