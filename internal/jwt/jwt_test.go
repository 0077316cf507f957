package jwt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
)

func decode(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// isSigned reports whether the token is signed with the key, which it reads from the JWK.
func isSigned(t *testing.T, token string, p Public) bool {
	t.Helper()
	text, signature := cutLast(token)
	raw, sum := decode(t, signature), sha256.Sum256([]byte(text))
	point := slices.Concat([]byte{4}, decode(t, p.X), decode(t, p.Y)) // uncompressed (SEC 1, section 2.3.3)
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	return len(raw) == 2*half && ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(raw[:half]), new(big.Int).SetBytes(raw[half:]))
}

// cutLast cuts around the last dot.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '.')
	return s[:i], s[i+1:]
}

func TestSign(t *testing.T) {
	key, other := NewKey(), NewKey()
	for range 300 { // most likely one has a half that begins with a zero byte
		token, err := key.Sign("doorward+jwt", map[string]string{"sub": "usr_1"})
		if err != nil {
			t.Fatal(err)
		}
		if !isSigned(t, token, key.Public()) || isSigned(t, token, other.Public()) {
			t.Fatalf("the signature of %s is wrong", token)
		}
	}
	token, _ := key.Sign("doorward+jwt", map[string]string{"sub": "usr_1"})
	parts := strings.Split(token, ".")
	var header map[string]string
	if err := json.Unmarshal(decode(t, parts[0]), &header); err != nil || header["alg"] != "ES256" || header["typ"] != "doorward+jwt" || header["kid"] != key.Public().ID || len(header) != 3 {
		t.Errorf("the header is %v, %v", header, err)
	}
	if got := string(decode(t, parts[1])); got != `{"sub":"usr_1"}` {
		t.Errorf("the claims are %s", got)
	}
}

func TestMarshal(t *testing.T) {
	key := NewKey()
	again, err := ParseKey(key.Marshal())
	if err != nil || again.Public() != key.Public() {
		t.Errorf("the key is read as %v, %v", again, err)
	}
	token, _ := again.Sign("x", struct{}{})
	if !isSigned(t, token, key.Public()) {
		t.Error("the parsed key makes another signature")
	}
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	der, _ := x509.MarshalPKCS8PrivateKey(rsaKey)
	for _, bad := range [][]byte{nil, []byte("x"), der} {
		if _, err := ParseKey(bad); err == nil {
			t.Error("a key of another kind is read")
		}
	}
}

// TestPublicMembers: a public key has the members of RFC 7517 and no private one.
func TestPublicMembers(t *testing.T) {
	key := NewKey().Public()
	text, err := json.Marshal(key)
	var members map[string]string
	if err != nil || json.Unmarshal(text, &members) != nil || len(members) != 7 || members["kid"] != key.ID || members["d"] != "" {
		t.Errorf("the key is published as %s, %v", text, err)
	}
}

func BenchmarkSign(b *testing.B) {
	key := NewKey()
	for b.Loop() {
		if _, err := key.Sign("doorward+jwt", map[string]string{"sub": "usr_1"}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestMarshalPublic(t *testing.T) {
	key := NewKey()
	parsed, err := x509.ParsePKIXPublicKey(key.MarshalPublic())
	if err != nil {
		t.Fatal(err)
	}
	if got := publicOf(parsed.(*ecdsa.PublicKey)); got != key.Public() {
		t.Errorf("the public key is read as %+v", got)
	}
}
