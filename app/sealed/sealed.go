// Package sealed has texts that browsers keep for Doorward, in cookies or addresses: nobody else can read or make them.
//
//	texts := sealed.New(writer, "signon", "cookies of sign-ins")
//	text, err := texts.Seal(ctx, conID, "doorward_signon", held)
//	isOurs, err := texts.Open(ctx, conID, "doorward_signon", text, &held)
//
// A text opens on every node, also after a restart, for the same owner and name alone. It can be copied and sent
// again, so the caller bounds its life, and uses up what may be used once.
package sealed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"sync/atomic"

	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/seal"
)

// Texts seals and opens. Make it with New. It is safe for use by several goroutines.
type Texts struct {
	writer  *access.Writer
	secret  string
	purpose string
	loaded  atomic.Pointer[seal.Key]
}

// New returns the texts whose key is made of the purpose and the installation's secret with the name.
func New(writer *access.Writer, secret, purpose string) *Texts {
	return &Texts{writer: writer, secret: secret, purpose: purpose}
}

// Seal returns v as a sealed text, in base64url, for its owner, such as a connection, and the name of the place where it is
// kept. Errors: unavailable.
func (t *Texts) Seal(ctx context.Context, owner, name string, v any) (string, error) {
	key, err := t.key(ctx)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	plain := json.NewEncoder(&text)
	plain.SetEscapeHTML(false) // else each & of a return address takes six bytes
	err = plain.Encode(v)
	return base64.RawURLEncoding.EncodeToString(key.Seal(placeOf(owner, name), text.Bytes())), err
}

// Open reads what Seal has returned, and reports whether it could: not for another owner or name, nor for anything
// made elsewhere. Errors: unavailable.
func (t *Texts) Open(ctx context.Context, owner, name, value string, into any) (bool, error) {
	key, err := t.key(ctx)
	if err != nil {
		return false, err
	}
	bits, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return false, nil
	}
	text, err := key.Open(placeOf(owner, name), bits)
	return err == nil && json.Unmarshal(text, into) == nil, nil
}

func placeOf(owner, name string) seal.Place {
	return seal.Place{Table: "cookies", ID: owner, Column: name}
}

// key returns the key: the same on all nodes and after a restart. The first use in an installation makes it.
func (t *Texts) key(ctx context.Context) (seal.Key, error) {
	if key := t.loaded.Load(); key != nil {
		return *key, nil
	}
	secret, err := t.writer.SharedSecret(ctx, t.secret)
	if err != nil {
		return seal.Key{}, err
	}
	key := seal.KeyFrom(sha256.Sum256(append([]byte(t.purpose+"\x00"), secret...)))
	t.loaded.Store(&key)
	return key, nil
}
