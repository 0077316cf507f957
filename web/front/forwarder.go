package front

import (
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/internal/lograte"
)

// forwarders notes requests with X-Forwarded-For from addresses that aren't trusted proxies. Behind a proxy that isn't
// trusted all people have one address, and share one limit of attempts: 30 wrong passwords by anybody are 429 for all.
// A client may send the header itself; for an address in a private network a proxy is more likely.
type forwarders struct {
	private, public forwarder
	lines           lograte.Limiter
}

type forwarder struct {
	requests atomic.Uint64
	lastAt   atomic.Int64 // Unix seconds; 0: none since the proxies were set
}

// Forwarded says how many requests came through addresses that aren't trusted proxies.
type Forwarded struct {
	Requests uint64    // since the start
	Last     time.Time // zero: none since the proxies were set
}

// ForwardedByPrivate and ForwardedByPublic count requests with X-Forwarded-For from addresses that aren't trusted
// proxies, in private networks and outside.
func (s *Site) ForwardedByPrivate() Forwarded { return s.forwarders.private.read() }

// ForwardedByPublic is described at ForwardedByPrivate.
func (s *Site) ForwardedByPublic() Forwarded { return s.forwarders.public.read() }

func (f *forwarder) read() (is Forwarded) {
	is.Requests = f.requests.Load()
	if at := f.lastAt.Load(); at != 0 {
		is.Last = time.Unix(at, 0)
	}
	return is
}

// noteForwarder notes the request if a proxy that isn't trusted seems to have sent it. The log gets a line a minute.
func (s *Site) noteForwarder(r *http.Request, proxies []netip.Prefix) {
	if len(r.Header["X-Forwarded-For"]) == 0 {
		return
	}
	addr := parseHost(r.RemoteAddr)
	if trusted(proxies, addr) {
		return
	}
	from := &s.forwarders.public
	if addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() {
		from = &s.forwarders.private
	}
	from.requests.Add(1)
	from.lastAt.Store(time.Now().Unix())
	if leftOut, ok := s.forwarders.lines.Allow("forwarded", time.Now()); ok {
		s.log.Warn("request with X-Forwarded-For from an address that is no trusted proxy", "address", addr.String(), "leftOut", leftOut)
	}
}

// forget lets what was noted under earlier settings count no more.
func (f *forwarders) forget() {
	f.private.lastAt.Store(0)
	f.public.lastAt.Store(0)
}
