package hosted

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

func (h *hosted) changeEmail(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := h.app.Accounts.ChangeEmail(ctx, c.Caller, c.Value("email")); err != nil {
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

// emailChange is the form that confirms or undoes a change.
type emailChange struct {
	KeyPrefix    string // of the messages; also the path
	Token, Email string
}

func (h *hosted) askConfirmCode(context.Context, *ui.Call) (ui.View, error) {
	return askCode(confirmEmail), nil
}

func (h *hosted) askUndoCode(context.Context, *ui.Call) (ui.View, error) {
	return askCode(undoEmail), nil
}

func (h *hosted) openConfirm(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.openEmailChange(ctx, c, confirmEmail, h.app.Accounts.ShowConfirm, h.refusedConfirm)
}

func (h *hosted) openUndo(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.openEmailChange(ctx, c, undoEmail, h.app.Accounts.ShowUndo, h.refusedUndo)
}

func (h *hosted) openEmailChange(ctx context.Context, c *ui.Call, name string, show func(context.Context, string) (string, error), refused func(context.Context, *ui.Call) (ui.View, error)) (ui.View, error) {
	if err := requireFields(c, "token"); err != nil {
		return askCode(name), err
	}
	token := ui.PastedCode(c.Value("token"))
	email, err := show(ctx, token)
	if err != nil {
		return h.errorOrPage(c, err, refused)
	}
	return ui.View{Page: "email", Title: name + ".title", Scripts: codeScript, Body: emailChange{name, token, email}}, nil
}

func (h *hosted) refusedConfirm(_ context.Context, c *ui.Call) (ui.View, error) {
	return refusedEmailChange(c, confirmEmail), nil
}

func (h *hosted) refusedUndo(_ context.Context, c *ui.Call) (ui.View, error) {
	return refusedEmailChange(c, undoEmail), nil
}

func refusedEmailChange(c *ui.Call, name string) ui.View {
	switch c.RefusalCode() {
	case doorward.CodeEmailChangeOver, doorward.CodeAccountExists, doorward.CodeForbidden:
		return endedEmailChange(c.RefusalCode(), name)
	}
	return askCode(name)
}

func endedEmailChange(code doorward.Code, name string) ui.View {
	key := "ended." + name + "." + string(code)
	return ui.View{Page: "ended", Scripts: codeScript, Title: key + ".title", Body: endedLink{key, ""}}
}

func (h *hosted) confirmEmail(ctx context.Context, c *ui.Call) (ui.View, error) {
	revocation, err := h.app.Accounts.ConfirmEmail(ctx, c.Caller, ui.PastedCode(c.Value("token")))
	c.SetRevocation(revocation)
	if err != nil {
		return ui.View{}, err
	}
	if c.Caller.Kind == doorward.ByUser {
		return c.To("/account?done=email-changed"), nil
	}
	return c.To("/login?done=email-changed"), nil
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
