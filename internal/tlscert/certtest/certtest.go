// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates; clients trust Pool.
type Authority struct {
	Pool *x509.CertPool

	tb         testing.TB
	cert       *x509.Certificate
	key        *ecdsa.PrivateKey
	lastSerial int64
}

// NewAuthority returns an authority for the test, valid for a day.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, Pool: x509.NewCertPool(), key: newKey(tb)}
	template := a.template("Test authority", time.Now().Add(24*time.Hour))
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert = a.sign(template, template, a.key)
	a.Pool.AddCert(a.cert)
	return a
}

// Pair is a certificate and its key, both PEM.
type Pair struct {
	Cert, Key []byte
	Serial    int64
}

// Pair makes a certificate for localhost that expires at end.
func (a *Authority) Pair(end time.Time) Pair {
	a.tb.Helper()
	key := newKey(a.tb)
	cert := a.sign(a.template("localhost", end), a.cert, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatal(err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), Serial: cert.SerialNumber.Int64(),
	}
}

func (a *Authority) template(name string, end time.Time) *x509.Certificate {
	a.lastSerial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.lastSerial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: end,
	}
}

// sign certifies the public half of key.
func (a *Authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.tb.Fatal(err)
	}
	return cert
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// WriteFiles writes the pair to folder as tls.crt and tls.key, each renamed into
// place as certbot does it, and returns their paths.
func (p Pair) WriteFiles(tb testing.TB, folder string) (cert, key string) {
	tb.Helper()
	cert, key = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	Replace(tb, cert, p.Cert)
	Replace(tb, key, p.Key)
	return cert, key
}

// WriteChain writes a certificate for localhost, followed by the authority's, to one file,
// and its key to another. A client that trusts the first file trusts the certificate.
func (a *Authority) WriteChain(tb testing.TB, folder string) (cert, key string) {
	tb.Helper()
	p := a.Pair(time.Now().Add(24 * time.Hour))
	p.Cert = append(p.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...)
	return p.WriteFiles(tb, folder)
}

// Replace atomically replaces the file at path with text.
func Replace(tb testing.TB, path string, text []byte) {
	tb.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		tb.Fatal(err)
	}
}
