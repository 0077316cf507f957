package hosted

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/setuplink"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// setupPath is where set-up links lead; its steps are below it.
const setupPath = setuplink.Path

// setupSteps are the last parts of the steps' paths, in their order, and the names of their tabs. By a directory alone
// nobody signs in: directorySteps are its own.
var (
	setupSteps     = []string{"provider", "domains", "test", "directory", "protocol"}
	directorySteps = []string{"directory", "domains", "protocol"}
)

// stepsOf returns the steps of a connection.
func stepsOf(c doorward.Connection) []string {
	if c.Type == doorward.SCIMDirectory {
		return directorySteps
	}
	return setupSteps
}

// pathOfStep returns the path of a step, without the path of the base URL.
func pathOfStep(name string) string { return setupPath + "/" + name }

func (h *hosted) setupRoutes() []front.Route {
	show := func(name string, fn setupHandler) front.Route {
		return front.On("GET "+pathOfStep(name), front.Public(), set.Show(h.byLink(onlyOf(name, fn))), front.Doc{})
	}
	take := func(path, name string, fn, again setupHandler) front.Route {
		return front.On("POST "+setupPath+path, front.Public(), set.Take(pathOfStep(name), h.byLink(fn), h.byLink(again)), front.Doc{})
	}
	return []front.Route{
		front.On("GET "+setupPath, front.Public(), set.Show(h.askSetupCode), front.Doc{}),
		front.On("POST "+setupPath, front.Public(), set.Open(setupPath, h.openSetup, h.refusedSetup), front.Doc{}),
		front.On("POST "+setupPath+"/begin", front.Public(), set.Take(setupPath, h.beginSetup, h.refusedSetup), front.Doc{}),
		show("provider", h.showSetupProvider),
		take("/provider", "provider", h.saveSetupProvider, h.showSetupProvider).CallsOut(),
		front.On("POST "+setupPath+"/saml", front.Public(),
			set.TakeFileOrText(pathOfStep("provider"), ui.MetadataFile, ui.MaxMetadata, ui.MaxMetadataFields, h.byLink(h.saveSetupSAML), h.byLink(h.showSetupProvider)), front.Doc{}).CallsOut(),
		take("/secrets/{id}/delete", "provider", h.deleteSetupSecret, h.showSetupProvider),
		show("domains", h.showSetupDomains),
		take("/domains/{id}/verify", "domains", h.verifySetupDomain, h.showSetupDomains).CallsOut(),
		show("test", h.showSetupTest),
		take("/test", "test", h.beginSetupTest, h.showSetupTest).CallsOut(),
		show("directory", h.showSetupDirectory),
		take("/directory/secrets", "directory", h.makeSetupSCIMSecret, h.showSetupDirectory),
		take("/directory/secrets/{id}/delete", "directory", h.deleteSetupSCIMSecret, h.showSetupDirectory),
		show("protocol", h.showSetupProtocol),
	}
}

// askSetupCode asks for the code of a link, which the script takes from the address. A browser that has begun
// can go on.
func (h *hosted) askSetupCode(ctx context.Context, c *ui.Call) (ui.View, error) {
	v := askCode("setup")
	form, _ := v.Body.(codeForm)
	form.Label = "setup.token"
	_, _, isBegun, err := h.setupOfBrowser(ctx, c)
	if isBegun {
		form.GoOn = pathOfStep(setupSteps[0])
	}
	v.Body = form
	return v, err
}

// setupOfBrowser returns the link by which the browser has begun, and the caller that it is; false: none, or one
// that is over. Errors: unavailable.
func (h *hosted) setupOfBrowser(ctx context.Context, c *ui.Call) (doorward.Caller, doorward.SetupLink, bool, error) {
	by, link, err := h.app.SetupLinks.Caller(ctx, c.Caller, c.Cookie(ui.SetupCookie))
	if doorward.HasCode(err, doorward.CodeSetupLinkOver) {
		return by, link, false, nil
	}
	return by, link, err == nil, err
}

// setupInvitation is the page of a link by which nobody has begun.
type setupInvitation struct {
	Link       doorward.SetupLink
	Connection doorward.Connection
	Token      string
	// Other is the name of another connection whose set-up this browser has begun; empty: none.
	Other string
}

// Product is the name of the provider's product; empty for another one.
func (s setupInvitation) Product() string { return ui.ProductName(s.Connection.Product) }

// openSetup shows what the link is for. It begins nothing, so that a scanner of mails uses no link up. The
// browser that has begun goes on.
func (h *hosted) openSetup(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "token"); err != nil {
		return ui.View{}, err
	}
	invitation := setupInvitation{Token: ui.PastedCode(c.Value("token"))}
	by, begun, isBegun, err := h.setupOfBrowser(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	invitation.Link, invitation.Connection, err = h.app.SetupLinks.Look(ctx, invitation.Token)
	if doorward.HasCode(err, doorward.CodeSetupLinkTaken) && isBegun && begun.ID == invitation.Link.ID {
		return c.To(pathOfStep(setupSteps[0])), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	if isBegun {
		other, err := h.app.Connections.Connection(ctx, by, begun.ConnectionID)
		if err != nil {
			return ui.View{}, err
		}
		invitation.Other = other.Name
	}
	tenant, err := h.app.Tenants.Get(ctx, invitation.Link.TenantID)
	return ui.View{Page: "setup", Scripts: codeScript, Tenant: tenant, Body: invitation}, err
}

// refusedSetup says why the link can't be used, or asks for the code again.
func (h *hosted) refusedSetup(ctx context.Context, c *ui.Call) (ui.View, error) {
	switch code := c.RefusalCode(); code {
	case doorward.CodeSetupLinkTaken, doorward.CodeSetupLinkOver:
		return endedPage(code, ""), nil
	}
	return h.askSetupCode(ctx, c)
}

// beginSetup binds the link to this browser, by a cookie that ends with the link.
func (h *hosted) beginSetup(ctx context.Context, c *ui.Call) (ui.View, error) {
	browser, err := h.app.SetupLinks.Begin(ctx, c.Caller, ui.PastedCode(c.Value("token")))
	if doorward.HasCode(err, doorward.CodeSetupLinkTaken) {
		return h.openSetup(ctx, c) // which leads on if this browser has begun before
	}
	if err != nil {
		return ui.View{}, err
	}
	_, link, err := h.app.SetupLinks.Caller(ctx, c.Caller, browser.Reveal())
	if err != nil {
		return ui.View{}, err
	}
	c.SetCookie(ui.SetupCookie, browser.Reveal(), int(link.EndsAt.Sub(c.Now()).Seconds()))
	return c.To(pathOfStep(setupSteps[0])), nil
}

// setupStep is what all steps show: the link of the browser, its connection, and what is left to do.
type setupStep struct {
	Tabs       ui.Tabs
	Link       doorward.SetupLink
	Connection connection.Shown
	Tenant     doorward.Tenant
	Domains    []doorward.Domain // of the connection, the oldest first
	IsIdle     bool              // the connection is active, and the tenant's policy lets none sign anybody in
}

// usesKeys reports whether Doorward authenticates by a key of its own, by what is saved.
func (s setupStep) usesKeys() bool {
	edited, _ := s.Connection.ToTest()
	return edited.ClientAuth == doorward.PrivateKeyJWT
}

// setupHandler shows a step, or takes a form of it. The caller of c is the link.
type setupHandler func(ctx context.Context, c *ui.Call, s setupStep) (ui.View, error)

// byLink returns the handler of a page for the browser that has begun, as the caller that its link is. A browser
// that hasn't is led to the page that asks for the link; with a link that is over it is told so.
func (h *hosted) byLink(fn setupHandler) func(context.Context, *ui.Call) (ui.View, error) {
	return func(ctx context.Context, c *ui.Call) (ui.View, error) {
		if c.Cookie(ui.SetupCookie) == "" {
			return c.To(setupPath), nil
		}
		s, err := h.setupStep(ctx, c)
		var v ui.View
		if err == nil {
			v, err = fn(ctx, c, s)
		}
		if doorward.HasCode(err, doorward.CodeSetupLinkOver) {
			// The cookie stays: the link is good again once its maker, or the tenant, is.
			v := endedPage(doorward.CodeSetupLinkOver, "")
			v.Status = front.Status(doorward.CodeSetupLinkOver)
			return v, nil
		}
		return v, err
	}
}

// setupStep reads what all steps show, and makes the link the caller. Errors: setup_link_over, unavailable.
func (h *hosted) setupStep(ctx context.Context, c *ui.Call) (s setupStep, err error) {
	c.Caller, s.Link, err = h.app.SetupLinks.Caller(ctx, c.Caller, c.Cookie(ui.SetupCookie))
	if err != nil {
		return s, err
	}
	c.SetLogCaller(c.Caller)
	s.Connection, err = h.app.Connections.Connection(ctx, c.Caller, s.Link.ConnectionID)
	if err == nil {
		s.Domains, err = h.app.Domains.OfConnection(ctx, c.Caller, s.Link.ConnectionID)
	}
	if err == nil {
		s.Tenant, err = h.app.Tenants.Get(ctx, s.Link.TenantID)
	}
	if err == nil && s.Connection.Status == doorward.ConnectionActive && s.Connection.Type != doorward.SCIMDirectory {
		var signsIn bool
		signsIn, err = h.app.SignOn.SignsIn(ctx, s.Connection.Connection)
		s.IsIdle = !signsIn
	}
	if doorward.HasCode(err, doorward.CodeNotFound) { // deleted since
		err = doorward.Fail(doorward.CodeSetupLinkOver, "")
	}
	s.Tabs.Items = s.tabs(c.Site().BasePath())
	return s, err
}

// tabs are links to the steps; those with nothing left to do are marked.
func (s setupStep) tabs(base string) (all []ui.Tab) {
	edited, _ := s.Connection.ToTest()
	isProved := func(d doorward.Domain) bool { return d.Status == doorward.DomainVerified }
	done := map[string]bool{
		"directory": ui.LastAsked(s.Connection.SCIM) != nil,
		"provider":  ui.CanBeTested(s.Connection), "test": edited.TestedAt != nil,
		"domains": len(s.Domains) > 0 && !slices.ContainsFunc(s.Domains, func(d doorward.Domain) bool { return !isProved(d) }),
	}
	for _, name := range stepsOf(s.Connection.Connection) {
		all = append(all, ui.Tab{Name: name, Link: base + pathOfStep(name), IsDone: done[name]})
	}
	return all
}

// Tags are shown below the name of the connection.
func (s setupStep) Tags() ui.Tags {
	return ui.Tags{State: "sso.state." + string(s.Connection.Status), About: ui.ProductName(s.Connection.Product)}
}

// NextKey is the key of the message about what happens next.
func (s setupStep) NextKey() string {
	if s.Connection.Type == doorward.SCIMDirectory {
		return "setup.next.scim." + string(s.Connection.Status)
	}
	edited, isPending := s.Connection.ToTest()
	key := "setup.next.draft"
	switch {
	case s.IsIdle:
		return "setup.next.idle"
	case isPending:
		key = "setup.next.pending"
	case s.Connection.Status == doorward.ConnectionActive:
		return "setup.next.active"
	}
	if edited.TestedAt != nil {
		key += ".tested"
	}
	return key
}

// view is the page of a step. body has the setupStep.
func (s *setupStep) view(name string) ui.View {
	s.Tabs.Current = name
	return ui.View{Page: "setup" + name, Title: "tab." + name, Tenant: s.Tenant, Wide: true}
}

// toStep redirects to a step, which says what was done; empty for nothing to say.
func toStep(c *ui.Call, name, done string) ui.View {
	if done == "" {
		return c.To(pathOfStep(name))
	}
	return c.To(pathOfStep(name) + "?done=" + done)
}
