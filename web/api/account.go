package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/account"
	"github.com/doorward/doorward/web/front"
)

type changeEmailInput struct {
	Email   string `json:"email" format:"email" example:"ann.lee@acme.example"`
	Suspend bool   `json:"suspend,omitempty" doc:"Accepts that memberships whose tenants don't allow the new domain are suspended"`
}

var docChangeEmail = front.Doc{
	ID: "changeEmail", Tag: "Account", Summary: "Ask for another address of one's account",
	Description: "202 for every well-formed address, whether it has an account or not. The address changes once it is confirmed with the code that is mailed to it, within 30 minutes and in a session of the account. The present address gets a mail with which it can undo the change for 7 days. At most 3 mails an hour and address, and 10 changes an hour and account. A newer request, a new password, and the end of all other sessions void it. 409 `memberships_affected` names the person's tenants whose `allowedEmailDomains` refuse the new domain, unless `suspend` is true: then confirming suspends these memberships.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeTooManyAttempts, doorward.CodeStepUpRequired, doorward.CodeMembershipsAffected},
}

func (a *api) changeEmail(ctx context.Context, c *front.Call, in changeEmailInput) (front.None, error) {
	return front.None{}, a.app.Accounts.ChangeEmail(ctx, c.Caller, in.Email, in.Suspend)
}

type emailTokenInput struct {
	Token string `json:"token" doc:"The code of the mail"`
}

var docConfirmEmail = front.Doc{
	ID: "confirmEmail", Tag: "Account", Summary: "Confirm a new address with the code of the mail to it",
	Description: "With a session of the account whose address changes; a recent proof of identity isn't needed while the code is valid, except of what the account itself has if a connection vouches for the session. Sessions stay. 403 `wrong_account` with a session of another account. Memberships whose tenants don't allow the new domain are suspended if the change was asked for with `suspend`, else the answer is 409 `memberships_affected`; 409 `last_owner` if that would leave an active tenant without an active OWNER.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired, doorward.CodeWrongAccount, doorward.CodeEmailChangeNotFound, doorward.CodeEmailChangeOver, doorward.CodeAccountExists, doorward.CodeMembershipsAffected, doorward.CodeLastOwner, doorward.CodeNoWayBack},
}

func (a *api) confirmEmail(ctx context.Context, c *front.Call, in emailTokenInput) (front.None, error) {
	revocation, err := a.app.Accounts.ConfirmEmail(ctx, c.Caller, in.Token)
	c.SetRevocation(revocation)
	return front.None{}, err
}

var docUndoEmail = front.Doc{
	ID: "undoEmail", Tag: "Account", Summary: "Undo a change of the address with the code of the mail to the old one",
	Description: "Sets the old address back, ends all sessions of the person and the trust in browsers, and mails a link for a new password. Memberships that began since the change was asked for, and those whose tenant doesn't allow the old address, are suspended. Second factors and recovery codes made since, or in the 7 days before, are disabled and still count: if no other one is left, the way back is a reset of the factors. Works for 7 days, also before the change is confirmed; later changes end with it. 409 if another account has the old address by now.",
	Errors:      []doorward.Code{doorward.CodeEmailChangeNotFound, doorward.CodeEmailChangeOver, doorward.CodeAccountExists},
}

func (a *api) undoEmail(ctx context.Context, c *front.Call, in emailTokenInput) (front.None, error) {
	revocation, err := a.app.Accounts.UndoEmail(ctx, c.Caller, in.Token)
	c.SetRevocation(revocation)
	return front.None{}, err
}

type eraseInput struct {
	Confirm string `json:"confirm" format:"email" example:"ann@acme.example" doc:"The address of the account"`
}

var docEraseAccount = front.Doc{
	ID: "eraseAccount", Tag: "Account", Summary: "Erase one's own account, for good",
	Description: "Leaves all tenants, as leaving each of them does, and deletes the account with what is kept about the person: sessions, factors, known browsers, mails, counters. Audit events and answered invitations stay, without name, address and network; what the person has changed stays in the trail. Webhooks that the person has made go on: the OWNERs of each tenant in which the person had a rank of ADMIN or above are told by mail what is left there. 409 `last_owner` names the active tenants that would be left without an active OWNER; then nothing is changed. A frozen or closing one holds nobody back. It can't be undone.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeLastOwner, doorward.CodeStepUpRequired},
}

func (a *api) eraseAccount(ctx context.Context, c *front.Call, in eraseInput) (front.None, error) {
	erased, err := a.app.Users.Erase(ctx, c.Caller, in.Confirm)
	if err != nil {
		return front.None{}, err
	}
	c.SetRevocation(erased.Revocation)
	c.ClearSession()
	return front.None{}, nil
}

var docExportAccount = front.Doc{
	ID: "exportAccount", Tag: "Account", Summary: "Export one's own data",
	Description: "The account, memberships, sessions, known browsers, second factors, how many recovery codes are left, proofs and changes of the address that were begun, API keys owned, invitations and mails to the address, and audit events by the person or about the person, in all tenants. It holds no secrets. It needs a recent proof of identity. An answer that is cut off is no valid JSON: ask again.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeSignInRequired, doorward.CodeTooManyAttempts},
}

// exportAccount streams its answer; Out only documents it.
func (a *api) exportAccount() front.Endpoint {
	e := front.Raw(func(ctx context.Context, c *front.Call) error {
		hasBegun := false
		err := a.app.Accounts.Export(ctx, c.Caller, func() {
			hasBegun = true
			c.W.Header().Set("Content-Type", "application/json")
			c.W.Header().Set("Content-Disposition", `attachment; filename="account.json"`)
			c.W.WriteHeader(http.StatusOK)
		}, c.W)
		if err != nil && hasBegun {
			panic(http.ErrAbortHandler) // the client must not take it for complete
		}
		return err
	})
	e.Out = reflect.TypeFor[account.Held]()
	return e
}
