package front_test

import (
	"io"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestForwarders: only requests with X-Forwarded-For from an address that isn't trusted are noted, apart for private and
// other addresses, until the proxies are set again; the log has one line a minute.
func TestForwarders(t *testing.T) {
	var log strings.Builder
	s := newSite(t, &log, "10.0.0.7/32")
	h := s.Handler(nil)
	for _, r := range []struct{ peer, header string }{
		{"10.0.0.7:1", "192.0.2.1"}, {"10.0.0.8:1", ""}, {"10.0.0.8:1", "192.0.2.1"}, {"10.0.0.9:1", "192.0.2.1"}, {"203.0.113.9:1", "192.0.2.1"},
	} {
		req := httptest.NewRequest("GET", "/absent", io.NopCloser(strings.NewReader("")))
		req.RemoteAddr = r.peer
		if r.header != "" {
			req.Header.Set("X-Forwarded-For", r.header)
		}
		h.ServeHTTP(httptest.NewRecorder(), req)
	}
	private, public := s.ForwardedByPrivate(), s.ForwardedByPublic()
	if private.Requests != 2 || public.Requests != 1 || private.Last.IsZero() || public.Last.IsZero() {
		t.Errorf("noted %+v and %+v", private, public)
	}
	if lines := strings.Count(log.String(), "no trusted proxy"); lines != 1 || !strings.Contains(log.String(), "10.0.0.8") {
		t.Errorf("%d lines:\n%s", lines, log.String())
	}
	s.SetProxies([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if !s.ForwardedByPrivate().Last.IsZero() {
		t.Error("it counts after the proxies were set")
	}
}
