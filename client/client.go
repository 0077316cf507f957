// Package client protects a service of the platform with Doorward: for each request
// it asks whether the caller is signed in and allowed to do the action. It needs only
// the standard library.
//
//	auth, err := client.New("http://localhost:8080")
//	…
//	mux.Handle("POST /messages", auth.Require("message.send")(send))
//
//	func send(w http.ResponseWriter, r *http.Request) {
//		who, _ := client.From(r.Context()) // who.TenantID, who.UserID, who.Role …
//	}
//
// A request is refused in one of four ways, each an [*Error]:
//
//	401 ErrUnauthenticated  no valid credential: sign in
//	403 ErrForbidden        signed in, but not allowed: ask somebody with a higher role
//	429 ErrRateLimited      the API key's requests per second are used up: try again
//	503 ErrUnavailable      no answer now: try again, the session may be valid
//
// Every fault between this service and Doorward (it is down, slow, or another program
// answers at its address) is ErrUnavailable. So a restart of Doorward logs nobody out, and
// an outage lets nobody in.
//
// Doorward receives the session cookie and no other; a bearer credential; the method,
// Origin and Sec-Fetch-Site, by which it refuses a cookie that a browser sends from a
// page of another origin (403 cross_origin); the addresses of X-Forwarded-For; and
// X-Request-Id, which joins both logs. X-Auth-… headers are never sent, and
// [Client.Require] removes them from the request: the handler learns the caller only
// from [From].
//
// The handshake of a WebSocket is checked like a POST, although it is a GET: a page of
// another origin can send one.
//
// Each request costs one call to Doorward, which answers from memory in well under a
// millisecond; connections are reused. Don't add a cache: it would accept sessions
// after their logout and let suspended people continue.
//
// A check takes at most [Timeout], 3 s by default, including retries; Doorward itself
// answers within 2 s. Only a 503, after its Retry-After, and a failed connection are
// retried. If the wait exceeds the remaining time, the answer is 503 at once.
package client

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client asks one Doorward. Make it with [New], once for a service; its methods
// may be called from several goroutines.
type Client struct {
	base    string // without a slash at the end
	public  string // Doorward's address for people, also without that slash
	cookie  string // name of the session cookie
	timeout time.Duration
	http    *http.Client
	log     *slog.Logger
	refuse  func(http.ResponseWriter, *http.Request, *Error)
	// key is nil without one. It is a pointer, because package fmt prints a string
	// in an unexported field without calling its methods, but only the address of a
	// pointer.
	key *string
}

// Option changes what [New] makes.
type Option func(*Client)

// Timeout limits each check, including retries. The default is 3 s. Doorward
// answers within 2 s, so a shorter timeout loses slow but valid answers; at or
// below zero every check fails.
func Timeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// HTTPClient uses the transport and the timeout of hc in place of the client's own
// transport: for a proxy, certificates, metrics or tracing. The transport of a
// tracing library forwards the service's trace (traceparent), which Doorward
// accepts from addresses in its --trusted-proxies. The cookie jar and the redirect
// policy of hc are ignored: a jar would mix the sessions of all callers, and a
// followed redirect would send them to another server.
func HTTPClient(hc *http.Client) Option {
	return func(c *Client) { c.http = &http.Client{Transport: hc.Transport, Timeout: hc.Timeout} }
}

// CookieName is the name of the session cookie, as Doorward has it in --cookie-name.
// The default is JSESSIONID.
func CookieName(name string) Option { return func(c *Client) { c.cookie = name } }

// PublicURL is Doorward's address as people open it, its --base-url, if this service
// reaches it at another one. Assertions name it as their issuer.
func PublicURL(address string) Option {
	return func(c *Client) { c.public = strings.TrimSuffix(address, "/") }
}

// Logger logs faults, one line for each check that could not be decided, and
// never a credential. The default is slog.Default.
func Logger(l *slog.Logger) Option { return func(c *Client) { c.log = l } }

// OnError sets the function that answers requests refused by Require, in place of
// [WriteError], for example to send a browser that isn't signed in to the login page.
// It must answer; the handler behind Require is not called.
func OnError(answer func(w http.ResponseWriter, r *http.Request, e *Error)) Option {
	return func(c *Client) { c.refuse = answer }
}

// OperatorKey is the key with which [Client.Introspect], [Client.Can] and [Client.Follow]
// authenticate. Give each service a key of its own (dws_…), made by "doorward key
// create-service", that may do only what the service needs. An operator's (dwo_…) works,
// too, and has all permissions of an operator. Send it over https or within one machine.
func OperatorKey(key string) Option { return func(c *Client) { c.key = &key } }

// New returns a client of the Doorward at baseURL, such as "https://auth.example"
// or "http://localhost:8080/platform". It doesn't connect yet. The error says what
// is wrong with baseURL: it must be http or https with a host, and have no user,
// query or fragment.
func New(baseURL string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, errors.New("client: the base URL is no URL") // not repeated: it may hold a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("client: the base URL must begin with http:// or https:// and a host")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("client: the base URL must have no user, query or fragment")
	}
	c := &Client{
		base:    strings.TrimSuffix(u.String(), "/"),
		public:  strings.TrimSuffix(u.String(), "/"),
		cookie:  "JSESSIONID",
		timeout: 3 * time.Second,
		http:    &http.Client{Transport: newTransport()},
		log:     slog.Default(),
		refuse:  func(w http.ResponseWriter, r *http.Request, e *Error) { WriteError(w, r, e) },
	}
	for _, set := range options {
		set(c)
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// newTransport returns a transport for many small calls to one host. Go's default
// keeps two idle connections for a host: under load most checks would open a new
// one.
func newTransport() *http.Transport {
	return &http.Transport{
		// No Proxy: sessions must not go through HTTP_PROXY.
		DialContext:            (&net.Dialer{Timeout: time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second, // Doorward closes them after 120 s: close them first
		DisableCompression:     true,             // answers are under 2 KiB
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// String returns the base URL, without the operator key.
func (c *Client) String() string { return "doorward at " + c.base }

// Format keeps the operator key out of every verb, %#v too.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.String()) }

// requestID returns the incoming id if Doorward accepts its form, 1 to 128 of
// [A-Za-z0-9._-], else a new one, so that both logs have the same id.
func requestID(h http.Header) string {
	id := h.Get("X-Request-Id")
	if len(id) < 1 || len(id) > 128 || strings.ContainsFunc(id, func(r rune) bool { return !isIDRune(r) }) {
		return "req_" + strings.ToLower(rand.Text())
	}
	return id
}

func isIDRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
}
