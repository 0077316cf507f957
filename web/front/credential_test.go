package front_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/web/front"
)

func TestCookieNameFault(t *testing.T) {
	const http, https, path = "http://localhost:8080", "https://x.example", "https://x.example/platform"
	for _, test := range []struct {
		name, base string
		accepted   bool
	}{
		{front.SessionCookie, http, true},
		{front.SessionCookie, path, true},
		{"a", http, true},
		{"!#$%&'*+-.^_`|~09azAZ", http, true},
		{strings.Repeat("a", 64), http, true},
		{"_session", http, true},
		{"__Host-session", https, true},
		{"__Host-session", https + "/", true},
		{"__Secure-session", https, true},
		{"__Secure-session", path, true},

		{"", http, false},
		{strings.Repeat("a", 65), http, false},
		{"__Host-session", http, false},
		{"__Host-session", "http://x.example", false},
		{"__Secure-session", http, false},
		{"__Host-session", path, false},
		{"__Host-session", path + "/", false},
		{"__Host-", https, false},
		{"__Secure-", https, false},
		{"__host-session", https, false}, // to newer browsers the same prefix
		{"__Http-session", https, false},
		{"doorward_device", http, false},
		{"doorward_", http, false},
		{"__Host-doorward_device", https, false},
		{"séance", http, false},
		{"a\x00", http, false},
		{"a\n", http, false},
		{"a\x7f", http, false},
	} {
		base, err := url.Parse(test.base)
		if err != nil {
			t.Fatal(err)
		}
		if fault := front.CookieNameFault(test.name, base); (fault == "") != test.accepted {
			t.Errorf("%q at %s: fault %q", test.name, test.base, fault)
		}
	}
	for _, separator := range " \t()<>@,;:\\\"/[]?={}" {
		if front.CookieNameFault("a"+string(separator)+"b", &url.URL{Scheme: "https"}) == "" {
			t.Errorf("%q may be in a name", separator)
		}
	}
}
