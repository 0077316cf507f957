package store

import (
	"context"
	"time"
)

// SigningKey is a key that assertions are signed with, from StartsAt until the next
// one starts.
type SigningKey struct {
	ID        string // the kid of RFC 7517
	Public    []byte // SubjectPublicKeyInfo (RFC 5280), DER
	Sealed    []byte // PKCS #8 (RFC 5958), sealed with a master key
	StartsAt  time.Time
	CreatedAt time.Time
}

func signingKeyFields(k *SigningKey) []any {
	return []any{&k.ID, &k.Public, &k.Sealed, (*storedTime)(&k.StartsAt), (*storedTime)(&k.CreatedAt)}
}

const (
	sqlSigningKeys      = `SELECT id, public_key, private_sealed, starts_at, created_at FROM signing_keys ORDER BY starts_at, id`
	sqlInsertSigningKey = `INSERT INTO signing_keys (id, public_key, private_sealed, starts_at, created_at) VALUES ($1, $2, $3, $4, $5)`
	sqlStartSigningKey  = `UPDATE signing_keys SET starts_at = $1 WHERE id = $2 AND starts_at > $1`
	sqlDeleteSigningKey = `DELETE FROM signing_keys WHERE id = $1`
)

// SigningKeys returns the keys in the order in which they sign.
func (r Reader) SigningKeys(ctx context.Context) ([]SigningKey, error) {
	return list(ctx, r, signingKeyFields, sqlSigningKeys)
}

// InsertSigningKey adds the key.
func (tx *Tx) InsertSigningKey(ctx context.Context, k SigningKey) error {
	return tx.run(ctx, sqlInsertSigningKey, k.ID, k.Public, k.Sealed, micros(k.StartsAt), micros(k.CreatedAt))
}

// StartSigningKey makes the key sign from the instant on, and reports whether that is earlier
// than planned; else it changes nothing. Every node learns of a change.
func (tx *Tx) StartSigningKey(ctx context.Context, id string, at time.Time) (bool, error) {
	earlier, err := tx.affected(ctx, sqlStartSigningKey, micros(at), id)
	if earlier {
		tx.AnnounceSigningKeys()
	}
	return earlier, err
}

// AnnounceSigningKeys makes every node read the keys again.
func (tx *Tx) AnnounceSigningKeys() { tx.announce(ChangeSigning, "") }

// DeleteSigningKey removes the key.
func (tx *Tx) DeleteSigningKey(ctx context.Context, id string) error {
	return tx.run(ctx, sqlDeleteSigningKey, id)
}
