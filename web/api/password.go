package api

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

type forgotInput struct {
	Email string `json:"email" format:"email" example:"ann@acme.example"`
}

var docForgotPassword = front.Doc{
	ID: "forgotPassword", Tag: "Passwords", Summary: "Ask for a mail with a reset link",
	Description: "202 for every well-formed address, whether it has an account or not. The link is valid for 30 minutes and once; earlier links stop working. At most 3 mails an hour and address, and 30 requests an hour and client address, 300 from an IPv6 /48.",
	Errors:      []doorward.Code{doorward.CodeTooManyAttempts},
}

func (a *api) forgotPassword(ctx context.Context, c *front.Call, in forgotInput) (front.None, error) {
	return front.None{}, a.app.Passwords.Forgot(ctx, c.Caller, in.Email, "")
}

type resetInput struct {
	Token           string `json:"token" doc:"The code of the mail"`
	Password        string `json:"password" format:"password" doc:"12 (or what the installation sets) to 128 characters, 1,024 bytes at most. It is too_common if it is on the installation's list, as a whole or without the digits and signs at its ends, or is nothing but a sequence or a repetition"`
	ConfirmPassword string `json:"confirmPassword" format:"password" doc:"The new password again"`
}

var docResetPassword = front.Doc{
	ID: "resetPassword", Tag: "Passwords", Summary: "Set a new password with the code of a mail",
	Description: "Ends all sessions of the person and opens none. No browser that has signed in before is known any more. After a 422 the token stays usable.",
	Errors:      []doorward.Code{doorward.CodeResetNotFound, doorward.CodeResetExpired, doorward.CodeResetUsed},
}

func (a *api) resetPassword(ctx context.Context, c *front.Call, in resetInput) (front.None, error) {
	revocation, err := a.app.Passwords.Reset(ctx, c.Caller, in.Token, in.Password, in.ConfirmPassword)
	c.SetRevocation(revocation)
	return front.None{}, err
}

type changeInput struct {
	CurrentPassword string `json:"currentPassword" format:"password"`
	Password        string `json:"password" format:"password" doc:"12 (or what the installation sets) to 128 characters, 1,024 bytes at most. It is too_common if it is on the installation's list, as a whole or without the digits and signs at its ends, or is nothing but a sequence or a repetition"`
	ConfirmPassword string `json:"confirmPassword" format:"password" doc:"The new password again"`
}

var docChangePassword = front.Doc{
	ID: "changePassword", Tag: "Passwords", Summary: "Change one's own password",
	Description: "Ends all other sessions of the person, in every tenant. No other browser that has signed in before is known any more. The current password as the new one is 422 `unchanged`. A person with a second factor needs a recent proof of it, too, which is asked for before the passwords are checked.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired, doorward.CodeTooManyAttempts},
}

func (a *api) changePassword(ctx context.Context, c *front.Call, in changeInput) (front.None, error) {
	changed, err := a.app.Passwords.Change(ctx, c.Caller, in.CurrentPassword, in.Password, in.ConfirmPassword)
	if err != nil {
		return front.None{}, err
	}
	c.SetRevocation(changed.Revocation)
	c.SetAllowance(changed.Allowance)
	return front.None{}, nil
}
