package front

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/internal/secret"
)

// Names of the cookies; see Site.cookieName. SessionCookie is the default of Site.Cookie.
const (
	SessionCookie = "JSESSIONID"
	DeviceCookie  = "doorward_device"
	// OperatorCookie is of the operator's page alone.
	OperatorCookie = "doorward_operator"
)

// hostPrefix makes browsers take a cookie only from this host itself, over https and for all paths
// (RFC 6265bis, section 4.1.3.2). Without it, another host of the same domain can set the cookie.
const hostPrefix = "__Host-"

// cookieName returns the name under which browsers get a cookie other than the session's: with
// hostPrefix where that is possible.
func (s *Site) cookieName(name string) string {
	if s.base.Scheme == "https" && s.BasePath() == "" {
		return hostPrefix + name
	}
	return name
}

// maxCookies is how many cookies of one name are read: another host can set one with this name on a
// parent domain, and browsers send both in any order.
const maxCookies = 4

// cookies returns the different values of the cookie, at most maxCookies.
func (s *Site) cookies(r *http.Request, name string) (values []string) {
	for _, cookie := range r.CookiesNamed(s.cookieName(name)) {
		if len(values) < maxCookies && cookie.Value != "" && !slices.Contains(values, cookie.Value) {
			values = append(values, cookie.Value)
		}
	}
	return values
}

// maxCookieName is the greatest length of the session cookie's name, in characters.
const maxCookieName = 64

// CookieNameFault says why the session cookie can't have the name with the base URL;
// empty: it can. Prefixes that begin with two underscores have a meaning to browsers, and
// later browsers may know more of them. Doorward's other cookies begin with doorward_.
func CookieNameFault(name string, base *url.URL) (fault string) {
	plain, isHost := strings.CutPrefix(name, hostPrefix)
	known := isHost || strings.HasPrefix(name, "__Secure-")
	switch {
	case name == "" || len(name) > maxCookieName || strings.ContainsFunc(name, func(r rune) bool { return !inToken(r) }):
		return "write 1 to 64 letters, digits or any of !#$%&'*+-.^_`|~."
	case strings.HasPrefix(plain, "doorward_"):
		return "names that begin with doorward_ are for Doorward's other cookies."
	case strings.HasPrefix(name, "__") && !known:
		return "of the names that begin with two underscores only __Host-… and __Secure-… have a meaning."
	case name == hostPrefix || name == "__Secure-":
		return "write a name after the prefix."
	case known && base.Scheme != "https":
		return "browsers take a cookie of this name over https only, and --base-url is not https."
	case isHost && strings.Trim(base.Path, "/") != "":
		return "a __Host- cookie is for a whole host, and --base-url has a path."
	}
	return ""
}

// inToken reports whether the character may be in a cookie's name (RFC 6265, section
// 4.1.1; RFC 9110, section 5.6.2).
func inToken(r rune) bool {
	return isSafeChar(r) || strings.ContainsRune("!#$%&'*+^`|~", r)
}

// SessionTokens returns the different session identifiers in the cookies of a request,
// as many as its headers may hold (node's limit of 32 KiB). Values of another form are
// skipped: a Tomcat on the same host uses the same name.
func (s *Site) SessionTokens(r *http.Request) (all []secret.Token) {
	var seen []string // the same token always has the same text
	for _, line := range r.Header["Cookie"] {
		for value, token, rest, ok := nextSession(line, s.Cookie); ok; value, token, rest, ok = nextSession(rest, s.Cookie) {
			if slices.Contains(seen, value) {
				continue
			}
			seen, all = append(seen, value), append(all, token)
		}
	}
	return all
}

// AllSessionTokens returns the session identifiers of a request wherever they may be:
// those of SessionTokens, and what bearer credentials add.
func (s *Site) AllSessionTokens(r *http.Request) []secret.Token {
	all := s.SessionTokens(r)
	for _, value := range r.Header["Authorization"] {
		text, _ := bearerIn(value)
		token, err := secret.Parse(text)
		known := slices.ContainsFunc(all, func(t secret.Token) bool { return t.Reveal() == text })
		if err == nil && !known {
			all = append(all, token)
		}
	}
	return all
}

// nextSession returns the first session identifier of a Cookie header (RFC 6265, section
// 4.2.1), as text and parsed, and the rest of the header. It doesn't allocate. A quoted
// value is no session identifier.
func nextSession(line, name string) (value string, token secret.Token, rest string, ok bool) {
	for line != "" {
		var pair string
		pair, line, _ = strings.Cut(line, ";")
		value, isNamed := strings.CutPrefix(strings.Trim(pair, " \t"), name)
		value, isPair := strings.CutPrefix(value, "=")
		if !isNamed || !isPair {
			continue
		}
		if token, err := secret.Parse(value); err == nil {
			return value, token, line, true
		}
	}
	return "", token, "", false
}

// SoleSession returns the session token of the request, and whether it is the only
// credential. It is the common case, and doesn't allocate.
func (s *Site) SoleSession(r *http.Request) (secret.Token, bool) {
	lines, authorization := r.Header["Cookie"], r.Header["Authorization"]
	switch {
	case len(authorization) == 1:
		return s.soleBearerSession(lines, authorization[0])
	case len(authorization) > 1 || len(lines) != 1:
		return secret.Token{}, false
	}
	_, token, rest, ok := nextSession(lines[0], s.Cookie)
	if !ok {
		return secret.Token{}, false
	}
	_, _, _, more := nextSession(rest, s.Cookie)
	return token, !more
}

func (s *Site) soleBearerSession(cookies []string, authorization string) (secret.Token, bool) {
	if s.hasSession(cookies) {
		return secret.Token{}, false
	}
	text, _ := bearerIn(authorization)
	token, err := secret.Parse(text)
	return token, err == nil
}

// SoleKey returns the API key of the request, and whether it is the only credential. It doesn't
// allocate.
func (s *Site) SoleKey(r *http.Request) (secret.Key, bool) {
	authorization := r.Header["Authorization"]
	if len(authorization) != 1 || s.hasSession(r.Header["Cookie"]) {
		return secret.Key{}, false
	}
	text, _ := bearerIn(authorization[0])
	if !strings.HasPrefix(text, apikey.Prefix) {
		return secret.Key{}, false
	}
	key, err := secret.ParseKey(text)
	return key, err == nil
}

func (s *Site) hasSession(cookies []string) bool {
	for _, line := range cookies {
		if _, _, _, ok := nextSession(line, s.Cookie); ok {
			return true
		}
	}
	return false
}

// HasBearer reports whether the request has a bearer credential, valid or not. A page of
// another origin can't make a browser send one, unless the requested service allows that
// by CORS.
func HasBearer(h http.Header) bool {
	_, has := bearerOf(h)
	return has
}

// bearerOf returns the bearer credential. With several Authorization headers it is empty,
// which is invalid: servers differ in which one counts.
func bearerOf(h http.Header) (text string, has bool) {
	all := h["Authorization"]
	for _, value := range all {
		if found, isBearer := bearerIn(value); isBearer {
			text, has = found, true
		}
	}
	if len(all) > 1 {
		text = ""
	}
	return text, has
}

// bearerIn returns what follows the scheme Bearer (RFC 6750, section 2.1), in any letter
// case. A tab after the scheme makes the credential invalid.
func bearerIn(authorization string) (text string, isBearer bool) {
	value := strings.Trim(authorization, " \t")
	end := strings.IndexAny(value, " \t")
	if end < 0 {
		end = len(value)
	}
	if !strings.EqualFold(value[:end], "Bearer") {
		return "", false
	}
	return strings.TrimLeft(value[end:], " "), true
}
