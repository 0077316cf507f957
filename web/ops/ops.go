// Package ops answers the machines that run Doorward: is the process alive,
// can it serve, what has it done.
package ops

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

// Routes returns /healthz, which only says that the process answers, and
// /readyz, which is 503 while requests can't be served, and says why: the database
// is out of reach, its schema is another one, the node's lease ran out for good, or
// draining is true.
func Routes(s *front.Site, draining func() bool) []front.Route {
	return []front.Route{
		front.On("GET /healthz", front.Public(), front.Raw(func(_ context.Context, c *front.Call) error {
			return ok(c)
		}), front.Doc{}).Check(),
		front.On("GET /readyz", front.Public(), front.Raw(func(ctx context.Context, c *front.Call) error {
			if draining() {
				return &doorward.Error{Code: doorward.CodeUnavailable, Detail: "This node is shutting down.", RetryAfter: time.Second}
			}
			if err := s.App.Ready(ctx); err != nil {
				return err
			}
			return ok(c)
		}), front.Doc{}).Check(),
	}
}

// Metrics returns /metrics. On an address that strangers reach it answers
// callers of this machine alone: those that connect from loopback and not
// through a proxy.
func Metrics(s *front.Site, strangers bool) front.Route {
	handler := s.Metrics.Handler()
	return front.On("GET /metrics", front.Public(), front.Raw(func(_ context.Context, c *front.Call) error {
		if strangers && !local(c.R) {
			return doorward.Fail(doorward.CodeNotFound, "")
		}
		handler.ServeHTTP(c.W, c.R)
		return nil
	}), front.Doc{}).Check()
}

func local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && front.IsLoopback(host) && len(r.Header["X-Forwarded-For"]) == 0 && len(r.Header["Forwarded"]) == 0
}

func ok(c *front.Call) error {
	c.W.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := fmt.Fprintln(c.W, http.StatusText(http.StatusOK))
	return err
}
