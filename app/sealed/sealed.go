// Package sealed has texts that browsers keep for Doorward, in cookies or addresses: nobody else can read or make them.
//
//	texts := sealed.New(writer, db, "signon")
//	text, err := texts.Seal(ctx, conID, "doorward_signon", held)
//	isOurs, err := texts.Open(ctx, conID, "doorward_signon", text, &held)
//
// A text opens on every node, also after a restart, for the same connection and name alone. It can be copied and sent
// again, so the caller bounds its life, and uses up what may be used once.
package sealed

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// Texts seals and opens. Make it with New. It is safe for use by several goroutines.
type Texts struct {
	writer *access.Writer
	db     *store.DB
	secret string
	loaded atomic.Pointer[seal.Key]
}

// New returns the texts whose key is made of the installation's secret with the name.
func New(writer *access.Writer, db *store.DB, secret string) *Texts {
	return &Texts{writer: writer, db: db, secret: secret}
}

// Seal returns v as a sealed text, in base64url, for the connection and the name of the place where it is kept. Errors:
// unavailable.
func (t *Texts) Seal(ctx context.Context, conID, name string, v any) (string, error) {
	key, err := t.key(ctx)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	plain := json.NewEncoder(&text)
	plain.SetEscapeHTML(false) // else each & of a return address takes six bytes
	err = plain.Encode(v)
	return base64.RawURLEncoding.EncodeToString(key.Seal(placeOf(conID, name), text.Bytes())), err
}

// Open reads what Seal has returned, and reports whether it could: not for another connection or name, nor for anything
// made elsewhere. Errors: unavailable.
func (t *Texts) Open(ctx context.Context, conID, name, value string, into any) (bool, error) {
	key, err := t.key(ctx)
	if err != nil {
		return false, err
	}
	bits, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return false, nil
	}
	text, err := key.Open(placeOf(conID, name), bits)
	return err == nil && json.Unmarshal(text, into) == nil, nil
}

func placeOf(conID, name string) seal.Place {
	return seal.Place{Table: "cookies", ID: conID, Column: name}
}

// key returns the key: the same on all nodes and after a restart. The first use in an installation makes it.
func (t *Texts) key(ctx context.Context) (seal.Key, error) {
	if key := t.loaded.Load(); key != nil {
		return *key, nil
	}
	secret, err := t.db.Read().SharedSecret(ctx, t.secret)
	if errors.Is(err, store.ErrNone) {
		fresh := []byte(rand.Text())
		err = t.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
			secret, err = tx.MakeSharedSecret(ctx, t.secret, fresh)
			return err
		})
	}
	if err != nil {
		return seal.Key{}, err
	}
	key := seal.KeyFrom(sha256.Sum256(append([]byte("cookies of sign-ins\x00"), secret...)))
	t.loaded.Store(&key)
	return key, nil
}
