package ui

import (
	"net/url"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/setuplink"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/web/front"
)

// ChallengeCookie keeps the challenge between the steps of a sign-in, in the browser that has begun it: a
// query would appear in logs.
const ChallengeCookie = "doorward_challenge"

// KeepChallenge sets the cookie with the challenge.
func KeepChallenge(c *front.Call, b factor.NewChallenge) {
	c.SetCookie(ChallengeCookie, b.Token.Reveal(), int(doorward.ChallengeLife.Seconds()))
}

// SignOnPage is the path of the page of a connection, without the path of the base URL.
func SignOnPage(conID string) string { return "/sso/" + conID }

// SetupCookie keeps, in the browser that has begun by a set-up link, the secret that says so, until the link ends.
const SetupCookie = "doorward_setup"

// SetupTestPage is the path of the result of a test that a set-up link has asked for, without the path of the
// base URL.
func SetupTestPage(testID string) string { return setuplink.Path + "/test?test=" + testID }

// AfterSignOn sets the cookies for the result of a sign-in at the provider of the connection, and returns the
// address that the browser goes to. by is the caller for the log.
func AfterSignOn(c *front.Call, conID string, by doorward.Caller, r signon.Result) string {
	page := func(path string) string {
		return c.Site().BasePath() + withReturn(path, allowedReturn(c.Site(), r.Return))
	}
	switch o := r.Outcome.(type) {
	case login.SignedIn:
		c.SetSession(o.Opened)
		c.SetLogCaller(by.As(o.User))
		if o.User.TenantStatus == doorward.TenantClosing {
			return c.Site().BasePath() + "/closing"
		}
		return landing(c.Site(), r.Return)
	case login.SecondNeeded:
		KeepChallenge(c, o.NewChallenge)
		return page("/login/second")
	case login.EnrolmentNeeded:
		KeepChallenge(c, o.NewChallenge)
		return page("/login/enrol")
	}
	switch {
	case r.Held != "":
		c.SetCookie(signon.HeldCookie, r.Held, int(flow.Life.Seconds()))
		return page(SignOnPage(conID) + "/continue")
	case r.Test != "" && r.ByLink:
		return c.Site().BasePath() + SetupTestPage(r.Test)
	case r.Test != "":
		return c.Site().BasePath() + SignOnPage(conID) + "/test/" + r.Test
	}
	c.SetSession(*r.Raised)
	if allowedReturn(c.Site(), r.Return) == "" {
		return c.Site().BasePath() + "/step-up?done=proved"
	}
	return landing(c.Site(), r.Return)
}

// allowedReturn returns the address if people may be led there, else nothing.
func allowedReturn(s *front.Site, address string) string {
	to, _ := ReturnAddress(s, address)
	return to
}

// landing returns where people land after signing in with the return address.
func landing(s *front.Site, address string) string {
	if to := allowedReturn(s, address); to != "" {
		return to
	}
	if s.Home != "" {
		return s.Home
	}
	return s.BasePath() + accountPath
}

// SignOnWith returns the path with the return address of a sign-in and the address for its provider, as far as there
// are any.
func SignOnWith(path, returnTo, loginHint string) string {
	query := url.Values{}
	for name, value := range map[string]string{"return": returnTo, "loginHint": loginHint} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
