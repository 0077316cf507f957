package key

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/doorward/doorward/store"
)

// Cursors returns the secret by which the cursors of lists are signed, the same
// on every node and after a restart. It is created on first use.
func (k *Keys) Cursors(ctx context.Context) ([]byte, error) {
	if secret := k.cursors.Load(); secret != nil {
		return *secret, nil
	}
	secret, err := k.db.Read().SharedSecret(ctx, cursorSecret)
	if errors.Is(err, store.ErrNone) {
		fresh := []byte(rand.Text())
		err = k.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			secret, err = tx.MakeSharedSecret(ctx, cursorSecret, fresh)
			return err
		})
	}
	if err == nil {
		k.cursors.Store(&secret)
	}
	return secret, err
}

const cursorSecret = "cursors"
