package front

import (
	"fmt"
	"math"
	"net/http"
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
	query  []Parameter // those that the route knows
}

// Site is the site that the request came to.
func (c *Call) Site() *Site { return c.site }

// revoked tells the client how a revocation was made to hold everywhere.
func (c *Call) revoked(nodes int, took time.Duration) {
	c.W.Header().Set("X-Revocation-Nodes", strconv.Itoa(nodes))
	c.W.Header().Set("X-Revocation-Ms", strconv.FormatFloat(float64(took.Microseconds())/1000, 'f', 3, 64))
}

// limited tells the client what is left of its own allowance
// (draft-ietf-httpapi-ratelimit-headers-10).
func (c *Call) limited(a doorward.Allowance) {
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
	c.addCookie(SessionCookie+"="+token.Reveal(), "")
}

// ClearSession takes it away again.
func (c *Call) ClearSession() {
	c.W.Header().Add("Set-Cookie", SessionCookie+"="+cookieAttributes+"; Max-Age=0")
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
