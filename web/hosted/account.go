package hosted

import (
	"context"
	"net/url"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/web/ui"
)

// ownPage is the head of the pages of one's account, /account and /account/security: one object with
// tabs.
type ownPage struct {
	User doorward.User // the membership in the caller's tenant
	Tabs ui.Tabs
}

// Avatar is shown in place of a picture.
func (p ownPage) Avatar() ui.Avatar {
	return ui.Avatar{Name: p.User.Name, Email: p.User.Email, ID: p.User.ID}
}

// Tags are shown below the name.
func (p ownPage) Tags() ui.Tags {
	tags := ui.Tags{Role: p.User.Role}
	if p.User.Role != "" && p.User.Factors == 0 {
		tags.Kinds = []string{"factor.none"}
	}
	if p.User.Name != "" {
		tags.About = p.User.Email
	}
	return tags
}

// account is the content of the account page. Only what its tab shows is set.
type account struct {
	ownPage
	Tenants []tenantRow
	Exports bool // what is held may be downloaded now; else /step-up comes first
	// KeepsData: this session can't have the file, even after a proof; one of Doorward's own can.
	KeepsData bool
	Managed   bool // the tenant's sign-on has made the account, and decides on the address
	// KeptBy is the key of the message that says why the account can't be erased in this session, and what to do;
	// empty: it can.
	KeptBy string
	// Affected are the tenants that don't allow the new address that was asked for: the page asks whether
	// these memberships may be suspended.
	Affected  []doorward.TenantName
	Sessions  []ui.SessionRow
	HasOthers bool // there are other sessions, or other known browsers
	Recent    []recentEvent
}

// SessionTable has the sessions, the present one first.
func (a account) SessionTable(f ui.Frame) ui.SessionTable {
	return ui.SessionTable{Frame: f, Label: "sessions-title", Action: f.Base + "/account/sessions/end?tab=sessions", Rows: a.Sessions}
}

type tenantRow struct {
	doorward.User
	Current, Usable bool
}

// The names of the tabs on /account; security is /account/security.
const (
	profileTab       = "profile"
	sessionsTab      = "sessions"
	securityTab      = "security"
	organisationsTab = "organisations"
	dataTab          = "data"
)

// tabPath returns the path of a tab of /account other than the first.
func tabPath(tab string) string { return accountPage + "?" + ui.TabParameter + "=" + tab }

// accountTabs are the tabs of one's account. They keep the return address.
func accountTabs(c *ui.Call) ui.Tabs {
	kept := url.Values{}
	if to := c.ReturnTo(); to != "" {
		kept.Set("return", to)
	}
	all := c.Tabs(accountPage, kept, profileTab, sessionsTab, securityTab, organisationsTab, dataTab)
	link := c.Site().BasePath() + securityPage
	if len(kept) > 0 {
		link += "?" + kept.Encode()
	}
	all.Items[2].Link = link
	return all
}

func (h *hosted) showAccount(ctx context.Context, c *ui.Call) (ui.View, error) {
	tabs := accountTabs(c)
	if tabs.Is(securityTab) {
		return h.showSecurity(ctx, c)
	}
	memberships, err := h.app.Users.Memberships(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	a := account{ownPage: ownPage{membershipHere(c.Caller, memberships), tabs}, Affected: c.AffectedTenants(), Managed: c.Caller.IsManaged}
	switch tabs.Current {
	case sessionsTab:
		err = h.loadSessions(ctx, c, memberships, &a)
	case organisationsTab:
		a.Tenants = tenantRows(c.Caller, memberships)
	case dataTab:
		err = h.loadData(ctx, c, &a)
	}
	if err != nil {
		return ui.View{}, err
	}
	return h.ownView(ctx, c, ui.View{Page: "account", Body: a}, memberships)
}

// loadData adds what may be done with what is held about the caller.
func (h *hosted) loadData(ctx context.Context, c *ui.Call, a *account) (err error) {
	own := doorward.Object{Type: "user", ID: c.Caller.ID}
	a.Exports, err = isProved(h.app.Access.Require(ctx, c.Caller, doorward.AccountExport, own))
	if doorward.HasCode(err, doorward.CodeSignInRequired) {
		a.KeepsData, err = true, nil
	}
	if err != nil {
		return err
	}
	_, err = isProved(h.app.Access.Require(ctx, c.Caller, doorward.AccountErase, own))
	if !doorward.HasCode(err, doorward.CodeSignInRequired) {
		return err
	}
	a.KeptBy = "data.erase.signIn"
	if c.Caller.IsManaged {
		a.KeptBy = "data.erase.managed"
	}
	return nil
}

// ownView completes the view of a page of one's account.
func (h *hosted) ownView(ctx context.Context, c *ui.Call, v ui.View, memberships []doorward.User) (ui.View, error) {
	due, err := h.app.Users.FactorDue(ctx, memberships)
	if err != nil {
		return ui.View{}, err
	}
	t, err := h.onlyTenant(ctx, memberships)
	v.Wide, v.FactorDue, v.FormReturns, v.Tenant = true, due, c.ReturnTo() != "", t
	return v, err
}

// onlyTenant returns the tenant whose brand the pages of an account show: that of the only
// membership, or an empty one if there are several.
func (h *hosted) onlyTenant(ctx context.Context, memberships []doorward.User) (doorward.Tenant, error) {
	if len(memberships) != 1 {
		return doorward.Tenant{}, nil
	}
	return h.app.Tenants.Get(ctx, memberships[0].TenantID)
}

// loadSessions adds the caller's sessions, and what happened last.
func (h *hosted) loadSessions(ctx context.Context, c *ui.Call, memberships []doorward.User, a *account) error {
	sessions, err := h.app.Sessions.Own(ctx, c.Caller)
	if err != nil {
		return err
	}
	others, err := h.app.Sessions.OtherBrowsers(ctx, c.Caller)
	if err != nil {
		return err
	}
	connections, err := h.app.SignOn.Names(ctx, sessions)
	if err != nil {
		return err
	}
	a.Sessions, a.HasOthers = sessionRows(c.Caller, memberships, connections, sessions), len(sessions) > 1 || others > 0
	recent, err := h.app.Accounts.Recent(ctx, c.Caller)
	a.Recent = describeAll(recent)
	return err
}

// sessionRows returns the rows of the sessions, the current one first. connections has the names of those that
// vouch for sessions.
func sessionRows(by doorward.Caller, memberships []doorward.User, connections map[doorward.Issuer]string, sessions []doorward.Session) (rows []ui.SessionRow) {
	tenantNames := map[string]string{}
	for _, m := range memberships {
		tenantNames[m.TenantID] = m.TenantName
	}
	for _, s := range sessions {
		row := ui.SessionRow{Session: s, Tenant: tenantNames[s.TenantID], IsThis: s.ID == by.SessionID, Connection: connections[s.Issuer]}
		if row.IsThis {
			rows = append([]ui.SessionRow{row}, rows...)
			continue
		}
		rows = append(rows, row)
	}
	return rows
}

// membershipHere returns the membership in the tenant of the caller's session; without one, only id and
// address are set.
func membershipHere(by doorward.Caller, memberships []doorward.User) doorward.User {
	for _, m := range memberships {
		if m.TenantID == by.TenantID {
			return m
		}
	}
	return doorward.User{ID: by.ID, Email: by.Email}
}

func tenantRows(by doorward.Caller, memberships []doorward.User) (rows []tenantRow) {
	for _, m := range memberships {
		rows = append(rows, tenantRow{m, m.TenantID == by.TenantID, session.CheckUsable(m) == nil})
	}
	return rows
}

func (h *hosted) rename(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := h.app.Users.SetOwnName(ctx, c.Caller, c.Value("name")); err != nil {
		return ui.View{}, err
	}
	return c.To("/account?done=name"), nil
}

// passwordForm is the address of the open form on the page of one's security.
const passwordForm = securityPage + "?change=password#password"

// changePassword redirects to /step-up if the proof of the second factor has become too old.
// No input is lost, since no page repeats passwords.
func (h *hosted) changePassword(ctx context.Context, c *ui.Call) (ui.View, error) {
	changed, err := h.app.Passwords.Change(ctx, c.Caller, c.Value("currentPassword"), c.Value("password"), c.Value("confirmPassword"))
	if doorward.HasCode(err, doorward.CodeStepUpRequired) {
		return c.ProveFirst(passwordForm), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	c.SetRevocation(changed.Revocation)
	c.SetAllowance(changed.Allowance)
	return c.To(securityPage + "?done=password"), nil
}

// endSession also succeeds if the session has already ended.
func (h *hosted) endSession(ctx context.Context, c *ui.Call) (ui.View, error) {
	id := c.Value("session")
	revocation, err := h.app.Sessions.EndOwn(ctx, c.Caller, id)
	c.SetRevocation(revocation)
	if err != nil && !doorward.HasCode(err, doorward.CodeNotFound) {
		return ui.View{}, err
	}
	if id == c.Caller.SessionID {
		c.ClearSession()
		return c.To("/login?done=signed-out"), nil
	}
	return c.To(tabPath(sessionsTab) + "&done=session"), nil
}

func (h *hosted) endOthers(ctx context.Context, c *ui.Call) (ui.View, error) {
	revocation, err := h.app.Sessions.EndOthers(ctx, c.Caller)
	c.SetRevocation(revocation)
	if err != nil {
		return ui.View{}, err
	}
	return c.To(tabPath(sessionsTab) + "&done=sessions"), nil
}

// leaving is the content of the page on which people leave a tenant.
type leaving struct {
	doorward.User
	Proved bool // recently; else /step-up comes first
}

const leavePage = accountPage + "/leave/" // and the tenant's id

// At is the path of the page.
func (l leaving) At() string { return leavePage + l.TenantID }

// Cancel is the path of the page to go back to.
func (leaving) Cancel() string { return accountPage + "?tab=organisations" }

// showLeave asks for confirmation: only an invitation brings people back.
func (h *hosted) showLeave(ctx context.Context, c *ui.Call) (ui.View, error) {
	m, err := h.membership(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	proved, err := isProved(h.app.Access.Require(ctx, c.Caller, doorward.UserLeave, doorward.Object{Type: "user", ID: m.ID, TenantID: m.TenantID}))
	return ui.View{Page: "leave", Body: leaving{m, proved}}, err
}

// membership returns the caller's membership in the tenant of the path. Errors: not_found,
// unavailable.
func (h *hosted) membership(ctx context.Context, c *ui.Call) (doorward.User, error) {
	memberships, err := h.app.Users.Memberships(ctx, c.Caller)
	if err != nil {
		return doorward.User{}, err
	}
	for _, m := range memberships {
		if m.TenantID == c.R.PathValue("tenantId") {
			return m, nil
		}
	}
	return doorward.User{}, doorward.Fail(doorward.CodeNotFound, "")
}

func (h *hosted) leave(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("tenantId", doorward.PrefixTenant)
	if err != nil {
		return ui.View{}, err
	}
	ended, err := h.app.Users.Leave(ctx, c.Caller, id)
	if doorward.HasCode(err, doorward.CodeStepUpRequired) {
		return c.To(leavePage + id), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	c.SetRevocation(ended.Revocation)
	if id == c.Caller.TenantID {
		c.ClearSession()
		return c.To("/login?done=left"), nil
	}
	return c.To(tabPath(organisationsTab) + "&done=left"), nil
}

// toPassword redirects to the form for changing the password (W3C, A Well-Known URL
// for Changing Passwords).
func (h *hosted) toPassword(_ context.Context, c *ui.Call) (ui.View, error) {
	if c.Caller.Kind != doorward.ByUser {
		return c.Redirect(c.LoginURL(passwordForm)), nil
	}
	return c.To(passwordForm), nil
}
