// Package guard makes HTTP requests to addresses that customers have typed, without
// reaching anything internal by them.
//
//	client := guard.New(guard.Options{Allow: prefixes})
//	if err := client.Check(ctx, url); err != nil { … }  // before it is stored
//	answer, err := client.Do(request)                    // at every attempt
//
// It guarantees:
//
//   - The address that is really dialled is checked, after names are resolved, so neither
//     an odd spelling of an address nor a name whose answer changes gets around it. Only
//     public addresses pass, and those of Options.Allow. See address.go.
//   - Only https is spoken, unless Options.Local allows http on loopback names and addresses.
//   - Redirects are answers, and are not followed.
//   - Proxies of the environment are ignored. With Options.Proxy requests go through that
//     proxy, which then has to check names; addresses and loopback names are checked here.
//   - An answer is read to AnswerMax bytes, and its headers to HeaderMax. A body that comes
//     too slowly is cut off, since the status is known by then.
//   - Connections are not kept, so an endpoint holds nothing between requests.
//
// The caller bounds the time of a request by its context.
package guard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/net/idna"
)

const (
	// AnswerMax is how many bytes of an answer's body are read.
	AnswerMax = 16 << 10
	// HeaderMax bounds the headers of an answer, in bytes.
	HeaderMax = 16 << 10
	// bodyWait is how long a body may take once the status is known.
	bodyWait = 2 * time.Second
	// lookupWait bounds the resolving of a name in Check.
	lookupWait = time.Second
)

// Options configure a Client.
type Options struct {
	Allow []netip.Prefix // of internal addresses that may be dialled
	Proxy *url.URL       // that requests go through, except those by Local; nil: none
	// Local allows http on loopback names and addresses, such as localhost: for development.
	Local bool
	// Resolver resolves names; nil: that of this machine.
	Resolver *net.Resolver
	// Authorities sign the certificates of destinations; nil: those of this machine.
	Authorities *x509.CertPool
}

// Client makes guarded requests. It is safe for use by several goroutines.
type Client struct {
	options Options
	http    http.Client
}

// New returns a Client.
func New(o Options) *Client {
	c := &Client{options: o}
	c.http = http.Client{
		Transport: &http.Transport{
			Proxy: c.proxy, DialContext: c.dial,
			DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: HeaderMax,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Authorities},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// RefusedError says that an address or a URL is not allowed.
type RefusedError struct{ What string }

// Error says what was refused.
func (e *RefusedError) Error() string { return e.What + " is not allowed as a destination" }

// IsRefused reports whether this package refused the destination: nothing was sent.
func IsRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// Answer is what a destination has answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // at most AnswerMax bytes
}

// Do makes the request. Errors: one that IsRefused recognises, those of the network, that
// of the request's context.
func (c *Client) Do(r *http.Request) (Answer, error) {
	if err := c.checkURL(r.URL); err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), localKey{}, c.isLocal(r.URL)))
	defer cancel()
	res, err := c.http.Do(r.WithContext(ctx))
	if err != nil {
		return Answer{}, withoutURL(err)
	}
	defer res.Body.Close() //nolint:errcheck // nothing was written
	defer time.AfterFunc(bodyWait, cancel).Stop()
	body, _ := io.ReadAll(io.LimitReader(res.Body, AnswerMax)) // the status alone counts
	return Answer{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

// HTTP returns a client for packages that take one. It guarantees what Do does, except the bounds of a
// body's size and time, which its user has to set.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: checked{c}, CheckRedirect: c.http.CheckRedirect}
}

// checked checks the URL of each request, and then what is dialled.
type checked struct{ client *Client }

// RoundTrip implements http.RoundTripper.
func (t checked) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.client.checkURL(r.URL); err != nil {
		return nil, err
	}
	r = r.WithContext(context.WithValue(r.Context(), localKey{}, t.client.isLocal(r.URL)))
	return t.client.http.Transport.RoundTrip(r)
}

// localKey is the key, in the context of a request, of whether it may go to this machine.
type localKey struct{}

// withoutURL returns the cause alone: the URL in http.Client's errors may hold a secret.
func withoutURL(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}

// Check returns an error that IsRefused recognises for a URL that can't be used now: by its
// scheme, its address, or what its name resolves to. A name that doesn't exist is refused like
// one of an internal address, so that the answer doesn't tell which internal names exist. Other
// errors are those of a resolver that can't be reached. With Options.Proxy names are not resolved.
func (c *Client) Check(ctx context.Context, u *url.URL) error {
	if err := c.checkURL(u); err != nil || c.options.Proxy != nil || c.isLocal(u) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWait)
	defer cancel()
	host, err := toASCII(u.Hostname())
	if err != nil {
		return &RefusedError{"the name " + u.Hostname()}
	}
	addrs, err := c.resolver().LookupNetIP(ctx, "ip", host)
	var failed *net.DNSError
	switch {
	case errors.As(err, &failed) && failed.IsNotFound:
		return &RefusedError{"the name " + u.Hostname()}
	case err != nil:
		return err
	}
	for _, a := range addrs {
		if !c.allows(a.Unmap()) { // a resolver may map addresses of IPv4
			return &RefusedError{"the address " + a.String()}
		}
	}
	return nil
}

// checkURL checks what needs no resolving: the scheme, and an address instead of a name.
func (c *Client) checkURL(u *url.URL) error {
	switch {
	case c.isLocal(u):
		return nil
	case u.Scheme != "https":
		return &RefusedError{u.Scheme + " instead of https"}
	}
	a, isAddress, isClear := addressOf(u.Hostname())
	if !isClear || isAddress && !c.allows(a) {
		return &RefusedError{"the address " + u.Hostname()}
	}
	return nil
}

// addressOf returns the address that stands in place of a name. isClear is false for what
// can't be a name, and for addresses that only some resolvers or proxies read: 0x7f.1,
// 2130706433, 127.1 (WHATWG URL, "ends in a number"). Letters beyond ASCII are read as
// http.Transport does, which makes 127.0.0.1 of ①②⑦.0.0.1. A loopback name stands for 127.0.0.1
// (RFC 6761, section 6.3), since a proxy would reach its own machine by it.
func addressOf(host string) (a netip.Addr, isAddress, isClear bool) {
	host, err := toASCII(host)
	if err != nil {
		return a, false, false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a, true, true
	}
	if isLoopbackName(strings.TrimSuffix(host, ".")) {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true, true
	}
	return a, false, !endsInNumber(host)
}

// toASCII returns the host as http.Transport sends it to a resolver.
func toASCII(host string) (string, error) {
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return idna.Lookup.ToASCII(host)
	}
	return host, nil
}

func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	digits, set := last, "0123456789"
	if hex, isHex := strings.CutPrefix(last, "0x"); isHex {
		digits, set = hex, set+"abcdef"
	}
	return strings.Trim(digits, set) == ""
}

// isLocal reports whether the URL is http on a loopback name or address, where that is allowed.
func (c *Client) isLocal(u *url.URL) bool {
	a, err := netip.ParseAddr(u.Hostname())
	return c.options.Local && u.Scheme == "http" && (isLoopbackName(u.Hostname()) || err == nil && a.IsLoopback())
}

func isLoopbackName(host string) bool {
	host = strings.ToLower(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func (c *Client) proxy(r *http.Request) (*url.URL, error) {
	if c.isLocal(r.URL) {
		return nil, nil //nolint:nilnil // http.Transport: no proxy
	}
	return c.options.Proxy, nil
}

// dial connects to the proxy without a check, and to everything else if it is allowed.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Resolver: c.options.Resolver, ControlContext: c.control}
	if c.isProxy(address) {
		dialer.ControlContext = nil
	}
	return dialer.DialContext(ctx, network, address)
}

func (c *Client) isProxy(address string) bool {
	p := c.options.Proxy
	if p == nil {
		return false
	}
	port := p.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[p.Scheme]
	}
	return address == net.JoinHostPort(p.Hostname(), port)
}

// control is called with the address of each connection before it is made.
func (c *Client) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return &RefusedError{fmt.Sprintf("%s %s", network, address)}
	}
	local, _ := ctx.Value(localKey{}).(bool)
	if a := to.Addr(); !c.allows(a) && (!local || !a.IsLoopback()) {
		return &RefusedError{"the address " + a.String()}
	}
	return nil
}

func (c *Client) allows(a netip.Addr) bool {
	for _, p := range c.options.Allow {
		if p.Contains(a.Unmap()) && a.Zone() == "" {
			return true
		}
	}
	return IsPublic(a)
}

func (c *Client) resolver() *net.Resolver {
	if c.options.Resolver != nil {
		return c.options.Resolver
	}
	return net.DefaultResolver
}
