package api

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

type changeEmailInput struct {
	Email string `json:"email" format:"email" example:"ann@acme.example" doc:"The new address"`
}

var docChangeEmail = front.Doc{
	ID: "changeEmail", Tag: "Account", Summary: "Ask for another address of one's own account",
	Description: "202 for every well-formed address, whether it has an account or not. The new address gets a mail with a code, which is valid for 30 minutes and once, and only the newest; nothing changes before it is confirmed. The present address gets a mail with a code that undoes the change for 7 days. At most 3 mails an hour to one address, 10 for one account, and 30 requests an hour and client address.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeTooManyAttempts},
}

func (a *api) changeEmail(ctx context.Context, c *front.Call, in changeEmailInput) (front.None, error) {
	return front.None{}, a.app.Accounts.ChangeEmail(ctx, c.Caller, in.Email)
}

type emailCodeInput struct {
	Token string `json:"token" doc:"The code of the mail"`
}

var docConfirmEmail = front.Doc{
	ID: "confirmEmail", Tag: "Account", Summary: "Confirm a new address with the code of a mail",
	Description: "Effective on every node before the answer. Sessions go on. Reset links that were sent to the former address stop working, and it gets a mail with a code that undoes the change for 7 days. With 409 the code stays usable.",
	Errors:      []doorward.Code{doorward.CodeEmailChangeNotFound, doorward.CodeEmailChangeOver, doorward.CodeAccountExists},
}

func (a *api) confirmEmail(ctx context.Context, c *front.Call, in emailCodeInput) (front.None, error) {
	revocation, err := a.app.Accounts.Confirm(ctx, c.Caller, in.Token)
	c.Revoked(revocation)
	return front.None{}, err
}

var docUndoEmail = front.Doc{
	ID: "undoEmail", Tag: "Account", Summary: "Undo a change of an address with the code of a mail",
	Description: "The account has the address back that it had before, whether the change was confirmed or not, and later changes are undone, too. Ends all sessions of the person. No browser that has signed in before is known any more. The address gets a mail with a reset link. 409 if somebody else has an account with the address by now.",
	Errors:      []doorward.Code{doorward.CodeEmailChangeNotFound, doorward.CodeEmailChangeOver, doorward.CodeAccountExists},
}

func (a *api) undoEmail(ctx context.Context, c *front.Call, in emailCodeInput) (front.None, error) {
	revocation, err := a.app.Accounts.Undo(ctx, c.Caller, in.Token)
	c.Revoked(revocation)
	return front.None{}, err
}
