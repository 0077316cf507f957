package store

import (
	"context"
	"errors"
)

const (
	sqlSharedSecret       = `SELECT value FROM shared_secrets WHERE name = $1`
	sqlInsertSharedSecret = `INSERT INTO shared_secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`
)

// SharedSecret returns the secret of that name that all nodes share, or
// ErrNone.
func (r Reader) SharedSecret(ctx context.Context, name string) ([]byte, error) {
	return one(ctx, r, bytesColumn, sqlSharedSecret, name)
}

// MakeSharedSecret returns the secret of that name, or else stores and returns
// fresh, which all nodes share from then on. With an error it returns no secret.
func (tx *Tx) MakeSharedSecret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	if err := tx.run(ctx, sqlInsertSharedSecret, name, fresh); err != nil {
		return nil, err
	}
	value, err := tx.SharedSecret(ctx, name)
	if errors.Is(err, ErrNone) { // another transaction has stored one that this one can't see yet
		return nil, fault(err)
	}
	return value, err
}
