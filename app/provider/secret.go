package provider

import (
	"context"
	"time"

	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// secretUseEvery is how exactly the last use of a secret is recorded.
const secretUseEvery = time.Hour

func placeOfSecret(id string) seal.Place {
	return seal.Place{Table: "connection_secrets", ID: id, Column: "secret_sealed"}
}

// SealSecret returns a client secret as it is kept, under its id. Errors: master_key_missing.
func (c *Client) SealSecret(ctx context.Context, tx *store.Tx, id, secret string) ([]byte, error) {
	return c.master.Seal(ctx, tx, placeOfSecret(id), []byte(secret))
}

// openSecrets returns the client secrets that aren't lost, the newest first, with their ids. Errors: master_key_missing.
func (c *Client) openSecrets(ctx context.Context, id string) (ids, secrets []string, err error) {
	all, err := c.db.Read().ConnectionSecrets(ctx, id)
	for _, s := range all {
		if s.IsLost {
			continue
		}
		plain, err := c.master.Open(ctx, placeOfSecret(s.ID), s.Sealed)
		if err != nil {
			return nil, nil, err
		}
		ids, secrets = append(ids, s.ID), append(secrets, string(plain))
	}
	return ids, secrets, err
}
