package webhook

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestLongCertificate: the endpoint chooses the names in its certificate, which the error of
// a bad certificate repeats. They must not fill the database, or the memory of the nodes that
// read the queue.
func TestLongCertificate(t *testing.T) {
	got := describe(&tls.CertificateVerificationError{Err: errors.New(strings.Repeat("é\x00", 10_000))})
	if !strings.HasPrefix(got, NotTrusted) || len(got) > 1024 || strings.Contains(got, "\x00") || !utf8.ValidString(got) {
		t.Errorf("a fault of %d bytes is stored: %.100q", len(got), got)
	}
}
