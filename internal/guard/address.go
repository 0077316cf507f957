package guard

import "net/netip"

// IsPublic reports whether the address is a destination on the public Internet. Addresses
// that are mapped (::ffff:0:0/96), translated (NAT64, 6to4, Teredo), scoped by a zone, or
// reserved are not public, even if they contain a public address. In IPv6 only global
// unicast (2000::/3) is public, so others that IANA assigns later are refused until they are listed.
func IsPublic(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || a.Is4In6() {
		return false
	}
	global, special := global6, special6
	if a.Is4() {
		global, special = global4, special4
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return global.Contains(a)
}

// The IANA registries of special-purpose addresses (RFC 6890), multicast, and an address of Azure.
var (
	global4  = netip.MustParsePrefix("0.0.0.0/0")
	special4 = prefixes(
		"0.0.0.0/8",        // this network; 0.0.0.0 is this machine
		"10.0.0.0/8",       // private
		"100.64.0.0/10",    // shared: carrier-grade NAT, clouds
		"127.0.0.0/8",      // loopback
		"169.254.0.0/16",   // link-local; metadata of clouds
		"172.16.0.0/12",    // private
		"192.0.0.0/24",     // protocol assignments
		"192.0.2.0/24",     // documentation
		"192.31.196.0/24",  // AS112
		"192.52.193.0/24",  // AMT
		"192.88.99.0/24",   // relays of 6to4
		"192.168.0.0/16",   // private
		"192.175.48.0/24",  // AS112
		"198.18.0.0/15",    // benchmarks
		"198.51.100.0/24",  // documentation
		"203.0.113.0/24",   // documentation
		"224.0.0.0/4",      // multicast
		"240.0.0.0/4",      // reserved, broadcast
		"168.63.129.16/32", // the host of a virtual machine of Azure
	)
	// All else of IPv6 is loopback, mapped, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard,
	// unique local (fc00::/7), link-local, site-local, multicast or not allocated.
	global6  = netip.MustParsePrefix("2000::/3")
	special6 = prefixes(
		"2001::/23",         // protocol assignments: Teredo, benchmarks, ORCHID
		"2001:db8::/32",     // documentation
		"2002::/16",         // 6to4
		"2620:4f:8000::/48", // AS112
		"3fff::/20",         // documentation
	)
)

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(all))
	for i, text := range all {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}
