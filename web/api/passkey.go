package api

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/web/front"
)

var docBeginPasskeyLogin = front.Doc{
	ID: "beginPasskeyLogin", Tag: "Sessions", Summary: "Begin to sign in with a passkey alone",
	WhilePaused: true,
	Description: "The challenge belongs to no account: the passkey names the account. It is good once, for 5 minutes and 5 tries. Pass `publicKey` to `navigator.credentials.get`, with `mediation: \"conditional\"` for the autofill of an address field. A client network may begin 1,000 in 10 minutes, an IPv6 /48 10,000.",
	Errors:      []doorward.Code{doorward.CodePasskeysUnavailable, doorward.CodeTooManyAttempts},
}

func (a *api) beginPasskeyLogin(ctx context.Context, c *front.Call, _ front.None) (challengeView, error) {
	begun, err := a.app.Login.BeginPasskey(ctx, c.Caller)
	if err != nil {
		return challengeView{}, err
	}
	return viewChallenge(c, begun), nil
}

type passkeyLoginInput struct {
	Challenge  string         `json:"challenge" doc:"From the answer of passkey/begin"`
	Credential front.WebAuthn `json:"credential" doc:"What the browser's PublicKeyCredential.toJSON() gives"`
	TenantID   string         `json:"tenantId,omitempty" example:"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae" doc:"Tenant to sign in to; without it the last used, or else the oldest"`
}

var docFinishPasskeyLogin = front.Doc{
	ID: "finishPasskeyLogin", Tag: "Sessions", Summary: "Sign in with a passkey alone",
	WhilePaused: true,
	Description: "Opens a session of assurance level 2, as a login does with a password and a second factor: the passkey must have verified its user. Everything that is wrong with the answer is 401 `invalid_code`, which counts in the limit of the client network. A passkey whose signature counter has not increased is disabled, and its person gets a mail.",
	Errors: []doorward.Code{
		doorward.CodeInvalidCode, doorward.CodeChallengeOver, doorward.CodeTooManyAttempts, doorward.CodeInvalidCredentials,
		doorward.CodeMembershipSuspended, doorward.CodeTenantFrozen, doorward.CodeTenantClosing, doorward.CodeSSORequired, doorward.CodeManagedAccount, doorward.CodeGuestsRefused,
	},
}

func (a *api) finishPasskeyLogin(ctx context.Context, c *front.Call, in passkeyLoginInput) (signedIn, error) {
	if err := required(field{"/challenge", in.Challenge}, field{"/credential", string(in.Credential.Text())}); err != nil {
		return signedIn{}, err
	}
	outcome, err := a.app.Login.WithPasskey(ctx, c.Caller, in.Challenge, in.Credential.Text(), in.TenantID)
	if err != nil {
		return signedIn{}, err
	}
	return a.signIn(c, outcome)
}

type beginPasskeyInput struct {
	Challenge string `json:"challenge,omitempty" doc:"From the answer with the code mfa_enrolment_required, instead of a session"`
}

// OptionalBody implements front.OptionalBody: with a session no member is needed.
func (beginPasskeyInput) OptionalBody() {}

var docBeginPasskey = front.Doc{
	ID: "beginPasskey", Tag: "Second factors", Summary: "Begin to set up a passkey",
	Description: "Pass `publicKey` to `navigator.credentials.create`. Authenticators that have a passkey of the account make no second one. If the request had an enrolment's challenge, send the same one to finish.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired, doorward.CodeUnauthenticated, doorward.CodeChallengeOver, doorward.CodePasskeysUnavailable, doorward.CodeTooManyFactors, doorward.CodeTooManyAttempts},
}

func (a *api) beginPasskey(ctx context.Context, c *front.Call, in beginPasskeyInput) (challengeView, error) {
	begin := func() (factor.NewChallenge, error) { return a.app.Factors.BeginPasskeyWithChallenge(ctx, in.Challenge) }
	if in.Challenge == "" {
		if err := requireSession(c); err != nil {
			return challengeView{}, err
		}
		begin = func() (factor.NewChallenge, error) { return a.app.Factors.BeginPasskey(ctx, c.Caller) }
	}
	begun, err := begin()
	if err != nil {
		return challengeView{}, err
	}
	return viewChallenge(c, begun), nil
}

type finishPasskeyInput struct {
	Challenge  string         `json:"challenge" doc:"From the answer of factors/passkey/begin, or from that with the code mfa_enrolment_required"`
	Credential front.WebAuthn `json:"credential" doc:"What the browser's PublicKeyCredential.toJSON() gives"`
	Name       string         `json:"name,omitempty" example:"Phone" doc:"At most 100 characters; without it that of the authenticator or the browser"`
}

var docFinishPasskey = front.Doc{
	ID: "finishPasskey", Tag: "Second factors", Summary: "Set up a passkey",
	Description: "The passkey signs in alone and is a second factor from now on, and the session of the request goes on at assurance level 2, with a new token and cookie; the old token ends on all nodes. The first factor makes ten recovery codes. Remembered browsers are asked for a second factor again, and the person gets a mail. With the challenge of an enrolment, the login is complete: the answer has the members of a login, too. A wrong answer is 422 with a session, and 401 `invalid_code` with the challenge of an enrolment.",
	Errors: []doorward.Code{
		doorward.CodeUnauthenticated, doorward.CodeInvalidCode, doorward.CodeChallengeOver, doorward.CodeTooManyAttempts,
		doorward.CodePasskeysUnavailable, doorward.CodeSSORequired, doorward.CodeGuestsRefused, doorward.CodeTenantFrozen, doorward.CodeTenantClosing,
	},
}

func (a *api) finishPasskey(ctx context.Context, c *front.Call, in finishPasskeyInput) (confirmed, error) {
	if in.Challenge == "" {
		if err := requireSession(c); err != nil {
			return confirmed{}, err
		}
	}
	if err := required(field{"/challenge", in.Challenge}, field{"/credential", string(in.Credential.Text())}); err != nil {
		return confirmed{}, err
	}
	// With a session, the challenge may be that session's own or that of an enrolment at a login.
	if c.Caller.Kind == doorward.ByUser {
		done, err := a.app.Factors.ConfirmPasskey(ctx, c.Caller, in.Challenge, in.Credential.Text(), in.Name)
		if err == nil {
			return a.raised(c, done), nil
		}
		if !doorward.HasCode(err, doorward.CodeChallengeOver) {
			return confirmed{}, err
		}
	}
	outcome, done, err := a.app.Login.WithFirstPasskey(ctx, c.Caller, in.Challenge, in.Credential.Text(), in.Name)
	if err != nil {
		return confirmed{}, err
	}
	return a.completeLogin(c, outcome, done)
}
