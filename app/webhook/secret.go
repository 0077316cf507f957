package webhook

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// Issued is a webhook with a new secret, which can't be shown again.
type Issued struct {
	Webhook doorward.Webhook
	Secret  Secret
}

// Secret is what messages are signed with. It prints as [redacted].
type Secret struct{ bytes []byte }

const (
	secretPrefix = "whsec_"
	publicPrefix = "whpk_"
	// secretBytes is the size of a secret. Standard Webhooks demands 24 to 64 bytes.
	secretBytes = 32
)

func newSecret() Secret {
	s := Secret{make([]byte, secretBytes)}
	_, _ = rand.Read(s.bytes) // never fails
	return s
}

// Reveal returns the secret as its receiver needs it.
func (s Secret) Reveal() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.bytes) }

// Format implements fmt.Formatter.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[redacted]")) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// newSigningKey returns the seed of an Ed25519 key, and its public key as receivers need it.
func newSigningKey() (seed []byte, public string) {
	key := ed25519.NewKeyFromSeed(newSecret().bytes) // both have 32 bytes
	return key.Seed(), publicPrefix + base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
}

func placeOf(id, column string) seal.Place {
	return seal.Place{Table: "webhooks", ID: id, Column: column}
}

func (w *Webhooks) seal(ctx context.Context, tx *access.Tx, id string, fresh Secret, seed []byte) (s store.WebhookSecrets, err error) {
	if s.Secret, err = w.master.Seal(ctx, tx.Tx, placeOf(id, "secret_sealed"), fresh.bytes); err != nil {
		return s, err
	}
	s.Private, err = w.master.Seal(ctx, tx.Tx, placeOf(id, "private_sealed"), seed)
	return s, err
}

// sealAgain returns the current secret, sealed as the previous one, and the new secret, sealed.
func (w *Webhooks) sealAgain(ctx context.Context, tx *access.Tx, id string, fresh Secret) (previous, secret []byte, err error) {
	stored, err := tx.WebhookSecrets(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	plain, err := w.master.Open(ctx, placeOf(id, "secret_sealed"), stored.Secret)
	if err != nil {
		return nil, nil, err
	}
	if previous, err = w.master.Seal(ctx, tx.Tx, placeOf(id, "previous_sealed"), plain); err != nil {
		return nil, nil, err
	}
	secret, err = w.master.Seal(ctx, tx.Tx, placeOf(id, "secret_sealed"), fresh.bytes)
	return previous, secret, err
}

// signer signs the messages to one endpoint.
type signer struct {
	secrets [][]byte // the current one, and the previous one while it is in use
	key     ed25519.PrivateKey
}

func (w *Webhooks) signer(ctx context.Context, read store.Reader, id string, now time.Time) (s signer, err error) {
	sealed, err := read.WebhookSecrets(ctx, id)
	if err != nil {
		return s, err
	}
	current, err := w.master.Open(ctx, placeOf(id, "secret_sealed"), sealed.Secret)
	if err != nil {
		return s, err
	}
	s.secrets = [][]byte{current}
	if sealed.PreviousEnds != nil && now.Before(*sealed.PreviousEnds) {
		previous, err := w.master.Open(ctx, placeOf(id, "previous_sealed"), sealed.Previous)
		if err != nil {
			return s, err
		}
		s.secrets = append(s.secrets, previous)
	}
	seed, err := w.master.Open(ctx, placeOf(id, "private_sealed"), sealed.Private)
	if err == nil {
		s.key = ed25519.NewKeyFromSeed(seed)
	}
	return s, err
}

// sign returns the signatures of a message, separated by spaces (Standard Webhooks 1.0.0,
// "Signature scheme").
func (s signer) sign(id string, at time.Time, body []byte) string {
	content := fmt.Appendf(nil, "%s.%s.%s", id, strconv.FormatInt(at.Unix(), 10), body)
	all := ""
	for _, secret := range s.secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write(content)
		all += "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)) + " "
	}
	if s.key == nil {
		return all
	}
	return all + "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, content))
}
