package tlscert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// LetsEncrypt is the directory URL of Let's Encrypt.
const LetsEncrypt = autocert.DefaultACMEDirectory

const (
	// retryInterval is the pause after a failed order. Let's Encrypt allows five failures an
	// hour for a name; three attempts leave some to the operator.
	retryInterval = 20 * time.Minute
	// checkInterval is the interval between checks of an existing certificate, and
	// minChecks the minimum number of checks in its lifetime: private authorities issue
	// some for an hour, and renewal must start while a third of the lifetime is left.
	checkInterval, minChecks = time.Hour, 12
	// autocert renews when a third of the lifetime is left, or this if it is less.
	longestRenewal = 30 * 24 * time.Hour
)

// ACME is an automatically ordered and renewed certificate for one name, with the
// challenge tls-alpn-01 (RFC 8737): the authority connects to port 443 of the name,
// which must lead to this server.
type ACME struct {
	host, dir string
	log       *slog.Logger
	manager   autocert.Manager
	current   atomic.Pointer[tls.Certificate]
}

// NewACME returns a source that orders for host at the authority with this directory URL, once
// it runs. Certificate and account key are kept in the folder dir. The optional email is the
// contact for the authority. The authority's terms are accepted.
func NewACME(host, dir, directory, email string, log *slog.Logger) *ACME {
	a := &ACME{host: host, dir: dir, log: log}
	a.manager = autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(dir), HostPolicy: autocert.HostWhitelist(host),
		Client: &acme.Client{DirectoryURL: directory, UserAgent: "doorward"}, Email: email,
	}
	return a
}

// Load makes the folder and checks that it is writable: otherwise every restart would order
// again and soon be refused.
func (a *ACME) Load() error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	probe, err := os.CreateTemp(a.dir, ".writable-")
	if err != nil {
		return err
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}

// Run orders the certificate before the first request needs it, and monitors its
// renewal. An order that is running when ctx ends continues for up to five minutes.
func (a *ACME) Run(ctx context.Context) {
	for {
		err := a.check()
		wait := a.pause(err)
		if err != nil {
			a.log.Error("no TLS certificate from the ACME authority", "host", a.host, "error", err, "nextTryIn", wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// pause returns the pause after a check with this result.
func (a *ACME) pause(err error) time.Duration {
	pause := checkInterval
	if err != nil {
		pause = retryInterval
	}
	if cert := a.current.Load(); cert != nil {
		pause = min(pause, lifetimeOf(cert)/minChecks)
	}
	return pause
}

// overdueAt returns how long before the end of a certificate with this lifetime its failed renewal
// is reported: when half the time for the renewal has passed.
func overdueAt(lifetime time.Duration) time.Duration { return min(lifetime/3, longestRenewal) / 2 }

func lifetimeOf(cert *tls.Certificate) time.Duration {
	return cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore)
}

// check asks for the certificate, like a browser that supports its key type, ECDSA, and thus
// orders or renews it if necessary.
func (a *ACME) check() error {
	cert, err := a.manager.GetCertificate(&tls.ClientHelloInfo{
		ServerName: a.host, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		SupportedCurves: []tls.CurveID{tls.CurveP256}, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
	})
	if err != nil {
		return err
	}
	if before := a.current.Swap(cert); before == nil || !before.Leaf.Equal(cert.Leaf) {
		a.log.Info("the TLS certificate from the ACME authority is in use", "host", a.host, "expires", cert.Leaf.NotAfter)
	}
	if time.Until(cert.Leaf.NotAfter) < overdueAt(lifetimeOf(cert)) {
		return fmt.Errorf("tlscert: the renewal fails; the certificate ends at %s", cert.Leaf.NotAfter)
	}
	return nil
}

// Config also answers the authority's challenge. Other handshakes never make the
// manager order: while orders fail, it would order for each connection.
func (a *ACME) Config() *tls.Config {
	return config(func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
			return a.manager.GetCertificate(hello)
		}
		if cert := a.current.Load(); cert != nil {
			return cert, nil
		}
		return nil, errors.New("tlscert: no certificate from the ACME authority yet")
	}, acme.ALPNProto)
}

// Expires is the expiry time of the certificate in use; zero without one.
func (a *ACME) Expires() time.Time {
	if cert := a.current.Load(); cert != nil {
		return cert.Leaf.NotAfter
	}
	return time.Time{}
}
