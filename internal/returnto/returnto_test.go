package returnto

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// list returns places of each kind.
func list(t testing.TB) (l List) {
	t.Helper()
	for _, entry := range []string{
		"https://app.example.com", "https://mail.example.com/inbox/", "HTTPS://Shop.Example.com:8443/a/b",
		"http://localhost:3000/", "http://127.0.0.1", "https://xn--bcher-kva.example:443",
	} {
		p, err := Parse(entry)
		if err != nil {
			t.Fatalf("%s: %v", entry, err)
		}
		l = append(l, p)
	}
	return l
}

func TestPlacesOfTheListAreFound(t *testing.T) {
	l := list(t)
	for address, want := range map[string]string{
		"https://app.example.com":                              "https://app.example.com/",
		"https://app.example.com/":                             "https://app.example.com/",
		"https://app.example.com?a=b":                          "https://app.example.com/?a=b",
		"https://app.example.com#a":                            "https://app.example.com/#a",
		"hTTps://APP.example.COM/Path":                         "https://app.example.com/Path",
		"https://app.example.com:443/x":                        "https://app.example.com/x",
		"https://app.example.com/a%2Fb/caf%C3%A9/100%25":       "https://app.example.com/a%2Fb/caf%C3%A9/100%25",
		"https://app.example.com/a/?to=//evil/..&x=\"'<>{}|^":  "https://app.example.com/a/?to=//evil/..&x=\"'<>{}|^",
		"https://app.example.com/#/../a//b?c@d":                "https://app.example.com/#/../a//b?c@d",
		"https://app.example.com/.well-known/a...b/..c":        "https://app.example.com/.well-known/a...b/..c",
		"https://app.example.com/@ann:1;v=2":                   "https://app.example.com/@ann:1;v=2",
		"https://mail.example.com/inbox":                       "https://mail.example.com/inbox",
		"https://mail.example.com/inbox/":                      "https://mail.example.com/inbox/",
		"https://mail.example.com/inbox?a":                     "https://mail.example.com/inbox?a",
		"https://mail.example.com/inbox/42/x":                  "https://mail.example.com/inbox/42/x",
		"https://shop.example.com:8443/a/b/c":                  "https://shop.example.com:8443/a/b/c",
		"http://localhost:3000/x":                              "http://localhost:3000/x",
		"http://127.0.0.1:80/x":                                "http://127.0.0.1/x",
		"https://xn--bcher-kva.example/":                       "https://xn--bcher-kva.example/",
		"https://app.example.com/" + strings.Repeat("a", 2000): "https://app.example.com/" + strings.Repeat("a", 2000),
	} {
		to, origin, ok := l.Find(address)
		if !ok || to != want || !strings.HasPrefix(to, origin+"/") {
			t.Errorf("%.80s leads to %.80q at %q, %v, want %.80q", address, to, origin, ok, want)
		}
	}
}

// hostile are addresses that look like one of the list but aren't, or that some parsers
// read differently.
var hostile = []string{
	"", "/", "//app.example.com", "///app.example.com/", "/inbox", "inbox", "app.example.com", "app.example.com/x", "?a", "#a",
	// Another scheme, or none.
	"http://app.example.com/", "ftp://app.example.com/", "javascript:alert(1)", "javascript://app.example.com/%0aalert(1)",
	"data:text/html,x", "blob:https://app.example.com/x", "view-source:https://app.example.com/", "wss://app.example.com/",
	"https:app.example.com", "https:/app.example.com", "https:///app.example.com", "https:////app.example.com/", "https:evil.example",
	"https:/evil.example", "https://", "https:///", "://app.example.com/", "https//app.example.com", "ſttps://app.example.com/",
	// Backslashes, and characters that browsers drop.
	`https:\\app.example.com`, `https:\\evil.example/`, `https://app.example.com\@evil.example/`, `https://app.example.com/\evil.example`,
	`https://app.example.com\.evil.example`, `https://evil.example\.app.example.com/`, `https://evil.example\@app.example.com/`, `/\evil.example`,
	"ht\ntps://app.example.com", "https://app.exam\tple.com/", "https://app.example.com\n.evil.example/", "https://app.example.com/\r\nSet-Cookie: a=b",
	" https://app.example.com/", "https://app.example.com/ ", "\x00https://app.example.com/", "https://app.example.com/\x7f", "\ufeffhttps://app.example.com/",
	"https://app.example.com/\x00", "https://app.example.com\x00.evil.example/", "https://app.example.com/a b", "https://app.example.com/%00", "https://app.example.com/%0d%0aa:b",
	"https://app.example.com/%5c%5cevil.example", `https://app.example.com/?\evil.example`, `https://app.example.com/#\evil.example`, "https://app.example.com/%zz", "https://app.example.com/%",
	// A user before an @.
	"https://app.example.com@evil.example", "https://app.example.com:443@evil.example/", "https://app.example.com%2f@evil.example/", "https://@app.example.com/",
	"https://evil.example@app.example.com/", "https://a:b@app.example.com/", "https://app.example.com/x@evil.example\\@", "https://app.example.com%40evil.example/",
	// Another host.
	"https://evil.example/", "https://evil.example/https://app.example.com/", "https://evil.example?https://app.example.com/", "https://evil.example#https://app.example.com/",
	"https://app.example.com.evil.example/", "https://app.example.comevil.example/", "https://app.example.co", "https://evilapp.example.com/", "https://evil-app.example.com/",
	"https://x.app.example.com/", "https://example.com/", "https://app.example.com./", "https://app.example.com../", "https://.app.example.com/", "https://app..example.com/",
	"https://app.example.com%2eevil.example/", "https://app%2eexample.com/", "https://%61pp.example.com/", "https://app.example.com%00.evil.example/", "https://app.example.com%09/",
	"https://app.example.com。/", "https://app。example.com/", "https://ａpp.example.com/", "https://app.example.com／.evil.example/", "https://app.example.com\u200b/", "https://аpp.example.com/",
	"https://bücher.example/", "https://xn--bcher-kva.example.evil.example/", "https://xn--bcher-\u212ava.example/", "https://app_example.com/", "https://app.example.com,evil.example/", "https://app.example.com;evil.example/",
	"https://app.example.com&evil.example/", "https://app.example.com'evil.example/", "https://app.example.com|evil.example/", "https://*.example.com/", "https://*/", "https://-app.example.com/",
	// Another port.
	"https://app.example.com:444/", "https://app.example.com:80/", "https://app.example.com:0443/", "https://app.example.com:/", "https://app.example.com:443:443/", "https://app.example.com:+443/",
	"https://app.example.com:65979/", "https://app.example.com:18446744073709552059/", "https://app.example.com:0/", "https://app.example.com:4４3/", "https://app.example.com:443evil.example/", "https://app.example.com:-443/",
	"https://shop.example.com/a/b", "https://shop.example.com:443/a/b", "http://localhost/", "http://localhost:30000/", "https://localhost:3000/", "http://localhost:3000.evil.example/", "http://localhost:3000@evil.example/",
	// Other spellings of a loopback address, and similar addresses.
	"http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://127.0.0.01/", "http://127.0.0.1./", "http://127.0.0.2/", "http://0/", "http://[::1]/",
	"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::1]:3000/", "http://[::1%25lo]:3000/", "http://localhost.:3000/", "http://[app.example.com]/", "https://[https://app.example.com]/",
	// Other paths.
	"https://mail.example.com", "https://mail.example.com/", "https://mail.example.com/inboxes", "https://mail.example.com/inbox.evil", "https://mail.example.com/inbox%2f42", "https://mail.example.com/inbox;a/",
	"https://mail.example.com/Inbox/", "https://mail.example.com/%69nbox/", "https://mail.example.com//inbox/", "https://mail.example.com/x/inbox/", "https://mail.example.com/?/inbox/", "https://mail.example.com#/inbox/",
	"https://mail.example.com/inbox/../admin", "https://mail.example.com/inbox/..", "https://mail.example.com/inbox/.", "https://mail.example.com/./inbox/", "https://mail.example.com/x/../inbox/", "https://mail.example.com/inbox/./x",
	"https://mail.example.com/inbox/%2e%2e/admin", "https://mail.example.com/inbox/%2E%2E", "https://mail.example.com/inbox/.%2e/admin", "https://mail.example.com/inbox/%2e./admin", "https://mail.example.com/inbox/%2e%2e?x",
	"https://mail.example.com/inbox/%2e%2e#x", "https://mail.example.com/inbox/..%2fadmin", "https://mail.example.com/inbox/x%2f..%2f..%2fadmin", "https://mail.example.com/inbox/%2e%2e%2fadmin", "https://mail.example.com/inbox/..%5cadmin",
	`https://mail.example.com/inbox/..\admin`, "https://mail.example.com/inbox/..;/admin", "https://mail.example.com/inbox/..;a=b/admin", "https://mail.example.com/inbox/..%3b/admin", "https://mail.example.com/inbox/.;/admin",
	"https://mail.example.com/inbox//evil.example", "https://mail.example.com/inbox/;/evil.example", "https://mail.example.com/inbox/.\t./admin", "https://shop.example.com:8443/a", "https://shop.example.com:8443/a/bc", "https://shop.example.com:8443/b/a/b",
	// Too long.
	"https://app.example.com/" + strings.Repeat("a", MaxLength), "https://app.example.com/?" + strings.Repeat("a", 1<<20), "https://" + strings.Repeat("a", 64) + ".example/",
}

func TestHostileAddressesAreNotFound(t *testing.T) {
	l := list(t)
	for _, address := range hostile {
		if to, _, ok := l.Find(address); ok {
			t.Errorf("%.100q leads to %q", address, to)
		}
		if to, _, ok := (List{}).Find(address); ok {
			t.Errorf("with an empty list, %.100q leads to %q", address, to)
		}
	}
	if to, _, ok := (List{}).Find("https://app.example.com/"); ok {
		t.Errorf("an empty list leads to %q", to)
	}
}

func TestEntries(t *testing.T) {
	const form, path = "write an origin", "write the path as people see it"
	for entry, want := range map[string]string{
		"https://app.example.com":             "",
		"https://app.example.com/":            "",
		"http://app.example.com:8080/a/b/":    "",
		"https://10.1.2.3":                    "",
		"https://app.example.com/~ann/@x+y":   "",
		"":                                    form,
		"app.example.com":                     form,
		"/inbox":                              form,
		"//app.example.com":                   form,
		"https:app.example.com":               form,
		"https:/app.example.com":              form,
		`https:\\app.example.com`:             form,
		"https://":                            form,
		"ftp://app.example.com":               form,
		"javascript:alert(1)":                 form,
		"https://app.example.com.":            form,
		"https://app.example.com:":            form,
		"https://app.example.com:0443":        form,
		"https://app.example.com:99999":       form,
		"https://app_1.example.com":           form,
		"https://127.1":                       form,
		"https://app.example.com https://b.c": form,
		"https://app.example.com\t":           form,
		"https://app%2eexample.com":           form,
		"https://app.example.com;script-src":  form,
		"https://app.example.com/a/../b":      path,
		"https://app.example.com//":           path,
		"https://app.example.com/a//b":        path,
		"https://app.example.com/a%2fb":       path,
		"https://app.example.com/a;b":         path,
		"https://*.example.com":               "* is not a wildcard",
		"https://app.example.com/*":           "* is not a wildcard",
		"*":                                   "* is not a wildcard",
		"https://ann:secret@app.example.com":  "leave out the name and the password",
		"https://app.example.com?a":           "no ? or #",
		"https://app.example.com/#a":          "no ? or #",
		"http://[::1]:3000":                   "no IPv6 address",
		"https://bücher.example":              "write it in ASCII",
	} {
		_, err := Parse(entry)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", entry, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", entry, err, want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: the error repeats the password", entry)
		}
	}
}

func TestOriginsAreAsBrowsersWriteThem(t *testing.T) {
	got := []string{}
	for _, p := range list(t) {
		got = append(got, p.Origin())
	}
	want := []string{
		"https://app.example.com", "https://mail.example.com", "https://shop.example.com:8443",
		"http://localhost:3000", "http://127.0.0.1", "https://xn--bcher-kva.example",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
