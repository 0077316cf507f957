// Package siteurl reads the address of a site, as an operator writes it, in the form in which
// browsers send it: in links, in the header Origin, in cookies.
//
//	u, err := siteurl.Parse("https://Bücher.example:443/platform/")
//	// https://xn--bcher-kva.example/platform
//
// What browsers and servers read in more than one way is refused: empty segments of the path, dot
// segments, percent-encoding, and hosts that end in a number without being an IPv4 address.
package siteurl

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Parse returns scheme, host and path of an http or https address: the host in lower-case ASCII,
// with A-labels ("xn--…") for an internationalised name, and without a dot at the end; the port
// without leading zeros, and left out if it is the scheme's own; the path without a slash at the
// end. The error says what to write instead and never repeats the input.
func Parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case strings.Contains(text, "@"):
		return nil, errors.New("leave out the name and the password before the @")
	case strings.ContainsAny(text, "?#"):
		return nil, errors.New("it may have a host and a path, nothing else")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("write the address that people open, for example https://auth.example.com")
	}
	host, err := hostOf(u.Scheme, u.Hostname(), u.Port())
	if err != nil {
		return nil, err
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	if !cleanPath.MatchString(path) || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") {
		return nil, errors.New("write its path like /platform: letters, digits and any of -._~ between single slashes, without . and .. as a part")
	}
	return &url.URL{Scheme: u.Scheme, Host: host, Path: path}, nil
}

// Origin returns scheme, host and port of an address that Parse has returned.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// cleanPath matches a path that no browser, proxy or server writes in another way, and which can be part
// of a pattern of http.ServeMux.
var cleanPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`)

// hostOf returns host and port.
func hostOf(scheme, name, port string) (string, error) {
	name, err := canonicalHost(name)
	if err != nil || port == "" {
		return name, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", errors.New("the port is a number from 1 to 65535")
	}
	if n == map[string]uint64{"http": 80, "https": 443}[scheme] {
		return name, nil
	}
	return name + ":" + strconv.FormatUint(n, 10), nil
}

// canonicalHost returns the name or address as browsers write it.
func canonicalHost(name string) (string, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return canonicalAddr(addr)
	}
	name = strings.TrimSuffix(name, ".")
	if isInternational.MatchString(name) {
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", errors.New("browsers take no such host name. Write it as the address bar gives it when copied, like https://xn--bcher-kva.example")
		}
		name = ascii
	}
	name = strings.ToLower(name)
	if len(name) > 253 || !dnsName.MatchString(name) || endsInNumber.MatchString(name) {
		return "", errors.New("write a host name like auth.example.com, or an address")
	}
	return name, nil
}

// isInternational matches a name with a character beyond ASCII, or with an A-label, which browsers decode to
// see whether it is one.
var isInternational = regexp.MustCompile(`[^\x00-\x7f]|(?i)(^|\.)xn--`)

// canonicalAddr refuses forms that browsers don't take (zones) or write differently (mapped IPv4).
func canonicalAddr(addr netip.Addr) (string, error) {
	switch {
	case addr.Zone() != "" || addr.Is4In6():
		return "", errors.New("write the IP address without a zone, and an IPv4 address as 192.0.2.1")
	case addr.Is6():
		return "[" + addr.String() + "]", nil
	}
	return addr.String(), nil
}

// dnsName takes underscores, too: names of containers have them.
var dnsName = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$`)

// endsInNumber matches what browsers read as an IPv4 address (URL Standard, "ends in a number").
var endsInNumber = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)
