package provider

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// ReasonKeyLost is the reason in the trail for a secret or a key that was lost with the master key.
const ReasonKeyLost = "key_lost"

// forgetSecrets empties client secrets that nothing can open any more. They are shown as lost until another one
// is added; until then their connection signs nobody in.
func (c *Client) forgetSecrets(ctx context.Context, tx *access.Tx, ids []string) error {
	return eachLost(ctx, tx, ids, tx.LoseConnectionSecret, func(store.SecretPlace) error { return nil })
}

// forgetKeys replaces keys that nothing can open any more. The next one of their connection signs at once: the
// provider has it when it next reads the connection's keys, within a day.
func (c *Client) forgetKeys(ctx context.Context, tx *access.Tx, ids []string) error {
	return eachLost(ctx, tx, ids, tx.LoseConnectionKey, func(p store.SecretPlace) error { return c.EnsureKey(ctx, tx.Tx, p.ConnectionID) })
}

// forgetSAMLKeys deletes keys that nothing can open any more. The next sign-in, or reading of our metadata, makes another
// one, which the provider knows once it has read those again.
func (c *Client) forgetSAMLKeys(ctx context.Context, tx *access.Tx, ids []string) error {
	return eachLost(ctx, tx, ids, tx.LoseSAMLKey, func(store.SecretPlace) error { return nil })
}

// eachLost loses each of the values and records it in the trail of its tenant.
func eachLost(ctx context.Context, tx *access.Tx, ids []string, lose func(context.Context, string) (store.SecretPlace, error), then func(store.SecretPlace) error) error {
	tx.SkipEvent() // of the installation: those of tenants say it
	for _, id := range ids {
		place, err := lose(ctx, id)
		if errors.Is(err, store.ErrNone) { // deleted since it was read
			continue
		}
		if err == nil {
			err = then(place)
		}
		if err != nil {
			return err
		}
		on := doorward.Object{Type: "connection", ID: place.ConnectionID, TenantID: place.TenantID}
		err = tx.RecordAlso(ctx, doorward.ConnectionSecretChange, on,
			doorward.Change{Field: doorward.FieldClientSecret, From: place.Hint},
			doorward.Change{Field: doorward.FieldReason, To: ReasonKeyLost})
		if err != nil {
			return err
		}
	}
	return nil
}
