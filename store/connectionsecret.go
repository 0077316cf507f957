package store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/doorward/doorward"
)

// SealedConnectionSecret is a client secret of a connection, sealed for its place.
type SealedConnectionSecret struct {
	doorward.ConnectionSecret
	Sealed []byte
}

func connectionSecretFields(s *SealedConnectionSecret) []any {
	return []any{&s.ID, &s.ConnectionID, &s.Hint, sealedSecret{s}, (*storedTime)(&s.CreatedAt), nullableTime{&s.ExpiresAt}, nullableTime{&s.LastUsedAt}}
}

const (
	selectConnectionSecret = `SELECT x.id, x.connection_id, x.hint, x.secret_sealed, x.created_at, x.expires_at, x.last_used_at FROM connection_secrets x `

	sqlConnectionSecrets      = selectConnectionSecret + `WHERE x.connection_id = $1 ORDER BY x.created_at DESC, x.id DESC`
	sqlConnectionSecretsOf    = selectConnectionSecret + `JOIN connections c ON c.id = x.connection_id WHERE c.tenant_id = $1 ORDER BY x.created_at DESC, x.id DESC`
	sqlInsertConnectionSecret = `INSERT INTO connection_secrets (id, connection_id, hint, secret_sealed, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`
	sqlDeleteConnectionSecret = `DELETE FROM connection_secrets WHERE id = $1 AND connection_id = $2`
	sqlLacksSecret            = `SELECT count(*) FROM connection_parameters p WHERE p.connection_id = $1 AND NOT p.pending AND p.client_auth <> 'private_key_jwt'
AND NOT EXISTS (SELECT 1 FROM connection_secrets x WHERE x.connection_id = p.connection_id)`
	sqlTouchConnectionSecret = `UPDATE connection_secrets SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $3)`
)

// sealedSecret scans what is sealed. An empty value was lost.
type sealedSecret struct{ into *SealedConnectionSecret }

// Scan implements sql.Scanner.
func (s sealedSecret) Scan(value any) error {
	sealed, ok := value.([]byte)
	if !ok && value != nil {
		return fmt.Errorf("store: a sealed secret is of the type %T", value)
	}
	s.into.Sealed, s.into.IsLost = bytes.Clone(sealed), len(sealed) == 0
	return nil
}

const (
	sqlSecretPlace = `SELECT x.connection_id, c.tenant_id, x.hint FROM connection_secrets x JOIN connections c ON c.id = x.connection_id WHERE x.id = $1`
	sqlLoseSecret  = `UPDATE connection_secrets SET secret_sealed = $2 WHERE id = $1`
	sqlDropLost    = `DELETE FROM connection_secrets WHERE connection_id = $1 AND length(secret_sealed) = 0`
)

// SecretPlace says to what a client secret belongs.
type SecretPlace struct{ ConnectionID, TenantID, Hint string }

// LoseConnectionSecret empties a client secret that nothing can open any more, and returns to what it belongs,
// or ErrNone.
func (tx *Tx) LoseConnectionSecret(ctx context.Context, id string) (SecretPlace, error) {
	fields := func(p *SecretPlace) []any { return []any{&p.ConnectionID, &p.TenantID, &p.Hint} }
	place, err := one(ctx, tx.Reader, fields, sqlSecretPlace, id)
	if err != nil {
		return place, err
	}
	return place, tx.run(ctx, sqlLoseSecret, id, []byte{})
}

// DropLostSecrets deletes the client secrets of the connection that were lost.
func (tx *Tx) DropLostSecrets(ctx context.Context, connectionID string) error {
	return tx.run(ctx, sqlDropLost, connectionID)
}

// ConnectionSecrets returns the secrets of the connection, the newest first.
func (r Reader) ConnectionSecrets(ctx context.Context, connectionID string) ([]SealedConnectionSecret, error) {
	return list(ctx, r, connectionSecretFields, sqlConnectionSecrets, connectionID)
}

// ConnectionSecretsOf returns the secrets of all connections of the tenant, the newest first.
func (r Reader) ConnectionSecretsOf(ctx context.Context, tenantID string) ([]SealedConnectionSecret, error) {
	return list(ctx, r, connectionSecretFields, sqlConnectionSecretsOf, tenantID)
}

// InsertConnectionSecret adds the secret.
func (tx *Tx) InsertConnectionSecret(ctx context.Context, s SealedConnectionSecret) error {
	var expires any
	if s.ExpiresAt != nil {
		expires = micros(*s.ExpiresAt)
	}
	return tx.run(ctx, sqlInsertConnectionSecret, s.ID, s.ConnectionID, s.Hint, s.Sealed, micros(s.CreatedAt), expires)
}

// DeleteConnectionSecret deletes the secret of the connection, and reports whether it existed. Without its last
// one, a connection that needs one signs nobody in.
func (tx *Tx) DeleteConnectionSecret(ctx context.Context, connectionID, id string) (bool, error) {
	deleted, err := tx.affected(ctx, sqlDeleteConnectionSecret, id, connectionID)
	if err != nil || !deleted {
		return false, err
	}
	without, err := one(ctx, tx.Reader, countColumn, sqlLacksSecret, connectionID)
	if err == nil && without > 0 {
		err = tx.noteHomeLost(ctx, connectionID)
	}
	return true, err
}

// TouchConnectionSecret records that the provider has accepted the secret, unless a use within the time
// before is recorded.
func (tx *Tx) TouchConnectionSecret(ctx context.Context, id string, within time.Duration) error {
	return tx.run(ctx, sqlTouchConnectionSecret, id, micros(tx.Now), micros(tx.Now.Add(-within)))
}

// ExpiringSecret is a client secret of a connection about whose end OWNERs are told.
type ExpiringSecret struct {
	doorward.ConnectionSecret
	TenantID, ConnectionName string
	Notices                  int // mails sent about its end
}

func expiringSecretFields(s *ExpiringSecret) []any {
	return []any{&s.ID, &s.ConnectionID, &s.Hint, (*storedTime)(&s.CreatedAt), nullableTime{&s.ExpiresAt}, nullableTime{&s.LastUsedAt}, &s.TenantID, &s.ConnectionName, &s.Notices}
}

const (
	sqlExpiringSecrets = `SELECT x.id, x.connection_id, x.hint, x.created_at, x.expires_at, x.last_used_at, c.tenant_id, c.name, x.notices
FROM connection_secrets x JOIN connections c ON c.id = x.connection_id
WHERE x.expires_at > $1 AND x.expires_at <= $2 AND x.notices < $3 AND length(x.secret_sealed) > 0 ORDER BY x.expires_at, x.id LIMIT $4`
	sqlMarkSecretNotice = `UPDATE connection_secrets SET notices = $2 WHERE id = $1 AND notices < $2`
)

// ExpiringSecrets returns secrets that end after now and until an instant, about which fewer than notices
// mails were sent, at most limit.
func (r Reader) ExpiringSecrets(ctx context.Context, now, until time.Time, notices, limit int) ([]ExpiringSecret, error) {
	return list(ctx, r, expiringSecretFields, sqlExpiringSecrets, micros(now), micros(until), notices, limit)
}

// MarkSecretNotice records that the notice with this number is sent, and reports whether it was still due.
func (tx *Tx) MarkSecretNotice(ctx context.Context, id string, notice int) (bool, error) {
	return tx.affected(ctx, sqlMarkSecretNotice, id, notice)
}

// ConnectionKey is a key by which Doorward authenticates to a provider.
type ConnectionKey struct {
	ID, ConnectionID string
	Public           string // a JWK
	Sealed           []byte // the private key
	CreatedAt        time.Time
	SignsFrom        time.Time
	EndsAt           *time.Time // published until then; nil: there is no next key yet
}

func connectionKeyFields(k *ConnectionKey) []any {
	return []any{&k.ID, &k.ConnectionID, &k.Public, &k.Sealed, (*storedTime)(&k.CreatedAt), (*storedTime)(&k.SignsFrom), nullableTime{&k.EndsAt}}
}

const (
	selectConnectionKey = `SELECT id, connection_id, public, private_sealed, created_at, signs_from, ends_at FROM connection_keys `

	sqlConnectionKeys       = selectConnectionKey + `WHERE connection_id = $1 ORDER BY created_at, id`
	sqlConnectionKeysOlder  = selectConnectionKey + `WHERE ends_at IS NULL AND signs_from <= $1 ORDER BY created_at, id LIMIT $2`
	sqlInsertConnectionKey  = `INSERT INTO connection_keys (id, connection_id, public, private_sealed, created_at, signs_from) VALUES ($1, $2, $3, $4, $5, $6)`
	sqlReplaceConnectionKey = `UPDATE connection_keys SET ends_at = $2 WHERE id = $1 AND ends_at IS NULL`
	sqlDeleteConnectionKeys = `DELETE FROM connection_keys WHERE ends_at <= $1`
	sqlKeyPlace             = `SELECT k.connection_id, c.tenant_id, '' FROM connection_keys k JOIN connections c ON c.id = k.connection_id WHERE k.id = $1`
	sqlDropConnectionKey    = `DELETE FROM connection_keys WHERE id = $1`
)

// ConnectionKeys returns the keys of the connection, the oldest first, as they sign.
func (r Reader) ConnectionKeys(ctx context.Context, connectionID string) ([]ConnectionKey, error) {
	return list(ctx, r, connectionKeyFields, sqlConnectionKeys, connectionID)
}

// ConnectionKeysSigningSince returns the newest keys of connections that have signed since an instant or
// before, at most limit.
func (r Reader) ConnectionKeysSigningSince(ctx context.Context, since time.Time, limit int) ([]ConnectionKey, error) {
	return list(ctx, r, connectionKeyFields, sqlConnectionKeysOlder, micros(since), limit)
}

// InsertConnectionKey adds the key.
func (tx *Tx) InsertConnectionKey(ctx context.Context, k ConnectionKey) error {
	return tx.run(ctx, sqlInsertConnectionKey, k.ID, k.ConnectionID, k.Public, k.Sealed, micros(k.CreatedAt), micros(k.SignsFrom))
}

// ReplaceConnectionKey ends the publication of the key at ends, since there is a next one, and reports
// whether there was none: of all nodes one makes it.
func (tx *Tx) ReplaceConnectionKey(ctx context.Context, id string, ends time.Time) (bool, error) {
	return tx.affected(ctx, sqlReplaceConnectionKey, id, micros(ends))
}

// LoseConnectionKey deletes a key that nothing can open any more, and returns to what it belonged, or ErrNone.
func (tx *Tx) LoseConnectionKey(ctx context.Context, id string) (SecretPlace, error) {
	fields := func(p *SecretPlace) []any { return []any{&p.ConnectionID, &p.TenantID, &p.Hint} }
	place, err := one(ctx, tx.Reader, fields, sqlKeyPlace, id)
	if err != nil {
		return place, err
	}
	return place, tx.run(ctx, sqlDropConnectionKey, id)
}

// DeleteEndedConnectionKeys deletes the keys that are no longer published, and returns how many.
func (tx *Tx) DeleteEndedConnectionKeys(ctx context.Context) (int64, error) {
	return tx.exec(ctx, sqlDeleteConnectionKeys, micros(tx.Now))
}
