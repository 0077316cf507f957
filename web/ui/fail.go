package ui

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

// SignedIn lets in whoever has a session; others are led to /login and back.
func SignedIn() front.Guard { return front.SignedIn() }

// correctable reports whether the person can do something about it on the page
// that the form came from.
func correctable(err error) bool {
	e := front.AsError(err)
	switch e.Kind() {
	case doorward.KindInternal, doorward.KindUnavailable, doorward.KindMalformed:
		return false
	}
	return e.Code != doorward.CodeUnauthenticated
}

// failing answers for a page, the one with the path at where the request is for
// a form of it.
func failing(at string) func(context.Context, *front.Call, error) {
	return func(_ context.Context, fc *front.Call, err error) {
		c := kit.call(fc)
		switch code := front.AsError(err).Code; {
		case code == doorward.CodeUnauthenticated:
			c.redirect(c.SignIn(c.place(at)) + c.untangle())
		case code == doorward.CodeTenantClosing && c.Caller.Kind == doorward.ByUser:
			c.redirect(c.Site().BasePath() + "/closing")
		case !c.explain(err):
			c.Site().Fail(c.W, c.R, err)
		}
	}
}

// untangle takes several different session cookies away, and returns what has the
// login say so. Signing in sets only ours anew, so that with the others in place
// the page and the login would lead to each other for ever.
func (c *Call) untangle() string {
	if len(c.Sessions()) < 2 {
		return ""
	}
	c.ClearSessions()
	return "&" + tangled + "=1"
}

// tangled is the query by which the login says why one has to sign in again.
const tangled = "several"

// Tangled reports whether the browser came here with several session cookies.
func (c *Call) Tangled() bool { return c.R.URL.Query().Has(tangled) }

// place is the path to come back to after signing in.
func (c *Call) place(at string) string {
	if at != "" || !front.Safe(c.R.Method) {
		return at
	}
	return c.R.URL.RequestURI()
}

// ErrorPage answers with the page of an error, for front.Site.
func ErrorPage(fc *front.Call, err error) bool { return kit.call(fc).explain(err) }

// mishap is what the page of an error says.
type mishap struct {
	Title, Text string
	Again       bool // it may work a moment later
	Support     bool // the operator can look it up
	Home        bool // the way out is the account
}

// explain sends the page of an error. That it can't is a defect of the kit.
func (c *Call) explain(err error) bool {
	p, failed := kit.page(c.Language.Tag, "error")
	if failed != nil {
		return false
	}
	e := front.AsError(err)
	wait, failed := p.words.wait(e.RetryAfter)
	if failed != nil {
		return false
	}
	about, key := e.Code.Problem(), "error."+string(e.Code)
	m := mishap{
		Title:   p.words.first(about.Title, []string{key + ".title"}),
		Text:    p.words.first(about.Help, []string{key + ".text"}, "wait", wait),
		Again:   about.Kind == doorward.KindUnavailable,
		Support: about.Kind == doorward.KindInternal || about.Kind == doorward.KindUnavailable,
	}
	m.Home = !m.Again
	c.Refuse(err)
	return c.answer(View{Page: "error", Title: m.titleKey(p, key), Body: m, Status: front.Status(e.Code)}) == nil
}

// titleKey is the message that the title of the page is; what has no message of
// its own has the common one.
func (m mishap) titleKey(p page, key string) string {
	if _, ok := p.words[key+".title"]; ok {
		return key + ".title"
	}
	return "error.title"
}
