package key

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/doorward/doorward/store"
)

// CursorSecret returns the secret by which the cursors of lists are signed, the same
// on every node and after a restart. It is created on first use.
func (k *Keys) CursorSecret(ctx context.Context) ([]byte, error) {
	if secret := k.cursorSecret.Load(); secret != nil {
		return *secret, nil
	}
	secret, err := k.db.Read().SharedSecret(ctx, cursorSecretName)
	if errors.Is(err, store.ErrNone) {
		fresh := []byte(rand.Text())
		err = k.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			secret, err = tx.MakeSharedSecret(ctx, cursorSecretName, fresh)
			return err
		})
	}
	if err == nil {
		k.cursorSecret.Store(&secret)
	}
	return secret, err
}

const cursorSecretName = "cursors"
