package api

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/web/front"
)

type challengeView struct {
	Challenge string         `json:"challenge" doc:"To be sent with the answer; shown only here" minLength:"43" maxLength:"43"`
	Methods   []string       `json:"methods" doc:"How it can be answered: password, totp, passkey, recovery, or sso at startUrl" example:"totp"`
	ExpiresAt time.Time      `json:"expiresAt"`
	PublicKey front.WebAuthn `json:"publicKey,omitempty" doc:"If a passkey can answer it: WebAuthn's options as JSON, for the browser's parseRequestOptionsFromJSON() or, to make a passkey, parseCreationOptionsFromJSON()"`
	StartURL  string         `json:"startUrl,omitempty" format:"uri" doc:"If the provider of the tenant's sign-on can answer it (method sso): where a browser begins. Add return= for the page to come back to"`
}

func viewChallenge(c *front.Call, b factor.NewChallenge) challengeView {
	view := challengeView{b.Token.Reveal(), b.Methods, b.ExpiresAt, front.ViewWebAuthn(b.PublicKey), ""}
	if b.ConnectionID != "" {
		view.StartURL = front.StartURL(c.Site().BaseURL(), b.ConnectionID, view.Challenge)
	}
	return view
}

var docBeginStepUp = front.Doc{
	ID: "beginStepUp", Tag: "Sessions", Summary: "Begin to prove the session again",
	WhilePaused: true,
	Description: "For actions that are answered with `step_up_required`. A person with a second factor proves it; others prove the password. If a tenant's own sign-on vouches for the session, its provider proves it (`sso`), or a second factor where the account is managed; a challenge of this endpoint then has all methods of the account, and `methods` of the refusal says which of them count for the action. The answer with that code has such a challenge, too. From its sessions an account begins at most 120 challenges an hour; then that answer has none.",
	Errors:      []doorward.Code{doorward.CodeTooManyAttempts},
}

func (a *api) beginStepUp(ctx context.Context, c *front.Call, _ front.None) (challengeView, error) {
	begun, err := a.app.Login.BeginStepUp(ctx, c.Caller)
	if err != nil {
		return challengeView{}, err
	}
	return viewChallenge(c, begun), nil
}

type stepUpInput struct {
	Challenge    string         `json:"challenge" doc:"From the answer of step-up/begin, or from that with the code step_up_required"`
	Password     string         `json:"password,omitempty" format:"password" doc:"Method password"`
	Code         string         `json:"code,omitempty" example:"492039" doc:"From the authenticator app (method totp)"`
	Credential   front.WebAuthn `json:"credential,omitempty" doc:"Method passkey: what the browser's PublicKeyCredential.toJSON() gives"`
	RecoveryCode string         `json:"recoveryCode,omitempty" example:"MZXW-6YTB-OI4D-Q2LT-NFZX-I5DF" doc:"Method recovery: only when the last factor was disabled as a copy, to set up another one"`
}

type renewed struct {
	Token   string        `json:"token" doc:"The new session identifier, the value of the cookie JSESSIONID; the old one has ended" minLength:"43" maxLength:"43"`
	Session front.Session `json:"session"`
}

var docFinishStepUp = front.Doc{
	ID: "finishStepUp", Tag: "Sessions", Summary: "Prove the session again",
	WhilePaused: true,
	Description: "The session goes on with a new token and cookie; the old token ends on all nodes. Its absolute limit stays, and other sessions of the person gain nothing. A wrong answer is 422 and counts in the limit of the account, as a wrong password does. A challenge is good once, for 5 minutes and 5 tries.",
	Errors:      []doorward.Code{doorward.CodeChallengeOver, doorward.CodeTooManyAttempts},
}

func (a *api) finishStepUp(ctx context.Context, c *front.Call, in stepUpInput) (renewed, error) {
	answer, err := oneAnswer(in.Challenge, in.Password, factor.Answer{Code: in.Code, RecoveryCode: in.RecoveryCode, Passkey: in.Credential.Text()})
	if err != nil {
		return renewed{}, err
	}
	o, err := a.app.Login.StepUp(ctx, c.Caller, in.Challenge, login.Evidence{Password: in.Password, Answer: answer})
	if err != nil {
		return renewed{}, err
	}
	c.SetSession(o)
	return renewed{o.Token.Reveal(), front.ViewCurrentSession(o.Session, a.app.Sessions.Limits())}, nil
}

// withChallenge adds a challenge to an error that asks a person for a recent proof, so that
// the client can answer at once, unless the account has begun too many.
func (a *api) withChallenge(ctx context.Context, c *front.Call, err error) error {
	var e *doorward.Error
	if !errors.As(err, &e) || e.Code != doorward.CodeStepUpRequired || c.Caller.Kind != doorward.ByUser {
		return err
	}
	begun, fault := a.app.Login.OfferStepUp(ctx, c.Caller, e.Proof)
	if doorward.HasCode(fault, doorward.CodeTooManyAttempts) {
		return err // what needs the proof, such as removing a factor, has no limit itself
	}
	if fault != nil {
		return fault
	}
	withOffer := *e
	withOffer.Challenge = challengeForError(begun)
	return &withOffer
}
