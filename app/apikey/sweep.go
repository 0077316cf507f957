package apikey

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

const day = 24 * time.Hour

// noticesBefore are the times before the end of a key at which its owner is notified. The shortest
// is first: its notice marks the longer ones as sent, so that the owner gets only one of them.
var noticesBefore = []time.Duration{day, 7 * day, 30 * day}

// Sweep notifies the owners of keys that end soon, records which keys have expired, and
// deletes secrets that ended long ago. Several nodes may sweep at the same time.
func (k *Keys) Sweep(ctx context.Context) error {
	var errs []error
	for _, within := range noticesBefore {
		errs = append(errs, access.EachDue(idOf, func(limit int) ([]doorward.APIKey, error) {
			return k.db.Read().APIKeysExpiring(ctx, within, k.db.Now(), limit)
		}, func(key doorward.APIKey) error { return k.notifyBefore(ctx, key, within) }))
	}
	errs = append(errs, access.EachDue(idOf, func(limit int) ([]doorward.APIKey, error) {
		return k.db.Read().APIKeysToExpire(ctx, k.db.Now(), limit)
	}, func(key doorward.APIKey) error { return k.recordExpiry(ctx, key) }))
	errs = append(errs, k.writer.InBatches(ctx, func(tx *store.Tx, limit int) (int64, error) { return tx.DeleteEndedSecrets(ctx, limit) }))
	return errors.Join(errs...)
}

// ForgetIdle removes from this node's memory the limiters that are idle.
func (k *Keys) ForgetIdle(context.Context) error {
	k.states.sweep()
	return nil
}

func idOf(k doorward.APIKey) string { return k.ID }

func (k *Keys) notifyBefore(ctx context.Context, key doorward.APIKey, within time.Duration) error {
	_, err := k.writer.Do(ctx, access.System, doorward.APIKeyExpiring, object(key), func(tx *access.Tx) error {
		due, err := tx.MarkAPIKeyNoticeSent(ctx, key.ID, within)
		if err != nil || !due {
			tx.SkipEvent()
			return err
		}
		tx.Changed(doorward.FieldEndsAt, "", key.EndsAt().Format(time.RFC3339))
		owner, err := tx.User(ctx, key.TenantID, key.OwnerID)
		if errors.Is(err, store.ErrNone) {
			return nil
		}
		if err != nil {
			return err
		}
		return tx.Notify(ctx, store.MailAPIKeyExpiring, owner.Email)
	})
	return err
}

func (k *Keys) recordExpiry(ctx context.Context, key doorward.APIKey) error {
	_, err := k.writer.Do(ctx, access.System, doorward.APIKeyExpire, object(key), func(tx *access.Tx) error {
		expired, err := tx.ExpireAPIKey(ctx, key.ID)
		if err != nil || !expired {
			tx.SkipEvent()
			return err
		}
		tx.Changed("status", string(key.Status), string(doorward.APIKeyExpired))
		return nil
	})
	return err
}
