// Package gatewayprobe sends requests through a gateway as an attacker would, and says what
// to correct in its configuration. docs/gateways.md says why each rule matters.
//
//	findings := gatewayprobe.Probe{URL: reports, Cookie: "JSESSIONID", Token: token}.Run(ctx)
//
// The service behind the gateway must be examples/upstream, which answers with the
// request that it got. The probe changes nothing: it sends GET to the URL, and POST from a
// foreign origin, which a gateway must refuse.
package gatewayprobe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Probe says what to check.
type Probe struct {
	URL    *url.URL // a path of the service that the session may read; http or https
	Cookie string   // the name of the session's cookie
	Token  string   // of a session; empty: only the checks that need none are done
	// Upstream is an address of the service itself, host:port, that nobody but the gateway
	// should reach; empty: not checked.
	Upstream string
}

// Finding is the outcome of one check.
type Finding struct {
	Check  string // what was checked
	Fine   string // the result if nothing is wrong
	Wrong  string // empty if nothing is wrong
	Remedy string // what to do about Wrong; may be set when nothing is wrong
}

// forged is in what the probe forges, so that the probe recognises it at the service.
const forged = "forged-by-doctor"

// Run does all checks that the probe allows; if the check "session" finds a fault, those that
// need a session are left out. If the gateway doesn't answer, the checks "no
// session" and "session" report that; in the others a request without an answer counts as
// refused.
func (p Probe) Run(ctx context.Context) []Finding {
	findings := []Finding{p.withoutSession(ctx), p.signIn(ctx), p.metrics(ctx)}
	if p.Upstream != "" {
		findings = append(findings, p.upstream(ctx))
	}
	if p.Token == "" {
		return findings
	}
	session, user := p.session(ctx)
	if findings = append(findings, session...); user == "" {
		return findings
	}
	return append(
		findings, p.credential(ctx), p.identity(ctx), p.connection(ctx, user), p.overrides(ctx), p.origins(ctx), p.webSockets(ctx), p.claims(ctx),
		p.cookies(ctx), p.paths(ctx), p.setCookie(ctx),
	)
}

// withoutSession sends requests without a credential, one of them with forged identity
// headers.
func (p Probe) withoutSession(ctx context.Context) Finding {
	f := Finding{Check: "no session", Fine: "401"}
	for _, headers := range [][]string{nil, {"X-Auth-User: " + forged, "X-Auth-Role: OWNER"}} {
		a, err := p.get(ctx, "", headers...)
		switch {
		case err != nil:
			f.Wrong, f.Remedy = "no answer: "+err.Error(), "Check the address, and that the gateway runs."
		case a.echo != nil:
			f.Wrong = "a request without a session reaches the service"
			f.Remedy = "Have the gateway ask /api/v2/access/check about every request to this path."
		case a.status != http.StatusUnauthorized:
			f.Wrong = fmt.Sprintf("a request without a session is answered %d in place of 401", a.status)
			f.Remedy = "Pass the answer of the check on as it is. 400: the check has an unknown parameter. 403: its action is unknown. 404: no such path. 500, 503: Doorward can't be reached, or answers what the gateway doesn't pass on."
		case !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") || a.header.Get("WWW-Authenticate") == "":
			f.Wrong, f.Remedy = "401 without Doorward's body or WWW-Authenticate", "Pass both on, so that clients learn what is wrong."
		}
		if f.Wrong != "" {
			return f
		}
	}
	return f
}

// signIn sends the request of a browser that opens a page.
func (p Probe) signIn(ctx context.Context) Finding {
	f := Finding{Check: "sign-in", Fine: "pages get 401: the application has to lead to /login"}
	const query = "?a=b&c=%26&original=/x" // an encoded "&", and the parameter of /login itself
	a, err := p.get(ctx, query, "Accept: text/html", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none")
	if err != nil || a.status < 300 || a.status > 399 {
		return f // taken for 401: withoutSession reports other answers, but doesn't ask as a browser does
	}
	to := a.header.Get("Location")
	f.Fine = "pages are sent to sign in, with all of their query"
	if before, original, _ := strings.Cut(to, "?original="); !strings.HasSuffix(before, "/login") || original != p.origin()+p.URL.EscapedPath()+query {
		f.Wrong = "a page is sent to " + to + ", which loses a part of its address"
		f.Remedy = "Redirect to /login?original=SCHEME://HOST/PATH?QUERY, as the client sent them; check the scheme and the host if TLS ends in front of the gateway."
	}
	return f
}

func (p Probe) metrics(ctx context.Context) Finding {
	f := Finding{Check: "metrics", Fine: "not for clients"}
	if a, err := p.send(ctx, "GET", "/metrics"); err == nil && strings.Contains(a.body, "doorward_") {
		f.Wrong = "anybody can read /metrics"
		f.Remedy = "Give Doorward --admin-listen, and refuse /metrics in the gateway."
	}
	return f
}

// upstream sends a request to the service itself, not through the gateway. A service on loopback answers
// this machine, as it should: then it is asked by the machine's other addresses, by which others reach it.
func (p Probe) upstream(ctx context.Context) Finding {
	f := Finding{Check: "upstream", Fine: p.Upstream + " can't be reached from here"}
	addresses := []string{p.Upstream}
	if host, port, err := net.SplitHostPort(p.Upstream); err == nil && isLoopback(host) {
		f.Fine, addresses = p.Upstream+" listens on loopback alone: only programs of this machine reach it", otherAddresses(port)
	}
	for _, address := range addresses {
		direct := Probe{URL: &url.URL{Scheme: "http", Host: address, Path: "/"}}
		if a, err := direct.get(ctx, "", "X-Auth-User: "+forged); err == nil {
			f.Wrong = fmt.Sprintf("%s answers %d without the gateway: any client can claim to be anybody", address, a.status)
			f.Remedy = "Let the service listen on loopback or a network that only the gateway is in."
			return f
		}
	}
	return f
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// otherAddresses returns the addresses of this machine, with the port, at which others could reach it.
func otherAddresses(port string) (all []string) {
	addresses, _ := net.InterfaceAddrs() // without them there is nothing to ask
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
			all = append(all, net.JoinHostPort(prefix.Addr().String(), port))
		}
	}
	return all
}

// session sends the session in the cookie and in Authorization. user is whom the service sees;
// if it is empty, the other checks would be pointless.
func (p Probe) session(ctx context.Context) (findings []Finding, user string) {
	f := Finding{Check: "session", Fine: "passes, as a cookie and as a bearer token"}
	cookie, err := p.get(ctx, "", p.cookie())
	bearer, bearerErr := p.get(ctx, "", "Authorization: Bearer "+p.Token)
	switch {
	case err != nil || bearerErr != nil:
		f.Remedy = "Check the address, and that the gateway runs."
		f.Wrong = "no answer: " + cmp.Or(err, bearerErr).Error()
	case cookie.echo != nil && bearer.echo != nil && cookie.echo.identity() != "":
		return []Finding{f}, cookie.echo.identity()
	case cookie.echo != nil && cookie.echo.identity() == "":
		f.Wrong = "the service doesn't learn who is calling: X-Auth-User is missing"
		f.Remedy = "Copy the X-Auth-* headers of the check's answer into the request."
	case cookie.echo != nil:
		f.Wrong = fmt.Sprintf("the session passes as a cookie, and is answered %d as a bearer token", bearer.status)
		f.Remedy = "Send Authorization to Doorward with the check; remove it only before the service."
	case bearer.echo != nil:
		f.Wrong = fmt.Sprintf("the session passes as a bearer token, and is answered %d as a cookie: the cookie is dropped", cookie.status)
		f.Remedy = "Send Cookie to Doorward with the check; and see that --cookie-name is Doorward's."
	case cookie.status == http.StatusOK:
		f.Wrong, f.Remedy = "the service doesn't answer with the request that it got", "Run examples/upstream behind the gateway, in place of the service."
	default:
		f.Wrong = fmt.Sprintf("the session is answered %d", cookie.status)
		f.Remedy = "401: the session has ended. 403: its role may not read this path; name another one, or a session that may."
	}
	return []Finding{f}, ""
}

// credential checks that no credential reaches the service.
func (p Probe) credential(ctx context.Context) Finding {
	wrong := p.firstFaultAtService(ctx, [][]string{
		{p.cookie()}, {"Authorization: Bearer " + p.Token}, {p.cookie(), "Authorization: Basic " + forged},
	}, func(e *echo) string {
		if name := e.headerWith(p.Token, forged); name != "" {
			return "the service gets the credential, in " + name
		}
		return ""
	})
	return Finding{"credential", "stays at the gateway", wrong, "Remove Cookie and Authorization before the service: an attacker who breaks into it finds all sessions."}
}

// spellings are ways to write the name of an identity header. CGI, WSGI and PHP read an
// underscore like a hyphen, and some frameworks a dot.
var spellings = []func(string) string{
	func(name string) string { return name }, strings.ToLower, strings.ToUpper,
	func(name string) string { return strings.ReplaceAll(name, "-", "_") },
	func(name string) string { return strings.Replace(name, "-", "_", 1) },   // X_Auth-User
	func(name string) string { return strings.Replace(name, "h-", "h_", 1) }, // X-Auth_User
	func(name string) string { return strings.ReplaceAll(name, "-", ".") },
}

// identityHeaders are those that the answer of /api/v2/access/check has.
var identityHeaders = []string{"X-Auth-User", "X-Auth-Tenant", "X-Auth-Role", "X-Auth-Email", "X-Auth-Session", "X-Auth-Key", "X-Auth-Assertion", "X-Auth-AAL"}

// identity forges all headers in each spelling, once and twice.
func (p Probe) identity(ctx context.Context) Finding {
	var tries [][]string
	for _, spell := range spellings {
		all := []string{p.cookie()}
		for _, name := range identityHeaders {
			all = append(all, spell(name)+": "+forged)
		}
		tries = append(tries, all, slices.Concat(all[1:], all))
	}
	return Finding{
		"identity", "no client can claim one", p.firstFaultAtService(ctx, tries, forgedHeader),
		"Set every X-Auth-* header from the check's answer, the empty ones too, and drop or refuse names with underscores and dots.",
	}
}

// connection declares the identity headers as hop-by-hop: gateways remove such headers.
func (p Probe) connection(ctx context.Context, user string) Finding {
	wrong := p.firstFaultAtService(ctx, [][]string{
		{p.cookie(), "Connection: close, " + strings.Join(identityHeaders, ", ")}, {p.cookie(), "Connection: close", "Connection: " + strings.ToLower(strings.Join(identityHeaders, ","))},
	}, func(e *echo) string {
		if e.identity() == user {
			return ""
		}
		return "with \"Connection: X-Auth-User\" the service gets no identity"
	})
	return Finding{"Connection", "takes no identity away", wrong, "Set the X-Auth-* headers after the client's Connection header has been obeyed."}
}

// overrides sends headers that some frameworks believe in place of the request itself.
func (p Probe) overrides(ctx context.Context) Finding {
	all := []string{p.cookie()}
	for _, name := range []string{
		"Forwarded", "X-Forwarded-Method", "X-Forwarded-Prefix", "X-Forwarded-Uri", "X-HTTP-Method", "X-HTTP-Method-Override",
		"X-Method-Override", "X-Original-Method", "X-Original-URI", "X-Original-URL", "X-Real-IP", "X-Rewrite-URL",
	} {
		all = append(all, name+": "+forged)
	}
	return Finding{
		"overrides", "no header replaces the method or the address", p.firstFaultAtService(ctx, [][]string{all}, forgedHeader),
		"Remove it, and what is like it: many frameworks obey these headers.",
	}
}

// origins sends the requests that a page of another site makes a browser send.
func (p Probe) origins(ctx context.Context) Finding {
	f := Finding{Check: "other origins", Fine: "can change nothing"}
	// Without a forged method, here with a header that means nothing, and with one.
	for _, extra := range []string{"X-Note: none", "X-Forwarded-Method: GET", "X-Original-Method: GET"} {
		a, err := p.send(ctx, http.MethodPost, p.URL.EscapedPath(), p.cookie(), "Origin: https://"+forged+".invalid", "Content-Length: 0", extra)
		if err == nil && a.echo != nil {
			f.Wrong = "a POST from a page of another site reaches the service, with the person's session"
			f.Remedy = "Send the original method with the check, in X-Original-Method or X-Forwarded-Method, in place of what the client sent, and pass Origin and Sec-Fetch-Site on."
			return f
		}
	}
	return f
}

// openWebSocket asks for a WebSocket as a page of another origin does.
func (p Probe) openWebSocket(ctx context.Context, headers ...string) (answer, error) {
	return p.get(ctx, "", append([]string{
		p.cookie(), "Origin: https://" + forged + ".invalid", "Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
	}, headers...)...)
}

func (p Probe) webSockets(ctx context.Context) Finding {
	f := Finding{Check: "WebSockets", Fine: "are not opened by pages of other origins"}
	a, err := p.openWebSocket(ctx)
	if err == nil && (a.echo != nil || a.status == http.StatusSwitchingProtocols) {
		f.Wrong = "a page of another site can open a WebSocket with the person's session"
		f.Remedy = "Pass Sec-WebSocket-Key, Sec-WebSocket-Version, Origin and Upgrade on with the check."
	}
	return f
}

// claimed are headers by which a client claims another address, host, path or method. Doorward
// believes them from a gateway. 192.0.2.66 is nobody's (RFC 5737).
var claimed = []string{
	"X-Forwarded-For: 192.0.2.66", "X-Forwarded-Host: " + forged + ".invalid", "X-Forwarded-Uri: /" + forged, "X-Forwarded-Method: PUT",
	"X-Original-URI: /" + forged, "X-Original-Method: PUT",
}

// claims compares what Doorward takes the same request for without and with claims of the
// client. Doorward says it in the refusal of a WebSocket from another origin.
func (p Probe) claims(ctx context.Context) Finding {
	f := Finding{Check: "claims", Remedy: "Set X-Forwarded-For, -Host, -Uri and -Method (or X-Original-Method) in the check to what the gateway saw, empty X-Original-URI, and name the gateway in --trusted-proxies."}
	want := p.believed(ctx)
	f.Fine = fmt.Sprintf("change nothing: Doorward sees %s %s%s from %s", want.Method, want.Host, want.Path, want.IP)
	if host := strings.ToLower(p.URL.Hostname()); want.Method != http.MethodGet || want.Host != host || want.Path != p.URL.Path {
		f.Wrong = fmt.Sprintf("Doorward isn't told the request, and policies can't read it: it sees %+v", want)
		return f
	}
	names := "Connection: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Uri, X-Forwarded-Method, X-Original-Method"
	for _, header := range append(slices.Clone(claimed), names) {
		if got := p.believed(ctx, header); got != want {
			f.Wrong = fmt.Sprintf("a client's %q is believed: Doorward sees %+v in place of %+v", header, got, want)
			return f
		}
	}
	if p.believesInOwnCheck(ctx) {
		f.Wrong = "a client that asks Doorward's access check itself, through the gateway, is believed what it claims in these headers"
		f.Remedy = "Set X-Forwarded-For and -Host, and empty X-Forwarded-Uri, X-Forwarded-Method, X-Original-Method and X-Original-URI, on the way to Doorward's own API and pages, too."
		return f
	}
	f.Remedy = ""
	return f
}

// believesInOwnCheck asks the check as a page of another origin would, with a claim that its request is a
// PUT. Doorward refuses a PUT, and says what it took the request for.
func (p Probe) believesInOwnCheck(ctx context.Context) bool {
	for _, name := range []string{"X-Forwarded-Method", "X-Original-Method"} {
		var problem struct{ Request checkedRequest }
		a, err := p.send(ctx, http.MethodGet, "/api/v2/access/check?action=tenant.read", p.cookie(), "Origin: https://"+forged+".invalid", name+": PUT")
		if err == nil && json.Unmarshal([]byte(a.body), &problem) == nil && problem.Request.Method == http.MethodPut {
			return true
		}
	}
	return false
}

// checkedRequest is what Doorward takes a request for; empty fields: it can't tell.
type checkedRequest struct{ IP, Method, Host, Path string }

// believed returns what Doorward takes a request with these headers for.
func (p Probe) believed(ctx context.Context, headers ...string) checkedRequest {
	var problem struct{ Request checkedRequest }
	if a, err := p.openWebSocket(ctx, headers...); err == nil {
		_ = json.Unmarshal([]byte(a.body), &problem) // another body says nothing
	}
	return problem.Request
}

// cookies sends a second credential, in the form of a session's token: 43 characters. A client
// must not be able to choose which one counts.
func (p Probe) cookies(ctx context.Context) Finding {
	f := Finding{Check: "cookies", Fine: "two different sessions are refused"}
	otherToken := strings.Repeat("A", 43)
	other := p.Cookie + "=" + otherToken
	for _, headers := range [][]string{
		{p.cookie() + "; " + other},
		{"Cookie: " + other + "; " + strings.TrimPrefix(p.cookie(), "Cookie: ")},
		{p.cookie(), "Cookie: " + other},
		{"Cookie: " + other, p.cookie()},
		{p.cookie(), "Authorization: Bearer " + otherToken},
	} {
		if a, err := p.get(ctx, "", headers...); err == nil && a.echo != nil {
			f.Wrong = "of two different credentials the gateway picks one"
			f.Remedy = "Send all Cookie headers and Authorization to Doorward as they are, which refuses two that differ."
			return f
		}
	}
	return f
}

// ambiguous are parts of a path that two programs may read differently.
var ambiguous = []string{"//", "/./", "/../", "%2e", "%2f", "%5c", "%25", "%00", ";", "\\"}

// paths sends paths that the gateway and the service may read differently.
func (p Probe) paths(ctx context.Context) Finding {
	f := Finding{Check: "paths", Fine: "only unambiguous ones reach the service"}
	path := strings.TrimSuffix(p.URL.EscapedPath(), "/")
	for _, tried := range []string{
		path + "/%2e%2e/" + forged, path + "/../" + forged, path + "/%2E%2E%2F" + forged, path + "/..%2f" + forged, path + "/..%5c" + forged,
		path + "/..;/" + forged, path + "//" + forged, "/" + path, path + "/%252e%252e/" + forged, path + "/%00", path + "/./" + forged,
		"/" + forged + "/.." + path, "/" + forged + "/%2e%2e" + path,
	} {
		a, err := p.send(ctx, http.MethodGet, tried, p.cookie())
		if err != nil || a.echo == nil {
			continue
		}
		got, _, _ := strings.Cut(strings.ToLower(a.echo.Path), "?")
		if slices.ContainsFunc(ambiguous, func(part string) bool { return strings.Contains(got, part) }) {
			f.Wrong = fmt.Sprintf("%s reaches the service as %s, which it may read as another path", tried, a.echo.Path)
			f.Remedy = "Refuse dot segments, double slashes, semicolons, backslashes, and encoded ones of these."
			return f
		}
	}
	return f
}

// setCookie has the service set the session's cookie: examples/upstream sets what the query says.
func (p Probe) setCookie(ctx context.Context) Finding {
	f := Finding{Check: "Set-Cookie", Fine: "the service can't sign people out, or into another account"}
	for _, value := range []string{"=" + forged, "=; Max-Age=0; Path=/", " =" + forged} {
		a, err := p.get(ctx, "?set-cookie="+url.QueryEscape(p.Cookie+value), p.cookie())
		if err != nil {
			continue
		}
		for _, set := range a.header.Values("Set-Cookie") {
			if name, _, _ := strings.Cut(set, "="); strings.TrimSpace(name) == p.Cookie {
				f.Wrong = "the service can set " + p.Cookie + ": it signs people out, or into an account of its choice"
				f.Remedy = "Drop a Set-Cookie of this name from what the service answers."
				return f
			}
		}
	}
	return f
}

// firstFaultAtService sends requests with these headers, and returns what is wrong with the
// first that reaches the service with a fault; empty for none. A refused request does no harm.
func (p Probe) firstFaultAtService(ctx context.Context, tries [][]string, wrong func(*echo) string) string {
	for _, headers := range tries {
		a, err := p.get(ctx, "", headers...)
		if err != nil || a.echo == nil {
			continue
		}
		if message := wrong(a.echo); message != "" {
			return message
		}
	}
	return ""
}

// forgedHeader names a header in which the client's forgery reached the service.
func forgedHeader(e *echo) string {
	if name := e.headerWith(forged); name != "" {
		return "the client's own " + name + " reaches the service"
	}
	return ""
}

func (p Probe) cookie() string { return "Cookie: " + p.Cookie + "=" + p.Token }
func (p Probe) origin() string { return p.URL.Scheme + "://" + p.URL.Host }
