package smtp

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// security says how a connection to a mail server becomes TLS.
type security int

const (
	tlsWhenOffered security = iota // STARTTLS if the server has it
	tlsRequired                    // STARTTLS or failure
	tlsNone                        // never STARTTLS
	tlsImplicit                    // from the first byte
)

// A destination is a mail server as configured.
type destination struct {
	host, port     string
	user, password string // both empty: no authentication
	security       security
}

func (d destination) addr() string { return net.JoinHostPort(d.host, d.port) }

// String leaves the password out.
func (d destination) String() string { return d.addr() }

// GoString leaves the password out of %#v.
func (d destination) GoString() string { return d.addr() }

// The texts are constant: an error that quotes its input could quote the password.
var (
	errDestination = errors.New("mail destination: write smtp://user:password@host:port or smtps://…; in user and password write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23, % as %25")
	errTrailing    = errors.New("mail destination: nothing may follow host:port but ?tls=require or ?tls=none; in user and password write / as %2F, ? as %3F, # as %23")
	errTLS         = errors.New("mail destination: write one of ?tls=require and ?tls=none, or leave it out to use STARTTLS when the server offers it")
	errPort        = errors.New("mail destination: the port is a number from 1 to 65535: write host:port")
	errHalfLogin   = errors.New("mail destination: user and password come together: write smtp://user:password@host:port, or smtp://host:port for neither")
	errControl     = errors.New("mail destination: user and password must not contain control characters")
	errTLSPort     = errors.New("mail destination: port 465 speaks TLS from the first byte: write smtps://…:465, or smtp://…:587")
	errPlainPort   = errors.New("mail destination: ports 25 and 587 begin in the clear and change to TLS by STARTTLS: write smtp:// with ?tls=require, or smtps:// with port 465")
	errNoneSecure  = errors.New("mail destination: smtps:// is TLS, which contradicts ?tls=none: write smtp://…?tls=none, or smtps:// alone")
	errNoneLogin   = errors.New("mail destination: a password does not cross the network without TLS: leave ?tls=none out, or leave user and password out")
)

// parseDestination reads smtp://… and smtps://…. No error repeats any of it.
func parseDestination(s string) (destination, error) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return destination{}, errDestination
	}
	if u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return destination{}, errTrailing
	}
	d := destination{host: u.Hostname(), port: u.Port()}
	if d.user, d.password, err = parseLogin(u.User); err != nil {
		return destination{}, err
	}
	if d.security, err = parseSecurity(u.Scheme, u.RawQuery); err != nil {
		return destination{}, err
	}
	if d.port == "" {
		d.port = defaultPort(d)
	}
	if err := d.validate(); err != nil {
		return destination{}, err
	}
	return d, nil
}

func parseLogin(u *url.Userinfo) (user, password string, err error) {
	if u == nil {
		return "", "", nil
	}
	user = u.Username()
	password, _ = u.Password()
	if user == "" || password == "" {
		return "", "", errHalfLogin
	}
	if strings.ContainsFunc(user+password, unicode.IsControl) { // NUL separates the fields of AUTH PLAIN
		return "", "", errControl
	}
	return user, password, nil
}

func parseSecurity(scheme, query string) (security, error) {
	isImplicit := scheme == "smtps"
	switch query {
	case "":
		if isImplicit {
			return tlsImplicit, nil
		}
		return tlsWhenOffered, nil
	case "tls=require":
		if isImplicit {
			return tlsImplicit, nil
		}
		return tlsRequired, nil
	case "tls=none":
		if isImplicit {
			return 0, errNoneSecure
		}
		return tlsNone, nil
	}
	if strings.HasPrefix(query, "tls=") {
		return 0, errTLS
	}
	return 0, errTrailing
}

func defaultPort(d destination) string {
	switch {
	case d.security == tlsImplicit:
		return "465"
	case d.user != "":
		return "587"
	}
	return "25"
}

// validate checks the port, and finds valid parts that contradict each other. A password for a
// remote host is accepted without ?tls=require, because needsTLS then requires TLS.
func (d destination) validate() error {
	if n, err := strconv.ParseUint(d.port, 10, 16); err != nil || n == 0 {
		return errPort
	}
	switch {
	case d.port == "465" && d.security != tlsImplicit:
		return errTLSPort
	case (d.port == "25" || d.port == "587") && d.security == tlsImplicit:
		return errPlainPort
	case d.security == tlsNone && d.user != "" && !d.isLoopback():
		return errNoneLogin
	}
	return nil
}

// needsTLS reports whether a connection without implicit TLS must change to TLS, as it always
// must for a password on a network.
func (d destination) needsTLS() bool {
	return d.security == tlsRequired || d.user != "" && !d.isLoopback()
}

// isLoopback doesn't resolve the host; RFC 6761 section 6.3 keeps localhost on this machine.
func (d destination) isLoopback() bool {
	ip := net.ParseIP(d.host)
	return strings.EqualFold(d.host, "localhost") || ip != nil && ip.IsLoopback()
}
