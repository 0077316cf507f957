package main

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/doorward/doorward/node"
)

// A dual-stack system shows 10.1.2.3 as ::ffff:10.1.2.3. A network in that form means the
// same as its IPv4 form, or X-Forwarded-For would be ignored without a message.
func TestMappedNetworksAreThoseOfIPv4(t *testing.T) {
	for text, want := range map[string]string{
		"::ffff:10.1.2.3/128":     "10.1.2.3/32",
		" ::ffff:10.1.2.3/104 ":   "10.0.0.0/8",
		"::ffff:0:0/96":           "0.0.0.0/0",
		"::ffff:0:0/95":           "::fffe:0:0/95",
		"10.1.2.3/8":              "10.0.0.0/8",
		"2001:db8:1:2:3::4/32":    "2001:db8::/32",
		"64:ff9b::10.1.2.3/128":   "64:ff9b::a01:203/128",
		"2001:db8::ffff:a:b/128":  "2001:db8::ffff:a:b/128",
		"::ffff:255.255.255.0/97": "128.0.0.0/1",
	} {
		s, cfg := newSettings(), &node.Config{}
		s.raw.Proxies, s.raw.WebhookAllow, s.raw.SSOAllow = []string{text}, []string{text}, []string{text}
		if err := s.readProxies(cfg); err != nil {
			t.Fatal(err)
		}
		if err := s.readWebhooks(cfg); err != nil {
			t.Fatal(err)
		}
		if err := s.readProviders(cfg); err != nil {
			t.Fatal(err)
		}
		prefix := netip.MustParsePrefix(want)
		if cfg.Proxies[0] != prefix || cfg.Webhooks.Allow[0] != prefix || cfg.Connections.Allow[0] != prefix {
			t.Errorf("%s is read as %v and %v, want %s", text, cfg.Proxies[0], cfg.Webhooks.Allow[0], want)
		}
	}
}

// TestWideNetworks: networks of proxies that together match every address, or a good part, are found however they are written.
func TestWideNetworks(t *testing.T) {
	for proxies, want := range map[string]string{
		"":                                "",
		"10.0.0.0/8,192.168.0.0/16":       "",
		"fc00::/7,::1/128,fe80::/10":      "",
		"2606:4700::/32,104.16.0.0/13":    "",
		"10.0.0.0/8,0.0.0.0/0":            "0.0.0.0/0 every address",
		"::/0":                            "::/0 every address",
		"2000::/3":                        "2000::/3 every address",
		"0.0.0.0/1,128.0.0.0/1":           "0.0.0.0/1,128.0.0.0/1 every address",
		"::/1,8000::/1":                   "::/1 every address",
		"2000::/4,3000::/5,3800::/5":      "2000::/4,3000::/5,3800::/5 every address",
		"0.0.0.0/1,128.0.0.0/2,0.0.0.0/1": "0.0.0.0/1,128.0.0.0/2 75% of all addresses",
		"64.0.0.0/2":                      "64.0.0.0/2 25% of all addresses",
		"64.0.0.0/3,64.0.0.0/4":           "",
	} {
		var all []netip.Prefix
		for _, text := range strings.FieldsFunc(proxies, func(r rune) bool { return r == ',' }) {
			all = append(all, netip.MustParsePrefix(text))
		}
		wide, many := findWideNetworks(all)
		if got := strings.TrimSpace(joinNetworks(wide) + " " + many); got != want {
			t.Errorf("%s: %q, want %q", proxies, got, want)
		}
	}
}
