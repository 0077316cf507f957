package oidctest

import (
	"crypto/x509"
	"net/http/httptest"
	"net/netip"
	"sync"
)

// Authorities returns what signs the certificates of all providers of this package.
func Authorities() *x509.CertPool { return authorities() }

// All servers of httptest have the same certificate.
var authorities = sync.OnceValue(func() *x509.CertPool {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
})

// Addresses returns where the providers of this package are: loopback addresses, which a guarded client
// refuses otherwise.
func Addresses() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}
