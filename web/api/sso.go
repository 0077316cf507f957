package api

import (
	"context"
	"net/http"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/acs"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// signOnRoutes are those of sign-ins by a tenant's own provider.
func (a *api) signOnRoutes() []front.Route {
	return []front.Route{
		front.On("GET /api/v2/auth/sso/{con}/start", front.Public(), redirects(a.startSignOn), docStartSignOn).CallsOut(),
		front.On("GET /api/v2/auth/sso/{con}/callback", front.Public(), finishes(a.finishSignOn).OpensSession(), docFinishSignOn).CallsOut(),
		front.On("POST /api/v2/auth/sso/{con}/acs", front.Public(), receives(a.receiveSAML), docReceiveSAML).CallsOut().FromAnyOrigin(),
		front.On("POST /api/v2/sso/connections/{id}/test", front.Allowed(doorward.ConnectionTry), front.JSON(http.StatusCreated, a.testConnection), docTestConnection).CallsOut(),
	}
}

// redirects returns the endpoint of a browser that is led on, unless fn has answered and returns no address. Its errors
// are pages for browsers, and problems for other clients.
func redirects(fn func(context.Context, *front.Call) (string, error)) front.Endpoint {
	e := front.Raw(func(ctx context.Context, c *front.Call) error {
		to, err := fn(ctx, c)
		if err == nil && to != "" {
			c.W.Header().Set("Location", to)
			c.W.WriteHeader(http.StatusSeeOther)
		}
		return err
	})
	e.Status = http.StatusSeeOther
	return e.WithErrorHandler(func(_ context.Context, c *front.Call, err error) {
		if !c.AsksForPage() || !ui.SendErrorPage(c, err) {
			c.Site().Fail(c.W, c.R, err)
		}
	})
}

var docStartSignOn = front.Doc{
	ID: "startSignOn", Tag: "Sign-on", Summary: "Begin to sign in at a tenant's own provider",
	Description: "For browsers: leads to the provider, and writes nothing. What it needs at the callback lies sealed in a cookie `doorward_sso_…` of the browser, for 10 minutes, one for each of up to 5 tabs. A browser that another site has led here sees the page /sso/{con} first. A connection that signs nobody in is 404.",
	Query: []front.Parameter{
		{Name: "return", Description: "Where the browser goes after the sign-in: an address below the base URL, or one that `--return-to` allows; any other is ignored", Example: "https://app.example.com/inbox"},
		{Name: "loginHint", Description: "The address of the person, for the provider", Example: "ann@acme.example"},
		{Name: "stepup", Description: "The challenge of step_up_required, which has the method sso: the provider signs the same person in again, and the session is proved by that. For a browser without a session of this connection it is an ordinary sign-in"},
		{Name: "test", Description: "The id of a test"},
	},
	Headers: []front.Parameter{{Name: "Location", Description: "The provider, or the page /sso/{con}"}},
	Errors:  []doorward.Code{doorward.CodeNotFound, doorward.CodeSignOnRefused, doorward.CodeTooManyAttempts, doorward.CodeProviderUnavailable, doorward.CodeMasterKeyMissing},
}

func (a *api) startSignOn(ctx context.Context, c *front.Call) (string, error) {
	conID, err := c.ID("con", doorward.PrefixConnection)
	if err != nil {
		return "", err
	}
	query := c.R.URL.Query()
	ask := signon.Ask{LoginHint: query.Get("loginHint"), Test: query.Get("test"), StepUp: query.Get("stepup") != ""}
	if ask.Test != "" && !front.IsID(ask.Test, doorward.PrefixTest) {
		return "", doorward.Fail(doorward.CodeNotFound, "")
	}
	if asked := query.Get("return"); asked != "" {
		to, ok := ui.ReturnAddress(c.Site(), asked)
		if !ok {
			c.LogRefusedReturn(asked)
		}
		ask.Return = to
	}
	if c.FromElsewhere() {
		return c.Site().BasePath() + ui.SignOnWith(ui.SignOnPage(conID), ask.Return, ask.LoginHint), nil
	}
	ask.Tabs = tabsOf(c)
	by, err := browser(ctx, c)
	if err != nil {
		return "", err
	}
	if ask.SetupLink, err = a.setupLink(ctx, c, ask.Test); err != nil {
		return "", err
	}
	begun, err := a.app.SignOn.Start(ctx, by, conID, ask)
	if err != nil {
		return "", err
	}
	for _, name := range begun.Drop {
		c.SetCookie(name, "", 0)
	}
	c.SetCookie(begun.Tab.Name, begun.Tab.Value, int(flow.Life.Seconds()))
	return begun.URL, nil
}

// tabsOf returns the browser's cookies of sign-ins that have begun.
func tabsOf(c *front.Call) (all []flow.Tab) {
	for name, value := range c.CookiesLike(flow.TabPrefix) {
		all = append(all, flow.Tab{Name: name, Value: value})
	}
	return all
}

// setupLink returns the id of the set-up link by which the browser has begun, for a test; empty: none. Errors:
// unavailable.
func (a *api) setupLink(ctx context.Context, c *front.Call, testID string) (string, error) {
	cookie := c.Cookie(ui.SetupCookie)
	if testID == "" || cookie == "" {
		return "", nil
	}
	_, link, err := a.app.SetupLinks.Caller(ctx, c.Caller, cookie)
	if doorward.HasCode(err, doorward.CodeSetupLinkOver) {
		err = nil
	}
	return link.ID, err
}

// browser returns the caller by the session of the cookie, or an anonymous one. Errors: unavailable.
func browser(ctx context.Context, c *front.Call) (doorward.Caller, error) {
	by, err := c.Site().Caller(ctx, c.R)
	if doorward.HasCode(err, doorward.CodeUnauthenticated) || err == nil && by.Kind != doorward.ByUser {
		return c.Caller, nil
	}
	return by, err
}

var docFinishSignOn = front.Doc{
	ID: "finishSignOn", Tag: "Sign-on", Summary: "End a sign-in at a tenant's own provider",
	Description: "The address that the provider leads the browser to. The answer, 303, leads on to the address that the sign-in began with, to a page that asks for something more, or to the result of a test. A browser that comes with the response of a SAML provider was led here by POST /api/v2/auth/sso/{con}/acs; to a response that nobody asked for the answer is a page, 200, on which a sign-in begins. Refusals are a page for browsers, with the id of the request; the protocol of the connection says more.",
	Query: []front.Parameter{
		{Name: "state", Description: "As it was given to the provider"},
		{Name: "code", Description: "Of the provider"},
		{Name: "iss", Description: "The issuer (RFC 9207)"},
		{Name: "error", Description: "Of the provider"},
		{Name: "received", Description: "What the response of a SAML provider has come to, sealed"},
		{Name: "unsolicited", Description: "A SAML provider has led the browser here without being asked"},
	},
	Headers: []front.Parameter{{Name: "Location", Description: "Where the browser goes"}},
	Errors: []doorward.Code{
		doorward.CodeNotFound, doorward.CodeSignOnState, doorward.CodeSignOnRefused, doorward.CodeTooManyAttempts, doorward.CodeProviderUnavailable,
		doorward.CodeTenantFrozen, doorward.CodeTenantClosing, doorward.CodeMasterKeyMissing, doorward.CodeQuotaExceeded,
	},
}

func (a *api) finishSignOn(ctx context.Context, c *front.Call) (string, error) {
	query := c.R.URL.Query()
	if acs.IsUnsolicited(query) {
		return "", c.Site().Unsolicited(ctx, c)
	}
	conID, err := c.ID("con", doorward.PrefixConnection)
	if err == nil && isEmbedded(c) {
		err = &doorward.Error{Code: doorward.CodeSignOnState, Check: signon.CheckState}
	}
	if err != nil {
		return "", err
	}
	by, err := browser(ctx, c)
	if err != nil {
		return "", err
	}
	by.ViewOnly = false // it may open a session
	for _, token := range c.AllSessions() {
		hash := token.Hash()
		by.Replaced = append(by.Replaced, hash[:])
	}
	result, err := a.app.SignOn.Finish(ctx, by, conID, query, tabsOf(c))
	if result.Tab != "" && !doorward.HasCode(err, doorward.CodeTooManyAttempts) { // then it can be loaded again
		c.SetCookie(result.Tab, "", 0)
	}
	if err != nil {
		return "", err
	}
	return ui.AfterSignOn(c, conID, by, result), nil
}

// The fields of a form at acs (saml-bindings 3.5.4).
var responseFields = []front.Parameter{
	{Name: "SAMLResponse", Description: "The response, in base64"},
	{Name: "RelayState", Description: "As it was given to the provider"},
}

// finishes is redirects for an endpoint that may answer with a page.
func finishes(fn func(context.Context, *front.Call) (string, error)) front.Endpoint {
	e := redirects(fn)
	e.Page = true
	return e
}

// receives is redirects for a form with a response of SAML, from a page of the provider.
func receives(fn func(context.Context, *front.Call) (string, error)) front.Endpoint {
	e := redirects(fn)
	e.Media, e.Fields, e.MaxBody = []string{"application/x-www-form-urlencoded"}, responseFields, samlsp.FormMax
	return e
}

var docReceiveSAML = front.Doc{
	ID: "receiveSAML", Tag: "Sign-on", Summary: "Receive a SAML response",
	Description: "The assertion consumer service of a connection of type saml, by HTTP-POST: a page of the provider sends the browser here with a form of at most 400 KiB. It needs no cookie, and is judged here; the answer leads to the callback in any case, where the browser that has begun is signed in, or refused. A response that answers no request isn't looked at: a page says to start the sign-in here. 60 refused responses a minute and client address, then 429.",
	Headers:     []front.Parameter{{Name: "Location", Description: "The callback of the connection"}},
	Errors: []doorward.Code{
		doorward.CodeNotFound, doorward.CodeSignOnState, doorward.CodeTooManyAttempts, doorward.CodeMasterKeyMissing,
	},
}

func (a *api) receiveSAML(ctx context.Context, c *front.Call) (string, error) {
	conID, err := c.ID("con", doorward.PrefixConnection)
	if err == nil && isEmbedded(c) {
		err = &doorward.Error{Code: doorward.CodeSignOnState, Check: signon.CheckState}
	}
	if err != nil {
		return "", err
	}
	form, err := c.FormUpTo(samlsp.FormMax)
	if err != nil {
		return "", err
	}
	query, err := a.app.SignOn.Receive(ctx, c.Caller, conID, form)
	if err != nil {
		return "", err
	}
	return c.Site().BasePath() + "/api/v2/auth/sso/" + conID + "/callback?" + query.Encode(), nil
}

// isEmbedded reports whether a page loads the address as a part of itself, such as an image (W3C, Fetch Metadata
// Request Headers). Providers lead the browser itself here. Counted as a stray callback, images in any page would
// shut out all people behind the browser's address.
func isEmbedded(c *front.Call) bool {
	as := c.R.Header.Get("Sec-Fetch-Dest")
	return as != "" && as != "document"
}

type begunTestView struct {
	TestID string `json:"testId" example:"tst_7vkq2m5x3yh4n6rj7wd2c5tpae"`
	URL    string `json:"url" format:"uri" doc:"Where the browser of the session that asked begins the test, once and within 10 minutes"`
}

var docTestConnection = front.Doc{
	ID: "testConnection", Tag: "Sign-on", Summary: "Test a connection",
	Description: "Prepares a real sign-in in a window, which opens no session and joins nobody. It tests what awaits a switch, if there is something, else what is in force. GET /api/v2/sso/connections/{id}/tests/{testId} has the result.",
	Errors:      []doorward.Code{doorward.CodeNotFound, doorward.CodeValidationFailed, doorward.CodeTooManyAttempts, doorward.CodeQuotaExceeded, doorward.CodeProviderUnavailable, doorward.CodeMasterKeyMissing},
}

func (a *api) testConnection(ctx context.Context, c *front.Call, _ front.None) (begunTestView, error) {
	conID, err := connectionID(c)
	if err != nil {
		return begunTestView{}, err
	}
	test, err := a.app.Tests.Make(ctx, c.Caller, conID)
	if err != nil {
		return begunTestView{}, err
	}
	return begunTestView{test.ID, a.app.Tests.URL(test)}, nil
}
