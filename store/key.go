package store

import (
	"context"
	"time"

	"github.com/doorward/doorward"
)

// OperatorKey is a credential of the installation's operator.
type OperatorKey struct {
	ID        string
	Name      string
	CreatedAt time.Time
	ExpiresAt *time.Time        // nil: never
	May       []doorward.Action // the actions that it may do; empty: all
}

func operatorKeyFields(k *OperatorKey) []any {
	return []any{&k.ID, &k.Name, (*storedTime)(&k.CreatedAt), nullableTime{&k.ExpiresAt}, wordsOf(&k.May, parseAction)}
}

const sqlOperatorKey = `SELECT id, name, created_at, expires_at, may FROM operator_keys WHERE hash = $1`

// OperatorKey returns the key with the hash, or ErrNone.
func (r Reader) OperatorKey(ctx context.Context, hash []byte) (OperatorKey, error) {
	return one(ctx, r, operatorKeyFields, sqlOperatorKey, hash)
}

const sqlOperatorKeys = `SELECT id, name, created_at, expires_at, may FROM operator_keys ORDER BY created_at, id`

// OperatorKeys returns all keys, the oldest first.
func (r Reader) OperatorKeys(ctx context.Context) ([]OperatorKey, error) {
	return list(ctx, r, operatorKeyFields, sqlOperatorKeys)
}

const sqlInsertOperatorKey = `INSERT INTO operator_keys (id, name, hash, created_at, expires_at, may) VALUES ($1, $2, $3, $4, $5, $6)`

// InsertOperatorKey adds the key.
func (tx *Tx) InsertOperatorKey(ctx context.Context, k OperatorKey, hash []byte) error {
	return tx.run(ctx, sqlInsertOperatorKey, k.ID, k.Name, hash, micros(k.CreatedAt), nullableMicros(k.ExpiresAt), joined(k.May, actionText))
}

const sqlLockOperatorKey = `UPDATE operator_keys SET name = name WHERE id = $1 RETURNING id, name, created_at, expires_at, may`

// LockOperatorKey returns the key, or ErrNone. Nobody revokes it until the transaction ends.
func (tx *Tx) LockOperatorKey(ctx context.Context, id string) (OperatorKey, error) {
	return one(ctx, tx.Reader, operatorKeyFields, sqlLockOperatorKey, id)
}

const sqlDeleteOperatorKey = `DELETE FROM operator_keys WHERE id = $1`

// DeleteOperatorKey deletes the key and reports whether it existed. Keys are never
// cached, so no change is announced.
func (tx *Tx) DeleteOperatorKey(ctx context.Context, id string) (bool, error) {
	return tx.affected(ctx, sqlDeleteOperatorKey, id)
}
