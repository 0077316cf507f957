package key

import "context"

// CursorSecret returns the secret by which the cursors of lists are signed, the same
// on every node and after a restart. It is created on first use.
func (k *Keys) CursorSecret(ctx context.Context) ([]byte, error) {
	if secret := k.cursorSecret.Load(); secret != nil {
		return *secret, nil
	}
	secret, err := k.writer.SharedSecret(ctx, cursorSecretName)
	if err == nil {
		k.cursorSecret.Store(&secret)
	}
	return secret, err
}

const cursorSecretName = "cursors"
