package node

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/doorward/doorward"
)

// connLimiter limits the open connections per client on one listening address, so that one
// client can't take all file descriptors and memory. A client is an IPv4 address, or the /64
// of IPv6, whose /48 may have ten times as many. Trusted proxies carry the connections of many clients and are not counted.
type connLimiter struct {
	limits  atomic.Pointer[connLimits]
	traffic *traffic
	conns   *openConns

	mu   sync.Mutex
	open map[string]int // connections by network; a network without any has no entry
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
	counted := limits.countedFor(conn.RemoteAddr())
	if !c.acquire(counted) {
		c.traffic.refused.Add(1)
		return nil
	}
	c.traffic.open.Add(1)
	return c.conns.add(conn, func() {
		c.traffic.open.Add(-1)
		c.release(counted)
	})
}

// countedFor returns the networks that a connection counts for; none: it isn't counted.
func (c *connLimits) countedFor(addr net.Addr) []doorward.NetworkLimit {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || c.perClient == 0 {
		return nil
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(ip.WithZone("")) }) {
		return nil
	}
	return doorward.NetworkLimits(ip.String(), c.perClient)
}

// acquire counts a connection for all its networks, or for none if one has reached its limit.
func (c *connLimiter) acquire(counted []doorward.NetworkLimit) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range counted {
		if c.open[n.Network] >= n.Limit {
			return false
		}
	}
	for _, n := range counted {
		c.open[n.Network]++
	}
	return true
}

func (c *connLimiter) release(counted []doorward.NetworkLimit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range counted {
		if c.open[n.Network]--; c.open[n.Network] <= 0 {
			delete(c.open, n.Network)
		}
	}
}
