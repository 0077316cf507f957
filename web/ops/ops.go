// Package ops serves health checks and metrics.
package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

// Routes returns /healthz, which only says that the process answers, and /readyz,
// which is 503 while requests can't be served, with the reason: the database is
// unreachable, its schema is incompatible, the node's lease expired long ago, or draining
// is true.
func Routes(s *front.Site, draining func() bool) []front.Route {
	return []front.Route{
		front.On("GET /healthz", front.Public(), front.Raw(func(_ context.Context, c *front.Call) error {
			return answerOK(c)
		}), front.Doc{}).Check(),
		front.On("GET /readyz", front.Public(), front.Raw(func(ctx context.Context, c *front.Call) error {
			if draining() {
				return &doorward.Error{Code: doorward.CodeUnavailable, Detail: "This node is shutting down.", RetryAfter: time.Second}
			}
			if err := s.App.Ready(ctx); err != nil {
				return err
			}
			return answerOK(c)
		}), front.Doc{}).Check(),
	}
}

// Starting answers for a node that migrates the database, and has no features yet: /healthz as
// Routes does, and everything else with 503.
func Starting() http.Handler {
	unavailable := doorward.CodeUnavailable.Problem()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = fmt.Fprintln(w, http.StatusText(http.StatusOK)) // else the client is gone
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(front.Problem{
			Type: front.ProblemPath(doorward.CodeUnavailable), Title: unavailable.Title, Status: http.StatusServiceUnavailable,
			Code: doorward.CodeUnavailable, Instance: r.URL.Path,
			Detail: "This node is starting: it brings the schema of the database up to date, or waits for another node that does.",
		})
	})
}

// Metrics returns /metrics. On a public address it answers only callers of this
// machine: from loopback, for a loopback name and without headers of a proxy. A
// proxy on this machine that adds none can't be distinguished; use the admin
// address instead.
func Metrics(s *front.Site, public bool) front.Route {
	handler := s.Metrics.Handler()
	return front.On("GET /metrics", front.Public(), front.Raw(func(_ context.Context, c *front.Call) error {
		if public && !isLocal(c.R) {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		handler.ServeHTTP(c.W, c.R)
		return nil
	}), front.Doc{}).Check()
}

// isLocal reports whether the request comes from this machine, not through a proxy.
// HTTP/1.0 counts as a proxy: nginx uses it by default, and no scraper does.
func isLocal(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && front.IsLoopback(host) && front.IsLoopback(hostOf(r.Host)) && r.ProtoAtLeast(1, 1) && !isForwarded(r.Header)
}

// hostOf returns the host of HOST:PORT, or of HOST alone, without the brackets of IPv6.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
}

// Headers that proxies add and local callers don't send, by canonical name or
// prefix.
var (
	forwarding = []string{
		"Forwarded", "Via", "True-Client-Ip", "Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Proxyuser-Ip", "X-Appengine-User-Ip",
		"Cdn-Loop", "Fastly-Client-Ip", "Fly-Client-Ip", "X-Remote-Addr", "X-Remote-Ip", "X-Scheme", "Proxy-Connection",
		"Forwarded-For", "Front-End-Https", "Surrogate-Capability", "X-Nginx-Proxy", "X-Varnish",
	}
	forwardingPrefixes = []string{"X-Forwarded", "X-Original-", "X-Real-", "X-Envoy-", "X-Proxy-", "X-Azure-", "X-Amzn-", "X-Amz-Cf-", "Cf-", "Cloudfront-"}
)

func isForwarded(h http.Header) bool {
	for name := range h {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")) // CGI and similar use underscores
		if slices.Contains(forwarding, name) || slices.ContainsFunc(forwardingPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return true
		}
	}
	return false
}

func answerOK(c *front.Call) error {
	c.W.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := fmt.Fprintln(c.W, http.StatusText(http.StatusOK))
	return err
}
