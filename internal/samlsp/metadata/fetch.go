package metadata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/internal/samlsp/gate"
)

// Client reads metadata at the addresses of providers. It is safe for use by several goroutines.
type Client struct {
	http    *http.Client
	now     func() time.Time
	refused func(error) bool
	cause   func(error) (cause, seen string)
}

// Option changes a Client.
type Option func(*Client)

// WithRefused tells the Client how to recognise that the guarded http.Client refused an address.
func WithRefused(isRefused func(error) bool) Option {
	return func(c *Client) { c.refused = isRefused }
}

// WithCause tells the Client how to describe an error of the network: its cause, for Fault.Cause, and what may be
// shown of it. Without it, they are "silent" and "no answer".
func WithCause(of func(error) (cause, seen string)) Option {
	return func(c *Client) { c.cause = of }
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
	c.cause = func(error) (string, string) { return "silent", "no answer" }
	c.http = &http.Client{
		Transport: transport, Timeout: guarded.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, option := range options {
		option(c)
	}
	return c
}

// Fetch reads the metadata at the address, of the provider with the entityID; empty: the only one there. The context
// bounds the time. Errors: a *fault.Fault as of Parse, or address_refused or unreachable, which are Unavailable.
func (c *Client) Fetch(ctx context.Context, address, entityID string) (Provider, error) {
	if !isPlainURL(address) {
		return Provider{}, &fault.Fault{
			Check: fault.CheckOfMetadata, Code: fault.CodeInvalid, Seen: fault.Clip(address), Wanted: "an address with https, without user and fragment",
		}
	}
	said, err := c.get(ctx, address)
	if err != nil {
		return Provider{}, c.unreachable(err)
	}
	return Parse(said, entityID, c.now())
}

// statusError is an answer with another status than 200.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the provider answered HTTP %d %s", int(e), http.StatusText(int(e)))
}

// get reads one byte more than metadata may have, so that Parse can say that they are too large.
func (c *Client) get(ctx context.Context, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/samlmetadata+xml, application/xml, text/xml")
	r.Header.Set("User-Agent", "Doorward")
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // nothing was written
	if answer.StatusCode != http.StatusOK {
		return nil, statusError(answer.StatusCode)
	}
	return io.ReadAll(io.LimitReader(answer.Body, gate.SizeMax+1))
}

// unreachable returns the fault of a request that got no answer to read.
func (c *Client) unreachable(err error) *fault.Fault {
	f := &fault.Fault{Check: fault.CheckOfMetadata, Code: fault.CodeUnreachable, Unavailable: true, Advice: fault.AdviceRetry, Err: withoutAddress(err)}
	if c.refused(err) {
		f.Code, f.Advice, f.Seen = fault.CodeAddressRefused, fault.AdviceNetwork, "an address that this installation doesn't call"
		return f
	}
	if status, isStatus := errors.AsType[statusError](err); isStatus {
		f.Cause, f.Seen = "status", fmt.Sprintf("HTTP %d %s", int(status), http.StatusText(int(status)))
		if status >= 300 && status < 400 {
			f.Cause, f.Advice = "redirect", fault.AdviceRedirect
		}
		return f
	}
	if f.Cause, f.Seen = c.cause(err); f.Cause == "certificate" || f.Cause == "other_name" || f.Cause == "no_tls" {
		f.Advice = fault.AdviceTLS
	}
	return f
}

// withoutAddress returns the cause alone, since an address may be the provider's secret.
func withoutAddress(err error) error {
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", strings.ToLower(urlErr.Op), urlErr.Err)
	}
	return err
}
