package cause_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/doorward/doorward/internal/oidcrp/cause"
)

// TestOf: each cause is told apart, inside the errors of a request, and shows no name or address of the network.
func TestOf(t *testing.T) {
	const address = "10.1.2.3"
	for _, one := range []struct {
		err  error
		want cause.Cause
		seen string
	}{
		{cause.StatusError(404), cause.Status, "HTTP 404 Not Found"},
		{cause.StatusError(503), cause.Status, "HTTP 503 Service Unavailable"},
		{cause.StatusError(302), cause.Redirect, "HTTP 302 Found"},
		{cause.TooLongError(256 << 10), cause.TooLong, "the provider answered more than 256 KiB"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: address}}, cause.OtherName, "a certificate for another name"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, cause.Untrusted, "a certificate that isn't trusted here"},
		{tls.RecordHeaderError{Msg: address}, cause.NoTLS, "no TLS"},
		{tls.AlertError(40), cause.NoTLS, "no TLS"},
		{&net.DNSError{Server: address, IsNotFound: true}, cause.NoHost, "no such host"},
		{&net.DNSError{Server: address, IsTimeout: true}, cause.NoNames, "no answer from the name servers"},
		{context.DeadlineExceeded, cause.TimedOut, "no answer in time"},
		{syscall.ECONNREFUSED, cause.Refused, "connection refused"},
		{syscall.ECONNRESET, cause.Silent, "no answer"},
		{errors.New(address), cause.Silent, "no answer"},
	} {
		wrapped := fmt.Errorf("asking: %w", &url.Error{Op: "Get", URL: "https://" + address, Err: one.err})
		got, seen := cause.Of(wrapped)
		if got != one.want || seen != one.seen || strings.Contains(seen, address) {
			t.Errorf("%v: %s, seen %q; want %s, %q", one.err, got, seen, one.want, one.seen)
		}
	}
}

// TestOfPlainHTTP: a real server that speaks HTTP without TLS is told apart: net/http says so in an error of its own.
func TestOfPlainHTTP(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+plain.Listener.Addr().String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := plain.Client().Do(request)
	if err == nil {
		err = answer.Body.Close()
		t.Fatalf("a server without TLS has answered %s, %v", answer.Status, err)
	}
	if got, seen := cause.Of(err); got != cause.NoTLS || seen != "no TLS" {
		t.Errorf("%v: %s, seen %q", err, got, seen)
	}
}
