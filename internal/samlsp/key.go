package samlsp

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"time"
)

// Key signs requests or decrypts assertions. Its ID is the fingerprint of its certificate: SHA-256, in hexadecimal
// digits. Make one for each purpose: a key that does both lets a signature be made by decrypting.
type Key struct {
	ID          string
	private     *rsa.PrivateKey
	certificate []byte
}

const (
	// keyBits: RSA, since SAML's products know little else; of this length since the certificate is good beyond 2030
	// (NIST SP 800-57 part 1, table 4).
	keyBits = 3072
	// certificateLife is long, since somebody has to copy a new certificate by hand, and no product looks at its end
	// for trust.
	certificateLife = 10 * 365 * 24 * time.Hour
	// pemCertificate and pemKey are the types of the blocks that Marshal writes.
	pemCertificate, pemKey = "CERTIFICATE", "PRIVATE KEY"
)

// NewKey makes a key with a certificate of its own for the name, from a day ago on. It takes up to some seconds of
// CPU. Errors: those of the random source.
func NewKey(name string, now time.Time) (*Key, error) {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(certificateLife),
		SignatureAlgorithm: x509.SHA256WithRSA,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, err
	}
	return keyOf(private, der), nil
}

// ParseKey reads what Marshal returned. Errors: something else.
func ParseKey(marshalled []byte) (*Key, error) {
	certificate, rest := pem.Decode(marshalled)
	private, _ := pem.Decode(rest)
	if certificate == nil || private == nil || certificate.Type != pemCertificate || private.Type != pemKey {
		return nil, errors.New("samlsp: no certificate with its private key")
	}
	read, err := x509.ParseCertificate(certificate.Bytes)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(private.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(read.PublicKey) {
		return nil, errors.New("samlsp: the private key isn't the certificate's")
	}
	return keyOf(key, read.Raw), nil
}

func keyOf(private *rsa.PrivateKey, der []byte) *Key {
	sum := sha256.Sum256(der)
	return &Key{hex.EncodeToString(sum[:]), private, der}
}

// Marshal returns the certificate and the private key as PEM, to be sealed.
func (k *Key) Marshal() ([]byte, error) {
	private, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: k.certificate})
	return append(certificate, pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: private})...), nil
}

// Certificate returns the certificate, DER, in base64: as metadata have it, and consoles of providers take it.
func (k *Key) Certificate() string { return base64.StdEncoding.EncodeToString(k.certificate) }

// String names the key by its id, so that a log shows no more.
func (k *Key) String() string { return "SAML key " + k.ID }

// GoString is String, for %#v.
func (k *Key) GoString() string { return k.String() }
