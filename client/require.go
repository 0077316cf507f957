package client

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Require returns middleware that lets a request pass if its caller may do action,
// such as "message.send"; with an empty action, if the caller is signed in. The
// handler gets the caller with [From].
//
// Other requests are answered 401, 403, 429 or 503 as application/problem+json, by
// [WriteError] or the function set with [OnError]. The body of the request isn't
// read.
//
// An unknown action is refused to everybody (403 unknown_action) and logged as an
// error of this service.
func (c *Client) Require(action string) func(http.Handler) http.Handler {
	return c.RequireProof(action, Proof{})
}

// RequireProof is Require for an action that also needs a recent proof of identity. A person
// without one is answered 403 step_up_required; a function set with [OnError] can redirect
// browsers to [StepUpURL].
func (c *Client) RequireProof(action string, proof Proof) func(http.Handler) http.Handler {
	return c.require(Request{Action: action, Proof: proof})
}

// RequireDeferred is RequireProof for an action on a resource that only the handler knows. Policies
// that depend on the resource let the request through, so the handler must ask again, by
// [Client.Check] with the Resource or by [Client.Can].
func (c *Client) RequireDeferred(action string, proof Proof) func(http.Handler) http.Handler {
	return c.require(Request{Action: action, Proof: proof, Deferred: true})
}

// require returns the middleware that checks q, completed by each request.
func (c *Client) require(q Request) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := q
			q.Method, q.Header, q.IP = r.Method, r.Header, peer(r)
			id, err := c.Check(r.Context(), q)
			var e *Error
			if errors.As(err, &e) {
				c.refuse(w, r, e)
				return
			}
			next.ServeHTTP(w, withIdentity(r, id))
		})
	}
}

// StepUpURL is the page on which a person proves their identity again, below Doorward's
// public address, such as "https://platform.example". It leads back to returnTo, a path below
// that address, or an address that Doorward allows; see --return-to.
func StepUpURL(public, returnTo string) string {
	return strings.TrimSuffix(public, "/") + "/step-up?return=" + url.QueryEscape(returnTo)
}

// peer is the address of the connection; empty for a Unix socket, which has none.
func peer(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return from.Addr().String()
}

func withIdentity(r *http.Request, id Identity) *http.Request {
	r = r.WithContext(NewContext(r.Context(), id))
	r.Header = withoutIdentity(r.Header)
	return r
}

// logRefusal logs faults and unknown actions. Ordinary refusals aren't logged.
func (c *Client) logRefusal(ctx context.Context, action string, e *Error) {
	level := slog.LevelError
	switch {
	case errors.Is(e, context.Canceled): // the caller has gone
		level = slog.LevelDebug
	case e.Status != http.StatusServiceUnavailable && e.Code != "unknown_action":
		return
	}
	c.log.LogAttrs(ctx, level, "access check failed", slog.String("address", c.base), slog.String("action", action),
		slog.String("code", e.Code), slog.String("requestId", e.RequestID), slog.Any("err", e))
}
