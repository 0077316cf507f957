// Package tlscert updates the TLS certificate of a running server, from one of two
// sources: files that another program renews ([Files]), or an ACME authority such
// as Let's Encrypt ([ACME]).
//
//	source := tlscert.NewFiles("tls.crt", "tls.key", log)
//	if err := source.Load(); err != nil { … }
//	go source.Run(ctx)
//	server.TLSConfig = source.Config()
//
// A new certificate is used for new handshakes. Open connections stay.
package tlscert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Source is where the certificate comes from.
type Source interface {
	// Load prepares the source, or returns what is wrong with its settings. It makes no
	// network connection.
	Load() error
	// Run renews until ctx ends; faults are logged.
	Run(ctx context.Context)
	// Config returns the configuration for handshakes, after Load.
	Config() *tls.Config
	// Expires is the expiry time of the certificate in use; zero without one.
	Expires() time.Time
}

// config sets the minimum version of RFC 9325, section 3.1.1; the rest is Go's
// defaults, which change with Go.
func config(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get, NextProtos: append([]string{"h2", "http/1.1"}, protocols...)}
}

// pollInterval is the polling interval for the files. They are read, not watched: that
// finds files that were renamed into place, or whose symbolic link's target changes, on
// any file system.
const pollInterval = 5 * time.Second

// Files is a certificate with its chain and its key, both PEM.
type Files struct {
	cert, key string
	log       *slog.Logger
	current   atomic.Pointer[tls.Certificate]

	reloadMu sync.Mutex
	seen     pair // the last pair that was examined
}

// pair is the content of the two files.
type pair struct{ cert, key string }

// NewFiles returns a source for the two files. It doesn't read them yet.
func NewFiles(cert, key string, log *slog.Logger) *Files {
	return &Files{cert: cert, key: key, log: log}
}

// Load reads the files. A certificate that is not valid today is accepted with a
// warning: a browser's warning is better than no server.
func (f *Files) Load() error {
	seen, err := f.read()
	if err != nil {
		return err
	}
	cert, err := parse(seen)
	if err != nil {
		return err
	}
	if err := checkValidity(cert.Leaf); err != nil {
		f.log.Warn("browsers will refuse the TLS certificate", "file", f.cert, "error", err)
	}
	f.seen = seen
	f.current.Store(cert)
	return nil
}

// Run calls Reload every pollInterval until ctx ends.
func (f *Files) Run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.Reload()
		}
	}
}

// Reload loads a new pair if there is one. A pair that is broken, or not valid today, is
// logged once, and the old one stays in use. That is also the case while only one of
// the files has been replaced.
func (f *Files) Reload() {
	f.reloadMu.Lock()
	defer f.reloadMu.Unlock()
	seen, err := f.read()
	if err == nil && seen == f.seen {
		return
	}
	var cert *tls.Certificate
	if err == nil {
		cert, err = parse(seen)
	}
	if err == nil {
		err = checkValidity(cert.Leaf)
	}
	if err == nil {
		f.current.Store(cert)
		f.log.Info("the TLS certificate is replaced", "file", f.cert, "expires", cert.Leaf.NotAfter)
	} else if seen != f.seen {
		f.log.Error("the new TLS certificate can't be used, the old one stays", "file", f.cert, "error", err, "expires", f.Expires())
	}
	f.seen = seen
}

// read returns an empty pair on error.
func (f *Files) read() (pair, error) {
	cert, err := os.ReadFile(f.cert)
	if err != nil {
		return pair{}, err
	}
	key, err := os.ReadFile(f.key)
	if err != nil {
		return pair{}, err
	}
	return pair{string(cert), string(key)}, nil
}

// parse checks that key and certificate belong together.
func parse(p pair) (*tls.Certificate, error) {
	cert, err := tls.X509KeyPair([]byte(p.cert), []byte(p.key))
	if err != nil {
		return nil, err
	}
	return &cert, nil
}

func checkValidity(leaf *x509.Certificate) error {
	now := time.Now()
	switch {
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("it is valid from %s only", leaf.NotBefore)
	case now.After(leaf.NotAfter):
		return fmt.Errorf("it ended at %s", leaf.NotAfter)
	}
	return nil
}

// Config returns the configuration for handshakes, after Load.
func (f *Files) Config() *tls.Config {
	return config(func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if cert := f.current.Load(); cert != nil {
			return cert, nil
		}
		return nil, errors.New("tlscert: not loaded")
	})
}

// Expires is the expiry time of the certificate in use; zero before Load.
func (f *Files) Expires() time.Time {
	if cert := f.current.Load(); cert != nil {
		return cert.Leaf.NotAfter
	}
	return time.Time{}
}
