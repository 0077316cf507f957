package node

import (
	"net"
	"net/netip"
	"testing"
)

// TestClient: which addresses count as one client, and which are exempt.
func TestClient(t *testing.T) {
	c := &connLimits{perClient: 1, proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	for at, want := range map[string]string{
		"203.0.113.9:1":             "203.0.113.9",
		"[::ffff:203.0.113.9]:1":    "203.0.113.9",
		"[2001:db8:1:2::1]:1":       "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::9]:1":  "2001:db8:1:2::/64",
		"[2001:db8:1:3::1]:1":       "2001:db8:1:3::/64",
		"[fe80::1%lo]:1":            "fe80::/64",
		"10.1.2.3:1":                "",
		"[::ffff:10.1.2.3]:1":       "",
		"[fd00:1::1]:1":             "",
		"[fd00:1::1%lo]:1":          "",
		"[2001:db8:1:2::ffff:1]:80": "2001:db8:1:2::/64",
	} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at))
		if got := c.client(addr); got != want {
			t.Errorf("%s counts as %q, want %q", at, got, want)
		}
	}
}
