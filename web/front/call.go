package front

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
)

// Call is one request, as endpoints see it.
type Call struct {
	Caller   doorward.Caller
	W        http.ResponseWriter
	R        *http.Request
	site     *Site
	query    []Parameter // the route's query parameters
	list     bool        // the route also takes limit and cursor
	sorts    []string    // what its list sorts by
	maxBody  int         // bytes; 0: MaxBody
	values   url.Values  // see parameters
	target   string      // see RedirectTo
	isDryRun bool        // see SetDryRun
}

// Site returns the site that serves the request.
func (c *Call) Site() *Site { return c.site }

// SetLogCaller sets the caller for the log line, for endpoints that identify it
// themselves, such as a login.
func (c *Call) SetLogCaller(by doorward.Caller) { infoOf(c.R).setCaller(by) }

// RedirectTo answers a success with 303 to the address, which must be one that people may
// be redirected to. The endpoint must be documented with Endpoint.Returns.
func (c *Call) RedirectTo(address string) { c.target = address }

// LogRefusedReturn logs that a return address isn't allowed, without what follows its host: that may
// be a secret.
func (c *Call) LogRefusedReturn(address string) {
	origin := "none"
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		origin = loggable(u.Scheme + "://" + u.Host[:min(len(u.Host), maxOrigin)])
	}
	leftOut, ok := c.site.returns.Allow(origin, time.Now())
	if ok {
		c.site.log.LogAttrs(c.R.Context(), slog.LevelWarn, "return address dropped; it must be below --base-url or in --return-to", infoOf(c.R).withTraceID(
			slog.String("origin", origin), slog.String("expectedOrigin", c.site.Origin()), slog.String("requestId", infoOf(c.R).id), slog.Int("leftOut", leftOut))...)
	}
}

// SetPage sets the headers of a page: its Content-Security-Policy, and a Referrer-Policy with which
// browsers say the origin of its own forms. With no-referrer they send "Origin: null", and without
// Sec-Fetch-Site every form would seem to come from another site (Fetch Standard, "append a request
// Origin header").
func (c *Call) SetPage(policy string) {
	c.W.Header().Set("Content-Security-Policy", policy)
	c.W.Header().Set("Referrer-Policy", "same-origin")
}

// SetRevocation sets headers that say how many nodes confirmed a revocation, and how long it
// took. Without a revocation it sets none.
func (c *Call) SetRevocation(r doorward.Revocation) {
	if r.Nodes == 0 {
		return
	}
	c.W.Header().Set("X-Revocation-Nodes", strconv.Itoa(r.Nodes))
	c.W.Header().Set("X-Revocation-Ms", strconv.FormatFloat(float64(r.Took.Microseconds())/1000, 'f', 3, 64))
}

// SetAllowance sets the headers that say how many attempts the client has left
// (draft-ietf-httpapi-ratelimit-headers-10). It sets none for nil.
func (c *Call) SetAllowance(a *doorward.Allowance) {
	if a == nil {
		return
	}
	h := c.W.Header()
	h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", a.Name, a.Quota, int(a.Window.Seconds())))
	h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", a.Name, a.Remaining, int(math.Ceil(a.Reset.Seconds()))))
}

// ID returns the id in the path under the name. Errors: not_found if it isn't an id
// with the prefix.
func (c *Call) ID(name, prefix string) (string, error) {
	id := c.R.PathValue(name)
	if !IsID(id, prefix) {
		return "", doorward.Fail(doorward.CodeNotFound, "")
	}
	return id, nil
}

// IsID reports whether the text has the form of an id with the prefix. Other text must not
// reach a query: PostgreSQL refuses text that isn't UTF-8.
func IsID(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	return ok && rest != "" && len(rest) <= 64 && !strings.ContainsFunc(rest, func(r rune) bool { return !isSafeChar(r) })
}

// SetSession sets the cookie for a session under a new token, and the headers about the end of those that
// it replaces. The cookie ends with the browser, or with Site.PersistentCookie when the session must end.
func (c *Call) SetSession(o session.Opened) {
	c.SetRevocation(o.Revocation)
	life := ""
	if c.site.PersistentCookie {
		left := o.Session.ExpiresAt(c.site.App.Sessions.Limits()).Sub(c.site.App.Now())
		life = "; Max-Age=" + strconv.Itoa(int(math.Ceil(left.Seconds()))) // or it would end before the session
	}
	c.addCookie(c.site.Cookie+"="+o.Token.Reveal(), life)
}

// AllSessions returns the session tokens of the request, in cookies and bearer
// credentials. If the guard accepted a session, it is the only one.
func (c *Call) AllSessions() []secret.Token { return c.site.AllSessionTokens(c.R) }

// ClearSession deletes the session cookie.
func (c *Call) ClearSession() { c.clear(c.site.Cookie, cookieAttributes) }

// clear deletes the cookie with these attributes. Browsers ignore a cookie whose
// name begins with __Host- or __Secure- unless it has Secure, even to delete it.
func (c *Call) clear(name, attributes string) {
	cookie := name + "=" + attributes + "; Max-Age=0"
	if strings.HasPrefix(name, "__") {
		cookie += "; Secure"
	}
	c.W.Header().Add("Set-Cookie", cookie)
}

// ClearSessions deletes every session cookie that the browser may have sent here. A request with
// two different ones is refused, and setting ours doesn't replace one of another Path or Domain: the
// person could never sign in.
func (c *Call) ClearSessions() { c.clearAll(c.site.Cookie) }

// clearAll deletes every cookie of the name that the browser may have sent here, on every path
// and parent domain (RFC 6265, section 5.3).
func (c *Call) clearAll(name string) {
	c.clear(name, cookieAttributes)
	for _, at := range pathsAbove(path(c.R)) {
		c.clear(name, "; Path="+at)
	}
	host := c.site.base.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return // an IP address has no parent domain
	}
	for ; strings.Contains(host, "."); _, host, _ = strings.Cut(host, ".") {
		c.clear(name, "; Path=/; Domain="+host)
	}
}

// pathsAbove returns the paths, except "/", whose cookies a browser sends to the path
// (RFC 6265, section 5.1.4). It stops at a segment with special characters, which could
// inject attributes into Set-Cookie, and after eight segments, which bounds the headers of the
// answer.
func pathsAbove(path string) (all []string) {
	at := ""
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if segment == "" || len(all) >= 16 || strings.ContainsFunc(segment, func(r rune) bool { return !isSafeChar(r) }) {
			break
		}
		at += "/" + segment
		all = append(all, at, at+"/")
	}
	return all
}

// SetDevice sets the cookie by which the browser later proves that it has signed in
// before.
func (c *Call) SetDevice(token secret.Token, life time.Duration) {
	c.SetCookie(DeviceCookie, token.Reveal(), int(life.Seconds()))
}

// cookieAttributes: no Domain, so that no other host gets the cookie; HttpOnly, so that
// no script reads it; Lax, so that no other site's form sends it.
const cookieAttributes = "; Path=/; HttpOnly; SameSite=Lax"

// OperatorPage is the path of the operator's page.
const OperatorPage = "/operator"

// SetOperatorPage sets the cookie of the operator's page, which lasts until the browser is
// closed. No other site can make the browser send it, not even by a link (SameSite=Strict).
func (c *Call) SetOperatorPage(token secret.Token) { c.operatorCookie(token.Reveal(), "") }

// ClearOperatorPage deletes the cookie of the operator's page.
func (c *Call) ClearOperatorPage() { c.operatorCookie("", "; Max-Age=0") }

// operatorCookie limits the cookie to the path of the page, unless it has hostPrefix.
func (c *Call) operatorCookie(value, life string) {
	name, path := c.site.cookieName(OperatorCookie), "/"
	if name == OperatorCookie {
		path = c.site.BasePath() + OperatorPage
	}
	cookie := name + "=" + value + "; Path=" + path + "; HttpOnly; SameSite=Strict" + life
	if c.site.secure {
		cookie += "; Secure"
	}
	c.W.Header().Add("Set-Cookie", cookie)
}

// OperatorPages returns the tokens of the operator's page in the request: normally one.
func (c *Call) OperatorPages() (all []secret.Token) {
	for _, value := range c.site.cookies(c.R, OperatorCookie) {
		if token, err := secret.Parse(value); err == nil {
			all = append(all, token)
		}
	}
	return all
}

func (c *Call) addCookie(pair, life string) {
	cookie := pair + cookieAttributes + life
	if c.site.secure {
		cookie += "; Secure"
	}
	c.W.Header().Add("Set-Cookie", cookie)
}
