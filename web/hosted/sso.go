package hosted

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/signon"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// signOnStart is the page at which a sign-in by a connection begins: to bookmark, and for people whom another
// site has led here.
type signOnStart struct {
	signon.Shown
	Start string // path of the API, without that of the base URL
	Hint  string // the address for the provider
	Email string // of the session that the browser has; empty: none
	// Unsolicited reports whether the provider has led the browser here without being asked.
	Unsolicited bool
}

func (h *hosted) showSignOn(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.signOnPage(ctx, c, false)
}

// Unsolicited answers with the page that says to start the sign-in here, to a browser that a SAML provider has led to the
// callback without being asked, for front.Site.
func Unsolicited(ctx context.Context, fc *front.Call) error {
	h := hosted{app: fc.Site().App}
	return set.Answer(fc, func(c *ui.Call) (ui.View, error) { return h.signOnPage(ctx, c, true) })
}

func (h *hosted) signOnPage(ctx context.Context, c *ui.Call, isUnsolicited bool) (ui.View, error) {
	conID, err := c.ID("con", doorward.PrefixConnection)
	if err != nil {
		return ui.View{}, err
	}
	shown, err := h.app.SignOn.Show(ctx, conID)
	if err != nil {
		return ui.View{}, err
	}
	start := signOnStart{Shown: shown, Start: "/api/v2/auth/sso/" + conID + "/start", Hint: c.R.URL.Query().Get("loginHint"), Unsolicited: isUnsolicited}
	if c.Caller.Kind == doorward.ByUser {
		start.Email = c.Caller.Email
	}
	return ui.View{Page: "sso", KeepsReturn: true, Tenant: shown.Tenant, Body: start}, nil
}

// waiting is a sign-in that waits for the person.
type waiting struct {
	signon.Waiting
	Current string // address of the session that would be replaced
	At      string // path of the page's forms
}

func (h *hosted) showWaiting(ctx context.Context, c *ui.Call) (ui.View, error) {
	conID, err := c.ID("con", doorward.PrefixConnection)
	if err != nil {
		return ui.View{}, err
	}
	w, err := h.app.SignOn.Waiting(ctx, c.Caller, conID, c.Cookie(signon.HeldCookie))
	if err != nil {
		return ui.View{}, err
	}
	v := ui.View{Page: "ssocontinue", FormReturns: true, Tenant: w.Tenant, Body: waiting{w, c.Caller.Email, ui.SignOnPage(conID)}}
	if w.Passkey && w.Proves {
		v.Scripts, v.Connects = passkeyScripts, true
	}
	return v, nil
}

// waitingAgain shows the page once more, without the answer of a passkey, which is valid only once.
func (h *hosted) waitingAgain(ctx context.Context, c *ui.Call) (ui.View, error) {
	c.KeepOnly("return")
	return h.showWaiting(ctx, c)
}

// signOnForm is a form of a sign-in that waits.
type signOnForm func(ctx context.Context, by doorward.Caller, conID, held string) (signon.Result, error)

// goOn takes a form and leads on: to the session, to what else is asked for, or to the second factor.
func (h *hosted) goOn(ctx context.Context, c *ui.Call, fn signOnForm) (ui.View, error) {
	conID, err := c.ID("con", doorward.PrefixConnection)
	if err != nil {
		return ui.View{}, err
	}
	by := withReplaced(c)
	result, err := fn(ctx, by, conID, c.Cookie(signon.HeldCookie))
	if err != nil {
		return ui.View{}, err
	}
	result.Return = c.ReturnTo()
	if result.Second != nil {
		c.KeepOnly("return")
		return secondForSignOn(conID, result.Second.Token.Reveal(), askedBy(*result.Second), false), nil
	}
	if result.Held == "" {
		c.SetCookie(signon.HeldCookie, "", 0)
	}
	return c.Redirect(ui.AfterSignOn(c.Call, conID, by, result)), nil
}

func (h *hosted) agreeToSignOn(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.goOn(ctx, c, h.app.SignOn.Agree)
}

func (h *hosted) proveForSignOn(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "password"); err != nil {
		return ui.View{}, err
	}
	return h.goOn(ctx, c, func(ctx context.Context, by doorward.Caller, conID, held string) (signon.Result, error) {
		return h.app.SignOn.Prove(ctx, by, conID, held, c.Value("password"))
	})
}

func (h *hosted) provePasskeyForSignOn(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "credential"); err != nil {
		return ui.View{}, err
	}
	return h.goOn(ctx, c, func(ctx context.Context, by doorward.Caller, conID, held string) (signon.Result, error) {
		return h.app.SignOn.ProvePasskey(ctx, by, conID, held, c.Value("challenge"), []byte(c.Value("credential")))
	})
}

func (h *hosted) proveSecondForSignOn(ctx context.Context, c *ui.Call) (ui.View, error) {
	if with := c.Value("with"); with == "other" || with == "recovery" && len(c.Values("recoveryCode")) == 0 { // a button that asks for another method
		return h.secondForSignOnAgain(ctx, c)
	}
	answer, err := secondAnswer(c)
	if err != nil {
		return ui.View{}, err
	}
	return h.goOn(ctx, c, func(ctx context.Context, by doorward.Caller, conID, held string) (signon.Result, error) {
		return h.app.SignOn.ProveSecond(ctx, by, conID, held, c.Value("challenge"), answer)
	})
}

// askedBy describes a challenge that was just made.
func askedBy(b factor.NewChallenge) login.Asked {
	return login.Asked{Methods: b.Methods, PublicKey: b.PublicKey}
}

// secondForSignOn asks for the second factor after the password of an account that is to be joined.
func secondForSignOn(conID, challenge string, asked login.Asked, isRecovery bool) ui.View {
	at := ui.SignOnPage(conID) + "/prove/second"
	asked.Email, asked.RememberDays = "", 0 // the browser isn't remembered here
	return secondView(secondStep{besideAnswer: besideAnswer{Challenge: challenge}, At: at, Other: at}, asked, isRecovery)
}

// secondForSignOnAgain shows the form once more after a wrong answer; or the page before it, if the challenge
// is over.
func (h *hosted) secondForSignOnAgain(ctx context.Context, c *ui.Call) (ui.View, error) {
	conID, err := c.ID("con", doorward.PrefixConnection)
	if err != nil {
		return ui.View{}, err
	}
	asked, err := h.app.Login.Asked(ctx, c.Value("challenge"), factor.ForSignOn)
	if doorward.HasCode(err, doorward.CodeChallengeOver) {
		return h.waitingAgain(ctx, c)
	}
	if err != nil {
		return ui.View{}, err
	}
	challenge, isRecovery := c.Value("challenge"), asksRecovery(c)
	c.KeepOnly("return")
	return secondForSignOn(conID, challenge, asked, isRecovery), nil
}

// signOnTest is the result of a test, for the person who has begun it.
type signOnTest struct {
	doorward.ConnectionTest
	Failed *doorward.TestCheck // nil: none
}

// Sign is that of the test's state.
func (t signOnTest) Sign() string {
	switch t.Status {
	case doorward.TestPassed:
		return ui.SignOpen
	case doorward.TestFailed:
		return ui.SignClosed
	}
	return ui.SignGuarded
}

func (h *hosted) showSignOnTest(ctx context.Context, c *ui.Call) (ui.View, error) {
	conID, err := c.ID("con", doorward.PrefixConnection)
	if err != nil {
		return ui.View{}, err
	}
	id, err := c.ID("test", doorward.PrefixTest)
	if err != nil {
		return ui.View{}, err
	}
	test, err := h.app.Tests.ShowInBrowser(ctx, c.Caller, conID, id)
	if err != nil {
		return ui.View{}, err
	}
	return testPage(test), nil
}

func testPage(test doorward.ConnectionTest) ui.View {
	return ui.View{Page: "ssotest", Title: "ssotest." + string(test.Status) + ".title", Body: testView(test)}
}

func testView(test doorward.ConnectionTest) signOnTest {
	shown := signOnTest{ConnectionTest: test}
	if i := slices.IndexFunc(test.Checks, func(c doorward.TestCheck) bool { return !c.OK }); i >= 0 && test.Status == doorward.TestFailed {
		shown.Failed = &test.Checks[i]
	}
	return shown
}

// StartWith returns the path at which the sign-in begins, with the return address.
func (s signOnStart) StartWith(returnTo string) string {
	return ui.SignOnWith(s.Start, returnTo, s.Hint)
}
