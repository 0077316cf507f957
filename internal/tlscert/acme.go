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
	// tryAgain is how long a failed order rests; Let's Encrypt allows five
	// failures an hour for a name, after which it refuses more, so that three
	// tries in that time leave some to the operator.
	tryAgain = 20 * time.Minute
	// lookAgain is how often a certificate that is there is looked at, and looks how
	// often in its life at least: authorities of one's own give some for an hour, and
	// a new one has to be found while a third of the old one's life is left.
	lookAgain, looks = time.Hour, 12
	// overdue is what is left of a certificate's life, as a part of it, when its
	// renewal has failed for long: it begins when a third is left.
	overdue = 6
)

// ACME is a certificate for one name, ordered and renewed by itself with the
// challenge tls-alpn-01 (RFC 8737): the authority connects to port 443 of the
// name, which has to lead to this very server.
type ACME struct {
	host, dir string
	log       *slog.Logger
	manager   autocert.Manager
	current   atomic.Pointer[tls.Certificate]
}

// NewACME orders for host at the authority with this directory URL. Certificate
// and account key are kept in the folder dir. The email, which may be empty, is
// where the authority may write to. Its terms are agreed to.
func NewACME(host, dir, directory, email string, log *slog.Logger) *ACME {
	a := &ACME{host: host, dir: dir, log: log}
	a.manager = autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(dir), HostPolicy: autocert.HostWhitelist(host),
		Client: &acme.Client{DirectoryURL: directory, UserAgent: "doorward"}, Email: email,
	}
	return a
}

// Load sees to it that the folder can be written to, since every restart would
// order again otherwise and soon be refused.
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

// Run orders the certificate before the first visitor needs it, and watches
// over its renewal. An order under way when ctx ends goes on for up to five
// minutes.
func (a *ACME) Run(ctx context.Context) {
	for {
		err := a.look()
		wait := a.rest(err)
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

// rest is how long nothing is done after a look that ended so.
func (a *ACME) rest(err error) time.Duration {
	rest := lookAgain
	if err != nil {
		rest = tryAgain
	}
	if cert := a.current.Load(); cert != nil {
		rest = min(rest, lifeOf(cert)/looks)
	}
	return rest
}

func lifeOf(cert *tls.Certificate) time.Duration { return cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore) }

// look asks as a browser would that knows ECDSA, for which the certificate is.
func (a *ACME) look() error {
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
	if time.Until(cert.Leaf.NotAfter) < lifeOf(cert)/overdue {
		return fmt.Errorf("tlscert: the renewal fails; the certificate ends at %s", cert.Leaf.NotAfter)
	}
	return nil
}

// Config answers the authority's challenge, too. Nobody else makes the manager
// do anything: it would order for each visitor while none succeeds.
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

// Expires is when the certificate in use ends; zero while there is none.
func (a *ACME) Expires() time.Time {
	if cert := a.current.Load(); cert != nil {
		return cert.Leaf.NotAfter
	}
	return time.Time{}
}
