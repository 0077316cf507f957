package samlprovider

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// Table is where our keys lie, sealed with the master key.
const Table = "connection_saml_keys"

func placeOf(id string) seal.Place {
	return seal.Place{Table: Table, ID: id, Column: "private_sealed"}
}

// NewKeys makes the keys that the connection needs and doesn't have, by its SignRequests and Encrypt. It takes up to some
// seconds of CPU, so call it before a transaction, and AddKeys within.
func (c *Client) NewKeys(ctx context.Context, con doorward.Connection) (map[store.SAMLPurpose]*samlsp.Key, error) {
	made := map[store.SAMLPurpose]*samlsp.Key{}
	for purpose, needed := range map[store.SAMLPurpose]bool{store.SAMLSign: con.SignRequests, store.SAMLDecrypt: con.Encrypt} {
		if !needed {
			continue
		}
		_, err := c.db.Read().SAMLKey(ctx, con.ID, purpose)
		if errors.Is(err, store.ErrNone) {
			made[purpose], err = c.newKey()
		}
		if err != nil {
			return nil, err
		}
	}
	return made, nil
}

// newKey makes a key. What its certificate is called is of no meaning to providers, and shown by some.
func (c *Client) newKey() (*samlsp.Key, error) {
	key, err := samlsp.NewKey("Doorward", c.db.Now())
	if err != nil {
		return nil, doorward.Unavailable(err)
	}
	return key, nil
}

// AddKeys adds the keys, except where the connection has got one since. Errors: master_key_missing.
func (c *Client) AddKeys(ctx context.Context, tx *store.Tx, conID string, made map[store.SAMLPurpose]*samlsp.Key) error {
	for purpose, key := range made {
		if err := c.addKey(ctx, tx, conID, purpose, key); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) addKey(ctx context.Context, tx *store.Tx, conID string, purpose store.SAMLPurpose, key *samlsp.Key) error {
	plain, err := key.Marshal()
	if err != nil {
		return doorward.Unavailable(err)
	}
	sealed, err := c.master.Seal(ctx, tx, placeOf(key.ID), plain)
	if err != nil {
		return err
	}
	_, err = tx.InsertSAMLKey(ctx, store.SAMLKey{ID: key.ID, ConnectionID: conID, Purpose: purpose, Sealed: sealed, CreatedAt: tx.Now})
	return err
}

// key returns the connection's key for the purpose. One that was lost with the master key is replaced by a new one,
// which the provider knows once it has read our metadata again.
func (c *Client) key(ctx context.Context, conID string, purpose store.SAMLPurpose) (*samlsp.Key, error) {
	kept, err := c.db.Read().SAMLKey(ctx, conID, purpose)
	if errors.Is(err, store.ErrNone) {
		kept, err = c.replaceKey(ctx, conID, purpose)
	}
	if err != nil {
		return nil, err
	}
	plain, err := c.master.Open(ctx, placeOf(kept.ID), kept.Sealed)
	if err != nil {
		return nil, err
	}
	key, err := samlsp.ParseKey(plain)
	if err != nil {
		return nil, doorward.Unavailable(err)
	}
	return key, nil
}

// replaceKey makes a key where there is none. Of several nodes one does, and all return its key.
func (c *Client) replaceKey(ctx context.Context, conID string, purpose store.SAMLPurpose) (kept store.SAMLKey, err error) {
	key, err := c.newKey()
	if err != nil {
		return kept, err
	}
	err = c.writer.Upkeep(ctx, func(tx *store.Tx) error {
		if err := c.addKey(ctx, tx, conID, purpose, key); err != nil {
			return err
		}
		kept, err = tx.SAMLKey(ctx, conID, purpose)
		return err
	})
	return kept, err
}
