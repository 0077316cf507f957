package client

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Request is the argument of [Client.Check].
type Request struct {
	// Action is what the caller wants to do, such as "message.send"; one of the
	// permissions that Doorward's table lists. Empty checks only the credential.
	Action string
	// Method is that of the checked request. Empty counts as an unsafe method.
	Method string
	// Header is that of the checked request. Only the session cookie, bearer credentials,
	// Origin, Sec-Fetch-Site, X-Request-Id, X-Forwarded-For (with IP) and the headers of a
	// WebSocket handshake are read; it isn't changed.
	Header http.Header
	// IP is the address of the peer: the caller, or a gateway; with Resource the caller's. Doorward needs the caller's
	// address for API keys that are bound to addresses and for policies. If --trusted-proxies
	// names this service, Doorward reads that address from IP and X-Forwarded-For; else it uses
	// this service's own.
	IP string
	// Proof is how recently and how strongly the person must have proved who they are;
	// the zero value demands nothing beyond the session. API keys are never asked.
	Proof Proof
	// Deferred leaves policies that depend on the resource to a later call with it, by
	// Resource or [Client.Can]; without it they refuse, since a check knows no resource.
	Deferred bool
	// Resource is what the action acts on, with the attributes that policies read; nil if it is
	// the tenant. It needs an Action, and the option [OperatorKey] with a key that may
	// access.evaluate.
	Resource *Resource
	// Untouched makes the check no use of the session, which goes on idling: for what nobody does,
	// such as asking every minute about an open WebSocket. It doesn't go with Resource, since such a
	// question is a use.
	Untouched bool
}

// Proof is a demand on the person's last proof of identity. A session that doesn't meet it
// is refused with 403 step_up_required, and [Error.StepUp] says what is needed.
type Proof struct {
	MaxAge time.Duration // in whole seconds; 0: any age
	AAL    int           // 2: by a second factor or a passkey; 0: any
}

// setQuery sets the parameters of a check.
func (p Proof) setQuery(q url.Values) {
	if p.MaxAge > 0 {
		q.Set("maxAge", strconv.FormatInt(max(1, int64(p.MaxAge/time.Second)), 10))
	}
	if p.AAL > 0 {
		q.Set("aal", strconv.Itoa(p.AAL))
	}
}

// Check asks whether the credential in q.Header is valid and may do q.Action, on q.Resource if there
// is one, and returns its owner. The error is an [*Error] and exactly one of
// ErrUnauthenticated, ErrForbidden, ErrRateLimited and ErrUnavailable. When ctx ends
// the error is ErrUnavailable and wraps the reason. Faults and unknown actions are logged, see
// [Logger].
//
// Use it where [Client.Require] doesn't fit: when the action depends on the body,
// or when the session didn't come by HTTP.
func (c *Client) Check(ctx context.Context, q Request) (Identity, error) {
	id, err := c.check(ctx, q)
	var e *Error
	if errors.As(err, &e) {
		c.logRefusal(ctx, q.Action, e)
	}
	return id, err
}

func (c *Client) check(ctx context.Context, q Request) (Identity, error) {
	if err := q.fault(); err != nil {
		return Identity{}, unavailable(requestID(q.Header), 0, err)
	}
	id, err := c.checkCaller(ctx, q)
	if err != nil || q.Resource == nil {
		return id, err
	}
	if err := c.decideFor(ctx, q, id); err != nil {
		return Identity{}, err
	}
	return id, nil
}

// fault returns what this program asks wrongly; nil for nothing.
func (q Request) fault() error {
	switch {
	case q.Resource != nil && q.Action == "":
		return errors.New("client: a Resource needs an Action")
	case q.Resource != nil && q.Untouched:
		return errors.New("client: a check with a Resource is a use of the session, so it can't be Untouched")
	}
	return nil
}

func (c *Client) checkCaller(ctx context.Context, q Request) (Identity, error) {
	a, err := c.send(ctx, call{
		method: http.MethodGet, path: q.path(), header: q.header(c.cookie),
		refusals: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests},
	})
	if err != nil {
		return Identity{}, err
	}
	id, ok := identityOf(a.header)
	if !ok {
		return Identity{}, a.notDoorward("names nobody")
	}
	return id, nil
}

// token returns the only session token that the request carries, as a cookie or a bearer credential.
// Doorward has just accepted it.
func (q Request) token(cookie string) string {
	if s := sessions(q.Header, cookie); len(s) > 0 {
		return s[0]
	}
	_, token, _ := strings.Cut(strings.Trim(strings.Join(bearers(q.Header), ""), " \t"), " ")
	return strings.TrimSpace(token)
}

func (q Request) path() string {
	values := url.Values{}
	if q.Action != "" {
		values.Set("action", q.Action)
	}
	if q.Deferred || q.Resource != nil {
		values.Set("resource", "deferred")
	}
	if q.Untouched {
		values.Set("touch", "false")
	}
	if q.Proof.setQuery(values); len(values) == 0 {
		return "/api/v2/access/check"
	}
	return "/api/v2/access/check?" + values.Encode()
}

// maxForwarded is the maximum length of a forwarded header. Valid values are shorter, so
// Doorward refuses a truncated value too. A full value could exceed Doorward's limits,
// which would be a fault instead of a refusal.
const maxForwarded = 512

// header returns the headers that are sent to Doorward. cookie is the name of its
// session cookie.
func (q Request) header(cookie string) http.Header {
	h := http.Header{"X-Request-Id": {requestID(q.Header)}, "X-Forwarded-Method": {q.Method}}
	if q.Method == "" || isUpgrade(q.Header) {
		h["X-Forwarded-Method"] = []string{http.MethodPost}
	}
	if addresses := hops(q.Header, q.IP); addresses != "" {
		h["X-Forwarded-For"] = []string{addresses}
	}
	if s := sessions(q.Header, cookie); len(s) > 0 {
		h["Cookie"] = []string{cookie + "=" + strings.Join(s, "; "+cookie+"=")}
	}
	for _, v := range bearers(q.Header) {
		h.Add("Authorization", v)
	}
	for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
		if v := q.Header.Values(name); len(v) > 0 {
			h.Set(name, truncate(v[0]))
		}
	}
	return h
}

// isUpgrade reports whether the request is the handshake of a WebSocket: a GET, but as
// unsafe as a POST, since a page of any origin can send it and use the connection.
func isUpgrade(h http.Header) bool {
	for _, name := range []string{"Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol"} {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// maxHops is how many addresses of X-Forwarded-For are passed on, the last ones: those
// before can be forged.
const maxHops = 8

// hops returns X-Forwarded-For as a proxy would send it. It is empty without the peer's
// address, since then all of it could be forged.
func hops(h http.Header, peer string) string {
	if _, err := netip.ParseAddr(peer); err != nil {
		return ""
	}
	var all []string
	for hop := range strings.SplitSeq(strings.Join(h["X-Forwarded-For"], ","), ",") {
		if hop = strings.TrimSpace(hop); hop != "" {
			all = append(all, hop[:min(len(hop), 64)])
		}
	}
	all = append(all, peer)
	return strings.Join(all[max(0, len(all)-maxHops):], ", ")
}

func truncate(v string) string { return v[:min(len(v), maxForwarded)] }

// sessions returns the distinct tokens in a request's session cookies, at most two, because
// Doorward refuses two. Like Doorward it skips malformed values: a Tomcat on the same host
// uses the same cookie name.
func sessions(h http.Header, name string) (found []string) {
	for _, line := range h["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			token, ok := strings.CutPrefix(strings.Trim(pair, " \t"), name+"=")
			if ok && isWellFormed(token) && !slices.Contains(found, token) && len(found) < 2 {
				found = append(found, token)
			}
		}
	}
	return found
}

var strict = base64.RawURLEncoding.Strict()

// isWellFormed reports whether a value is 256 bits in canonical base64url.
func isWellFormed(token string) bool {
	bits, err := strict.DecodeString(token)
	return err == nil && len(bits) == 32 && len(token) == 43 // DecodeString skips line breaks
}

// bearers returns the bearer credentials, at most two, because Doorward refuses two.
// Other schemes are not sent. Since Doorward refuses another scheme beside a bearer
// credential, an empty bearer credential, which it also refuses, is sent in its place.
func bearers(h http.Header) (found []string) {
	all := h["Authorization"]
	for _, v := range all {
		if isBearer(v) && len(found) < 2 {
			found = append(found, truncate(v))
		}
	}
	if len(found) == 1 && len(all) > 1 {
		found = append(found, "Bearer")
	}
	return found
}

func isBearer(authorization string) bool {
	value := strings.Trim(authorization, " \t")
	if end := strings.IndexAny(value, " \t"); end >= 0 {
		value = value[:end]
	}
	return strings.EqualFold(value, "Bearer")
}
