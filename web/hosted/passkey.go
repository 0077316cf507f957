package hosted

import (
	"context"
	"net/http"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/web/ui"
)

// passkeyScripts are the scripts of pages that use a passkey.
var passkeyScripts = []string{"passkey.js"}

// signingIn is the content of the login page: what it offers besides the password.
type signingIn struct {
	Passkeys bool
	Autofill bool // the browser offers passkeys in the address field
	// PasskeyFirst offers the passkey before the password: the chosen account signed in by one here.
	PasskeyFirst bool
	Chosen       bool         // of the accounts
	Accounts     []remembered // to choose from; none once there is an address
	Keep         bool         // the address is to be remembered, unless the person says otherwise
	SignsOn      bool         // organisations here have a sign-on of their own
	Own          bool         // the account here is asked for, whatever the organisation of the address demands
	// SignOn leads to the sign-on of the person's organisation, which Name names; empty for none.
	SignOn, Name string
}

// ownAccount is the field, and the parameter, that asks for the account here.
const ownAccount = "own"

// loginView is the login page. It offers the sign-on of an organisation once the form names an address of
// it, or was refused because of it.
func (h *hosted) loginView(ctx context.Context, c *ui.Call) ui.View {
	return h.loginWith(ctx, c, signingIn{Passkeys: true, Autofill: true})
}

// loginWith returns the login page with s, or with the password alone if the installation
// doesn't allow passkeys. While the database doesn't answer, the page says nothing of sign-on.
func (h *hosted) loginWith(ctx context.Context, c *ui.Call, s signingIn) ui.View {
	s.Passkeys = s.Passkeys && h.app.Factors.PasskeysAllowed()
	s.Autofill, s.PasskeyFirst = s.Autofill && s.Passkeys, s.PasskeyFirst && s.Passkeys
	if c.Value("email") == "" {
		s.Accounts = h.rememberedAccounts(ctx, c)
	}
	s.Keep = c.Value(keepField) != "" || c.Value("password") == "" && h.isRemembered(ctx, c)
	if h.signsOn(ctx) {
		s.SignsOn, s.Own = true, c.Value(ownAccount) != "" || c.R.URL.Query().Get(ownAccount) != ""
		s.SignOn, s.Name = h.offeredSignOn(ctx, c)
	}
	v := ui.View{Page: "login", FormReturns: true, FormSignsOn: s.SignsOn, Body: s}
	if s.Passkeys {
		v.Scripts, v.Connects = passkeyScripts, true
	}
	return v
}

// signsOn reports whether organisations here have a sign-on of their own; not while the database doesn't
// answer.
func (h *hosted) signsOn(ctx context.Context) bool {
	isUsed, err := h.app.Demands.IsUsed(ctx)
	return err == nil && isUsed
}

// offeredSignOn returns the address and the name of the sign-on that the login page offers.
func (h *hosted) offeredSignOn(ctx context.Context, c *ui.Call) (link, name string) {
	if id := c.RefusedConnection(); id != "" {
		return c.SignOnLink(id, c.Value("email")), ""
	}
	if c.R.Method != http.MethodPost || c.Value("email") == "" {
		return "", ""
	}
	home, err := h.app.Demands.HomeOf(ctx, c.Value("email"))
	if err != nil || home.ConnectionID == "" {
		return "", ""
	}
	return c.SignOnLink(home.ConnectionID, c.Value("email")), home.ConnectionName
}

// loginByPasskey signs in with a passkey alone.
func (h *hosted) loginByPasskey(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "credential"); err != nil {
		return ui.View{}, err
	}
	by := withReplaced(c)
	outcome, err := h.app.Login.WithPasskey(ctx, by, c.Value("challenge"), []byte(c.Value("credential")), "")
	if err != nil {
		return ui.View{}, err
	}
	c.SetCookie(addressCookie, "", 0)
	if in, ok := outcome.(login.SignedIn); ok {
		h.noteByPasskey(ctx, c, in.User.Email)
	}
	return signIn(c, by, outcome)
}

// loginPasskeyAgain shows the login once more, without the answer of the passkey, which is
// valid only once. The browser doesn't suggest a passkey, since it would be the same one.
func (h *hosted) loginPasskeyAgain(ctx context.Context, c *ui.Call) (ui.View, error) {
	c.KeepOnly("return")
	return h.loginWith(ctx, c, signingIn{Passkeys: true}), nil
}

// newPasskey is a page on which the browser makes a passkey.
type newPasskey struct {
	Action    string // path that the new passkey is sent to
	Challenge string
	Options   string // of WebAuthn, as JSON
	Instead   string // path of the page of other factors
}

const (
	finishPasskey      = "/account/security/passkey/finish"
	finishFirstPasskey = "/login/enrol/passkey/finish"
)

func passkeyView(b factor.NewChallenge, action, instead string) ui.View {
	return ui.View{Page: "passkey", FormReturns: true, Scripts: passkeyScripts, Body: newPasskey{action, b.Token.Reveal(), string(b.PublicKey), instead}}
}

func (h *hosted) beginPasskey(ctx context.Context, c *ui.Call) (ui.View, error) {
	begun, err := h.app.Factors.BeginPasskey(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	return passkeyView(begun, finishPasskey, securityPage), nil
}

// pendingPasskey shows the page once more after a wrong answer, or the page of one's security
// if the challenge is over.
func (h *hosted) pendingPasskey(ctx context.Context, c *ui.Call) (ui.View, error) {
	begun, err := h.app.Factors.PendingPasskey(ctx, c.Value("challenge"))
	if doorward.HasCode(err, doorward.CodeChallengeOver) {
		return h.showSecurity(ctx, c)
	}
	if err != nil {
		return ui.View{}, err
	}
	c.KeepOnly("return", "name")
	return passkeyView(begun, finishPasskey, securityPage), nil
}

func (h *hosted) finishPasskey(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "credential"); err != nil {
		return ui.View{}, err
	}
	done, err := h.app.Factors.ConfirmPasskey(ctx, c.Caller, c.Value("challenge"), []byte(c.Value("credential")), c.Value("name"))
	if err != nil {
		return ui.View{}, err
	}
	c.SetSession(done.Raised)
	if len(done.RecoveryCodes) == 0 {
		return c.To(securityPage + "?done=passkey"), nil
	}
	return h.codesView(c, done.RecoveryCodes), nil
}

// beginFirstPasskey sets a passkey up as the first factor, between the password and the
// session.
func (h *hosted) beginFirstPasskey(ctx context.Context, c *ui.Call) (ui.View, error) {
	begun, err := h.app.Factors.BeginPasskeyWithChallenge(ctx, challengeToken(c))
	if err != nil {
		return showChallengeOver(c, err)
	}
	return passkeyView(begun, finishFirstPasskey, "/login/enrol"), nil
}

// firstPasskeyAgain shows the page once more, with the same challenge.
func (h *hosted) firstPasskeyAgain(ctx context.Context, c *ui.Call) (ui.View, error) {
	c.KeepOnly("return", "name")
	return h.beginFirstPasskey(ctx, c)
}

func (h *hosted) finishFirstPasskey(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "credential"); err != nil {
		return ui.View{}, err
	}
	by := withReplaced(c)
	outcome, done, err := h.app.Login.WithFirstPasskey(ctx, by, challengeToken(c), []byte(c.Value("credential")), c.Value("name"))
	if err != nil {
		return ui.View{}, err
	}
	return h.completeEnrolment(c, by, outcome, done)
}

// hasPasskey reports whether one of the methods is a passkey.
func hasPasskey(methods []string) bool { return slices.Contains(methods, doorward.ByPasskey) }
