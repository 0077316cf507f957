package api

import (
	"context"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

type loginInput struct {
	Email    string `json:"email" format:"email" example:"ann@acme.example" doc:"Address of the account"`
	Password string `json:"password" format:"password" example:"four quiet green llamas"`
	TenantID string `json:"tenantId,omitempty" example:"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae" doc:"Tenant to sign in to; without it the last used, or else the oldest"`
}

// signedIn is the answer that opens a session.
type signedIn struct {
	Token         string     `json:"token" doc:"The session identifier, the value of the cookie JSESSIONID; shown only here" minLength:"43" maxLength:"43"`
	ExpiresAt     time.Time  `json:"expiresAt" doc:"When the session ends even if it is used"`
	IdleExpiresAt time.Time  `json:"idleExpiresAt" doc:"When the session ends if it isn't used"`
	User          front.User `json:"user"`
	AAL           int        `json:"aal,omitempty" enum:"2" doc:"Assurance level of the session, after a second factor"`
}

var docLogin = front.Doc{
	ID: "login", Tag: "Sessions", Summary: "Sign in with a password",
	WhilePaused: true,
	Description: "Opens a session and sets the cookie `JSESSIONID`. All faults of the address or the password give the same 401. The 403 codes come only after a correct password.",
	Errors: []doorward.Code{
		doorward.CodeInvalidCredentials, doorward.CodeMembershipSuspended, doorward.CodeTenantFrozen,
		doorward.CodeTenantClosing, doorward.CodeTooManyAttempts, doorward.CodeMFARequired, doorward.CodeMFAEnrolmentRequired, doorward.CodeSSORequired, doorward.CodeGuestsRefused,
	},
}

func (a *api) login(ctx context.Context, c *front.Call, in loginInput) (signedIn, error) {
	if err := required(field{"/email", in.Email}, field{"/password", in.Password}); err != nil {
		return signedIn{}, err
	}
	outcome, err := a.app.Login.WithPassword(ctx, c.Caller, in.Email, in.Password, in.TenantID)
	if err != nil {
		return signedIn{}, err
	}
	return a.signIn(c, outcome)
}

// signIn answers with the outcome of a correct proof.
func (a *api) signIn(c *front.Call, outcome login.Outcome) (signedIn, error) {
	switch o := outcome.(type) {
	case login.SignedIn:
		if o.Device != nil {
			c.SetDevice(*o.Device, doorward.DeviceLife)
		}
		c.SetAllowance(o.Allowance)
		return a.open(c, o.Opened), nil
	case login.SecondNeeded:
		return signedIn{}, challengeError(doorward.CodeMFARequired, o.NewChallenge)
	case login.EnrolmentNeeded:
		return signedIn{}, challengeError(doorward.CodeMFAEnrolmentRequired, o.NewChallenge)
	}
	panic(fmt.Sprintf("api: no answer to the outcome %T", outcome))
}

// open answers with a new session and sets its cookie.
func (a *api) open(c *front.Call, o session.Opened) signedIn {
	c.SetSession(o)
	c.SetLogCaller(c.Caller.As(o.User))
	limits := a.app.Sessions.Limits()
	out := signedIn{
		Token: o.Token.Reveal(), ExpiresAt: o.Session.ExpiresAt(limits), IdleExpiresAt: o.Session.IdleExpiresAt(limits),
		User: front.ViewUser(o.User),
	}
	if o.Session.AAL > 1 {
		out.AAL = o.Session.AAL
	}
	return out
}

// challengeError is the error that asks for another proof.
func challengeError(code doorward.Code, b factor.NewChallenge) error {
	return &doorward.Error{Code: code, Challenge: challengeForError(b)}
}

// challengeForError is viewChallenge for an error, which contains the challenge as a member.
func challengeForError(b factor.NewChallenge) *doorward.Challenge {
	return &doorward.Challenge{Token: b.Token, Methods: b.Methods, ExpiresAt: b.ExpiresAt, PublicKey: b.PublicKey, ConnectionID: b.ConnectionID}
}

type secondInput struct {
	Challenge      string         `json:"challenge" doc:"From the answer with the code mfa_required"`
	Code           string         `json:"code,omitempty" example:"492039" doc:"From the authenticator app (method totp)"`
	Credential     front.WebAuthn `json:"credential,omitempty" doc:"Method passkey: what the browser's PublicKeyCredential.toJSON() gives for the options publicKey"`
	RecoveryCode   string         `json:"recoveryCode,omitempty" example:"MZXW-6YTB-OI4D-Q2LT-NFZX-I5DF" doc:"Method recovery; each is good once"`
	RememberDevice bool           `json:"rememberDevice,omitempty" doc:"Whether the browser, by its cookie doorward_device, stands in for the second factor for as long as the tenant allows"`
}

var docSecond = front.Doc{
	ID: "loginSecond", Tag: "Sessions", Summary: "Sign in with the second factor",
	WhilePaused: true,
	Description: "Completes a login, or a switch to another tenant, that was answered with `mfa_required`. One of `code`, `credential` and `recoveryCode` is needed. Wrong answers count in the limit of the account, as wrong passwords do. A challenge is good once, for 5 minutes and 5 tries.",
	Errors: []doorward.Code{
		doorward.CodeInvalidCode, doorward.CodeChallengeOver, doorward.CodeTooManyAttempts,
		doorward.CodeTenantFrozen, doorward.CodeTenantClosing, doorward.CodeSSORequired, doorward.CodeGuestsRefused,
	},
}

func (a *api) loginSecond(ctx context.Context, c *front.Call, in secondInput) (signedIn, error) {
	answer, err := oneAnswer(in.Challenge, "", factor.Answer{Code: in.Code, RecoveryCode: in.RecoveryCode, Passkey: in.Credential.Text()})
	if err != nil {
		return signedIn{}, err
	}
	outcome, err := a.app.Login.WithSecond(ctx, c.Caller, in.Challenge, answer, in.RememberDevice)
	if err != nil {
		return signedIn{}, err
	}
	return a.signIn(c, outcome)
}

// oneAnswer returns a if the request has a challenge and exactly one answer to it; a password
// counts as an answer. Errors: validation_failed.
func oneAnswer(challenge, password string, a factor.Answer) (factor.Answer, error) {
	given := 0
	for _, one := range []string{password, a.Code, a.RecoveryCode, string(a.Passkey)} {
		if one != "" {
			given++
		}
	}
	// The second text is empty if there is no answer at all; required then reports /code.
	if err := required(field{"/challenge", challenge}, field{"/code", password + a.Code + a.RecoveryCode + string(a.Passkey)}); err != nil {
		return a, err
	}
	if given > 1 {
		return a, doorward.Invalid("/code", "invalid", "Send one answer, by one of the methods.")
	}
	return a, nil
}

var docLogout = front.Doc{
	ID: "logout", Tag: "Sessions", Summary: "Sign out",
	WhilePaused: true,
	Description: "Ends the session of the cookie or of the bearer token, and clears the cookie. Without a session, or with an ended one, it is 204 too. Several different session tokens are all ended together. A body is not read. With an allowed `return` it is 303 to that address, for forms; any other is ignored.",
	Query:       []front.Parameter{{Name: "return", Description: "Where a browser goes next: an address below the base URL, or one that `--return-to` allows", Example: "https://app.example.com/bye"}},
}

func (a *api) logout(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	revocation, err := a.app.Sessions.End(ctx, c.Caller, c.AllSessions())
	c.SetRevocation(revocation)
	if err != nil {
		return front.None{}, err
	}
	c.ClearSession()
	asked := c.R.URL.Query().Get("return")
	to, ok := ui.ReturnAddress(c.Site(), asked)
	switch {
	case ok:
		c.RedirectTo(to)
	case asked != "":
		c.LogRefusedReturn(asked)
	}
	return front.None{}, nil
}
