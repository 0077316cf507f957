package doorward_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
)

// TestNetworkLimits: in which networks what an address does is counted, if a client may do it 30 times.
func TestNetworkLimits(t *testing.T) {
	for ip, want := range map[string][]doorward.NetworkLimit{
		"192.0.2.7":         {{"192.0.2.7", 30}},
		"::ffff:192.0.2.7":  {{"192.0.2.7", 30}},
		"2001:db8:1:2:3::4": {{"2001:db8:1::/48", 300}, {"2001:db8:1:2::/64", 30}},
		"2002:c000:207::1":  {{"2002:c000:207::/48", 300}, {"2002:c000:207::/64", 30}}, // 6to4
		"64:ff9b::c000:207": {{"64:ff9b::/48", 300}, {"64:ff9b::/64", 30}},             // NAT64
		"fe80::1%eth0":      {{"fe80::/48", 300}, {"fe80::/64", 30}},
		"nothing":           {{"nothing", 30}},
	} {
		if diff := cmp.Diff(want, doorward.NetworkLimits(ip, 30)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ip, diff)
		}
		if site, client := doorward.Site(ip), doorward.Network(ip); site != want[0].Network || client != want[len(want)-1].Network {
			t.Errorf("%s is of the site %s and the client %s", ip, site, client)
		}
	}
}
