package api

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/web/front"
)

type challengeView struct {
	Challenge string    `json:"challenge" doc:"To be sent with the answer; shown only here" minLength:"43" maxLength:"43"`
	Methods   []string  `json:"methods" doc:"By which it can be answered: password without a second factor, else totp" example:"totp"`
	ExpiresAt time.Time `json:"expiresAt"`
}

func viewBegun(b factor.Begun) challengeView {
	return challengeView{b.Token.Reveal(), b.Methods, b.ExpiresAt}
}

var docBeginStepUp = front.Doc{
	ID: "beginStepUp", Tag: "Sessions", Summary: "Begin to prove the session anew",
	Description: "For actions that are answered with `step_up_required`. Who has a second factor proves that, others the password.",
}

func (a *api) beginStepUp(ctx context.Context, c *front.Call, _ front.None) (challengeView, error) {
	begun, err := a.app.Login.BeginStepUp(ctx, c.Caller)
	if err != nil {
		return challengeView{}, err
	}
	return viewBegun(begun), nil
}

type stepUpInput struct {
	Challenge string `json:"challenge" doc:"Of step-up/begin"`
	Password  string `json:"password,omitempty" format:"password" doc:"Method password"`
	Code      string `json:"code,omitempty" example:"492039" doc:"Of the authenticator app (method totp)"`
}

type renewed struct {
	Token   string        `json:"token" doc:"The new session identifier, the value of the cookie JSESSIONID; the old one has ended" minLength:"43" maxLength:"43"`
	Session front.Session `json:"session"`
}

var docFinishStepUp = front.Doc{
	ID: "finishStepUp", Tag: "Sessions", Summary: "Prove the session anew",
	Description: "The session goes on with a new token and cookie; the old token ends on all nodes. Its absolute limit stays, and other sessions of the person gain nothing. A wrong answer is 422 and counts in the limit of the account, as a wrong password does. A challenge is good once, for 5 minutes and 5 tries.",
	Errors:      []doorward.Code{doorward.CodeChallengeOver, doorward.CodeTooManyAttempts},
}

func (a *api) finishStepUp(ctx context.Context, c *front.Call, in stepUpInput) (renewed, error) {
	if err := required(field{"/challenge", in.Challenge}, field{"/code", in.Password + in.Code}); err != nil {
		return renewed{}, err
	}
	if in.Password != "" && in.Code != "" {
		return renewed{}, doorward.Invalid("/code", "invalid", "Send one answer: the password, or a code.")
	}
	o, err := a.app.Login.StepUp(ctx, c.Caller, in.Challenge, login.Evidence{Password: in.Password, Answer: factor.Answer{Code: in.Code}})
	if err != nil {
		return renewed{}, err
	}
	c.Revoked(o.Revocation)
	c.SetSession(o.Token)
	return renewed{o.Token.Reveal(), front.ViewSession(o.Session, true, a.app.Sessions.Limits())}, nil
}
