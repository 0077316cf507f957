package domain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/doorward/doorward"
)

// lookupWithin bounds one look at a record, so that "verify" answers within 12 s. Resolvers wait 5 s for a name
// server before they ask again.
const lookupWithin = 8 * time.Second

// retryAfter is when a request may be repeated that a name server didn't answer.
const retryAfter = 30 * time.Second

// newResolver returns a resolver that asks the server, HOST:PORT; empty: those of /etc/resolv.conf.
func newResolver(server string) *net.Resolver {
	r := &net.Resolver{PreferGo: true}
	if server != "" {
		r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server)
		}
	}
	return r
}

// look returns the texts of the TXT records at the domain's record, the strings of each joined; none if there is
// no such record. The name is absolute, so that no search list changes it, and resolvers follow aliases. Errors:
// provider_unavailable if the name servers don't say, such as by SERVFAIL or silence.
func (d *Domains) look(ctx context.Context, of doorward.Domain) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	name, _ := of.Record()
	texts, err := d.resolver.LookupTXT(ctx, name+".")
	var fault *net.DNSError
	switch {
	case err == nil:
		return texts, nil
	case errors.As(err, &fault) && fault.IsNotFound:
		return nil, nil
	}
	return nil, &doorward.Error{
		Code: doorward.CodeProviderUnavailable, RetryAfter: retryAfter,
		Detail: "The name servers of " + of.Name + " do not answer, or not sensibly. Nothing has changed. Try again later.",
		Err:    fmt.Errorf("domain: %w", err),
	}
}

// What domain_not_proved shows of the records that were seen.
const (
	maxSeen     = 10
	maxSeenText = 200 // bytes of one
)

// shown returns those of the texts that are meant for Doorward. Others are not shown: an alias could lead to
// names that only this server can resolve.
func shown(texts []string, token string) []string {
	seen := []string{}
	for _, text := range texts {
		isMeant := strings.Contains(strings.ToLower(text), "doorward") || strings.Contains(strings.ToLower(text), token)
		if isMeant && len(seen) < maxSeen {
			seen = append(seen, strings.ToValidUTF8(text[:min(len(text), maxSeenText)], "\uFFFD"))
		}
	}
	return seen
}
