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
	// Load makes the source ready to serve, or says what is wrong with its
	// settings. It asks nobody outside.
	Load() error
	// Run renews until ctx ends; faults are logged.
	Run(ctx context.Context)
	// Config is for handshakes after Load.
	Config() *tls.Config
	// Expires is when the certificate in use ends; zero without one.
	Expires() time.Time
}

// config has the least version that RFC 9325, section 3.1.1, allows; the rest
// is Go's choice, which moves with Go.
func config(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: get, NextProtos: append([]string{"h2", "http/1.1"}, protocols...)}
}

// lookEvery is how often files are looked at. They are read, not watched: that
// finds files that were renamed into place or that stand behind a symbolic link
// whose target changes, on any file system.
const lookEvery = 5 * time.Second

// Files is a certificate with its chain and its key, both PEM.
type Files struct {
	cert, key string
	log       *slog.Logger
	current   atomic.Pointer[tls.Certificate]

	looking sync.Mutex
	seen    pair // what was judged last
}

// pair is what the two files hold.
type pair struct{ cert, key string }

// NewFiles reads nothing yet.
func NewFiles(cert, key string, log *slog.Logger) *Files {
	return &Files{cert: cert, key: key, log: log}
}

// Load reads the files. A certificate that is not valid today is taken with a
// warning: whoever starts a server is better served by a browser's complaint
// than by no server.
func (f *Files) Load() error {
	seen, err := f.read()
	if err != nil {
		return err
	}
	cert, err := parse(seen)
	if err != nil {
		return err
	}
	if err := validNow(cert.Leaf); err != nil {
		f.log.Warn("browsers will refuse the TLS certificate", "file", f.cert, "error", err)
	}
	f.seen = seen
	f.current.Store(cert)
	return nil
}

// Run takes over new files within seconds.
func (f *Files) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.Look()
		}
	}
}

// Look takes a new pair over if there is one. One that is broken, or not valid
// today, is logged once, and the old one stays in use: so it does while only
// one of the files has been replaced.
func (f *Files) Look() {
	f.looking.Lock()
	defer f.looking.Unlock()
	seen, err := f.read()
	if err == nil && seen == f.seen {
		return
	}
	var cert *tls.Certificate
	if err == nil {
		cert, err = parse(seen)
	}
	if err == nil {
		err = validNow(cert.Leaf)
	}
	if err == nil {
		f.current.Store(cert)
		f.log.Info("the TLS certificate is replaced", "file", f.cert, "expires", cert.Leaf.NotAfter)
	} else if seen != f.seen {
		f.log.Error("the new TLS certificate can't be used, the old one stays", "file", f.cert, "error", err, "expires", f.Expires())
	}
	f.seen = seen
}

// read returns an empty pair with an error.
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

// parse sees to it that key and certificate belong together.
func parse(p pair) (*tls.Certificate, error) {
	cert, err := tls.X509KeyPair([]byte(p.cert), []byte(p.key))
	if err != nil {
		return nil, err
	}
	return &cert, nil
}

func validNow(leaf *x509.Certificate) error {
	now := time.Now()
	switch {
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("it is valid from %s only", leaf.NotBefore)
	case now.After(leaf.NotAfter):
		return fmt.Errorf("it ended at %s", leaf.NotAfter)
	}
	return nil
}

// Config is for handshakes after Load.
func (f *Files) Config() *tls.Config {
	return config(func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if cert := f.current.Load(); cert != nil {
			return cert, nil
		}
		return nil, errors.New("tlscert: not loaded")
	})
}

// Expires is when the certificate in use ends; zero before Load.
func (f *Files) Expires() time.Time {
	if cert := f.current.Load(); cert != nil {
		return cert.Leaf.NotAfter
	}
	return time.Time{}
}
