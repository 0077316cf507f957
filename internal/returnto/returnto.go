// Package returnto decides to which external addresses people may be redirected:
// those at the origins, or below the paths, of a list.
//
//	inbox, err := returnto.Parse("https://app.example.com/inbox/")
//	to, origin, ok := returnto.List{inbox}.Find("https://app.example.com/inbox/42?new#end")
//
// # What is compared
//
// Origins exactly: scheme, host and port, ignoring letter case and the scheme's
// default port. Paths by segment: /inbox is above /inbox/42 and not above /inboxes.
//
// # Only unambiguous addresses
//
// Browsers (WHATWG URL Standard), servers and net/url read unusual addresses
// differently: https:evil.example, https:\\evil.example, a host behind @,
// percent-encoded or with a tab in it. An address is therefore refused unless all
// read it the same way: printable ASCII, as browsers write it (location.href),
// scheme://host/ without user or empty host, and in the path no dot segments, empty
// segments, backslashes or control characters in any spelling. In addition, a returned
// address begins with the origin from the list, then a slash, so that it can't be read
// as another origin.
package returnto

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// MaxLength limits an address, in bytes. It is passed on in queries, escaped, and in
// the Location header, for which nginx has 4 KiB by default (proxy_buffer_size).
const MaxLength = 2048

// Place is an origin, or a part of one.
type Place struct {
	Scheme string // http or https
	Host   string // a name in lower-case ASCII, or an IPv4 address
	origin string
	path   string // without a slash at the end; empty for the whole origin
}

// Parse reads an entry of a list: an origin, or one with a path. A trailing slash makes
// no difference. The error says what to write instead.
func Parse(text string) (Place, error) {
	if err := checkMistakes(text); err != nil {
		return Place{}, err
	}
	p, rest, ok := split(text)
	if !ok {
		return Place{}, errors.New("write an origin, as in https://app.example.com, or one with a path, as in https://app.example.com/inbox/")
	}
	p.path = strings.TrimSuffix(rest, "/")
	if p.path != "" && !isCanonical(p.path) {
		return Place{}, errors.New("write the path as people see it, like /inbox/: without % or ;, empty parts, . and .. in it")
	}
	return p, nil
}

// checkMistakes finds common mistakes, to give a specific error.
func checkMistakes(text string) error {
	_, after, _ := strings.Cut(text, "://")
	authority, _ := cutAny(after, "/?#")
	switch {
	case strings.Contains(text, "*"):
		return errors.New("* is not a wildcard here: write out each origin")
	case strings.Contains(authority, "@"):
		return errors.New("leave out the name and the password before the @")
	case strings.ContainsAny(text, "?#"):
		return errors.New("it may have a host and a path, no ? or #")
	case strings.HasPrefix(authority, "["):
		return errors.New("browsers take no IPv6 address in the policy of a page (form-action). Write a name, as in https://app.example.com")
	case strings.ContainsFunc(text, func(r rune) bool { return r > 0x7f }):
		return errors.New("write it in ASCII as the address bar gives it when copied, like https://xn--bcher-kva.example")
	}
	return nil
}

// isCanonical reports whether the path of an entry has no other spelling: it has no % or ;, and
// no part is empty, "." or "..".
func isCanonical(path string) bool {
	parts := strings.Split(path[1:], "/")
	return !strings.ContainsAny(path, "%;") && !slices.ContainsFunc(parts, func(part string) bool {
		return part == "" || part == "." || part == ".."
	})
}

// Origin is scheme, host and port; the scheme's default port is omitted.
func (p Place) Origin() string { return p.origin }

// covers reports whether the path at the origin is in the place.
func (p Place) covers(origin, path string) bool {
	return origin == p.origin && (p.path == "" || path == p.path || strings.HasPrefix(path, p.path+"/"))
}

// List are the places that people may be redirected to. An empty one allows none.
type List []Place

// Find returns the address to send to a browser, and its origin, if it is in a place of
// the list.
func (l List) Find(address string) (to, origin string, ok bool) {
	if len(address) > MaxLength {
		return "", "", false
	}
	place, rest, ok := split(address)
	if !ok {
		return "", "", false
	}
	if !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	path, _ := cutAny(rest, "?#")
	if !isUnambiguous(path) {
		return "", "", false
	}
	for _, p := range l {
		if p.covers(place.origin, path) {
			return p.origin + rest, p.origin, true
		}
	}
	return "", "", false
}

// split returns the origin of an address, as a place, and the rest: empty, or beginning
// with one of / ? #.
func split(address string) (p Place, rest string, ok bool) {
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return p, "", false
	}
	scheme, after, found := strings.Cut(address, "://")
	authority, rest := cutAny(after, "/?#")
	host, port, hasPort := strings.Cut(authority, ":")
	p.Scheme, p.Host = strings.ToLower(scheme), strings.ToLower(host)
	defaultPort := map[string]string{"http": "80", "https": "443"}[p.Scheme]
	if !found || defaultPort == "" || !isHost(p.Host) || hasPort && !isPort(port) {
		return Place{}, "", false
	}
	p.origin = p.Scheme + "://" + p.Host
	if hasPort && port != defaultPort {
		p.origin += ":" + port
	}
	return p, rest, true
}

// cutAny cuts the text before the first character that is one of these.
func cutAny(text, chars string) (before, rest string) {
	if i := strings.IndexAny(text, chars); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// isPort refuses :080: browsers read it as :80, a second spelling.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == text
}

// isHost accepts names of letters, digits and hyphens (RFC 1123, section 2.1), which a
// Content-Security-Policy can also name, and IPv4 addresses. Browsers read every host
// whose last label is a number as an address, also 127.1 and 0x7f.1.
func isHost(host string) bool {
	labels := strings.Split(host, ".")
	if isNumber(labels[len(labels)-1]) {
		_, err := netip.ParseAddr(host)
		return err == nil
	}
	return len(host) <= 253 && !slices.ContainsFunc(labels, func(label string) bool { return !isLabel(label) })
}

// isNumber is the URL Standard's "ends in a number" for one label.
func isNumber(label string) bool {
	digits, allowed := label, "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		digits, allowed = hex, "0123456789abcdef"
	}
	return label != "" && strings.Trim(digits, allowed) == ""
}

func isLabel(label string) bool {
	return label != "" && len(label) <= 63 && label[0] != '-' && label[len(label)-1] != '-' &&
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// isUnambiguous reports whether a path stays below its prefix for browsers, which resolve
// /%2e%2e/ as /../, and for servers, which may also resolve /..%2f and /..;x/. It refuses
// empty parts too, except at the end, since some servers merge slashes.
func isUnambiguous(path string) bool {
	decoded, err := url.PathUnescape(path)
	if err != nil || strings.ContainsFunc(decoded, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return false
	}
	parts := strings.Split(decoded, "/")[1:]
	for i, part := range parts {
		name, _, _ := strings.Cut(part, ";")
		if name == "." || name == ".." || name == "" && i < len(parts)-1 {
			return false
		}
	}
	return true
}
