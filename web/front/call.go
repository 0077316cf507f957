package front

import (
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
)

// Call is one request on its way to a feature.
type Call struct {
	Caller doorward.Caller
	W      http.ResponseWriter
	R      *http.Request
	site   *Site
	query  []Parameter // those that the route knows, beside those
	list   bool        // of a list
	values url.Values  // see parameters
}

// Site is the site that the request came to.
func (c *Call) Site() *Site { return c.site }

// Known tells the log who is calling, where only the endpoint finds out: somebody
// who signs in.
func (c *Call) Known(by doorward.Caller) { infoOf(c.R).know(by) }

// Revoked tells the client how a revocation was made to hold everywhere, if there was
// one.
func (c *Call) Revoked(r doorward.Revocation) {
	if r.Nodes == 0 {
		return
	}
	c.W.Header().Set("X-Revocation-Nodes", strconv.Itoa(r.Nodes))
	c.W.Header().Set("X-Revocation-Ms", strconv.FormatFloat(float64(r.Took.Microseconds())/1000, 'f', 3, 64))
}

// Limited tells the client what is left of its own allowance, if it has one
// (draft-ietf-httpapi-ratelimit-headers-10).
func (c *Call) Limited(a *doorward.Allowance) {
	if a == nil {
		return
	}
	h := c.W.Header()
	h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", a.Name, a.Quota, int(a.Window.Seconds())))
	h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", a.Name, a.Remaining, int(math.Ceil(a.Reset.Seconds()))))
}

// ID returns the id in the path under the name, or not_found when it can't be
// one with the prefix.
func (c *Call) ID(name, prefix string) (string, error) {
	id := c.R.PathValue(name)
	rest, ok := strings.CutPrefix(id, prefix)
	if !ok || rest == "" || len(rest) > 64 || strings.ContainsFunc(rest, func(r rune) bool { return !harmless(r) }) {
		return "", doorward.Fail(doorward.CodeNotFound, "")
	}
	return id, nil
}

// SetSession hands the session's identifier to the browser.
func (c *Call) SetSession(token secret.Token) {
	c.addCookie(c.site.Cookie+"="+token.Reveal(), "")
}

// AllSessions are the session tokens of the request, in cookies and bearer credentials:
// one, where the route let a session in.
func (c *Call) AllSessions() []secret.Token { return c.site.AllSessionTokens(c.R) }

// ClearSession takes it away again.
func (c *Call) ClearSession() { c.clear(cookieAttributes) }

// clear deletes the session cookie with these attributes. Browsers ignore one whose
// name begins with __Host- or __Secure- unless it says Secure, a deletion too.
func (c *Call) clear(attributes string) {
	cookie := c.site.Cookie + "=" + attributes + "; Max-Age=0"
	if strings.HasPrefix(c.site.Cookie, "__") {
		cookie += "; Secure"
	}
	c.W.Header().Add("Set-Cookie", cookie)
}

// ClearSessions deletes every session cookie that the browser may have sent here. A
// request with two different ones is refused, and setting ours doesn't replace one
// of another Path or Domain: the person could sign in repeatedly without effect. A
// host may delete its cookies on every path (RFC 6265, section 5.3), and those of
// its parent domains.
func (c *Call) ClearSessions() {
	c.ClearSession()
	for _, at := range pathsAbove(path(c.R)) {
		c.clear("; Path=" + at)
	}
	host := c.site.base.Hostname()
	for _, err := netip.ParseAddr(host); err != nil && strings.Contains(host, "."); _, host, _ = strings.Cut(host, ".") {
		c.clear("; Path=/; Domain=" + host)
	}
}

// pathsAbove are the paths whose cookies a browser sends to the path (RFC 6265,
// section 5.1.4), but for "/". They end where a segment could be more to a browser
// than a part of a path.
func pathsAbove(path string) (all []string) {
	at := ""
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if segment == "" || len(all) >= 16 || strings.ContainsFunc(segment, func(r rune) bool { return !harmless(r) }) {
			break
		}
		at += "/" + segment
		all = append(all, at, at+"/")
	}
	return all
}

// SetDevice lets the browser show later that it has signed in before.
func (c *Call) SetDevice(token secret.Token, life time.Duration) {
	c.addCookie(DeviceCookie+"="+token.Reveal(), "; Max-Age="+strconv.Itoa(int(life.Seconds())))
}

// cookieAttributes: no Domain, so that no neighbouring host gets the cookie;
// HttpOnly, so that no script does; Lax, so that no other site's form sends it.
const cookieAttributes = "; Path=/; HttpOnly; SameSite=Lax"

func (c *Call) addCookie(pair, life string) {
	cookie := pair + cookieAttributes + life
	if c.site.secure {
		cookie += "; Secure"
	}
	c.W.Header().Add("Set-Cookie", cookie)
}
