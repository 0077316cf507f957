package access

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/doorward/doorward/store"
)

// SharedSecret returns the secret of the name: 26 random characters, the same on every node and after a
// restart. The first call in an installation makes it. Callers keep it in memory. Errors: unavailable.
func (w *Writer) SharedSecret(ctx context.Context, name string) ([]byte, error) {
	secret, err := w.db.Read().SharedSecret(ctx, name)
	if !errors.Is(err, store.ErrNone) {
		return secret, err
	}
	fresh := []byte(rand.Text())
	err = w.Upkeep(ctx, func(tx *store.Tx) (err error) {
		secret, err = tx.MakeSharedSecret(ctx, name, fresh)
		return err
	})
	return secret, err
}
