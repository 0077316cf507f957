package hosted

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/web/ui"
)

// account is the content of the account page.
type account struct {
	User        doorward.User
	MinLength   int
	BannedWords string
	Tenants     []tenantRow
	Proved      bool // the second factor was proved recently, or there is none; else /step-up comes first
	Exports     bool // what is held may be downloaded now; else /step-up comes first
	// Affected are the tenants that don't allow the new address that was asked for: the page asks whether
	// these memberships may be suspended.
	Affected []doorward.TenantName
	ownSessions
}

// ownSessions is the list of one's sessions, on /account and /account/security.
type ownSessions struct {
	Sessions  []sessionRow
	HasOthers bool   // there are other sessions, or other known browsers
	PagePath  string // of the page that shows the list
}

type sessionRow struct {
	doorward.Session
	Tenant  string
	Current bool
}

type tenantRow struct {
	doorward.User
	Current, Usable bool
}

func (h *hosted) showAccount(ctx context.Context, c *ui.Call) (ui.View, error) {
	memberships, err := h.app.Users.Memberships(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	a := newAccount(c.Caller, memberships)
	if a.ownSessions, err = h.sessions(ctx, c, memberships, accountPage); err != nil {
		return ui.View{}, err
	}
	a.Affected = c.AffectedTenants()
	a.MinLength = h.app.PasswordRules.Load().MinLength
	if a.Exports, err = isProved(h.app.Access.Require(ctx, c.Caller, doorward.AccountExport, doorward.Object{Type: "user", ID: c.Caller.ID})); err != nil {
		return ui.View{}, err
	}
	if a.Proved, err = isProved(h.app.Passwords.RequireChange(ctx, c.Caller)); err != nil {
		return ui.View{}, err
	}
	due, err := h.app.Users.FactorDue(ctx, memberships)
	if err != nil {
		return ui.View{}, err
	}
	t, err := h.onlyTenant(ctx, memberships)
	return ui.View{Page: "account", Wide: true, FactorDue: due, FormReturns: c.ReturnTo() != "", Body: a, Tenant: t}, err
}

// onlyTenant returns the tenant whose brand the account page shows: that of the only
// membership, or an empty one if there are several.
func (h *hosted) onlyTenant(ctx context.Context, memberships []doorward.User) (doorward.Tenant, error) {
	if len(memberships) != 1 {
		return doorward.Tenant{}, nil
	}
	return h.app.Tenants.Get(ctx, memberships[0].TenantID)
}

// sessions lists the caller's sessions for the page at pagePath.
func (h *hosted) sessions(ctx context.Context, c *ui.Call, memberships []doorward.User, pagePath string) (ownSessions, error) {
	sessions, err := h.app.Sessions.Own(ctx, c.Caller)
	if err != nil {
		return ownSessions{}, err
	}
	others, err := h.app.Sessions.OtherBrowsers(ctx, c.Caller)
	return ownSessions{sessionRows(c.Caller, memberships, sessions), len(sessions) > 1 || others > 0, pagePath}, err
}

// sessionRows returns the rows of the sessions, the current one first.
func sessionRows(by doorward.Caller, memberships []doorward.User, sessions []doorward.Session) (rows []sessionRow) {
	tenantNames := map[string]string{}
	for _, m := range memberships {
		tenantNames[m.TenantID] = m.TenantName
	}
	for _, s := range sessions {
		row := sessionRow{s, tenantNames[s.TenantID], s.ID == by.SessionID}
		if row.Current {
			rows = append([]sessionRow{row}, rows...)
			continue
		}
		rows = append(rows, row)
	}
	return rows
}

func newAccount(by doorward.Caller, memberships []doorward.User) account {
	a := account{User: doorward.User{ID: by.ID, Email: by.Email}}
	var words []string
	for _, m := range memberships {
		words = append(words, m.Name, m.TenantName)
		current := m.TenantID == by.TenantID
		if current {
			a.User = m
		}
		a.Tenants = append(a.Tenants, tenantRow{m, current, session.CheckUsable(m) == nil})
	}
	a.BannedWords = bannedWords(by.Email, words...)
	return a
}

func (h *hosted) rename(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := h.app.Users.SetOwnName(ctx, c.Caller, c.Value("name")); err != nil {
		return ui.View{}, err
	}
	return c.To("/account?done=name"), nil
}

// passwordForm is the address of the form on the account page.
const passwordForm = accountPage + "#password"

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
	return c.To("/account?done=password"), nil
}

// endSession also succeeds if the session has already ended.
func (h *hosted) endSession(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.endSessionAt(ctx, c, accountPage)
}

// endSessionAt ends the session that the form at the page names.
func (h *hosted) endSessionAt(ctx context.Context, c *ui.Call, page string) (ui.View, error) {
	id := c.Value("id")
	revocation, err := h.app.Sessions.EndOwn(ctx, c.Caller, id)
	c.SetRevocation(revocation)
	if err != nil && !doorward.HasCode(err, doorward.CodeNotFound) {
		return ui.View{}, err
	}
	if id == c.Caller.SessionID {
		c.ClearSession()
		return c.To("/login?done=signed-out"), nil
	}
	return c.To(page + "?done=session"), nil
}

func (h *hosted) endOthers(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.endOthersAt(ctx, c, accountPage)
}

func (h *hosted) endOthersAt(ctx context.Context, c *ui.Call, page string) (ui.View, error) {
	revocation, err := h.app.Sessions.EndOthers(ctx, c.Caller)
	c.SetRevocation(revocation)
	if err != nil {
		return ui.View{}, err
	}
	return c.To(page + "?done=sessions"), nil
}

// leaving is the content of the page on which people leave a tenant.
type leaving struct {
	doorward.User
	Proved bool // recently; else /step-up comes first
}

const leavePage = accountPage + "/leave/" // and the tenant's id

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
	return c.To("/account?done=left"), nil
}

// toPassword redirects to the form for changing the password (W3C, A Well-Known URL
// for Changing Passwords).
func (h *hosted) toPassword(_ context.Context, c *ui.Call) (ui.View, error) {
	if c.Caller.Kind != doorward.ByUser {
		return c.Redirect(c.LoginURL(passwordForm)), nil
	}
	return c.To(passwordForm), nil
}
