package siteurl

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"https://auth.example.com":              "https://auth.example.com",
		"HTTPS://Auth.Example.com:443/":         "https://auth.example.com",
		"http://localhost:80":                   "http://localhost",
		"http://localhost:0080/x":               "http://localhost/x",
		"https://localhost:80":                  "https://localhost:80",
		"https://x.example:":                    "https://x.example",
		"https://x.example.:8443/platform/":     "https://x.example:8443/platform",
		"https://x.example/A-b._~9/c":           "https://x.example/A-b._~9/c",
		"https://bücher.example":                "https://xn--bcher-kva.example",
		"https://BÜCHER.example:8443/p":         "https://xn--bcher-kva.example:8443/p",
		"https://b%C3%BCcher.example":           "https://xn--bcher-kva.example",
		"https://straße.example":                "https://xn--strae-oqa.example",
		"http://door_ward:8080":                 "http://door_ward:8080",
		"http://127.0.0.1:8080":                 "http://127.0.0.1:8080",
		"http://[0:0:0:0:0:0:0:1]:8080":         "http://[::1]:8080",
		"https://[2001:DB8::1]":                 "https://[2001:db8::1]",
		"https://xn--bcher-kva.example/x.y/..z": "https://xn--bcher-kva.example/x.y/..z",
		"https://XN--Bcher-KVA.example":         "https://xn--bcher-kva.example",
		"https://ab--cd.example":                "https://ab--cd.example",
	} {
		u, err := Parse(text)
		if err != nil || u.String() != want {
			t.Errorf("%q: %v %v, want %s", text, u, err, want)
			continue
		}
		if again, err := Parse(want); err != nil || again.String() != want {
			t.Errorf("%q isn't a fixed point: %v %v", want, again, err)
		}
		if origin := Origin(u); !strings.HasPrefix(want, origin) || strings.Count(origin, "/") != 2 {
			t.Errorf("%q has the origin %q", want, origin)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, text := range []string{
		"", "auth.example.com", "ftp://x.example", "https:", "https://", "https:///x", "https://:8080", "//x.example",
		"https://x.example/a b", "https://x.example/{x}", "https://x.example/{x...}", "https://x.example/{$}", "https://x.example/a/../b",
		"https://x.example/..", "https://x.example/./a", "https://x.example//a", "https://x.example/a//b", "https://x.example/a//", "https://x.example/a%20b",
		"https://x.example/%7Bx%7D", "https://x.example/ä", `https://x.example/a\b`, "https://x.example/a;b", "https://x.example/a,b",
		"https://x.example/?a=b", "https://x.example?", "https://x.example/#a", "https://ann:secret@x.example", "https://ann@x.example",
		"https://x.example:0", "https://x.example:65536", "https://x.example:http", "https://x..example", "https://-x.example", "https://x-.example",
		"https://.example", "https://x.example..", "https://x example", "https://1.2.3", "https://x.0x7f", "https://127.1", "https://0x7f.1", "https://256.1.1.1",
		"https://[fe80::1%25eth0]", "https://[::ffff:192.0.2.1]", "https://[::1", "https://a\u200bb\u2028.example", "https://" + strings.Repeat("a", 64) + ".example",
		"https://x.example\n", " https://x.example",
		"https://xn--a.example", "https://xn--.example", "https://door.xn--zzzzzzzzzzzz", "https://XN--A.example", "https://xn--bcher-.example",
	} {
		if u, err := Parse(text); err == nil {
			t.Errorf("%q became %v", text, u)
		} else if len(text) > 0 && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error repeats a password: %v", text, err)
		}
	}
}
