// Package jwt signs JSON Web Tokens (RFC 7519) with ES256 and publishes the keys that
// verify them.
//
//	key := jwt.NewKey()
//	token, err := key.Sign("doorward+jwt", claims)
//	public := key.Public() // a member of a JSON Web Key Set
//
// It signs in one way: ECDSA with P-256 and SHA-256 (RFC 7518, section 3.4), compact
// serialization. It doesn't read tokens: Doorward accepts none as a credential.
package jwt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// half is the length of a coordinate, and of either half of a signature, in bytes.
const half = 32

// Key signs. Its id is the thumbprint of the public key (RFC 7638).
type Key struct {
	private *ecdsa.PrivateKey
	public  Public
}

// NewKey makes a key from the operating system's random source. It doesn't fail.
func NewKey() Key {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the random source doesn't fail
	}
	return Key{private, publicOf(&private.PublicKey)}
}

// ParseKey reads what Marshal returns. Errors: not PKCS #8, or another kind of key.
func ParseKey(der []byte) (Key, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return Key{}, err
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return Key{}, errNotES256
	}
	return Key{private, publicOf(&private.PublicKey)}, nil
}

var errNotES256 = errors.New("jwt: the key is not one for ES256")

// Marshal returns the private key as PKCS #8 (RFC 5958), DER. It is a secret.
func (k Key) Marshal() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		panic(err) // every Key can be encoded
	}
	return der
}

// Public returns the key that verifies.
func (k Key) Public() Public { return k.public }

// MarshalPublic returns the public key as SubjectPublicKeyInfo (RFC 5280), DER.
func (k Key) MarshalPublic() []byte {
	der, err := x509.MarshalPKIXPublicKey(&k.private.PublicKey)
	if err != nil {
		panic(err) // every Key can be encoded
	}
	return der
}

// String names the key by its id, so that a log shows no more.
func (k Key) String() string { return "signing key " + k.public.ID }

// Sign returns a token with the claims, a value that can be encoded as JSON. Its header has
// typ and the id of the key. Errors: those of encoding the claims.
func (k Key) Sign(typ string, claims any) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "ES256", "typ": typ, "kid": k.public.ID})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := encode(header) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, sum[:])
	if err != nil {
		return "", err
	}
	var signature [2 * half]byte
	r.FillBytes(signature[:half])
	s.FillBytes(signature[half:])
	return text + "." + encode(signature[:]), nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Public is a key that verifies, as a JSON Web Key (RFC 7517).
type Public struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`
	ID    string `json:"kid"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
}

func publicOf(key *ecdsa.PublicKey) Public {
	point, err := key.Bytes() // 4, x, y
	if err != nil {
		panic(err) // the point is on the curve
	}
	p := Public{Type: "EC", Curve: "P-256", X: encode(point[1 : 1+half]), Y: encode(point[1+half:]), Use: "sig", Alg: "ES256"}
	// The members that RFC 7638 names, in the order of their names.
	thumb := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + p.X + `","y":"` + p.Y + `"}`))
	p.ID = encode(thumb[:])
	return p
}
