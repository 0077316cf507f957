// Package passkeytest is an authenticator in software, for tests. It answers as a browser
// with a security key does, and a test can make any value wrong.
package passkeytest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
)

// The flags of authenticator data (WebAuthn, section 6.1).
const (
	Present        = 1 << 0
	Verified       = 1 << 2
	BackupEligible = 1 << 3
	BackedUp       = 1 << 4
	attested       = 1 << 6
)

// ErrExcluded is what a browser says with InvalidStateError: the authenticator has a
// passkey of the account.
var ErrExcluded = errors.New("passkeytest: the authenticator has a passkey of this account")

// Authenticator is an authenticator with a browser at one origin. Its values can be
// changed between calls.
type Authenticator struct {
	Origin  string
	RPID    string // in its answers; empty: that of the passkey
	Flags   byte
	Counter uint32 // of the last use; 0: it has no counter
	AAGUID  [16]byte
	Keys    []Key
}

// Key is one passkey.
type Key struct {
	ID     []byte
	Handle []byte // of the user
	RPID   string // that the options named when it was made
	secret *ecdsa.PrivateKey
}

// New returns an authenticator that counts and verifies its user.
func New(origin string) *Authenticator {
	return &Authenticator{Origin: origin, Flags: Present | Verified, Counter: 1}
}

// Copy returns another authenticator with the same keys and counter.
func (a *Authenticator) Copy() *Authenticator {
	other := *a
	other.Keys = slices.Clone(a.Keys)
	return &other
}

// bytes64 are bytes that JSON has in base64url.
type bytes64 []byte

func (b bytes64) MarshalText() ([]byte, error) {
	return []byte(base64.RawURLEncoding.EncodeToString(b)), nil
}

func (b *bytes64) UnmarshalText(text []byte) (err error) {
	*b, err = base64.RawURLEncoding.DecodeString(string(text))
	return err
}

type descriptor struct {
	ID bytes64 `json:"id"`
}

// Options are the options of both kinds, as far as an authenticator reads them.
type Options struct {
	Challenge bytes64 `json:"challenge"`
	RPID      string  `json:"rpId"`
	RP        struct {
		ID string `json:"id"`
	} `json:"rp"`
	User struct {
		ID   bytes64 `json:"id"`
		Name string  `json:"name"`
	} `json:"user"`
	Exclude []descriptor `json:"excludeCredentials"`
	Allow   []descriptor `json:"allowCredentials"`
	// UserVerification is that of a request; a creation has it in its selection.
	UserVerification string `json:"userVerification"`
	Selection        struct {
		ResidentKey      string `json:"residentKey"`
		UserVerification string `json:"userVerification"`
	} `json:"authenticatorSelection"`
}

// Read returns the options of a JSON text.
func Read(text []byte) (o Options, err error) { return o, json.Unmarshal(text, &o) }

func (a *Authenticator) find(listed []descriptor) (Key, bool) {
	i := slices.IndexFunc(a.Keys, func(k Key) bool {
		return slices.ContainsFunc(listed, func(d descriptor) bool { return bytes.Equal(d.ID, k.ID) })
	})
	if i < 0 {
		return Key{}, false
	}
	return a.Keys[i], true
}

// Create makes a passkey and returns the credential as browsers' toJSON() does.
func (a *Authenticator) Create(options []byte) (map[string]any, error) {
	o, err := Read(options)
	if err != nil {
		return nil, err
	}
	if _, ok := a.find(o.Exclude); ok {
		return nil, ErrExcluded
	}
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key := Key{ID: make([]byte, 32), Handle: o.User.ID, RPID: o.RP.ID, secret: secret}
	_, _ = rand.Read(key.ID)
	a.Keys = append(a.Keys, key)
	data := a.authenticatorData(key, attested)
	data = append(data, a.AAGUID[:]...)
	data = binary.BigEndian.AppendUint16(data, uint16(len(key.ID)))
	data = append(append(data, key.ID...), cose(secret)...)
	return credential(key, map[string]any{
		"clientDataJSON":    encode(a.clientData("webauthn.create", o)),
		"attestationObject": encode(attestation(data)),
		"transports":        []string{"internal"},
	}), nil
}

// Get uses a passkey: one that the options name, or the newest if they name none.
func (a *Authenticator) Get(options []byte) (map[string]any, error) {
	o, err := Read(options)
	if err != nil {
		return nil, err
	}
	key, ok := a.find(o.Allow)
	if len(o.Allow) == 0 && len(a.Keys) > 0 {
		key, ok = a.Keys[len(a.Keys)-1], true
	}
	if !ok {
		return nil, errors.New("passkeytest: no passkey that is allowed")
	}
	if a.Counter > 0 {
		a.Counter++
	}
	client, data := a.clientData("webauthn.get", o), a.authenticatorData(key, 0)
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(append(slices.Clone(data), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, key.secret, digest[:])
	return credential(key, map[string]any{
		"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature), "userHandle": encode(key.Handle),
	}), err
}

func (a *Authenticator) clientData(kind string, o Options) []byte {
	text, _ := json.Marshal(map[string]any{"type": kind, "challenge": encode(o.Challenge), "origin": a.Origin, "crossOrigin": false})
	return text
}

// authenticatorData returns the authenticator data up to the counter.
func (a *Authenticator) authenticatorData(k Key, extraFlags byte) []byte {
	id := k.RPID
	if a.RPID != "" {
		id = a.RPID
	}
	hash := sha256.Sum256([]byte(id))
	return binary.BigEndian.AppendUint32(append(hash[:], a.Flags|extraFlags), a.Counter)
}

func credential(k Key, response map[string]any) map[string]any {
	return map[string]any{
		"id": encode(k.ID), "rawId": encode(k.ID), "type": "public-key", "authenticatorAttachment": "platform",
		"clientExtensionResults": map[string]any{}, "response": response,
	}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// attestation returns the CBOR of {"fmt": "none", "attStmt": {}, "authData": data}.
func attestation(data []byte) []byte {
	out := append([]byte{0xa3, 0x63}, "fmt"...)
	out = append(append(out, 0x64), "none"...)
	out = append(append(out, 0x67), "attStmt"...)
	out = append(append(out, 0xa0, 0x68), "authData"...)
	out = binary.BigEndian.AppendUint16(append(out, 0x59), uint16(len(data)))
	return append(out, data...)
}

// cose returns the CBOR of {kty: EC2, alg: ES256, crv: P-256, x, y}.
func cose(secret *ecdsa.PrivateKey) []byte {
	point, err := secret.PublicKey.Bytes() // 4, x, y
	if err != nil {
		panic(err) // it was just made
	}
	out := append([]byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20}, point[1:33]...)
	return append(append(out, 0x22, 0x58, 0x20), point[33:]...)
}
