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

// browserURL is an address as a browser parses it.
type browserURL struct {
	origin, user string
	path         []string // without dot segments
	rest         string   // query and fragment
}

var schemeOf = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// parseAsBrowser parses like browsers by the URL Standard (https://url.spec.whatwg.org, "basic
// URL parser"), as on a page at pageScheme://own.invalid. It is independent of the tested
// code. Names that IDNA would change are errors.
func parseAsBrowser(address, pageScheme string) (browserURL, error) {
	address = strings.TrimFunc(address, func(r rune) bool { return r <= ' ' })
	address = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(address)
	scheme := strings.ToLower(strings.TrimSuffix(schemeOf.FindString(address), ":"))
	after := address[len(schemeOf.FindString(address)):]
	slashes := after[:len(after)-len(strings.TrimLeft(after, `/\`))]
	switch {
	case scheme == "" && len(slashes) >= 2:
		scheme = pageScheme
	case scheme == "" || scheme == pageScheme && len(slashes) < 2:
		return browserURL{origin: pageScheme + "://own.invalid"}, nil
	case scheme != "http" && scheme != "https":
		return browserURL{origin: scheme + ":"}, nil
	}
	after = after[len(slashes):]
	end := len(after)
	if i := strings.IndexAny(after, `/\?#`); i >= 0 {
		end = i
	}
	r, err := parseAuthority(scheme, after[:end])
	if err != nil {
		return r, err
	}
	path := after[end:]
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path, r.rest = path[:i], path[i:]
	}
	r.path = removeDotSegments(path)
	return r, nil
}

func parseAuthority(scheme, text string) (r browserURL, err error) {
	if i := strings.LastIndex(text, "@"); i >= 0 {
		r.user, text = text[:i+1], text[i+1:]
	}
	host, port := text, ""
	if i := strings.LastIndex(text, ":"); i > strings.LastIndex(text, "]") {
		host, port = text[:i], text[i+1:]
	}
	if host, err = parseHost(host); err != nil {
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

func parseHost(text string) (string, error) {
	if strings.HasPrefix(text, "[") {
		addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
		return "[" + addr.String() + "]", err
	}
	// A percent sign that escapes nothing is an error.
	text, err := url.PathUnescape(text)
	if err != nil || text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("#/:<>?@[\\]^|%", r)
	}) {
		return "", fmt.Errorf("the host %q", text)
	}
	text = strings.ToLower(text)
	parts := strings.Split(strings.TrimSuffix(text, "."), ".")
	last := parts[len(parts)-1]
	if _, isNumber := parseNumber(last); !isNumber && strings.Trim(last, "0123456789") != "" || last == "" {
		return text, nil
	}
	return parseIPv4(parts)
}

// parseNumber reads a part of an IPv4 address: decimal, octal or hexadecimal.
func parseNumber(text string) (uint64, bool) {
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

func parseIPv4(parts []string) (string, error) {
	if len(parts) > 4 {
		return "", fmt.Errorf("the address %q", parts)
	}
	var addr uint64
	for i, part := range parts {
		n, ok := parseNumber(part)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if !ok || n >= 1<<bits {
			return "", fmt.Errorf("the address %q", parts)
		}
		if bits == 8 && i < len(parts)-1 {
			addr |= n << (24 - 8*i)
		} else {
			addr |= n
		}
	}
	return netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}).String(), nil
}

// removeDotSegments removes the dot segments of a path, as a browser does before the request.
func removeDotSegments(path string) (kept []string) {
	parts := strings.Split(strings.TrimPrefix(strings.ReplaceAll(path, `\`, "/"), "/"), "/")
	for i, part := range parts {
		switch strings.ReplaceAll(strings.ToLower(part), "%2e", ".") {
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		case ".":
		default:
			kept = append(kept, part)
			continue
		}
		if i == len(parts)-1 {
			kept = append(kept, "")
		}
	}
	return kept
}

func TestParseAsBrowser(t *testing.T) {
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
		r, err := parseAsBrowser(address, "https")
		if got := fmt.Sprintf("%s %s", r.origin, r.path); err != nil || got != want {
			t.Errorf("%q is read as %q, %v, want %q", address, got, err, want)
		}
	}
}

// Every accepted address is, to a browser, at an origin of the list and below its path,
// has no user before an @, and a browser parses it like the address that was requested. The first
// argument of the function is an additional entry of the list.
func FuzzFoundAddressesAreInTheList(f *testing.F) {
	for i, address := range hostile {
		f.Add([]string{"https://mail.example.com/inbox", "https://own.example:8443", "http://localhost:3000/a.b/"}[i%3], address)
	}
	for _, address := range []string{"https://own.example:8443/x?y#z", "http://LOCALHOST:3000/a.b/c", "https://app.example.com/%2e", "http://127.0.0.1:80"} {
		f.Add("http://localhost:3000/a.b/", address)
	}
	f.Fuzz(func(t *testing.T, entry, address string) {
		l, entries := list(t), []string{ // those of list, each with a slash at the end
			"https://app.example.com/", "https://mail.example.com/inbox/", "https://shop.example.com:8443/a/b/",
			"http://localhost:3000/", "http://127.0.0.1/", "https://xn--bcher-kva.example/",
		}
		if p, err := Parse(entry); err == nil {
			if strings.Trim(p.Origin(), "abcdefghijklmnopqrstuvwxyz0123456789-.:/") != "" {
				t.Errorf("the entry %q puts %q into a Content-Security-Policy", entry, p.Origin())
			}
			l, entries = append(l, p), append(entries, strings.TrimSuffix(entry, "/")+"/")
		}
		to, origin, ok := l.Find(address)
		if !ok {
			return
		}
		for _, pageScheme := range []string{"http", "https"} {
			asked, err := parseAsBrowser(address, pageScheme)
			found, errFound := parseAsBrowser(to, pageScheme)
			if err != nil || errFound != nil || fmt.Sprint(asked) != fmt.Sprint(found) {
				t.Fatalf("%q is read as %q, %v, and leads to %q, read as %q, %v", address, asked, err, to, found, errFound)
			}
			if found.origin != origin || found.user != "" || !slices.ContainsFunc(entries, func(entry string) bool { return isBelow(t, entry, found) }) {
				t.Errorf("%q leads to %q, read as %q at %q", address, to, found, origin)
			}
		}
		if len(to) > MaxLength+1 || !strings.HasPrefix(to, origin+"/") || strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
			t.Errorf("%q leads to %q, which a browser may read otherwise", address, to)
		}
	})
}

// isBelow reports whether the address is at the origin of the entry and below its path.
// The entry ends in a slash.
func isBelow(t *testing.T, entry string, found browserURL) bool {
	t.Helper()
	base, err := parseAsBrowser(entry, "https")
	if err != nil {
		t.Errorf("the entry %q is accepted, but is no address: %v", entry, err)
		return false
	}
	prefix := base.path[:len(base.path)-1]
	return base.origin == found.origin && base.user == "" && base.rest == "" && len(found.path) >= len(prefix) && slices.Equal(found.path[:len(prefix)], prefix)
}
