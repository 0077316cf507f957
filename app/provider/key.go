package provider

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

const (
	// keyLife is how long a key signs.
	keyLife = 90 * day
	// keyAhead is how long a key is published before it signs, and after the next one does: providers keep
	// what they have read for up to a day.
	keyAhead = day
)

func placeOfKey(id string) seal.Place {
	return seal.Place{Table: "connection_keys", ID: id, Column: "private_sealed"}
}

// EnsureKey makes a key, which signs at once, if the connection has none. Errors: master_key_missing.
func (c *Client) EnsureKey(ctx context.Context, tx *store.Tx, conID string) error {
	keys, err := tx.ConnectionKeys(ctx, conID)
	if err != nil || len(keys) > 0 {
		return err
	}
	return c.addKey(ctx, tx, conID, tx.Now)
}

func (c *Client) addKey(ctx context.Context, tx *store.Tx, conID string, signsFrom time.Time) error {
	key, err := oidcrp.NewKey()
	if err != nil {
		return err
	}
	plain, err := key.Marshal()
	if err != nil {
		return err
	}
	sealed, err := c.master.Seal(ctx, tx, placeOfKey(key.ID), plain)
	if err != nil {
		return err
	}
	return tx.InsertConnectionKey(ctx, store.ConnectionKey{
		ID: key.ID, ConnectionID: conID, Public: string(key.JWK()), Sealed: sealed, CreatedAt: tx.Now, SignsFrom: signsFrom,
	})
}

// signingKey returns the key that signs now: the newest whose time has come. Errors: master_key_missing;
// unavailable if there is none.
func (c *Client) signingKey(ctx context.Context, conID string) (*oidcrp.Key, error) {
	keys, err := c.db.Read().ConnectionKeys(ctx, conID)
	if err != nil {
		return nil, err
	}
	now := c.db.Now()
	for _, k := range slices.Backward(keys) {
		if k.SignsFrom.After(now) {
			continue
		}
		plain, err := c.master.Open(ctx, placeOfKey(k.ID), k.Sealed)
		if err != nil {
			return nil, err
		}
		return oidcrp.ParseKey(plain)
	}
	return nil, doorward.Unavailable(errors.New("provider: no key of " + conID + " signs yet"))
}

// Keys returns the public keys of a connection, each a JSON Web Key (RFC 7517), for its provider. Errors:
// not_found.
func (c *Client) Keys(ctx context.Context, conID string) ([]json.RawMessage, error) {
	read := c.db.Read()
	if _, err := read.Connection(ctx, conID); errors.Is(err, store.ErrNone) {
		return nil, doorward.Fail(doorward.CodeNotFound, "")
	} else if err != nil {
		return nil, err
	}
	keys, err := read.ConnectionKeys(ctx, conID)
	all := []json.RawMessage{}
	for _, k := range keys {
		if k.EndsAt == nil || k.EndsAt.After(c.db.Now()) {
			all = append(all, json.RawMessage(k.Public))
		}
	}
	return all, err
}

// sweepKeys publishes the next key of each connection a day before it signs, and deletes those that nobody
// needs any more. Of several nodes one makes a key.
func (c *Client) sweepKeys(ctx context.Context) error {
	err := access.EachDue(func(k store.ConnectionKey) string { return k.ID }, func(limit int) ([]store.ConnectionKey, error) {
		return c.db.Read().ConnectionKeysSigningSince(ctx, c.db.Now().Add(keyAhead-keyLife), limit)
	}, func(k store.ConnectionKey) error {
		return c.writer.Upkeep(ctx, func(tx *store.Tx) error {
			from := tx.Now.Add(keyAhead)
			mine, err := tx.ReplaceConnectionKey(ctx, k.ID, from.Add(keyAhead))
			if err != nil || !mine {
				return err
			}
			return c.addKey(ctx, tx, k.ConnectionID, from)
		})
	})
	return errors.Join(err, c.writer.Upkeep(ctx, func(tx *store.Tx) error {
		_, err := tx.DeleteEndedConnectionKeys(ctx)
		return err
	}))
}
