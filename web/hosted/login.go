package hosted

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/web/ui"
)

// accountPage is the path of the account.
const accountPage = "/account"

// showLogin redirects people who are signed in already, unless ?done= says that they come
// from a page about another account.
func (h *hosted) showLogin(ctx context.Context, c *ui.Call) (ui.View, error) {
	hasNotice := c.R.URL.Query().Get("done") != ""
	if c.Caller.Kind == doorward.ByUser && !hasNotice {
		return c.Back(), nil
	}
	if len(c.Sessions()) > 1 {
		c.ClearSessions()
	}
	if email, ok := rememberedAddress(c); ok {
		c.Preset("email", email)
	}
	v := h.loginView(ctx, c)
	switch {
	case c.HadDuplicateSessions():
		v.Note = "login.several"
	case c.ReturnTo() != "" && !hasNotice: // the notice is more specific
		v.Note = "login.first"
	}
	return v, nil
}

func (h *hosted) loginAgain(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.loginView(ctx, c), nil
}

func (h *hosted) login(ctx context.Context, c *ui.Call) (ui.View, error) {
	if c.Value(ownAccount) == "" {
		if v, isDone, err := h.loginByAddress(ctx, c); err != nil || isDone {
			return v, err
		}
	}
	if err := requireFields(c, "email", "password"); err != nil {
		return ui.View{}, err
	}
	by := withReplaced(c)
	outcome, err := h.app.Login.WithPassword(ctx, by, c.Value("email"), c.Value("password"), "")
	if err != nil {
		return ui.View{}, err
	}
	c.SetCookie(addressCookie, "", 0)
	h.keepAccount(ctx, c)
	return signIn(c, by, outcome)
}

// loginByAddress does what follows from the domain of the address alone: where an organisation demands its
// sign-on, or the person asks for it, that begins, whatever stands in the password field. Where it is offered,
// the page shows it to those who have typed no password. isDone is false for what takes the password.
func (h *hosted) loginByAddress(ctx context.Context, c *ui.Call) (v ui.View, isDone bool, err error) {
	asksSignOn := c.Value("signon") != ""
	if asksSignOn {
		if err := requireFields(c, "email"); err != nil {
			return v, false, err
		}
	}
	home, err := h.app.Demands.HomeOf(ctx, c.Value("email"))
	switch {
	case err != nil:
		return v, false, err
	case home.ConnectionID == "" && asksSignOn:
		return v, false, doorward.Invalid("/email", "no_sign_on", "No organisation here has a sign-on for this address.")
	case home.IsRequired, asksSignOn:
		h.keepAccount(ctx, c)
		return c.SignOn(home.ConnectionID, c.Value("email")), true, nil
	case home.ConnectionID != "" && c.Value("password") == "":
		return h.loginView(ctx, c), true, nil
	}
	return v, false, nil
}

// withReplaced returns the caller with the sessions in the browser's cookies, which a new
// session replaces.
func withReplaced(c *ui.Call) doorward.Caller {
	by := c.Caller
	for _, token := range c.Sessions() {
		hash := token.Hash()
		by.Replaced = append(by.Replaced, hash[:])
	}
	return by
}

// signIn sets the cookies for the outcome of a correct proof, and redirects accordingly.
func signIn(c *ui.Call, by doorward.Caller, outcome login.Outcome) (ui.View, error) {
	switch o := outcome.(type) {
	case login.SignedIn:
		if o.Device != nil {
			c.SetDevice(*o.Device, doorward.DeviceLife)
		}
		c.SetAllowance(o.Allowance)
		c.SetSession(o.Opened)
		c.SetLogCaller(by.As(o.User))
		if o.CanSwitch {
			return c.RedirectKeepingReturn("/login/tenant"), nil
		}
		return afterLogin(c, o.User.TenantStatus), nil
	case login.SecondNeeded:
		keepChallenge(c, o.NewChallenge)
		return c.RedirectKeepingReturn("/login/second"), nil
	case login.EnrolmentNeeded:
		keepChallenge(c, o.NewChallenge)
		return c.RedirectKeepingReturn("/login/enrol"), nil
	}
	panic(fmt.Sprintf("hosted: no page for the outcome %T", outcome))
}

// afterLogin redirects after a login. In a tenant that is being closed it ignores the
// return address and redirects to /closing.
func afterLogin(c *ui.Call, status doorward.TenantStatus) ui.View {
	if status == doorward.TenantClosing {
		return c.To("/closing")
	}
	return c.Back()
}

// requireFields returns an error with a fault for each of the fields that is empty.
func requireFields(c *ui.Call, names ...string) error {
	var faults []doorward.FieldError
	for _, name := range names {
		if c.Value(name) == "" {
			faults = append(faults, doorward.FieldError{Pointer: "/" + name, Code: "required", Message: "This is needed."})
		}
	}
	if len(faults) > 0 {
		return doorward.InvalidFields(faults...)
	}
	return nil
}

// usableMemberships returns the memberships that a session can be opened in.
func usableMemberships(memberships []doorward.User) []doorward.User {
	var all []doorward.User
	for _, m := range memberships {
		if session.CheckUsable(m) == nil {
			all = append(all, m)
		}
	}
	return all
}

// tenants is the choice between several memberships.
type tenants struct {
	Email   string
	Current string // id
	Items   []doorward.User
}

func (h *hosted) showTenants(ctx context.Context, c *ui.Call) (ui.View, error) {
	memberships, err := h.app.Users.Memberships(ctx, c.Caller)
	return ui.View{Page: "tenants", FormReturns: true, FormSignsOn: h.signsOn(ctx), Body: tenants{c.Caller.Email, c.Caller.TenantID, usableMemberships(memberships)}}, err
}

func (h *hosted) chooseTenant(ctx context.Context, c *ui.Call) (ui.View, error) {
	if c.Value("tenantId") == c.Caller.TenantID {
		return afterLogin(c, c.Caller.TenantStatus), nil
	}
	outcome, err := h.app.Login.Switch(ctx, c.Caller, c.Value("tenantId"))
	if e := (*doorward.Error)(nil); errors.As(err, &e) && e.ConnectionID != "" {
		return c.SignOn(e.ConnectionID, c.Caller.Email), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	return signIn(c, c.Caller, outcome)
}

func (h *hosted) logout(ctx context.Context, c *ui.Call) (ui.View, error) {
	revocation, err := h.app.Sessions.End(ctx, c.Caller, c.Sessions())
	c.SetRevocation(revocation)
	if err != nil {
		return ui.View{}, err
	}
	c.ClearSessions()
	if c.ReturnTo() != "" {
		return c.Back(), nil
	}
	return c.To("/login?done=signed-out"), nil
}

// addressCookie passes the address from another page to the login: a query would appear in
// logs.
const (
	addressCookie = "doorward_address"
	addressLife   = 600 // seconds
)

func rememberAddress(c *ui.Call, email string) {
	c.SetCookie(addressCookie, base64.RawURLEncoding.EncodeToString([]byte(email)), addressLife)
}

func rememberedAddress(c *ui.Call) (string, bool) {
	email, err := base64.RawURLEncoding.DecodeString(c.Cookie(addressCookie))
	return string(email), err == nil && len(email) > 0 && len(email) <= 254 // the longest address (RFC 5321)
}
