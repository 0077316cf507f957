package apikey

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// EndLeaked revokes the key of a leaked secret, given by its hash, and notifies the owner of the key
// and the managers. An unknown or ended secret is no error. When EndLeaked returns, the key has
// ended on every node.
func (k *Keys) EndLeaked(ctx context.Context, by doorward.Caller, hash secret.Hash) error {
	cred, err := k.db.Read().APIKeyBySecret(ctx, hash[:], k.db.Now())
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = k.writer.Do(ctx, by, doorward.APIKeyLeak, object(cred.Key), func(tx *access.Tx) error {
		// A rotation that commits in between adds a secret, which must be revoked as well.
		if err := tx.LockTenant(ctx, cred.Key.TenantID); err != nil {
			return err
		}
		return endLeaked(ctx, tx, hash)
	})
	return err
}

func endLeaked(ctx context.Context, tx *access.Tx, hash secret.Hash) error {
	cred, err := tx.APIKeyBySecret(ctx, hash[:], tx.Now)
	if errors.Is(err, store.ErrNone) || err == nil && hasEnded(cred, tx.Now) {
		tx.SkipEvent()
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := tx.RevokeAPIKey(ctx, cred.Key.ID); err != nil {
		return err
	}
	tx.Changed("status", string(cred.Key.Status), string(doorward.APIKeyRevoked))
	return notifyOfLeak(ctx, tx, cred.Key)
}

// HashOf returns the hash under which a secret of a key is stored. The error never quotes
// the text.
func HashOf(text string) (secret.Hash, error) {
	key, err := secret.ParseKey(text)
	if err != nil || key.Prefix() != Prefix {
		return secret.Hash{}, secret.ErrMalformedKey
	}
	return key.Hash(), nil
}

func hasEnded(c store.KeyCredential, now time.Time) bool {
	return c.Key.HasEnded(now) || c.SecretEndsAt != nil && !now.Before(*c.SecretEndsAt)
}

func notifyOfLeak(ctx context.Context, tx *access.Tx, key doorward.APIKey) error {
	to := map[string]bool{}
	owner, err := tx.User(ctx, key.TenantID, key.OwnerID)
	if err == nil {
		to[owner.Email] = true
	} else if !errors.Is(err, store.ErrNone) {
		return err
	}
	managers, err := access.EmailsOf(ctx, tx.Reader, key.TenantID, access.Managers...)
	if err != nil {
		return err
	}
	for _, email := range managers {
		to[email] = true
	}
	for email := range to {
		if err := tx.Notify(ctx, store.MailAPIKeyLeaked, email); err != nil {
			return err
		}
	}
	return nil
}
