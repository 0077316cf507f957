// Package cause says why a request to a provider got no usable answer, in words that may be shown to
// administrators: errors of the network name name servers and addresses of the operator.
//
//	why, seen := cause.Of(err) // cause.Status, "HTTP 404 Not Found"
package cause

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
)

// Cause is why there is no usable answer.
type Cause string

// The causes.
const (
	Status    Cause = "status"      // another status than 200
	Redirect  Cause = "redirect"    // an answer that leads elsewhere
	NotJSON   Cause = "not_json"    // for callers that parse: something else is there
	TooLong   Cause = "too_long"    // more than is read
	OtherName Cause = "other_name"  // the certificate is for another host
	Untrusted Cause = "certificate" // the certificate is of an authority that isn't trusted, or has expired
	NoTLS     Cause = "no_tls"      // whatever answers speaks something else
	NoHost    Cause = "no_host"     // name servers don't know the name
	NoNames   Cause = "no_names"    // name servers don't answer
	TimedOut  Cause = "timeout"     // no answer in time
	Refused   Cause = "refused"     // nothing listens there
	Silent    Cause = "silent"      // the connection ended, or anything else
)

// All are the causes.
var All = []Cause{Status, Redirect, NotJSON, TooLong, OtherName, Untrusted, NoTLS, NoHost, NoNames, TimedOut, Refused, Silent}

// StatusError is an answer with another status than 200.
type StatusError int

// Error names the status.
func (e StatusError) Error() string {
	return fmt.Sprintf("the provider answered %s", e.status())
}

func (e StatusError) status() string {
	return fmt.Sprintf("HTTP %d %s", int(e), http.StatusText(int(e)))
}

// TooLongError is an answer that is longer than so many bytes.
type TooLongError int

// Error names the limit.
func (e TooLongError) Error() string {
	return fmt.Sprintf("the provider answered more than %d KiB", int(e)>>10)
}

// words are what was seen, for causes that have nothing of the request in theirs.
var words = map[Cause]string{
	OtherName: "a certificate for another name",
	Untrusted: "a certificate that isn't trusted here",
	NoTLS:     "no TLS",
	NoHost:    "no such host",
	NoNames:   "no answer from the name servers",
	TimedOut:  "no answer in time",
	Refused:   "connection refused",
	Silent:    "no answer",
}

// Of returns the cause of a request's error, and what was seen.
func Of(err error) (why Cause, seen string) {
	if status, is := errors.AsType[StatusError](err); is {
		if status >= 300 && status < 400 {
			return Redirect, status.status()
		}
		return Status, status.status()
	}
	if long, is := errors.AsType[TooLongError](err); is {
		return TooLong, long.Error()
	}
	why = ofNetwork(err)
	return why, words[why]
}

func ofNetwork(err error) Cause {
	var (
		dns      *net.DNSError
		timeout  interface{ Timeout() bool }
		verified *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		alert    tls.AlertError
		name     x509.HostnameError
	)
	switch {
	case errors.As(err, &name):
		return OtherName
	case errors.As(err, &verified):
		return Untrusted
	case errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return NoTLS
	case errors.As(err, &dns) && dns.IsNotFound:
		return NoHost
	case errors.As(err, &dns):
		return NoNames
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	}
	return Silent
}
