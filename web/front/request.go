package front

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	pathpkg "path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/telemetry"
	"github.com/doorward/doorward/internal/trace"
)

// requestInfo is what the pipeline knows of a request.
type requestInfo struct {
	id string
	// client ends when the client has gone.
	client context.Context
	path   string // as sent: percent-encoded, before the base path is stripped
	// counts is nil where requests are counted elsewhere.
	counts *telemetry.Route
	check  bool // see Route.Check
	// page: the route is for browsers, and takes a session from the cookie only.
	page bool
	// viewOnly: see doorward.Caller.
	viewOnly bool
	// logLimited: log lines about it are limited, see Site.outage.
	logLimited bool
	// code is that of the refusal; empty if it wasn't refused by a problem.
	code doorward.Code
	// replayed: the answer was given before, see IdempotencyKey.
	replayed bool
	// refusedOrigin is the other origin that the request was refused for; empty: it wasn't.
	refusedOrigin string
	began         time.Time
	span          *trace.Span     // nil unless the request is traced
	trace         string          // id of its trace, or empty
	proxies       *[]netip.Prefix // trusted when the request arrived; nil if it didn't pass harden
	// Ids of the caller, empty if unknown.
	userID, tenantID, keyID string
}

// setCaller sets the caller for the log line.
func (i *requestInfo) setCaller(by doorward.Caller) {
	i.userID, i.tenantID, i.keyID = by.ID, by.TenantID, ""
	if by.Kind != doorward.ByUser {
		i.userID, i.keyID = "", by.ID
	}
}

// callerIDs identifies the caller by ids: e-mail addresses stay out of the log.
func (i *requestInfo) callerIDs() (attrs []slog.Attr) {
	for _, a := range []slog.Attr{slog.String("user", i.userID), slog.String("tenant", i.tenantID), slog.String("key", i.keyID)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	return attrs
}

// withTraceID adds the trace id to a log line, if there is one.
func (i *requestInfo) withTraceID(attrs ...slog.Attr) []slog.Attr {
	if i.trace == "" {
		return attrs
	}
	return append(attrs, slog.String("traceId", i.trace))
}

type infoKey struct{}

func infoOf(r *http.Request) *requestInfo {
	if i, ok := r.Context().Value(infoKey{}).(*requestInfo); ok {
		return i
	}
	return &requestInfo{path: r.URL.EscapedPath()}
}

func path(r *http.Request) string { return infoOf(r).path }

// tokenLike matches what could be a token in a path. Doorward's ids are shorter.
var tokenLike = regexp.MustCompile(`[A-Za-z0-9_-]{43,}`)

// loggable returns the path with anything that could be a token masked, percent-encoded
// or not. Links in mails carry tokens in the fragment, which browsers don't send, but
// people edit links by hand.
func loggable(path string) string {
	if len(path) < lengthOfToken {
		return path
	}
	if plain, err := url.PathUnescape(path); err == nil && tokenLike.MatchString(plain) {
		path = plain
	}
	return tokenLike.ReplaceAllString(path, "…")
}

// lengthOfToken is the length of 256 bits in base64url.
const lengthOfToken = 43

// requestID returns the incoming id if it has 1 to 128 safe characters, else a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if len(id) < 1 || len(id) > maxRequestID || strings.ContainsFunc(id, func(c rune) bool { return !isSafeChar(c) }) {
		return doorward.NewID(doorward.PrefixRequest)
	}
	return id
}

// maxRequestID is the greatest length of an id that is written to the log and the trail.
const maxRequestID = 128

// keepVisibleID answers with any X-Request-Id of visible ASCII characters, as AuthZEN
// demands. One that is too long for the log is only in the answer's header.
func (c *Call) keepVisibleID() {
	id := c.R.Header.Get("X-Request-Id")
	if id == "" || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return
	}
	c.W.Header()["X-Request-Id"] = []string{id}
	if len(id) <= maxRequestID {
		info := infoOf(c.R)
		info.id = id
		info.span.Set("doorward.request.id", id)
	}
}

// isSafeChar reports whether the character needs no escaping in a header, a log or a URL.
func isSafeChar(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// recorder remembers the status.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (s *Site) answerPanic(w *recorder, r *http.Request, p any) {
	if p == http.ErrAbortHandler {
		panic(p)
	}
	err := &doorward.Error{Code: doorward.CodeInternal, Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
	if w.status == 0 {
		s.Fail(w, r, err)
		return
	}
	s.logFailure(r, err)
}

func allowed[T any](byMethod map[string]T) string {
	var all []string
	for m := range byMethod {
		all = append(all, m)
		if m == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// clientIP is ClientAddr as text, or the peer's RemoteAddr if that is no address.
func (s *Site) clientIP(r *http.Request) string {
	proxies := infoOf(r).proxies
	if proxies == nil {
		proxies = s.proxies.Load()
	}
	if addr := clientAddr(r, *proxies); addr.IsValid() {
		return addr.String()
	}
	return r.RemoteAddr
}

// ClientAddr reads X-Forwarded-For from the right, past trusted proxies, to the first
// other address: entries further left can be forged. It stops before an entry that is no
// address. It returns the zero Addr if the peer has no address, and doesn't allocate for
// well-formed addresses.
func (s *Site) ClientAddr(r *http.Request) netip.Addr { return clientAddr(r, *s.proxies.Load()) }

func clientAddr(r *http.Request, proxies []netip.Prefix) netip.Addr {
	addr := parseHost(r.RemoteAddr)
	lines := r.Header["X-Forwarded-For"]
	for n := len(lines) - 1; n >= 0; n-- {
		for rest, more := lines[n], true; more; {
			if !trusted(proxies, addr) {
				return addr
			}
			var hop string
			if at := strings.LastIndexByte(rest, ','); at >= 0 {
				rest, hop = rest[:at], rest[at+1:]
			} else {
				hop, more = rest, false
			}
			next := parseHost(strings.TrimSpace(hop))
			if !next.IsValid() {
				return addr
			}
			addr = next
		}
	}
	return addr
}

// Stated returns what a trusted gateway says about the request that it asks about.
func (s *Site) Stated(r *http.Request) (stated doorward.StatedRequest) {
	if !trusted(*s.proxies.Load(), parseHost(r.RemoteAddr)) {
		return stated
	}
	for _, part := range []struct {
		state   func(*doorward.StatedRequest, string)
		headers []string
	}{
		{stateMethod, []string{"X-Forwarded-Method", "X-Original-Method"}},
		{stateHost, []string{"X-Forwarded-Host"}},
		{statePath, []string{"X-Forwarded-Uri", "X-Original-Uri"}},
	} {
		if value, found := statedIn(r.Header, part.headers); found {
			part.state(&stated, value)
		}
	}
	return stated
}

// stateMethod, stateHost and statePath add a statement, which can be unreadable.
func stateMethod(s *doorward.StatedRequest, v string) { state(s, &s.Method, "method", statedMethod(v)) }
func stateHost(s *doorward.StatedRequest, v string)   { state(s, &s.Host, "host", statedHost(v)) }
func statePath(s *doorward.StatedRequest, v string)   { state(s, &s.Path, "path", statedPath(v)) }

// state sets a field, named as the context of policies names it, to what was read; empty for what
// can't be read.
func state(s *doorward.StatedRequest, field *string, name, read string) {
	if *field = read; read == "" {
		s.Unreadable = append(s.Unreadable, name)
	}
}

// statedIn returns the value of the headers, and whether there is one. If they differ, it is
// empty: one of them is the client's own, which the gateway has passed on.
func statedIn(h http.Header, names []string) (value string, found bool) {
	for _, name := range names {
		for _, v := range h[name] {
			if found && v != value {
				return "", true
			}
			value, found = v, true
		}
	}
	return value, found
}

// longestStated is the longest text, in bytes, that a policy reads: matching takes time in proportion
// to it. A longer one can't be read, and a policy that reads it refuses.
const longestStated = 4 << 10

// statedMethod returns the method in upper case. It is empty for what is no method.
func statedMethod(value string) string {
	if len(value) > longestStated || strings.ContainsFunc(value, func(c rune) bool { return !isSafeChar(c) && !strings.ContainsRune("!#$%&'*+^`|~", c) }) {
		return ""
	}
	return strings.ToUpper(value)
}

// statedHost returns the host in the form by which gateways choose a site: in lower case, without
// the brackets of IPv6, and without the port and the final dot, which a client may add.
func statedHost(value string) string {
	u, err := url.Parse("//" + value)
	if err != nil || u.Host != value || strings.Contains(value, ",") || len(value) > longestStated { // a comma separates the values of several proxies
		return ""
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	if strings.Contains("."+host+".", "..") { // an empty label: gateways differ in which site that is
		return ""
	}
	return strings.ToLower(host)
}

// statedPath returns the path of a URI as a server behind the gateway sees it: decoded, without
// query and dot segments, in the letter case in which it was sent. It is empty for a path that servers
// read differently, so that a policy about another path can't be evaded by writing it in
// another way.
func statedPath(uri string) string {
	sent, _, _ := strings.Cut(uri, "?")
	u, err := url.ParseRequestURI(sent)
	if err != nil || len(sent) > longestStated || !strings.HasPrefix(u.Path, "/") || isAmbiguous(sent, u.Path) {
		return ""
	}
	clean := pathpkg.Clean(u.Path)
	// Of a last dot segment the slash before it stays (RFC 3986, section 5.2.4).
	if last := u.Path[strings.LastIndexByte(u.Path, '/')+1:]; clean != "/" && (last == "" || last == "." || last == "..") {
		clean += "/"
	}
	return clean
}

// isAmbiguous reports whether servers differ in what a path means: some decode %2f to a separator
// and %25 a second time, end the path at NUL or #, drop what follows a semicolon (as Java's servlets
// do with parameters of a segment), merge slashes, or read a backslash as one.
func isAmbiguous(sent, decoded string) bool {
	sent = strings.ToLower(sent)
	return strings.Contains(sent, "%2f") || strings.Contains(sent, "%5c") || strings.Contains(sent, "%25") || strings.Contains(sent, "%00") ||
		strings.Contains(decoded, "//") || strings.ContainsAny(decoded, ";#\\") ||
		strings.ContainsFunc(decoded, unicode.IsControl) || !utf8.ValidString(decoded)
}

func trusted(proxies []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseHost reads an address with or without a port, or brackets of IPv6; the zero Addr
// for anything else.
func parseHost(text string) netip.Addr {
	if strings.HasPrefix(text, "[") || strings.Count(text, ":") == 1 {
		if host, _, err := net.SplitHostPort(text); err == nil {
			text = host
		}
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}
