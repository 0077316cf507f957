package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/signoff"
	"github.com/doorward/doorward/web/front"
)

// signOffRoutes are those by which a tenant's own provider ends sessions.
func (a *api) signOffRoutes() []front.Route {
	return []front.Route{
		front.On("POST /api/v2/auth/sso/{con}/revoke", front.Public(), front.JSON(http.StatusNoContent, a.revokeByProvider).AmendErrors(a.misreadRevocation), docRevokeByProvider).CallsOut(),
		front.On("POST /api/v2/auth/sso/{con}/backchannel-logout", front.Public(), front.Form(http.StatusOK, maxLogoutForm, logoutFields, a.logOutByProvider), docLogOutByProvider).CallsOut(),
	}
}

type revokedSubject struct {
	Format string `json:"format" enum:"iss_sub,email" example:"iss_sub"`
	Iss    string `json:"iss,omitempty" example:"https://acme.okta.example" doc:"With iss_sub: the connection's issuer"`
	Sub    string `json:"sub,omitempty" example:"00u1a2b3c4" doc:"With iss_sub: the person at the provider"`
	Email  string `json:"email,omitempty" example:"ann@acme.example" doc:"With email: the person's address here"`
}

type revokeByProviderInput struct {
	SubID   *revokedSubject `json:"sub_id,omitempty" doc:"Whom it means (RFC 9493)"`
	Subject *revokedSubject `json:"subject,omitempty" doc:"The same under the name that earlier drafts have, where sub_id is absent"`
}

var docRevokeByProvider = front.Doc{
	ID: "revokeByProvider", Tag: "Sign-on", Summary: "End a person's sessions, by the tenant's own provider",
	Description: "Global Token Revocation (draft-parecki-oauth-global-token-revocation), for the provider of a connection, which sends a JWT of its own as the bearer: `aud` this address, `iss`, `iat`, `exp` at most 5 minutes later, a `jti`, once, and as `typ` global-token-revocation+jwt or none. 204 when nothing of the person that the connection has vouched for is accepted on any node, nor anything else that the connection's `ends` and `endsKeys` name; a member who never came by the connection is 204, too. 404 for nobody of the tenant. After 503 the same token is good again; after success the same request again is answered alike, and ends nothing more. 60 refused or repeated requests a minute and client address, then 429; good ones go on.",
	WhilePaused: true,
	Errors:      []doorward.Code{doorward.CodeUnauthenticated, doorward.CodeNotFound, doorward.CodeTooManyAttempts, doorward.CodeProviderUnavailable},
}

func (a *api) revokeByProvider(ctx context.Context, c *front.Call, in revokeByProviderInput) (front.None, error) {
	id, err := c.ID("con", doorward.PrefixConnection)
	if err != nil {
		return front.None{}, err
	}
	sent, pointer := in.SubID, "/sub_id"
	if sent == nil && in.Subject != nil {
		sent, pointer = in.Subject, "/subject"
	}
	var who signoff.Subject
	if sent != nil {
		who = signoff.Subject{Format: sent.Format, Issuer: sent.Iss, Subject: sent.Sub, Email: sent.Email}
	}
	revocation, err := a.app.SignOff.Revoke(ctx, c.Caller, id, c.Bearer(), pointer, who)
	c.SetRevocation(revocation)
	return front.None{}, err
}

// misreadRevocation puts a body that isn't understood into the protocol of the connection, if the token is good. The answer
// stays the same, unless the limit on refused requests is reached.
func (a *api) misreadRevocation(ctx context.Context, c *front.Call, err error) error {
	e := front.AsError(err)
	switch e.Code {
	case doorward.CodeInvalidBody, doorward.CodeValidationFailed, doorward.CodeBodyTooLarge, doorward.CodeUnsupportedMediaType:
	default:
		return err
	}
	id, wrong := c.ID("con", doorward.PrefixConnection)
	if wrong != nil || c.Bearer() == "" {
		return err
	}
	seen := []string{string(e.Code)}
	for _, f := range e.Fields {
		seen = append(seen, strings.TrimSpace(f.Pointer+" "+f.Code))
	}
	refused := a.app.SignOff.Misread(ctx, c.Caller, id, c.Bearer(), strings.Join(seen, ", "))
	if doorward.HasCode(refused, doorward.CodeTooManyAttempts) {
		return refused
	}
	return err
}

// maxLogoutForm bounds a form with a logout token, in bytes.
const maxLogoutForm = 64 << 10

const logoutToken = "logout_token"

var logoutFields = []front.Parameter{{Name: logoutToken, Description: "The logout token of the provider"}}

var docLogOutByProvider = front.Doc{
	ID: "logOutByProvider", Tag: "Sign-on", Summary: "End sessions after a logout at the tenant's own provider",
	Description: "OpenID Connect Back-Channel Logout 1.0, for the provider of a connection: a logout token is checked as an ID token is, with the event of a logout, a `jti`, once, and without a `nonce`. Its `sid` ends the sessions that were opened by that session at the provider, and without one its `sub` all of the person's; of this connection alone. 200 when they have ended on every node, also if nobody is found. After 503 the same token is good again; after success the same request again is answered alike, and ends nothing more. 60 refused or repeated requests a minute and client address, then 429; good ones go on.",
	WhilePaused: true,
	Errors:      []doorward.Code{doorward.CodeNotFound, doorward.CodeTooManyAttempts, doorward.CodeProviderUnavailable},
}

func (a *api) logOutByProvider(ctx context.Context, c *front.Call, form url.Values) error {
	id, err := c.ID("con", doorward.PrefixConnection)
	if err != nil {
		return err
	}
	var token string
	if sent := form[logoutToken]; len(sent) == 1 {
		token = sent[0]
	}
	revocation, err := a.app.SignOff.Logout(ctx, c.Caller, id, token)
	c.SetRevocation(revocation)
	var refused *doorward.Error
	if errors.As(err, &refused) && refused.Code == doorward.CodeSignOnRefused {
		return &front.InvalidRequest{Description: "The logout token was refused by the check " + refused.Check + ". The protocol of the connection says more.", Err: err}
	}
	return err
}
