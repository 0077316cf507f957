package hosted

import (
	"context"

	"github.com/doorward/doorward"
	accounts "github.com/doorward/doorward/app/account"
	"github.com/doorward/doorward/web/ui"
)

func (h *hosted) changeEmail(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := h.app.Accounts.ChangeEmail(ctx, c.Caller, c.Value("email"), c.Value("suspend") != ""); err != nil {
		return ui.View{}, err
	}
	return c.To("/account?done=email-sent"), nil
}

// The pages behind the links of mails about a change of the address. Neither link does
// anything by itself: programs that read mail open links, too.
const (
	confirmEmail = "confirm-email"
	undoEmail    = "undo-email"
)

// confirming is the content of the page that confirms a change. Only a session of the account can:
// without one the page leads to the sign-in and back, with the code in the fragment.
type confirming struct {
	accounts.Shown
	Token  string
	Caller string // address of the person who is signed in; empty if nobody is
}

// undoing is the form that undoes a change.
type undoing struct{ Token, Email string }

func (h *hosted) askConfirmCode(context.Context, *ui.Call) (ui.View, error) {
	return askCode(confirmEmail), nil
}

func (h *hosted) askUndoCode(context.Context, *ui.Call) (ui.View, error) {
	return askCode(undoEmail), nil
}

func (h *hosted) openConfirm(ctx context.Context, c *ui.Call) (ui.View, error) {
	switch c.RefusalCode() {
	case doorward.CodeAccountExists, doorward.CodeMembershipsAffected, doorward.CodeLastOwner:
		return h.refusedConfirm(ctx, c) // the code is still valid, but the address can't be used
	}
	if err := requireFields(c, "token"); err != nil {
		return askCode(confirmEmail), err
	}
	token := ui.PastedCode(c.Value("token"))
	shown, err := h.app.Accounts.ShowConfirm(ctx, c.Caller, token)
	if err != nil {
		return h.errorOrPage(c, err, h.refusedConfirm)
	}
	rememberAddress(c, shown.Old)
	return ui.View{Page: confirmEmail, Scripts: codeScript, Body: confirming{shown, token, c.Caller.Email}}, nil
}

func (h *hosted) openUndo(ctx context.Context, c *ui.Call) (ui.View, error) {
	if c.RefusalCode() == doorward.CodeAccountExists {
		return h.refusedUndo(ctx, c)
	}
	if err := requireFields(c, "token"); err != nil {
		return askCode(undoEmail), err
	}
	token := ui.PastedCode(c.Value("token"))
	email, err := h.app.Accounts.ShowUndo(ctx, token)
	if err != nil {
		return h.errorOrPage(c, err, h.refusedUndo)
	}
	return ui.View{Page: undoEmail, Scripts: codeScript, Body: undoing{token, email}}, nil
}

func (h *hosted) refusedConfirm(_ context.Context, c *ui.Call) (ui.View, error) {
	return refusedEmailChange(c, confirmEmail), nil
}

func (h *hosted) refusedUndo(_ context.Context, c *ui.Call) (ui.View, error) {
	return refusedEmailChange(c, undoEmail), nil
}

func refusedEmailChange(c *ui.Call, name string) ui.View {
	switch c.RefusalCode() {
	case doorward.CodeEmailChangeOver, doorward.CodeAccountExists, doorward.CodeMembershipsAffected, doorward.CodeLastOwner:
		return endedEmailChange(c.RefusalCode(), name)
	}
	return askCode(name)
}

// endedEmailChange says why the link leads no further. What can be done about one that confirms is done on the
// account's own page.
func endedEmailChange(code doorward.Code, name string) ui.View {
	key, next := "ended."+name+"."+string(code), ""
	if name == "confirm-email" {
		next = "/account"
	}
	return ui.View{Page: "ended", Scripts: codeScript, Title: key + ".title", Body: endedLink{key, next}}
}

func (h *hosted) confirmEmail(ctx context.Context, c *ui.Call) (ui.View, error) {
	revocation, err := h.app.Accounts.ConfirmEmail(ctx, c.Caller, ui.PastedCode(c.Value("token")))
	c.SetRevocation(revocation)
	if err != nil {
		return ui.View{}, err
	}
	return c.To("/account?done=email-changed"), nil
}

func (h *hosted) undoEmail(ctx context.Context, c *ui.Call) (ui.View, error) {
	token := ui.PastedCode(c.Value("token"))
	email, err := h.app.Accounts.ShowUndo(ctx, token)
	if err != nil {
		return ui.View{}, err
	}
	revocation, err := h.app.Accounts.UndoEmail(ctx, c.Caller, token)
	c.SetRevocation(revocation)
	if err != nil {
		return ui.View{}, err
	}
	rememberAddress(c, email)
	c.ClearSession() // ended, if it was of this account
	return c.To("/login?done=email-undone"), nil
}
