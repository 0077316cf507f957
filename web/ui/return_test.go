package ui

import (
	"net/url"
	"strings"
	"testing"
)

// Every accepted address resolves to one below the base.
func FuzzReturnsStayBelowTheBaseURL(f *testing.F) {
	for _, address := range []string{
		"/platform/account", "//evil.example", `/\evil.example`, "https://auth.example/platform/x", "/platform/../x", "/platform/%2e%2e/x",
		"https://auth.example@evil.example/", "/platform/.", "/platform/a?b#c", "javascript:alert(1)", "/platform/\t/evil.example",
	} {
		f.Add(address)
	}
	const origin, base = "https://auth.example", "/platform"
	at, err := url.Parse(origin + base + "/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, address string) {
		path, ok := ownPath(origin, base, address)
		if !ok {
			return
		}
		resolved, err := at.Parse(path)
		if err != nil || resolved.Scheme+"://"+resolved.Host != origin || !strings.HasPrefix(resolved.Path, base+"/") || resolved.User != nil {
			t.Errorf("%q leads to %v, %v", address, resolved, err)
		}
		if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\t\r\n ") {
			t.Errorf("%q passes as %q, which a browser may read differently", address, path)
		}
	})
}
