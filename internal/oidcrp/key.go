package oidcrp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
)

// Key authenticates a client by ES256. Its ID is the thumbprint of the public key (RFC 7638).
type Key struct {
	ID      string
	private *ecdsa.PrivateKey
}

// NewKey makes a key. Errors: those of the random source.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return keyOf(private)
}

// ParseKey reads what Marshal returned. Errors: not PKCS #8, or another kind of key.
func ParseKey(der []byte) (*Key, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("oidcrp: the key is not one for ES256")
	}
	return keyOf(private)
}

func keyOf(private *ecdsa.PrivateKey) (*Key, error) {
	thumbprint, err := (&jose.JSONWebKey{Key: &private.PublicKey}).Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return &Key{base64.RawURLEncoding.EncodeToString(thumbprint), private}, nil
}

// Marshal returns the private key as PKCS #8, DER, to be sealed.
func (k *Key) Marshal() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(k.private) }

// String names the key by its id, so that a log shows no more.
func (k *Key) String() string { return "client key " + k.ID }

// GoString is String, for %#v.
func (k *Key) GoString() string { return k.String() }

// JWK returns the public key as a JSON Web Key, a member of the set at the address that the provider
// reads.
func (k *Key) JWK() []byte {
	public := jose.JSONWebKey{Key: &k.private.PublicKey, KeyID: k.ID, Algorithm: string(jose.ES256), Use: "sig"}
	text, err := public.MarshalJSON()
	if err != nil {
		panic(err) // every Key can be encoded
	}
	return text
}

// assertionLife is how long a client assertion is good.
const assertionLife = 60 * time.Second

// assertion returns a client assertion for the one audience (RFC 7523; OpenID Connect Core 1.0, section
// 9), which the provider takes once.
func (k *Key) assertion(clientID, audience string, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"iss": clientID, "sub": clientID, "aud": audience, "jti": random(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: k.private, KeyID: k.ID},
	}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
