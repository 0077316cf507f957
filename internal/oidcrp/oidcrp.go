// Package oidcrp is the client ("relying party") of OpenID Connect Core 1.0: authorization code with
// PKCE, for providers that customers have chosen and that may lie.
//
//	client := oidcrp.New(guarded, time.Now, oidcrp.WithRefused(guard.IsRefused))
//	discovery, err := client.Discover(ctx, issuer)        // keep it, read it again daily
//	flow := oidcrp.Begin(now)                             // keep it sealed in the browser's cookie
//	redirect(oidcrp.AuthURL(discovery, config, flow, ""))
//	asserted, err := client.Finish(ctx, discovery, config, flow, query) // at the callback
//
// Each error is a *Fault, which names the check that failed, and whether the provider was out of
// reach (Unavailable) or said something that isn't good enough. Checked are, in the order of Checks:
// state, iss of the callback (RFC 9207), the provider's error, the client's authentication, algorithm
// and signature, iss, aud, azp, nonce, exp, iat, the length of its life, auth_time where a fresh
// sign-in was asked for, sub, tid at Entra, hd at Google.
//
// It guarantees:
//
//   - Nothing is called but the addresses of the discovery document, over https. Addresses in tokens,
//     and keys in headers of tokens, are ignored. Redirects are answers, and are not followed.
//   - An answer is read to BodyMax bytes. Signatures are asymmetric and of the algorithms announced.
//   - Keys are used for at most a day. A token that none of them has signed makes Doorward read them
//     again, at most once a minute for each address.
//   - Faults hold no token, no secret and no code, and are bounded.
//
// The caller guards the network by the http.Client, and bounds the time by the context.
package oidcrp

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/doorward/doorward/internal/oidcrp/cause"
	"github.com/doorward/doorward/internal/oidcrp/keyset"
)

const (
	// BodyMax is how many bytes of an answer are read. A longer one is a fault.
	BodyMax = 256 << 10
	// Skew is how far the clocks of provider and Doorward may be apart.
	Skew = 60 * time.Second
	// LifetimeMax is how long an ID token may be good, from iat to exp.
	LifetimeMax = 24 * time.Hour
	// userAgent names Doorward in the logs of providers.
	userAgent = "Doorward"
)

// Client speaks to providers. It is safe for use by several goroutines; make one for the process, since
// it has the cache of the providers' keys.
type Client struct {
	http    *http.Client
	now     func() time.Time
	refused func(error) bool
	keys    *keyset.Cache
}

// Option changes a Client.
type Option func(*Client)

// WithRefused tells the Client how to recognise that the guarded http.Client refused an address.
func WithRefused(isRefused func(error) bool) Option {
	return func(c *Client) { c.refused = isRefused }
}

// New returns a Client that makes its requests by guarded: which addresses may be dialled, through which
// proxy, and how long headers may be, is decided there. Without a Transport the one of the standard
// library is used, without the proxies of the environment. now tells the time.
func New(guarded *http.Client, now func() time.Time, options ...Option) *Client {
	transport := guarded.Transport
	if transport == nil {
		direct := http.DefaultTransport.(*http.Transport).Clone()
		direct.Proxy = nil
		transport = direct
	}
	c := &Client{now: now, refused: func(error) bool { return false }}
	c.http = &http.Client{
		Transport: bounded{transport}, Timeout: guarded.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.keys = keyset.New(c.getJSON, now)
	for _, option := range options {
		option(c)
	}
	return c
}

// getJSON reads the document at the address. Errors: a cause.StatusError, errTooLong, those of the network.
func (c *Client) getJSON(ctx context.Context, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // nothing was written
	if answer.StatusCode != http.StatusOK {
		return nil, cause.StatusError(answer.StatusCode)
	}
	return io.ReadAll(answer.Body)
}

var (
	errNotJSON = keyset.ErrNotJSON
	errTooLong = cause.TooLongError(BodyMax)
)

// bounded is a transport that names Doorward and bounds the bodies of answers.
type bounded struct{ next http.RoundTripper }

// RoundTrip makes the request. Reading more than BodyMax bytes of the answer is errTooLong.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", userAgent)
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &boundedBody{body: answer.Body, left: BodyMax}
	// Answers are JSON, whatever they are called: package oauth2 reads text/plain as a form.
	answer.Header.Set("Content-Type", "application/json")
	return answer, nil
}

// boundedBody is a body of which left more bytes may be read.
type boundedBody struct {
	body io.ReadCloser
	left int
}

// Read reads, and fails at the first byte too many.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// Close closes the body.
func (b *boundedBody) Close() error { return b.body.Close() }
