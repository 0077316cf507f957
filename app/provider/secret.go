package provider

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/doorward/doorward"
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

// HasSecret reports whether the connection has the client secret already, with that end; nil: with any that hasn't passed.
// The caller must be allowed to add one. Errors: not_found; forbidden; master_key_missing; unavailable.
func (c *Client) HasSecret(ctx context.Context, by doorward.Caller, id, secret string, end *time.Time) (bool, error) {
	read := c.db.Read()
	found, err := Find(ctx, read, by, id)
	if err != nil {
		return false, err
	}
	if err := c.writer.Require(ctx, by, doorward.ConnectionSecretChange, Object(found)); err != nil {
		return false, err
	}
	all, err := read.ConnectionSecrets(ctx, id)
	for _, s := range all {
		if s.IsLost || !endsLike(s.ExpiresAt, end, c.db.Now()) {
			continue
		}
		plain, err := c.master.Open(ctx, placeOfSecret(s.ID), s.Sealed)
		if err != nil || subtle.ConstantTimeCompare(plain, []byte(secret)) == 1 {
			return err == nil, err
		}
	}
	return false, err
}

// endsLike reports whether the end of a kept secret is the one that was typed, or, if none was, hasn't passed.
func endsLike(kept, typed *time.Time, now time.Time) bool {
	if typed == nil {
		return kept == nil || kept.After(now)
	}
	return kept != nil && kept.Equal(*typed)
}
