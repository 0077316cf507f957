package api

import (
	"context"
	"fmt"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/web/front"
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
}

var docLogin = front.Doc{
	ID: "login", Tag: "Sessions", Summary: "Sign in with a password",
	Description: "Opens a session and sets the cookie `JSESSIONID`. All faults of the address or the password give the same 401. The 403 codes come only after a correct password.",
	Errors: []doorward.Code{
		doorward.CodeInvalidCredentials, doorward.CodeMembershipSuspended, doorward.CodeTenantFrozen,
		doorward.CodeTenantClosing, doorward.CodeTooManyAttempts,
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
		c.Limited(o.Allowance)
		return a.open(c, o.Opened), nil
	}
	panic(fmt.Sprintf("api: no answer to the outcome %T", outcome))
}

// open answers with a new session and sets its cookie.
func (a *api) open(c *front.Call, o session.Opened) signedIn {
	c.Revoked(o.Revocation)
	c.SetSession(o.Token)
	c.Known(c.Caller.As(o.User))
	limits := a.app.Sessions.Limits()
	return signedIn{
		Token: o.Token.Reveal(), ExpiresAt: o.Session.ExpiresAt(limits), IdleExpiresAt: o.Session.IdleExpiresAt(limits),
		User: front.ViewUser(o.User),
	}
}

var docLogout = front.Doc{
	ID: "logout", Tag: "Sessions", Summary: "Sign out",
	Description: "Ends the session of the cookie or of the bearer token, and clears the cookie. Without a session, or with an ended one, it is 204 too. Several different session tokens are all ended together. A body is not read.",
}

func (a *api) logout(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	revocation, err := a.app.Sessions.End(ctx, c.Caller, c.AllSessions())
	c.Revoked(revocation)
	if err != nil {
		return front.None{}, err
	}
	c.ClearSession()
	return front.None{}, nil
}
