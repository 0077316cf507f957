package node

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/doorward/doorward/app/credential"
)

// connLimiter knows which clients have how many connections open to one address of
// ours, and takes in no more of a client than it may have: else one that opens
// connections and is slow on them takes the file descriptors and the memory that
// are for all.
//
// A client is an IPv4 address, or the /64 of IPv6. Proxies are trusted to bring
// the connections of many and are not counted.
type connLimiter struct {
	perClient    int // of one client; 0: any number
	proxies []netip.Prefix
	traffic *traffic

	mu   sync.Mutex
	open map[string]int // by client, those with one at least
}

// traffic is of all addresses of a node, for metrics.
type traffic struct {
	open    atomic.Int64
	refused atomic.Uint64
}

// admit returns the connection as one that is counted until it is closed, or
// nil when its client has as many as it may.
func (c *connLimiter) admit(conn *net.TCPConn) net.Conn {
	client := c.client(conn.RemoteAddr())
	if !c.acquire(client) {
		c.traffic.refused.Add(1)
		return nil
	}
	c.traffic.open.Add(1)
	return &countedConn{conn, sync.OnceFunc(func() {
		c.traffic.open.Add(-1)
		c.release(client)
	})}
}

// client is empty for one that is not counted.
func (c *connLimiter) client(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || c.perClient == 0 {
		return ""
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(ip.WithZone("")) }) {
		return ""
	}
	return credential.Network(ip.String())
}

func (c *connLimiter) acquire(client string) bool {
	if client == "" {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[client] >= c.perClient {
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

// countedConn is a connection that is counted. It has all methods of the one that it
// is: net/http ends a connection by CloseWrite, and without it an answer given
// before the whole request was read could be lost.
type countedConn struct {
	*net.TCPConn
	release func()
}

// Close ends the connection and makes room for another one.
func (g *countedConn) Close() error {
	g.release()
	return g.TCPConn.Close()
}
