package node

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/doorward/doorward/app/credential"
)

// connLimiter limits the open connections per client on one listening address, so that one
// client can't take all file descriptors and memory. A client is an IPv4 address, or the /64
// of IPv6. Trusted proxies carry the connections of many clients and are not counted.
type connLimiter struct {
	limits  atomic.Pointer[connLimits]
	traffic *traffic
	conns   *openConns

	mu   sync.Mutex
	open map[string]int // connections by client; a client without any has no entry
}

// connLimits are the limits of a connLimiter. They may be replaced while the node runs. A
// connection is counted, or not, by the limits in force when it was accepted.
type connLimits struct {
	perClient int // connections per client; 0: any number
	proxies   []netip.Prefix
}

// traffic counts connections of all listening addresses of a node, for metrics.
type traffic struct {
	open    atomic.Int64
	refused atomic.Uint64
}

// admit returns the connection, counted until it is closed, or nil when its client has
// reached the limit.
func (c *connLimiter) admit(conn *net.TCPConn) net.Conn {
	limits := c.limits.Load()
	client := limits.client(conn.RemoteAddr())
	if !c.acquire(client, limits.perClient) {
		c.traffic.refused.Add(1)
		return nil
	}
	c.traffic.open.Add(1)
	return c.conns.add(conn, func() {
		c.traffic.open.Add(-1)
		c.release(client)
	})
}

// client returns the key that a connection counts under; empty: it isn't counted.
func (c *connLimits) client(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || c.perClient == 0 {
		return ""
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(ip.WithZone("")) }) {
		return ""
	}
	return credential.Network(ip.String())
}

func (c *connLimiter) acquire(client string, limit int) bool {
	if client == "" {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[client] >= limit {
		return false
	}
	c.open[client]++
	return true
}

func (c *connLimiter) release(client string) {
	if client == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[client]--; c.open[client] <= 0 {
		delete(c.open, client)
	}
}
