package returnto

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reading is an address as a browser parses it.
type reading struct {
	origin, user string
	path         []string // without dot segments
	rest         string   // query and fragment
}

var schemeOf = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// browse parses like browsers by the URL Standard (https://url.spec.whatwg.org, "basic
// URL parser"), on a page of the scheme at own.invalid. It is independent of the tested
// code. Names that IDNA would change are errors.
func browse(address, page string) (reading, error) {
	address = strings.TrimFunc(address, func(r rune) bool { return r <= ' ' })
	address = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(address)
	scheme := strings.ToLower(strings.TrimSuffix(schemeOf.FindString(address), ":"))
	after := address[len(schemeOf.FindString(address)):]
	slashes := after[:len(after)-len(strings.TrimLeft(after, `/\`))]
	switch {
	case scheme == "" && len(slashes) >= 2:
		scheme = page
	case scheme == "" || scheme == page && len(slashes) < 2:
		return reading{origin: page + "://own.invalid"}, nil
	case scheme != "http" && scheme != "https":
		return reading{origin: scheme + ":"}, nil
	}
	after = after[len(slashes):]
	end := len(after)
	if i := strings.IndexAny(after, `/\?#`); i >= 0 {
		end = i
	}
	r, err := authority(scheme, after[:end])
	if err != nil {
		return r, err
	}
	path := after[end:]
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path, r.rest = path[:i], path[i:]
	}
	r.path = resolve(path)
	return r, nil
}

func authority(scheme, text string) (r reading, err error) {
	if i := strings.LastIndex(text, "@"); i >= 0 {
		r.user, text = text[:i+1], text[i+1:]
	}
	host, port := text, ""
	if i := strings.LastIndex(text, ":"); i > strings.LastIndex(text, "]") {
		host, port = text[:i], text[i+1:]
	}
	if host, err = hostOf(host); err != nil {
		return r, err
	}
	r.origin = scheme + "://" + host
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || strings.HasPrefix(port, "+") {
			return r, fmt.Errorf("the port %q", port)
		}
		if scheme == "http" && n != 80 || scheme == "https" && n != 443 {
			r.origin += ":" + strconv.FormatUint(n, 10)
		}
	}
	return r, nil
}

func hostOf(text string) (string, error) {
	if strings.HasPrefix(text, "[") {
		addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
		return "[" + addr.String() + "]", err
	}
	// A percent sign that escapes nothing stays, and is then forbidden in a host.
	text, err := url.PathUnescape(text)
	if err != nil || text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("#/:<>?@[\\]^|%", r)
	}) {
		return "", fmt.Errorf("the host %q", text)
	}
	text = strings.ToLower(text)
	parts := strings.Split(strings.TrimSuffix(text, "."), ".")
	last := parts[len(parts)-1]
	if _, isHex := number(last); !isHex && strings.Trim(last, "0123456789") != "" || last == "" {
		return text, nil
	}
	return ipv4(parts)
}

// number reads a part of an IPv4 address: decimal, octal or hexadecimal.
func number(text string) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(text, "0x"):
		text, base = text[2:], 16
	case len(text) > 1 && text[0] == '0':
		text, base = text[1:], 8
	}
	if text == "" {
		return 0, base == 16
	}
	n, err := strconv.ParseUint(text, base, 64)
	return n, err == nil && text[0] != '+'
}

func ipv4(parts []string) (string, error) {
	if len(parts) > 4 {
		return "", fmt.Errorf("the address %q", parts)
	}
	var addr uint64
	for i, part := range parts {
		n, ok := number(part)
		room := 8
		if i == len(parts)-1 {
			room = 8 * (5 - len(parts))
		}
		if !ok || n >= 1<<room {
			return "", fmt.Errorf("the address %q", parts)
		}
		if room == 8 && i < len(parts)-1 {
			addr |= n << (24 - 8*i)
		} else {
			addr |= n
		}
	}
	return netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}).String(), nil
}

// resolve removes the dot segments of a path, as a browser does before the request.
func resolve(path string) (up []string) {
	parts := strings.Split(strings.TrimPrefix(strings.ReplaceAll(path, `\`, "/"), "/"), "/")
	for i, part := range parts {
		switch strings.ReplaceAll(strings.ToLower(part), "%2e", ".") {
		case "..":
			up = up[:max(0, len(up)-1)]
		case ".":
		default:
			up = append(up, part)
			continue
		}
		if i == len(parts)-1 {
			up = append(up, "")
		}
	}
	return up
}

func TestBrowse(t *testing.T) {
	for address, want := range map[string]string{
		"https://App.example.com:443/a/./b/%2E%2e/c": "https://app.example.com [a c]",
		`https:\\app.example.com\x`:                  "https://app.example.com [x]",
		"https:app.example.com":                      "https://own.invalid []",
		"http:app.example.com":                       "http://app.example.com []",
		"//app.example.com/..":                       "https://app.example.com []",
		"\t/\\app.exa\nmple.com":                     "https://app.example.com []",
		"https://a@b@evil.example/":                  "https://evil.example []",
		"http://0x7f.1:80/":                          "http://127.0.0.1 []",
		"http://2130706433/":                         "http://127.0.0.1 []",
		"http://[0:0::1]:81/":                        "http://[::1]:81 []",
		"https://%61pp.example.com./":                "https://app.example.com. []",
		"javascript:alert(1)":                        "javascript: []",
	} {
		r, err := browse(address, "https")
		if got := fmt.Sprintf("%s %s", r.origin, r.path); err != nil || got != want {
			t.Errorf("%q is read as %q, %v, want %q", address, got, err, want)
		}
	}
}

// Every accepted address is, to a browser, at an origin of the list and below its path,
// has no user before an @, and equals the one asked for. The first argument is an
// additional entry of the list.
func FuzzFoundAddressesAreInTheList(f *testing.F) {
	for i, address := range hostile {
		f.Add([]string{"https://mail.example.com/inbox", "https://own.example:8443", "http://localhost:3000/a.b/"}[i%3], address)
	}
	for _, address := range []string{"https://own.example:8443/x?y#z", "http://LOCALHOST:3000/a.b/c", "https://app.example.com/%2e", "http://127.0.0.1:80"} {
		f.Add("http://localhost:3000/a.b/", address)
	}
	f.Fuzz(func(t *testing.T, entry, address string) {
		l, entries := list(t), []string{
			"https://app.example.com/", "https://mail.example.com/inbox/", "https://shop.example.com:8443/a/b/",
			"http://localhost:3000/", "http://127.0.0.1/", "https://xn--bcher-kva.example/",
		}
		if p, err := Parse(entry); err == nil {
			if strings.Trim(p.Origin(), "abcdefghijklmnopqrstuvwxyz0123456789-.:/") != "" {
				t.Errorf("the entry %q puts %q into a policy", entry, p.Origin())
			}
			l, entries = append(l, p), append(entries, strings.TrimSuffix(entry, "/")+"/")
		}
		to, origin, ok := l.Find(address)
		if !ok {
			return
		}
		for _, page := range []string{"http", "https"} {
			asked, err := browse(address, page)
			led, errLed := browse(to, page)
			if err != nil || errLed != nil || fmt.Sprint(asked) != fmt.Sprint(led) {
				t.Fatalf("%q is read as %q, %v, and leads to %q, read as %q, %v", address, asked, err, to, led, errLed)
			}
			if led.origin != origin || led.user != "" || !slices.ContainsFunc(entries, func(entry string) bool { return holds(t, entry, led) }) {
				t.Errorf("%q leads to %q, read as %q at %q", address, to, led, origin)
			}
		}
		if len(to) > MaxLength+1 || !strings.HasPrefix(to, origin+"/") || strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
			t.Errorf("%q leads to %q, which a browser may read otherwise", address, to)
		}
	})
}

// holds reports whether the address is at the origin of the entry and below its path.
// The entry ends in a slash.
func holds(t *testing.T, entry string, led reading) bool {
	t.Helper()
	place, err := browse(entry, "https")
	if err != nil {
		t.Errorf("the entry %q is accepted, but is no address: %v", entry, err)
		return false
	}
	above := place.path[:len(place.path)-1]
	return place.origin == led.origin && place.user == "" && place.rest == "" && len(led.path) >= len(above) && slices.Equal(led.path[:len(above)], above)
}
