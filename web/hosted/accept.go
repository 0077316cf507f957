package hosted

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/web/ui"
)

func (h *hosted) askInvitationCode(context.Context, *ui.Call) (ui.View, error) {
	return askCode("accept"), nil
}

// invited is the content of the page of an invitation: of a new person, of one with an
// account, or of the person who is signed in.
type invited struct {
	invite.Shown
	Token       string
	IsCaller    bool   // the invited person is the one who is signed in
	CallerEmail string // address of the person who is signed in; empty if nobody is
	MinLength   int
	BannedWords string
	RoleWords   ui.RoleWords
}

// openInvitation shows the invitation of the code, or why the code is invalid.
func (h *hosted) openInvitation(ctx context.Context, c *ui.Call) (ui.View, error) {
	if c.RefusalCode() == doorward.CodeAlreadyMember {
		return h.refusedInvitation(ctx, c)
	}
	if err := requireFields(c, "token"); err != nil {
		return askCode("accept"), err
	}
	token := ui.PastedCode(c.Value("token"))
	shown, err := h.app.Invitations.Show(ctx, token)
	if err != nil {
		return h.errorOrPage(c, err, h.refusedInvitation)
	}
	i := invited{
		Shown: shown, Token: token, MinLength: h.app.PasswordRules.Load().MinLength,
		BannedWords: bannedWords(shown.Email, shown.Name, shown.TenantName),
		RoleWords:   ui.DescribeRole(shown.Rules, shown.Role),
	}
	if c.Caller.Kind == doorward.ByUser {
		i.IsCaller = c.Caller.Email == shown.Email
		i.CallerEmail = c.Caller.Email
	}
	return ui.View{Page: "accept", Scripts: codeScript, KeepsReturn: true, FormReturns: true, FormSignsOn: h.signsOn(ctx), Body: i, Tenant: doorward.Tenant{Name: shown.TenantName, Brand: shown.Brand}}, nil
}

// refusedInvitation says why the invitation can't be accepted, or asks for the code again.
func (h *hosted) refusedInvitation(_ context.Context, c *ui.Call) (ui.View, error) {
	switch code := c.RefusalCode(); code {
	case doorward.CodeInvitationUsed, doorward.CodeAlreadyMember:
		return endedPage(code, "/login"), nil
	case doorward.CodeInvitationExpired, doorward.CodeInvitationRevoked, doorward.CodeTenantFrozen, doorward.CodeTenantClosing:
		return endedPage(code, ""), nil
	}
	return askCode("accept"), nil
}

// register creates the account, and signs in to the tenant by the password that was just chosen, as the login
// does with what is typed there. If that is refused or fails, the account is there all the same: the login says
// so, with the address filled in.
func (h *hosted) register(ctx context.Context, c *ui.Call) (ui.View, error) {
	user, err := h.app.Invitations.Complete(ctx, c.Caller, ui.PastedCode(c.Value("token")), c.Value("password"), c.Value("confirmPassword"))
	if err != nil {
		return ui.View{}, err
	}
	by := withReplaced(c)
	by.Principal = doorward.Principal{Kind: doorward.Anonymous} // somebody else's session is replaced, and proves nothing
	outcome, err := h.app.Login.WithPassword(ctx, by, user.Email, c.Value("password"), user.TenantID)
	if e := (*doorward.Error)(nil); errors.As(err, &e) && e.ConnectionID != "" {
		return c.SignOn(e.ConnectionID, user.Email), nil
	}
	if err != nil {
		rememberAddress(c, user.Email)
		return c.RedirectKeepingReturn("/login?done=registered"), nil
	}
	return signIn(c, by, outcome)
}

// join accepts as proof a session of the invited address, or the password of its
// account, but not somebody else's session.
func (h *hosted) join(ctx context.Context, c *ui.Call) (ui.View, error) {
	token := ui.PastedCode(c.Value("token"))
	shown, err := h.app.Invitations.Show(ctx, token)
	if err != nil {
		return ui.View{}, err
	}
	isCaller := c.Caller.Kind == doorward.ByUser && c.Caller.Email == shown.Email
	if !isCaller {
		if err := requireFields(c, "password"); err != nil {
			return ui.View{}, err
		}
	}
	outcome, err := h.app.Invitations.Accept(ctx, c.Caller, token, c.Value("password"))
	if err != nil {
		return ui.View{}, err
	}
	switch o := outcome.(type) {
	case invite.SecondNeeded:
		return h.askSecond(ctx, c, besideAnswer{token, o.Token.Reveal()})
	case invite.Joined:
		c.SetAllowance(o.Allowance)
	}
	switch {
	case isCaller && !c.HasDestination():
		return c.To(tabPath(organisationsTab) + "&done=entered"), nil
	case isCaller: // the session stays in its tenant, but the return address may need the new one
		return c.RedirectKeepingReturn("/login/tenant?done=choose"), nil
	}
	rememberAddress(c, shown.Email)
	return c.RedirectKeepingReturn("/login?done=joined"), nil
}

func secondOf(c *ui.Call) besideAnswer {
	return besideAnswer{ui.PastedCode(c.Value("token")), c.Value("challenge")}
}

func (h *hosted) askSecond(ctx context.Context, c *ui.Call, s besideAnswer) (ui.View, error) {
	challenge, err := h.app.Login.Asked(ctx, s.Challenge, factor.ForInvitation)
	if doorward.HasCode(err, doorward.CodeChallengeOver) { // the code in the mail is good for another try
		return h.openInvitation(ctx, c)
	}
	if err != nil {
		return ui.View{}, err
	}
	c.KeepOnly("return", "with", "token", "challenge")
	return secondView(secondStep{besideAnswer: s, At: "/accept/second", Other: "/accept/second/other"}, challenge, asksRecovery(c)), nil
}

// showJoinSecond shows the second step again, to answer it with another method.
func (h *hosted) showJoinSecond(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.askSecond(ctx, c, secondOf(c))
}

func (h *hosted) joinSecond(ctx context.Context, c *ui.Call) (ui.View, error) {
	answer, err := secondAnswer(c)
	if err != nil {
		return ui.View{}, err
	}
	s := secondOf(c)
	joined, err := h.app.Invitations.AcceptSecond(ctx, c.Caller, s.Token, s.Challenge, answer)
	if err != nil {
		return ui.View{}, err
	}
	c.SetAllowance(joined.Allowance)
	rememberAddress(c, joined.Email)
	return c.RedirectKeepingReturn("/login?done=joined"), nil
}

// joinSecondAgain shows why the second step was refused: the invitation is over, or the answer is wrong.
func (h *hosted) joinSecondAgain(ctx context.Context, c *ui.Call) (ui.View, error) {
	switch c.RefusalCode() {
	case doorward.CodeInvalidCode, doorward.CodeTooManyAttempts, doorward.CodeValidationFailed:
		return h.askSecond(ctx, c, secondOf(c))
	}
	return h.openInvitation(ctx, c)
}
