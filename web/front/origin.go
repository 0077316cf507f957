package front

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward"
)

// isAPI reports whether the path, without the base URL's, is one of the API: pages of the origins in
// Site.AllowedOrigins may use these paths alone.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// sameOrigin refuses requests that a browser sends from a page of another origin (CSRF).
// It needs no token: browsers state the origin, and other clients don't send cookies
// automatically.
func (s *Site) sameOrigin(r *http.Request) error {
	switch {
	case Safe(r.Method), isAPI(r) && s.isAllowed(r.Header):
		return nil
	}
	return s.originFault(r.Header)
}

// CheckOrigin returns cross_origin when the headers are those of a request to the API, or to a service
// behind a gateway, that a browser sent from a page of another origin, unless it is allowed.
func (s *Site) CheckOrigin(h http.Header) error {
	if s.isAllowed(h) {
		return nil
	}
	return s.originFault(h)
}

// originFault returns cross_origin, with the origins that were sent and expected, for the headers of
// a request from a page of another origin; else nil.
func (s *Site) originFault(h http.Header) error {
	site, origin := h.Get("Sec-Fetch-Site"), h.Get("Origin")
	switch {
	case site == "same-origin" || site == "none":
		return nil
	case site == "" && (len(h.Values("Origin")) == 0 || sameHost(origin, s.base.Scheme, s.base.Host)):
		return nil
	}
	return doorward.Fail(doorward.CodeCrossOrigin, "%s", CrossOriginDetail(SentOrigin(h), s.Origin()))
}

// CrossOriginDetail says what is wrong with a request from a page of the origin sent, and what to do
// about it.
func CrossOriginDetail(sent, own string) string {
	advice := "Open this server's pages at its own origin. To let pages of the other use the API, the operator adds it to --allowed-origins; if people reach this server there, --base-url is wrong."
	switch {
	case sent == own:
		advice = "The header Sec-Fetch-Site says otherwise: a proxy or an extension has changed the request."
	case sent == hiddenOrigin:
		advice = "The browser hides the origin: of a file, of a frame with the attribute sandbox, or because of a Referrer-Policy that a proxy sets."
	case sent == unknownOrigin:
		advice = "The browser doesn't say which one. Pages of other origins may use the API if the operator adds them to --allowed-origins."
	}
	return fmt.Sprintf("The request came from a page of %s, and this server is %s (--base-url). %s", sent, own, advice)
}

// What SentOrigin returns for a request that doesn't say its origin.
const (
	hiddenOrigin  = "null"
	unknownOrigin = "another origin"
)

// maxOrigin is the greatest length of an origin that is repeated, in bytes: that of a host name, with
// scheme and port.
const maxOrigin = 253 + len("https://:65535")

// SentOrigin returns the header Origin if it is an origin or "null", else unknownOrigin, to be shown.
func SentOrigin(h http.Header) string {
	origin := h.Get("Origin")
	if origin == hiddenOrigin {
		return origin
	}
	u, err := url.Parse(origin)
	if err != nil || len(origin) > maxOrigin || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return unknownOrigin
	}
	return origin
}

// sameHost compares an Origin header with scheme and host, ignoring letter case, the scheme's
// default port, and a dot at the end of the name, which people can write.
func sameHost(origin, scheme, host string) bool {
	port := map[string]string{"http": ":80", "https": ":443"}[scheme]
	norm := func(h string) string {
		h = strings.TrimSuffix(strings.ToLower(h), port)
		return strings.TrimSuffix(strings.Replace(h, ".:", ":", 1), ".")
	}
	rest, ok := strings.CutPrefix(strings.ToLower(origin), scheme+"://")
	return ok && norm(rest) == norm(host)
}

// FromElsewhere reports whether a page of another site has led the browser here. The own pages, an address
// that was typed or bookmarked, and other hosts of the site are none.
func (c *Call) FromElsewhere() bool {
	h := c.R.Header
	if site := h.Get("Sec-Fetch-Site"); site != "" {
		return site == "cross-site"
	}
	if origin := h.Get("Origin"); origin != "" {
		return !sameHost(origin, c.site.base.Scheme, c.site.base.Host)
	}
	referrer, err := url.Parse(h.Get("Referer"))
	return err != nil || referrer.Host != "" && !sameHost(referrer.Scheme+"://"+referrer.Host, c.site.base.Scheme, c.site.base.Host)
}

// isAllowed reports whether the request comes from a page of one of AllowedOrigins.
func (s *Site) isAllowed(h http.Header) bool {
	origin := h["Origin"]
	return len(origin) == 1 && slices.Contains(s.AllowedOrigins, origin[0])
}

// exposedHeaders are those of an answer that pages of AllowedOrigins may read.
const exposedHeaders = "X-Request-Id, ETag, Retry-After, WWW-Authenticate, X-Revocation-Nodes, X-Revocation-Ms, RateLimit, RateLimit-Policy"

// Share sets the headers with which a browser shows an answer of the API to the pages of
// AllowedOrigins (CORS; Fetch Standard, section 3.2).
func (s *Site) Share(h http.Header, r *http.Request) {
	if len(s.AllowedOrigins) == 0 {
		return
	}
	h.Add("Vary", "Origin")
	if !s.isAllowed(r.Header) {
		return
	}
	h["Access-Control-Allow-Origin"] = r.Header["Origin"]
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", exposedHeaders)
}

// preflightAge is how long a browser may keep the answer to a preflight, in seconds: the longest that
// Chromium keeps it.
const preflightAge = "7200"

// preflight answers OPTIONS for a page of AllowedOrigins, for which Share has set its headers, with these
// methods and the headers that the browser asks for.
func preflight(w http.ResponseWriter, r *http.Request, methods string) {
	h := w.Header()
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", methods)
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", preflightAge)
	w.WriteHeader(http.StatusNoContent)
}

// refuseMethod is the refusal of a method. A preflight of a page that isn't allowed learns what would
// allow it.
func (s *Site) refuseMethod(r *http.Request) error {
	if r.Method != http.MethodOptions || !isAPI(r) || r.Header.Get("Access-Control-Request-Method") == "" {
		return doorward.Fail(doorward.CodeMethodNotAllowed, "")
	}
	infoOf(r).refusedOrigin = SentOrigin(r.Header)
	return doorward.Fail(doorward.CodeMethodNotAllowed, "%s", CrossOriginDetail(SentOrigin(r.Header), s.Origin()))
}
