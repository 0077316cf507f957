package ui

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
)

// noticeCookie holds a hash of the query of a redirect with ?done=. A page shows the notice
// only with this cookie, and deletes it: so the notice is shown once, and an address with
// ?done= that was made up, bookmarked or passed on shows none.
const noticeCookie = "doorward_notice"

// noticeLife is in seconds: long enough for the redirect to arrive.
const noticeLife = 60

// keepNotice sets the cookie for a redirect to an address that says what was done.
func (c *Call) keepNotice(to string) {
	if u, err := url.Parse(to); err == nil && u.Query().Has("done") {
		c.SetCookie(noticeCookie, hashOf(u.RawQuery), noticeLife)
	}
}

// takeNotice returns what was done, once; empty for nothing.
func (c *Call) takeNotice() string {
	done := c.R.URL.Query().Get("done")
	if done == "" || c.Cookie(noticeCookie) != hashOf(c.R.URL.RawQuery) {
		return "" // the cookie is for a page in another tab, which deletes it
	}
	c.SetCookie(noticeCookie, "", 0)
	return done
}

func hashOf(query string) string {
	sum := sha256.Sum256([]byte(query))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
