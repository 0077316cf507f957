package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// key signs.
type key struct {
	id      string
	private crypto.Signer
}

// kindOf returns the kind of the key of an algorithm.
func kindOf(alg string) string {
	switch alg {
	case "RS256", "PS256":
		return "RSA"
	case "EdDSA":
		return "OKP"
	}
	return "EC"
}

// keyOf returns the key of the algorithm, and makes it at its first use.
func (p *Provider) keyOf(alg string) *key {
	p.mu.Lock()
	defer p.mu.Unlock()
	kind := kindOf(alg)
	if p.keys[kind] == nil {
		p.made++
		p.keys[kind] = &key{fmt.Sprintf("key-%d", p.made), newKey(kind)}
	}
	return p.keys[kind]
}

func newKey(kind string) crypto.Signer {
	var (
		private crypto.Signer
		err     error
	)
	switch kind {
	case "RSA":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "OKP":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		panic(err) // the random source doesn't fail
	}
	return private
}

// keySet returns the key that signs ID tokens by now, and all others made since the last rotation.
func (p *Provider) keySet(s Settings) map[string]any {
	p.keyOf(s.Algorithm)
	p.mu.Lock()
	var keys []any
	for _, k := range p.keys {
		keys = append(keys, public(k))
	}
	p.mu.Unlock()
	set := map[string]any{"keys": keys}
	if s.Lies.Keys != nil {
		s.Lies.Keys(set)
	}
	return set
}

// public returns the public key as a JSON Web Key.
func public(k *key) map[string]any {
	text, err := jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Use: "sig"}.MarshalJSON()
	if err != nil {
		panic(err) // each of our keys can be encoded
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		panic(err) // it was just encoded
	}
	return members
}

// Sign returns a token with the payload, signed by the provider's key of the algorithm. Lies.Header and
// Lies.Signature are heeded: by a header with the alg none it isn't signed, and by HS256 its secret is the
// provider's public key.
func (p *Provider) Sign(algorithm string, payload []byte) string {
	return p.sign(algorithm, map[string]any{"typ": "JWT"}, payload)
}

func (p *Provider) sign(algorithm string, header map[string]any, payload []byte) string {
	s, k := p.current(), p.keyOf(algorithm)
	header["alg"], header["kid"] = algorithm, k.id
	if s.Lies.Header != nil {
		s.Lies.Header(header)
	}
	head, err := json.Marshal(header)
	if err != nil {
		panic(err) // a lie that isn't JSON is a fault of the test
	}
	text := encode(head) + "." + encode(payload)
	claimed, _ := header["alg"].(string)
	signature := k.sign(claimed, text)
	if s.Lies.Signature != nil {
		signature = s.Lies.Signature(signature)
	}
	return text + "." + encode(signature)
}

// sign signs by the algorithm, or by that of the key where it can't.
func (k *key) sign(alg, text string) []byte {
	sum := sha256.Sum256([]byte(text))
	switch alg {
	case "none":
		return nil
	case "HS256":
		mac := hmac.New(sha256.New, publicPEM(k))
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	switch private := k.private.(type) {
	case *rsa.PrivateKey:
		return signRSA(private, alg, sum[:])
	case ed25519.PrivateKey:
		return ed25519.Sign(private, []byte(text))
	case *ecdsa.PrivateKey:
		return signEC(private, sum[:])
	}
	panic("oidctest: another kind of key")
}

func signRSA(private *rsa.PrivateKey, alg string, sum []byte) []byte {
	var options crypto.SignerOpts = crypto.SHA256
	if alg == "PS256" {
		options = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	}
	signature, err := private.Sign(rand.Reader, sum, options)
	if err != nil {
		panic(err) // the key fits
	}
	return signature
}

func signEC(private *ecdsa.PrivateKey, sum []byte) []byte {
	r, s, err := ecdsa.Sign(rand.Reader, private, sum)
	if err != nil {
		panic(err) // the key fits
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signature
}

// publicPEM is the public key in the form that some verifiers took for a secret.
func publicPEM(k *key) []byte {
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		panic(err) // each of our keys can be encoded
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func random() string { return rand.Text() + rand.Text() }
