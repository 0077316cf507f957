package ui

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/setuplink"
	"github.com/doorward/doorward/web/front"
)

// SignedIn requires a session; others are redirected to /login and back.
func SignedIn() front.Guard { return front.SignedIn() }

// isCorrectable reports whether the person can correct the error on the page of the form.
func isCorrectable(err error) bool {
	e := front.AsError(err)
	if e.Code == doorward.CodeMaintenance {
		return true // the form keeps what was written, to be sent later
	}
	if e.Code == doorward.CodeProviderUnavailable && len(e.Fields) > 0 {
		return true // what was seen stands at the field that has the address
	}
	if e.Check != "" {
		return false // what a provider has said is over: the form can't be sent again
	}
	switch e.Kind() {
	case doorward.KindInternal, doorward.KindUnavailable, doorward.KindMalformed:
		return false
	}
	return e.Code != doorward.CodeUnauthenticated
}

// errorHandler returns the handler for errors of a page; formPath is the page's path if the
// request is a form.
func (s *Set) errorHandler(formPath string) func(context.Context, *front.Call, error) {
	return func(ctx context.Context, fc *front.Call, err error) {
		c := s.call(fc)
		switch code := front.AsError(err).Code; {
		case code == doorward.CodeUnauthenticated:
			c.redirect(c.LoginURL(c.returnPath(formPath)) + c.clearDuplicateSessions())
		case code == doorward.CodeTenantClosing && c.Caller.Kind == doorward.ByUser:
			c.redirect(c.Site().BasePath() + "/closing")
		case !c.sendErrorPage(ctx, err):
			c.Site().Fail(c.W, c.R, err)
		}
	}
}

// clearDuplicateSessions deletes the session cookies if there are several different ones,
// and returns the query with which the login explains it. Signing in replaces only ours, so
// with the others the page and the login would redirect to each other forever.
func (c *Call) clearDuplicateSessions() string {
	if len(c.Sessions()) < 2 {
		return ""
	}
	c.ClearSessions()
	return "&" + duplicateQuery + "=1"
}

// duplicateQuery is the query with which the login says why people must sign in again.
const duplicateQuery = "several"

// HadDuplicateSessions reports whether the browser was redirected here because it sent
// several session cookies.
func (c *Call) HadDuplicateSessions() bool { return c.R.URL.Query().Has(duplicateQuery) }

// returnPath returns the path to come back to after signing in.
func (c *Call) returnPath(formPath string) string {
	if formPath != "" || !front.Safe(c.R.Method) {
		return formPath
	}
	return c.R.URL.RequestURI()
}

// ErrorPage answers with the page of an error, for front.Site.
func (s *Set) ErrorPage(fc *front.Call, err error) bool {
	return s.call(fc).sendErrorPage(fc.R.Context(), err)
}

// SendErrorPage is Set.ErrorPage for what belongs to no set.
func SendErrorPage(fc *front.Call, err error) bool { return errorPages.ErrorPage(fc, err) }

// ErrorPage is the content of the page of an error.
type ErrorPage struct {
	Title, Text string
	Again       bool   // trying again may work
	Support     bool   // somebody else can help, who needs the request's id
	Home        bool   // the page links to the account
	Setup       string // path of the set-up that the caller has a link for; empty: none
	SignOn      string // path of the connection by which to sign in again; empty: none
}

// sendErrorPage sends an error page, and reports whether it could; if not, that is a defect.
func (c *Call) sendErrorPage(ctx context.Context, err error) bool {
	m, failed := c.errorPage(front.AsError(err))
	if failed != nil {
		return false
	}
	status := front.Status(front.AsError(err).Code)
	c.Refuse(err)
	if v, ok := c.viewAround(ctx, err, m); ok {
		v.Status = status
		return c.answer(v) == nil
	}
	c.set = errorPages
	return c.answer(View{Page: "error", Body: m, Status: status}) == nil
}

// viewAround returns the view of the error in the set's own pages, if there is one and the caller may see
// those.
func (c *Call) viewAround(ctx context.Context, err error, m ErrorPage) (View, bool) {
	codes := []doorward.Code{doorward.CodeNotFound, doorward.CodeForbidden, doorward.CodeDeniedByPolicy, doorward.CodeStepUpRequired}
	if c.set.errorView == nil || c.Caller.Kind != doorward.ByUser || !slices.Contains(codes, front.AsError(err).Code) {
		return View{}, false
	}
	v, failed := c.set.errorView(ctx, c, m)
	return v, failed == nil
}

// errorPage returns what the page of an error says.
func (c *Call) errorPage(e *doorward.Error) (ErrorPage, error) {
	p, err := errorPages.page(c.Site().Texts, c.Language.Tag, "error")
	if err != nil {
		return ErrorPage{}, err
	}
	words := p.wordsFor(c)
	wait, err := words.waitText(e.RetryAfter)
	problem, key := e.Code.Problem(), c.pageKey(e)
	texts := []string{key + ".text"}
	if !front.Safe(c.R.Method) { // not_found is about what the form names, not about the address
		texts = []string{"notice." + string(e.Code), key + ".text"}
	}
	if e.Check != "" {
		texts = []string{key + "." + e.Check, key + ".text"}
	}
	sent := front.SentOrigin(c.R.Header)
	if e.Code == doorward.CodeCrossOrigin && strings.Contains(sent, "://") {
		texts = []string{key + ".from"}
	}
	m := ErrorPage{
		Title:   words.firstMessageOr(problem.Title, []string{key + ".title"}),
		Text:    words.firstMessageOr(problem.Help, texts, "wait", wait, "sent", sent, "own", c.Site().Origin(), "check", e.Check),
		Again:   problem.Kind == doorward.KindUnavailable,
		Support: problem.Kind == doorward.KindInternal || problem.Kind == doorward.KindUnavailable || e.Policy != nil,
	}
	switch {
	case e.Code == doorward.CodeMaintenance:
		m.Text, m.Support = words.paused(e.Reason), false
	case e.Policy != nil:
		m.Text = words.refusedBy(*e.Policy)
	}
	if m.Home = !m.Again; c.Caller.Kind == doorward.BySetupLink {
		m.Home, m.Setup = false, setuplink.Path+"/provider"
	}
	if con := c.R.PathValue("con"); con != "" && (e.Check != "" || e.Code == doorward.CodeProviderUnavailable) {
		m.Home, m.Again, m.Support, m.SignOn = false, false, true, SignOnPage(con) // loading a callback again can't work
	}
	return m, err
}

// errorKey is the beginning of the keys of the messages about an error. The daily quota has
// its own messages, since people only have to wait.
func errorKey(e *doorward.Error) string {
	if e.Quota == doorward.QuotaEventsPerDay {
		return "error." + string(e.Code) + "." + string(e.Quota)
	}
	return "error." + string(e.Code)
}

// pageKey is errorKey for the page of the error. There an address of a tenant's sign-on has messages of its own, since a
// tile of the provider's portal may lead to it while it is turned off, and so has an account without a password to sign in
// with.
func (c *Call) pageKey(e *doorward.Error) string {
	isOfSignOn := c.R.PathValue("con") != ""
	switch key := errorKey(e); {
	case e.Code == doorward.CodeNotFound && isOfSignOn && c.R.URL.Query().Has("test"):
		return key + ".test"
	case e.Code == doorward.CodeNotFound && isOfSignOn:
		return key + ".sso"
	case e.Code == doorward.CodeSignInRequired && c.Caller.IsManaged:
		return key + ".managed"
	default:
		return key
	}
}
