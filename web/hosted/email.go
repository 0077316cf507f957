package hosted

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// changeEmail reveals nothing: the next page is the same for every address.
func (h *hosted) changeEmail(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := h.app.Accounts.ChangeEmail(ctx, c.Caller, c.Value("email")); err != nil {
		return ui.View{}, err
	}
	return c.To("/account?done=email"), nil
}

// moving is the question whether an address is to change.
type moving struct{ Token, From, To string }

func (h *hosted) askConfirmCode(context.Context, *ui.Call) (ui.View, error) {
	return askCode("confirm-email"), nil
}

func (h *hosted) askUndoCode(context.Context, *ui.Call) (ui.View, error) {
	return askCode("undo-email"), nil
}

// openConfirm asks whether the address is to be confirmed: what only opens links, such as
// a mail filter, must not do it.
func (h *hosted) openConfirm(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.openMove(ctx, c, "confirm-email", h.app.Accounts.ShowChange, h.refusedConfirm)
}

func (h *hosted) openUndo(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.openMove(ctx, c, "undo-email", h.app.Accounts.ShowUndo, h.refusedUndo)
}

func (h *hosted) openMove(ctx context.Context, c *ui.Call, name string, show func(context.Context, string) (string, string, error), refused func(context.Context, *ui.Call) (ui.View, error)) (ui.View, error) {
	if c.Refused() == doorward.CodeAccountExists { // the token is good, and no use
		return refused(ctx, c)
	}
	if err := required(c, "token"); err != nil {
		return askCode(name), err
	}
	token := codeIn(c.Value("token"))
	from, to, err := show(ctx, token)
	if err != nil {
		return h.refusedOr(c, err, refused)
	}
	return ui.View{Page: name, Scripts: taking, Body: moving{token, from, to}}, nil
}

func (h *hosted) refusedConfirm(_ context.Context, c *ui.Call) (ui.View, error) {
	return refusedMove(c, "confirm-email"), nil
}

func (h *hosted) refusedUndo(_ context.Context, c *ui.Call) (ui.View, error) {
	return refusedMove(c, "undo-email"), nil
}

func refusedMove(c *ui.Call, name string) ui.View {
	switch code := c.Refused(); code {
	case doorward.CodeEmailChangeOver, doorward.CodeAccountExists:
		return overMove(name, code)
	}
	return askCode(name)
}

func overMove(name string, code doorward.Code) ui.View {
	key := "over." + name + "." + string(code)
	return ui.View{Page: "over", Scripts: taking, Title: key + ".title", Body: over{key, "/login"}}
}

func (h *hosted) confirmEmail(ctx context.Context, c *ui.Call) (ui.View, error) {
	revocation, err := h.app.Accounts.Confirm(ctx, c.Caller, codeIn(c.Value("token")))
	c.Revoked(revocation)
	if err != nil {
		return ui.View{}, err
	}
	return c.To("/login?done=confirm-email"), nil
}

func (h *hosted) undoEmail(ctx context.Context, c *ui.Call) (ui.View, error) {
	revocation, err := h.app.Accounts.Undo(ctx, c.Caller, codeIn(c.Value("token")))
	c.Revoked(revocation)
	if err != nil {
		return ui.View{}, err
	}
	c.ClearSession() // it may be one of those that have ended
	return c.To("/login?done=undo-email"), nil
}
