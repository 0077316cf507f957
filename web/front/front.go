// Package front has what all protocols share: identifying the caller, the JSON adapter,
// errors as problem+json, cookies, the origin check, and the limits of a request.
//
// A protocol declares its routes as a table of Route; Site.Handler serves them.
// Requests are checked in this order, and the first failure is the answer: path
// 404, method 405, origin 403, credential 401, permission 403, a list's query 400, size
// 413, type 415, form 400, and then the feature itself.
package front

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/internal/returnto"
	"github.com/doorward/doorward/internal/telemetry"
	"github.com/doorward/doorward/internal/texts"
	"github.com/doorward/doorward/internal/trace"
)

// Site serves one installation. Make it with New.
type Site struct {
	App     *app.App
	Metrics *telemetry.Metrics
	// Tracer traces requests; nil traces none.
	Tracer *trace.Tracer
	// ReturnTo are the external places that people may be redirected to after
	// signing in.
	ReturnTo returnto.List
	// Home is where people land after signing in without a return address, as
	// ui.ParseHome returns it; empty: their account.
	Home string
	// AllowedOrigins are the other origins whose pages may use the API, with cookies, as browsers
	// send them in the header Origin.
	AllowedOrigins []string
	// Cookie is the name of the session cookie.
	Cookie string
	// PersistentCookie: browsers keep the session cookie when they are closed.
	PersistentCookie bool
	// Texts are the operator's own, in place of those of pages, as web.CheckTexts accepts them; nil for none.
	Texts *texts.File
	// ErrorPage answers a browser with a page instead of a problem, and reports
	// whether it could. It may be nil.
	ErrorPage func(c *Call, err error) bool

	// Unsolicited answers a browser that a SAML provider has led to the callback of a connection without being asked: with a
	// page at which a sign-in begins.
	Unsolicited func(ctx context.Context, c *Call) error

	// Foreign answers a failed request in the form of another specification than that of problems, and reports whether the
	// path is one of its own. It may be nil.
	Foreign func(c *Call, path string, err error) bool

	base     *url.URL
	brand    atomic.Pointer[Brand]
	proxies  atomic.Pointer[[]netip.Prefix]
	headers  map[string][]string
	secure   bool // cookies only over TLS
	log      *slog.Logger
	unknown  *telemetry.Route    // counts requests to unknown routes
	files    map[string]*Content // by name, without a hash
	timedOut atomic.Int64
	outage   lograte.Limiter // for log lines about checks that can't be answered
	refusals lograte.Summary // of log lines about refused requests
	returns  lograte.Limiter // for log lines about return addresses that aren't allowed

	forwarders forwarders
}

// New returns a site whose public address is base. Only the proxies' X-Forwarded-For
// headers are trusted.
func New(a *app.App, base *url.URL, proxies []netip.Prefix, log *slog.Logger) *Site {
	plain := base.Scheme == "http" && IsLoopback(base.Hostname())
	metrics := telemetry.New()
	s := &Site{
		App: a, forwarders: forwarders{lines: lograte.Limiter{Quiet: time.Minute}}, Metrics: metrics, Cookie: SessionCookie, unknown: metrics.Route("other", "none"),
		base: base, headers: headersOf(base), secure: !plain, log: log,
	}
	s.refusals = lograte.Summary{Every: time.Minute, Report: func(cause string, leftOut int) {
		log.Info("requests refused", "cause", cause, "leftOut", leftOut)
	}}
	s.SetBrand(Brand{Name: DefaultName})
	s.SetProxies(proxies)
	return s
}

// Brand returns the appearance of the installation. It may change: call it once in a
// request.
func (s *Site) Brand() Brand { return *s.brand.Load() }

// SetBrand changes the appearance, for requests that begin from now on.
func (s *Site) SetBrand(b Brand) { s.brand.Store(&b) }

// SetProxies trusts these proxies in place of the earlier ones.
func (s *Site) SetProxies(proxies []netip.Prefix) {
	s.proxies.Store(&proxies)
	s.forwarders.forget()
}

// Brand is the appearance of the installation. Accent and logo have defaults.
type Brand struct {
	doorward.Brand
	Name  string
	Image []byte // of the logo, a PNG
}

// IsLoopback reports whether a host name or address can only be this machine.
func IsLoopback(host string) bool {
	host = strings.TrimSuffix(host, ".")
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.IsLoopback()
}

// OnOwnHosts refuses requests whose Host is neither a loopback name nor the base URL's. For a server
// without secrets of its own, such as "doorward dev": a page of another site, whose name resolves to
// loopback on its second look-up (DNS rebinding), is of the same origin for the browser.
func (s *Site) OnOwnHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := strings.TrimSuffix(strings.ToLower((&url.URL{Host: r.Host}).Hostname()), ".")
		if IsLoopback(host) || strings.EqualFold(host, s.base.Hostname()) {
			next.ServeHTTP(w, r)
			return
		}
		s.Refuse(w, r, doorward.Caller{}, doorward.Fail(doorward.CodeCrossOrigin, "This server is for programs and browsers on this machine: open it as %s.", s.BaseURL()))
	})
}

// BaseURL is the address from outside, without a slash at the end.
func (s *Site) BaseURL() string { return strings.TrimSuffix(s.base.String(), "/") }

// Origin is BaseURL without its path.
func (s *Site) Origin() string { return strings.TrimSuffix(s.BaseURL(), s.BasePath()) }

// BasePath is the path of BaseURL: empty, or like "/platform".
func (s *Site) BasePath() string { return strings.TrimSuffix(s.base.Path, "/") }

// Route is one line of a table of routes.
type Route struct {
	Method   string
	Path     string // as http.ServeMux takes it, without a method
	Guard    Guard
	Endpoint Endpoint
	Doc      Doc
	counts   *telemetry.Route // set by Handler
	check    bool             // see Check
	callsOut bool             // see CallsOut
	strict   bool             // see StrictQuery
	anywhere bool             // see FromAnyOrigin
	file     *Content         // set by File, with its name; nil for other routes
	fileName string
}

// On returns the route of a pattern such as "POST /api/v2/auth/login".
func On(pattern string, g Guard, e Endpoint, d Doc) Route {
	method, path, _ := strings.Cut(pattern, " ")
	return Route{Method: method, Path: path, Guard: g, Endpoint: e, Doc: d}
}

// Check marks a route that machines call often and that changes nothing, whatever its
// method. It is logged only if refused, and at a limited rate during an outage. It is
// traced only if the caller asks for it.
func (r Route) Check() Route {
	r.check = true
	return r
}

// StrictQuery refuses unknown query parameters of the route, as those of a list are: a misspelt dryRun must not act, and
// a filter that a route doesn't have must not seem to have been heeded.
func (r Route) StrictQuery() Route {
	r.strict = true
	return r
}

// RefusesUnknownParameters reports whether the route takes the query parameters of its Doc alone.
func (r Route) RefusesUnknownParameters() bool { return r.strict || r.Doc.List || r.Doc.Sort != nil }

// CallsOut marks a route that waits for a server which isn't the installation's, such as a name server. It
// has callOutWithin in place of answerWithin.
func (r Route) CallsOut() Route {
	r.callsOut = true
	return r
}

// FromAnyOrigin marks a route to which pages of any origin may send forms: it does nothing by a cookie. Its path is still
// none that they may read the answer of.
func (r Route) FromAnyOrigin() Route {
	r.anywhere = true
	return r
}

// IsFromAnyOrigin reports whether the route is marked by FromAnyOrigin.
func (r Route) IsFromAnyOrigin() bool { return r.anywhere }

// IsCallingOut reports whether the route is marked by CallsOut.
func (r Route) IsCallingOut() bool { return r.callsOut }

// Doc describes a route in the reference.
type Doc struct {
	ID          string // operationId
	Tag         string
	Summary     string
	Description string
	Query       []Parameter
	Headers     []Parameter     // of its answer when it succeeds
	List        bool            // it also takes a limit and a cursor
	Sort        []string        // what it can be sorted by, if it is a list: names for the parameter sort
	Versioned   bool            // its answer has an ETag
	Conditional bool            // it takes If-Match; implied by Versioned with a JSON body
	MustMatch   bool            // it needs If-Match, see Call.NeedVersions
	WhilePaused bool            // it answers as always while the operator has paused changes
	Errors      []doorward.Code // in addition to those of guard and body
}

// Parameter is one of a route's query parameters, or headers of its answer.
type Parameter struct {
	Name        string
	Description string
	Enum        []string
	Example     string
	Unbound     bool // cursors stay valid when its value changes
}

// DefaultName is what the pages call the installation unless it has a name of its own.
const DefaultName = "Doorward"

// answerWithin bounds the work on a request. Every answer comes within 3 s.
const answerWithin = 2700 * time.Millisecond

// callOutWithin is answerWithin for routes that call a server outside. Their answers come within 12 s.
const callOutWithin = 11500 * time.Millisecond

// Handler serves the routes, with and without the base URL's path as a prefix: a proxy
// may strip it.
func (s *Site) Handler(routes []Route) http.Handler {
	byPath := map[string]*resource{}
	mux := http.NewServeMux()
	s.files = map[string]*Content{}
	for _, r := range routes {
		if r.file != nil {
			s.files[r.fileName] = r.file
		}
		if byPath[r.Path] == nil {
			byPath[r.Path] = &resource{byMethod: map[string]Route{}}
			mux.Handle(r.Path, s.dispatch(byPath[r.Path]))
		}
		r.counts = s.Metrics.Route(r.Method, r.Path)
		byPath[r.Path].byMethod[r.Method] = r
	}
	leadToPages(byPath)
	return s.harden(s.findRoute(mux), s.unknown)
}

// dispatch chooses by method, so that a wrong method gets a problem, or leads to the page of the form.
func (s *Site) dispatch(to *resource) http.Handler {
	byMethod := to.byMethod
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ok := byMethod[r.Method]
		if get, has := byMethod[http.MethodGet]; !ok && r.Method == http.MethodHead && has {
			route, ok = get, true
		}
		switch {
		case ok:
			s.serve(w, r, route)
		case r.Method == http.MethodOptions && isAPI(r) && s.isAllowed(r.Header):
			preflight(w, r, allowed(byMethod))
		case s.leadToPage(w, r, to):
		default:
			w.Header().Set("Allow", allowed(byMethod))
			s.Fail(w, r, s.refuseMethod(r))
		}
	})
}

// serve runs the steps between routing and the endpoint.
func (s *Site) serve(w http.ResponseWriter, r *http.Request, route Route) {
	r = s.traceRequest(r, route)
	if route.callsOut {
		ctx, cancel := prolonged(r)
		defer cancel()
		r = r.WithContext(ctx)
	}
	c := &Call{W: w, R: r, site: s, query: route.Doc.Query, list: route.Doc.List, sorts: route.Doc.Sort, maxBody: route.Endpoint.MaxBody}
	if route.Endpoint.Foreign {
		c.keepVisibleID()
	}
	var err error
	if !route.anywhere {
		err = s.sameOrigin(r)
	}
	if err == nil {
		c.Caller, err = route.Guard.Admit(r.Context(), s, r)
		c.SetLogCaller(c.Caller)
	}
	if err == nil && route.RefusesUnknownParameters() {
		err = c.RefuseUnknownParameters()
	}
	if err == nil {
		err = route.Endpoint.serve(r.Context(), c)
	}
	if err != nil && route.Endpoint.amend != nil {
		err = route.Endpoint.amend(r.Context(), c, err)
	}
	switch {
	case err == nil:
	case route.Endpoint.fail != nil:
		route.Endpoint.fail(r.Context(), c, err)
	default:
		s.Fail(w, r, err)
	}
}

// prolonged returns the context of the request with callOutWithin in place of answerWithin. It still ends when
// the client has gone.
func prolonged(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), infoOf(r).began.Add(callOutWithin))
	stop := context.AfterFunc(infoOf(r).client, cancel)
	return ctx, func() { stop(); cancel() }
}

// traceRequest records the route of the request, and begins a span if it is traced.
// Requests without a route are never traced.
func (s *Site) traceRequest(r *http.Request, route Route) *http.Request {
	info := infoOf(r)
	info.counts, info.check = route.counts, route.check
	info.page = route.Endpoint.fail != nil
	info.viewOnly = info.page && Safe(r.Method)
	if route.check {
		r, info.span = s.Tracer.Check(r, route.Path, info.began)
	} else {
		r, info.span = s.Tracer.Request(r, route.Path, info.began)
	}
	info.span.Set("doorward.request.id", info.id)
	info.trace = trace.ID(r.Context())
	return r
}

// findRoute answers 404 where ServeMux would redirect to a cleaned path or answer in
// plain text. It tries the path without the base URL's path first, then as received:
// below a base such as "/api" both occur.
func (s *Site) findRoute(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		candidates := []*http.Request{s.withoutBase(r), r}
		if i := slices.IndexFunc(candidates, func(c *http.Request) bool { return hasRoute(mux, c) }); i >= 0 {
			if isAPI(candidates[i]) {
				s.Share(w.Header(), r)
			}
			mux.ServeHTTP(w, candidates[i])
			return
		}
		if slices.ContainsFunc(candidates, isAPI) {
			s.Share(w.Header(), r)
		}
		s.Fail(w, r, doorward.Fail(doorward.CodeNotFound, ""))
	})
}

func hasRoute(mux *http.ServeMux, r *http.Request) bool {
	_, pattern := mux.Handler(r)
	withSlash := r.URL.Path + "/"
	isClean := !strings.Contains(r.URL.Path, "//") && !strings.Contains(withSlash, "/./") && !strings.Contains(withSlash, "/../")
	return pattern != "" && isClean
}

// withoutBase returns the request without the base URL's path, or r if it doesn't have
// that prefix.
func (s *Site) withoutBase(r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, s.BasePath())
	if s.BasePath() == "" || !ok || !strings.HasPrefix(rest, "/") {
		return r
	}
	short, address := *r, *r.URL
	address.Path = rest
	// If the request has the base percent-encoded, it stays in RawPath. That doesn't fit Path
	// then, and net/url ignores it.
	address.RawPath = strings.TrimPrefix(r.URL.RawPath, s.BasePath())
	short.URL = &address
	return &short
}

// harden is the outermost layer: headers, request id, time limit, log line, and an
// answer even when a handler panics. A request without a route is counted in counts,
// which may be nil.
func (s *Site) harden(next http.Handler, counts *telemetry.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		boundBody(w, r)
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		id, proxies := requestID(r), s.proxies.Load()
		s.noteForwarder(r, *proxies)
		r = r.WithContext(context.WithValue(ctx, infoKey{}, &requestInfo{id: id, client: r.Context(), path: r.URL.EscapedPath(), began: began, counts: counts, proxies: proxies, trace: trace.ID(ctx)}))
		rec := &recorder{ResponseWriter: w}
		s.setHeaders(rec.Header(), id)
		defer s.finish(rec, r)
		next.ServeHTTP(rec, r)
	})
}

func (s *Site) setHeaders(h http.Header, id string) {
	h["X-Request-Id"] = []string{id}
	for name, value := range s.headers {
		h[name] = value
	}
}

// TimedOut returns how many requests and checks were answered 503 because something took too long.
func (s *Site) TimedOut() int64 { return s.timedOut.Load() }

// SetHeaders sets the headers of every answer, including the request id, for handlers
// outside the pipeline.
func (s *Site) SetHeaders(h http.Header, r *http.Request) { s.setHeaders(h, requestID(r)) }

// headersOf returns the headers of every answer. The values are shared and must not be
// changed.
func headersOf(base *url.URL) map[string][]string {
	h := map[string][]string{
		"Cache-Control":           {"no-store"},
		"X-Content-Type-Options":  {"nosniff"},
		"Referrer-Policy":         {"no-referrer"},
		"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
	}
	if base.Scheme == "https" {
		h["Strict-Transport-Security"] = []string{"max-age=31536000"}
	}
	return h
}

// Refuse answers a check (see Route.Check) with a problem, for handlers outside Handler.
// It isn't counted as a request: Metrics.Checks has its own counters. The log line names the
// caller, if known.
func (s *Site) Refuse(w http.ResponseWriter, r *http.Request, by doorward.Caller, err error) {
	s.harden(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := infoOf(r)
		info.check = true
		info.setCaller(by)
		s.Fail(w, r, err)
	}), nil).ServeHTTP(w, r)
}

// finish turns a panic into an answer, counts the request and writes its log line. The level is
// info for a request that may have changed something or has failed, else debug. It is debug for
// checks that didn't fail, and for those that fail in an outage. Of many refused requests a few have a
// line, see hasLine.
func (s *Site) finish(w *recorder, r *http.Request) {
	info := infoOf(r)
	defer info.span.End()
	if p := recover(); p != nil {
		s.answerPanic(w, r, p)
	}
	took := time.Since(info.began)
	if info.counts != nil {
		info.counts.Answered(w.status, took)
	}
	info.span.Answered(cmp.Or(w.status, http.StatusOK))
	level := slog.LevelDebug
	if (!Safe(r.Method) && !info.check || w.status >= 400) && !info.logLimited {
		level = slog.LevelInfo
	}
	if !s.log.Enabled(r.Context(), level) || !s.hasLine(info, w.status) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", loggable(info.path)), slog.Int("status", w.status),
		slog.Duration("took", took), slog.String("requestId", info.id), slog.String("client", proof.Network(s.clientIP(r))),
	}
	if info.refusedOrigin != "" {
		attrs = append(attrs, slog.String("origin", info.refusedOrigin), slog.String("expectedOrigin", s.Origin()))
	}
	if info.replayed {
		attrs = append(attrs, slog.Bool("replayed", true))
	}
	s.log.LogAttrs(r.Context(), level, "request", info.withTraceID(append(attrs, info.callerIDs()...)...)...)
}

// refusalLines is how many refused requests of one cause have a line of their own in a minute; of checks, which
// somebody with an old cookie makes many times a second, one has. The others are counted in one line.
const refusalLines = 100

// hasLine reports whether the request has a log line of its own.
func (s *Site) hasLine(info *requestInfo, status int) bool {
	if status < 400 || status >= 500 {
		return true
	}
	if info.check {
		return s.refusals.Allow(strings.TrimSpace("check "+string(info.code)+" "+info.refusedOrigin), 1)
	}
	return s.refusals.Allow(string(info.code), refusalLines)
}

// Safe reports whether the method changes nothing (RFC 9110, section 9.2.1).
func Safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodTrace
}
