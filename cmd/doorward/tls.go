package main

import (
	"errors"
	"io/fs"
	"net/netip"
	"net/url"
	"strings"

	"github.com/doorward/doorward/internal/secretfile"
	"github.com/doorward/doorward/internal/tlscert"
	"github.com/doorward/doorward/node"
)

// openTLS reads no file yet, see readToServe.
func (s *settings) openTLS(cfg *node.Config) error {
	isWanted := s.raw.TLSCert != "" || s.raw.TLSKey != "" || s.raw.ACMEDir != ""
	switch {
	case !isWanted:
		return nil
	case s.raw.ACMEDir != "" && (s.raw.TLSCert != "" || s.raw.TLSKey != ""):
		return badConfig("%s and %s both name a TLS certificate. Keep one of them.", s.origins.place("acme-dir"), s.origins.place("tls-cert"))
	case cfg.BaseURL != nil && cfg.BaseURL.Scheme != "https":
		return s.refuseValue("base-url", s.raw.BaseURL, "with a TLS certificate it begins with https://.")
	case s.raw.ACMEDir != "":
		return s.openACME(cfg)
	case s.raw.TLSCert == "" || s.raw.TLSKey == "":
		return badConfig("a TLS certificate takes both --tls-cert and --tls-key.")
	}
	cfg.TLS = tlscert.NewFiles(s.raw.TLSCert, s.raw.TLSKey, cfg.Log)
	return nil
}

func (s *settings) openACME(cfg *node.Config) error {
	if cfg.BaseURL == nil || !isOrderable(cfg.BaseURL.Hostname()) {
		return s.refuse("base-url", "with --acme-dir it says the name that the certificate is for, as in https://auth.example.com.")
	}
	directory, err := url.Parse(s.raw.ACMEURL)
	if err != nil || directory.Scheme != "https" || directory.Host == "" {
		return s.refuseValue("acme-url", s.raw.ACMEURL, "write the https:// address of the authority's directory.")
	}
	cfg.TLS = tlscert.NewACME(cfg.BaseURL.Hostname(), s.raw.ACMEDir, s.raw.ACMEURL, s.raw.ACMEEmail, cfg.Log)
	return nil
}

// isOrderable reports whether an ACME authority may issue a certificate for the host: a
// name with a dot.
func isOrderable(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && strings.Contains(strings.Trim(host, "."), ".")
}

// loadTLS loads the certificate and says what is wrong with its files. The mode of the
// key is checked at the start only: a renewed certificate is used even if others can read
// its key, because serving without one would be worse.
func (s *settings) loadTLS(source tlscert.Source) error {
	err := source.Load()
	if err == nil && s.raw.TLSKey != "" {
		if err := secretfile.Check(s.raw.TLSKey); err != nil {
			return s.refuse("tls-key", "%s", describeUnreadable(s.raw.TLSKey, err))
		}
	}
	var file *fs.PathError
	switch {
	case err == nil:
		return nil
	case s.raw.ACMEDir != "":
		return s.refuseValue("acme-dir", s.raw.ACMEDir, "the folder can't be written to: %s.", plain(err))
	case errors.As(err, &file) && file.Path == s.raw.TLSKey:
		return s.refuse("tls-key", "%s", describeUnreadable(file.Path, err))
	case errors.As(err, &file):
		return s.refuse("tls-cert", "%s", describeUnreadable(file.Path, err))
	}
	return badConfig("%s, %s: these are not a PEM certificate and its key: %s.", s.origins.place("tls-cert"), s.origins.place("tls-key"), strings.TrimPrefix(plain(err), "tls: "))
}
