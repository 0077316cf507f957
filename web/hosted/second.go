package hosted

import (
	"context"
	"html/template"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/internal/qrsvg"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/web/ui"
)

const challengeCookie = ui.ChallengeCookie

func keepChallenge(c *ui.Call, b factor.NewChallenge) { ui.KeepChallenge(c.Call, b) }

func challengeToken(c *ui.Call) string { return c.Cookie(challengeCookie) }

// besideAnswer is what the page of the second step sends beside the answer. It is in the form, since an
// address would appear in logs.
type besideAnswer struct {
	Token     string // of the invitation that is accepted; empty: none
	Challenge string // empty for a login, which has it in a cookie
}

// secondStep is the second step of a login, of an acceptance, or of joining an account to a sign-on.
type secondStep struct {
	besideAnswer
	At           string // path that the answer is sent to
	Other        string // path of the form that asks for another method; empty: links, of a login
	Email        string // empty: not shown
	Recovery     bool   // asks for a recovery code
	App, Codes   bool   // what the person has
	Options      string // of WebAuthn, as JSON; empty without a passkey
	RememberDays int
}

func (h *hosted) showSecond(ctx context.Context, c *ui.Call) (ui.View, error) {
	challenge, err := h.app.Login.Asked(ctx, challengeToken(c), factor.ForLogin)
	if err != nil {
		return showChallengeOver(c, err)
	}
	c.KeepOnly("return", "with")
	return secondView(secondStep{At: "/login/second"}, challenge, asksRecovery(c)), nil
}

// asksRecovery reports whether the person wants to answer by a recovery code.
func asksRecovery(c *ui.Call) bool {
	return c.R.URL.Query().Get("with") == "recovery" || c.Value("with") == "recovery"
}

// secondView asks for the answer to a challenge. isRecovery asks for a recovery code although there are other factors.
func secondView(s secondStep, challenge login.Asked, isRecovery bool) ui.View {
	s.Email, s.RememberDays, s.Options = challenge.Email, challenge.RememberDays, string(challenge.PublicKey)
	s.App, s.Codes = slices.Contains(challenge.Methods, doorward.ByCode), slices.Contains(challenge.Methods, doorward.ByRecovery)
	s.Recovery = s.Codes && (!s.App && s.Options == "" || isRecovery)
	v := ui.View{Page: "second", FormReturns: true, Body: s}
	if s.Options != "" {
		v.Scripts = passkeyScripts
	}
	return v
}

// showChallengeOver says that the login is over and links to a new one, if the error is
// challenge_over.
func showChallengeOver(c *ui.Call, err error) (ui.View, error) {
	if !doorward.HasCode(err, doorward.CodeChallengeOver) {
		return ui.View{}, err
	}
	c.SetCookie(challengeCookie, "", 0)
	return endedPage(doorward.CodeChallengeOver, "/login"), nil
}

func (h *hosted) second(ctx context.Context, c *ui.Call) (ui.View, error) {
	answer, err := secondAnswer(c)
	if err != nil {
		return ui.View{}, err
	}
	by := withReplaced(c)
	outcome, err := h.app.Login.WithSecond(ctx, by, challengeToken(c), answer, c.Value("remember") != "")
	if err != nil {
		return ui.View{}, err
	}
	c.SetCookie(challengeCookie, "", 0)
	return signIn(c, by, outcome)
}

// secondAnswer returns the answer that the form of secondView has sent. Errors: validation_failed.
func secondAnswer(c *ui.Call) (factor.Answer, error) {
	name, answer := "code", factor.Answer{Code: c.Value("code")}
	if c.Value("with") == "recovery" {
		name, answer = "recoveryCode", factor.Answer{RecoveryCode: c.Value("recoveryCode")}
	}
	if credential := c.Value("credential"); credential != "" {
		name, answer = "credential", factor.Answer{Passkey: []byte(credential)}
	}
	return answer, requireFields(c, name)
}

// enrolment shows an authenticator app that is being set up.
type enrolment struct {
	Action  string // path that the code of the app is sent to
	ID      string
	Secret  string // in groups, to type it
	URI     template.URL
	Picture template.HTML
}

func enrolmentView(e factor.Enrolment, action, title string) (ui.View, error) {
	picture, err := qrsvg.Draw(e.URI, title)
	return ui.View{Page: "totp", FormReturns: true, Body: enrolment{
		action, e.ID, inGroups(totp.Base32(e.Seed)), template.URL(e.URI), template.HTML(picture), //nolint:gosec // both are made here
	}}, err
}

func inGroups(text string) string {
	var groups []string
	for group := range slices.Chunk([]byte(text), 4) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, " ")
}

// enrolling is the choice of a first factor.
type enrolling struct {
	Email   string
	Passkey bool // the address of the installation allows passkeys
}

func (h *hosted) showEnrolment(ctx context.Context, c *ui.Call) (ui.View, error) {
	challenge, err := h.app.Login.Asked(ctx, challengeToken(c), factor.ForEnrolment)
	if err != nil {
		return showChallengeOver(c, err)
	}
	return ui.View{Page: "enrol", FormReturns: true, Body: enrolling{challenge.Email, hasPasskey(challenge.Methods)}}, nil
}

const confirmEnrolment = "/login/enrol/confirm"

func (h *hosted) beginEnrolment(ctx context.Context, c *ui.Call) (ui.View, error) {
	e, err := h.app.Factors.EnrolWithChallenge(ctx, c.Caller, challengeToken(c), "")
	if err != nil {
		return ui.View{}, err
	}
	return enrolmentView(e, confirmEnrolment, "QR")
}

// pendingEnrolment shows the setup of the app once more after a wrong code.
func (h *hosted) pendingEnrolment(ctx context.Context, c *ui.Call) (ui.View, error) {
	e, err := h.app.Factors.PendingWithChallenge(ctx, challengeToken(c), c.Value("id"))
	if err != nil {
		return showChallengeOver(c, err)
	}
	return enrolmentView(e, confirmEnrolment, "QR")
}

func (h *hosted) confirmEnrolment(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "code"); err != nil {
		return ui.View{}, err
	}
	by := withReplaced(c)
	outcome, done, err := h.app.Login.WithFirst(ctx, by, challengeToken(c), c.Value("id"), c.Value("code"))
	if err != nil {
		return ui.View{}, err
	}
	return h.completeEnrolment(c, by, outcome, done)
}

// completeEnrolment signs in. Instead of signIn's redirect it shows the recovery codes of the
// new first factor, whose button leads on.
func (h *hosted) completeEnrolment(c *ui.Call, by doorward.Caller, outcome login.Outcome, done factor.Confirmed) (ui.View, error) {
	c.SetCookie(challengeCookie, "", 0)
	if _, err := signIn(c, by, outcome); err != nil {
		return ui.View{}, err
	}
	return ui.View{Page: "codes", KeepsReturn: true, Body: recovery{done.RecoveryCodes, c.BackAddress()}}, nil
}
