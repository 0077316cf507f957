package node

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/doorward/doorward"
)

// TestNetworksOfConnections: which networks a connection counts for, and which addresses are exempt.
func TestNetworksOfConnections(t *testing.T) {
	c := &connLimits{perClient: 1, proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	for at, want := range map[string][]string{
		"203.0.113.9:1":             {"203.0.113.9"},
		"[::ffff:203.0.113.9]:1":    {"203.0.113.9"},
		"[2001:db8:1:2::1]:1":       {"2001:db8:1::/48", "2001:db8:1:2::/64"},
		"[2001:db8:1:2:ffff::9]:1":  {"2001:db8:1::/48", "2001:db8:1:2::/64"},
		"[2001:db8:1:3::1]:1":       {"2001:db8:1::/48", "2001:db8:1:3::/64"},
		"[fe80::1%lo]:1":            {"fe80::/48", "fe80::/64"},
		"10.1.2.3:1":                nil,
		"[::ffff:10.1.2.3]:1":       nil,
		"[fd00:1::1]:1":             nil,
		"[fd00:1::1%lo]:1":          nil,
		"[2001:db8:1:2::ffff:1]:80": {"2001:db8:1::/48", "2001:db8:1:2::/64"},
	} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at))
		var got []string
		for _, n := range c.countedFor(addr) {
			got = append(got, n.Network)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s counts for %q, want %q", at, got, want)
		}
	}
}

// TestConnectionsOfASite: a /48 of IPv6 may have ten times the connections of a client. A closed
// connection gives its slot back to both.
func TestConnectionsOfASite(t *testing.T) {
	c, limits := &connLimiter{open: map[string]int{}}, &connLimits{perClient: 2}
	from := func(site, client int) []doorward.NetworkLimit {
		return limits.countedFor(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(fmt.Sprintf("[2001:db8:%x:%x::1]:1", site, client))))
	}
	for n := range 20 {
		if !c.acquire(from(1, n/2)) {
			t.Fatalf("connection %d of the /48 is refused", n+1)
		}
	}
	if c.acquire(from(1, 99)) || !c.acquire(from(2, 1)) {
		t.Error("the /48 has a connection too many, or another one has none")
	}
	c.release(from(1, 3))
	if c.acquire(from(1, 4)) || !c.acquire(from(1, 3)) || c.acquire(from(1, 99)) {
		t.Error("a closed connection doesn't allow exactly one more of its client")
	}
	c.release(from(2, 1))
	if len(c.open) != 11 {
		t.Errorf("%d networks are counted, want the /48 and ten clients: %v", len(c.open), c.open)
	}
}
