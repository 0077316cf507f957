package hosted

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// securityPage is the path of the page of one's own security.
const securityPage = "/account/security"

// security is the content of the page of one's own security: what one signs in with.
type security struct {
	ownPage
	factor.OwnFactors
	CanAddPasskey bool // the address of the installation allows passkeys
	Managed       bool // the tenant's sign-on has made the account, so it has no password and no known browsers
	Proved        bool // the second factor was proved recently, or there is none; else /step-up comes first
	// ChangesPassword: the form for the password is open; without the query change=password it is folded.
	ChangesPassword bool
	MinLength       int // of a new password
	BannedWords     string
}

// IsUnnamed reports whether the factor has no name of its own, and is shown by its kind.
func (security) IsUnnamed(f doorward.Factor) bool { return isUnnamed(f) }

func isUnnamed(f doorward.Factor) bool {
	return f.Kind == doorward.TOTP && f.Name == factor.DefaultName
}

// Names returns the names of the memberships' tenants.
func (security) Names(memberships []doorward.User) string {
	names := make([]string, len(memberships))
	for i, m := range memberships {
		names[i] = m.TenantName
	}
	return strings.Join(names, ", ")
}

// showSecurity leads to /step-up where even seeing the factors takes a proof: in a session of a sign-on, for a
// person whom no organisation lets in by the password.
func (h *hosted) showSecurity(ctx context.Context, c *ui.Call) (ui.View, error) {
	own, err := h.app.Factors.OfCaller(ctx, c.Caller)
	if doorward.HasCode(err, doorward.CodeStepUpRequired) {
		return c.ProveFirst(securityPage), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	memberships, err := h.app.Users.Memberships(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	s := newSecurity(c.Caller, memberships, own)
	s.Tabs, s.CanAddPasskey, s.MinLength = accountTabs(c), h.app.Factors.PasskeysAllowed(), h.app.PasswordRules.Load().MinLength
	s.Tabs.Current, s.ChangesPassword = securityTab, c.R.URL.Query().Get("change") == "password"
	if !s.Managed {
		if s.Proved, err = isProved(h.app.Passwords.RequireChange(ctx, c.Caller)); err != nil {
			return ui.View{}, err
		}
	}
	return h.ownView(ctx, c, ui.View{Page: "security", Body: s}, memberships)
}

func newSecurity(by doorward.Caller, memberships []doorward.User, own factor.OwnFactors) security {
	s := security{ownPage: ownPage{User: membershipHere(by, memberships)}, OwnFactors: own, Managed: by.IsManaged}
	var words []string
	for _, m := range memberships {
		words = append(words, m.Name, m.TenantName)
	}
	s.BannedWords = bannedWords(by.Email, words...)
	return s
}

const confirmTOTP = "/account/security/totp/confirm"

func (h *hosted) beginTOTP(ctx context.Context, c *ui.Call) (ui.View, error) {
	e, err := h.app.Factors.Enrol(ctx, c.Caller, "")
	if err != nil {
		return ui.View{}, err
	}
	return enrolmentView(e, confirmTOTP, "QR")
}

// pendingTOTP shows the setup of the app once more after a wrong code, or the page of one's
// security if the setup is over.
func (h *hosted) pendingTOTP(ctx context.Context, c *ui.Call) (ui.View, error) {
	e, err := h.app.Factors.Pending(ctx, c.Caller, c.Value("id"))
	if doorward.HasCode(err, doorward.CodeNotFound) {
		return h.showSecurity(ctx, c)
	}
	if err != nil {
		return ui.View{}, err
	}
	return enrolmentView(e, confirmTOTP, "QR")
}

func (h *hosted) confirmTOTP(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "code"); err != nil {
		return ui.View{}, err
	}
	done, err := h.app.Factors.Confirm(ctx, c.Caller, c.Value("id"), c.Value("code"))
	if err != nil {
		return ui.View{}, err
	}
	c.SetSession(done.Raised)
	if len(done.RecoveryCodes) == 0 {
		return c.To(securityPage + "?done=factor"), nil
	}
	return h.codesView(c, done.RecoveryCodes), nil
}

// recovery is the content of the page that shows recovery codes once.
type recovery struct {
	Codes []string
	Next  string // address of the button
}

// Text is the content of the file to download.
func (r recovery) Text() string { return strings.Join(r.Codes, "\n") }

func (h *hosted) codesView(c *ui.Call, codes []string) ui.View {
	return ui.View{Page: "codes", Body: recovery{codes, c.Site().BasePath() + securityPage}}
}

const newCodesPage = securityPage + "/recovery"

// newCodes is the content of the page that asks whether new recovery codes are to be made.
type newCodes struct {
	Proved bool // recently; else /step-up comes first
}

// At is the path of the page.
func (newCodes) At() string { return newCodesPage }

// Cancel is the path of the page to go back to.
func (newCodes) Cancel() string { return securityPage }

// askNewCodes asks for confirmation: the present codes end. Errors: not_found without a factor, unavailable.
func (h *hosted) askNewCodes(ctx context.Context, c *ui.Call) (ui.View, error) {
	own, err := h.app.Factors.OfCaller(ctx, c.Caller)
	if doorward.HasCode(err, doorward.CodeStepUpRequired) {
		return c.ProveFirst(newCodesPage), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	if len(own.Factors) == 0 {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	proved, err := h.mayNow(ctx, c, doorward.MFAEnrol)
	return ui.View{Page: "newcodes", Body: newCodes{proved}}, err
}

// mayNow reports whether the caller's proof of identity is recent enough for the action on the own factors.
func (h *hosted) mayNow(ctx context.Context, c *ui.Call, action doorward.Action) (bool, error) {
	on := doorward.Object{Type: "user", ID: c.Caller.ID, TenantID: c.Caller.TenantID}
	return isProved(h.app.Access.Require(ctx, c.Caller, action, on))
}

// makeRecoveryCodes redirects to the question if the proof has become too old: that page says how to go on.
func (h *hosted) makeRecoveryCodes(ctx context.Context, c *ui.Call) (ui.View, error) {
	codes, err := h.app.Factors.NewRecoveryCodes(ctx, c.Caller)
	if doorward.HasCode(err, doorward.CodeStepUpRequired) {
		return c.To(newCodesPage), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	return h.codesView(c, codes), nil
}

// recoveryCodes matches the text that recoveryFile accepts: one to ten recovery codes.
// It is large, so a start doesn't compile it.
var recoveryCodes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[A-Z2-7]{4}(?:-[A-Z2-7]{4}){5}\r?\n?){1,10}$`)
})

// recoveryFile answers with recovery codes as a file. The page that shows them sends them,
// since the server can't show them twice.
func recoveryFile(_ context.Context, c *front.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	text := form.Get("codes")
	if !recoveryCodes().MatchString(text) {
		return doorward.Invalid("/codes", "invalid", "These are no recovery codes.")
	}
	h := c.W.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="recovery-codes.txt"`)
	_, _ = c.W.Write([]byte(strings.ReplaceAll(text, "\r\n", "\n") + "\n")) // fails if the client has disconnected
	return nil
}

func (h *hosted) renameFactor(ctx context.Context, c *ui.Call) (ui.View, error) {
	if _, err := h.app.Factors.Rename(ctx, c.Caller, c.Value("id"), c.Value("name")); err != nil {
		return ui.View{}, err
	}
	return c.To(securityPage + "?done=renamed"), nil
}

const removalPage = securityPage + "/remove/" // and the factor's id

// removal is the content of the page that asks whether a factor is to be removed.
type removal struct {
	Factor doorward.Factor
	IsOnly bool // the account has no other one
	Proved bool // recently; else /step-up comes first
}

// IsUnnamed reports whether the factor is shown by its kind.
func (r removal) IsUnnamed() bool { return isUnnamed(r.Factor) }

// At is the path of the page.
func (r removal) At() string { return removalPage + r.Factor.ID }

// Cancel is the path of the page to go back to.
func (removal) Cancel() string { return securityPage }

// askRemoval asks for confirmation. Errors: not_found, unavailable.
func (h *hosted) askRemoval(ctx context.Context, c *ui.Call) (ui.View, error) {
	own, err := h.app.Factors.OfCaller(ctx, c.Caller)
	if doorward.HasCode(err, doorward.CodeStepUpRequired) {
		return c.ProveFirst(removalPage + c.R.PathValue("id")), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	i := slices.IndexFunc(own.Factors, func(f doorward.Factor) bool { return f.ID == c.R.PathValue("id") })
	if i < 0 {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	proved, err := h.mayNow(ctx, c, doorward.MFARemove)
	return ui.View{Page: "factorremove", Body: removal{own.Factors[i], len(own.Factors) == 1, proved}}, err
}

// askRemovalAgain is askRemoval after a refusal: the page of one's security if the factor has since been removed.
func (h *hosted) askRemovalAgain(ctx context.Context, c *ui.Call) (ui.View, error) {
	v, err := h.askRemoval(ctx, c)
	if doorward.HasCode(err, doorward.CodeNotFound) {
		return h.showSecurity(ctx, c)
	}
	return v, err
}

// removeFactor redirects to the question if the proof has become too old: that page says how to go on.
func (h *hosted) removeFactor(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixFactor)
	if err != nil {
		return ui.View{}, err
	}
	revocation, err := h.app.Factors.Remove(ctx, c.Caller, id)
	c.SetRevocation(revocation)
	if doorward.HasCode(err, doorward.CodeStepUpRequired) {
		return c.To(removalPage + id), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	return c.To(securityPage + "?done=removed"), nil
}

// keepFactors refuses a reset of the factors that tenants have asked for.
func (h *hosted) keepFactors(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := h.app.Factors.KeepFactors(ctx, c.Caller); err != nil {
		return ui.View{}, err
	}
	return c.To(securityPage + "?done=kept"), nil
}

// factorReset is the form for the password, with which the code of a mail removes all factors.
type factorReset struct{ Token, Email string }

func factorCodePage() ui.View {
	return ui.View{Page: "code", Title: "factorreset.title", Scripts: codeScript, Body: codeForm{Action: "/factors/reset", KeyPrefix: "factorreset", Label: "field.token"}}
}

func (h *hosted) askFactorCode(context.Context, *ui.Call) (ui.View, error) {
	return factorCodePage(), nil
}

func (h *hosted) openFactorReset(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "token"); err != nil {
		return factorCodePage(), err
	}
	token := ui.PastedCode(c.Value("token"))
	email, err := h.app.Factors.ShowReset(ctx, token)
	if err != nil {
		return h.errorOrPage(c, err, h.refusedFactorReset)
	}
	return ui.View{Page: "factorreset", Scripts: codeScript, Body: factorReset{token, email}}, nil
}

func (h *hosted) refusedFactorReset(_ context.Context, c *ui.Call) (ui.View, error) {
	return factorCodePage(), nil
}

func (h *hosted) confirmFactorReset(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "password"); err != nil {
		return ui.View{}, err
	}
	token := ui.PastedCode(c.Value("token"))
	email, err := h.app.Factors.ShowReset(ctx, token)
	if err != nil {
		return ui.View{}, err
	}
	revocation, err := h.app.Factors.ConfirmReset(ctx, c.Caller, token, c.Value("password"))
	c.SetRevocation(revocation)
	if err != nil {
		return ui.View{}, err
	}
	rememberAddress(c, email)
	return c.To("/login?done=factorreset"), nil
}
