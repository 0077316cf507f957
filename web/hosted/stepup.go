package hosted

import (
	"context"
	"net/url"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// stepUp is the content of /step-up: the ways in which the person can prove who they are. With BySSO, what
// the account has proves less than the tenant's sign-on, and the other way round.
type stepUp struct{ ByCode, ByPassword, ByPasskey, ByRecovery, BySSO bool }

// OwnsMore reports whether the account has something to prove beside the tenant's sign-on.
func (s stepUp) OwnsMore() bool { return s.ByCode || s.ByPassword || s.ByPasskey || s.ByRecovery }

func (h *hosted) showStepUp(ctx context.Context, c *ui.Call) (ui.View, error) {
	methods, err := h.app.Login.StepUpMethods(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	c.KeepOnly("return")
	can := func(method string) bool { return slices.Contains(methods, method) }
	v := ui.View{Page: "step-up", FormReturns: true, Body: stepUp{
		can(doorward.ByCode), can(doorward.ByPassword), can(doorward.ByPasskey), can(doorward.ByRecovery), can(doorward.BySSO),
	}}
	if can(doorward.ByPasskey) {
		v.Scripts, v.Connects = passkeyScripts, true
	}
	return v, nil
}

// proveSession finishes a step-up. With a passkey, the page's script has already got a
// challenge; otherwise proveSession makes one. It redirects to the return address; without
// one, the page says that the earlier page can be used again.
func (h *hosted) proveSession(ctx context.Context, c *ui.Call) (ui.View, error) {
	evidence := login.Evidence{Password: c.Value("password"), Answer: factor.Answer{Code: c.Value("code"), RecoveryCode: c.Value("recoveryCode")}}
	token := c.Value("challenge")
	if credential := c.Value("credential"); credential != "" {
		evidence = login.Evidence{Answer: factor.Answer{Passkey: []byte(credential)}}
	} else {
		methods, err := h.app.Login.StepUpMethods(ctx, c.Caller)
		if err != nil {
			return ui.View{}, err
		}
		with := c.Value("with")
		if with != doorward.BySSO {
			if err := requireFields(c, fieldFor(methods, with)); err != nil {
				return ui.View{}, err
			}
		}
		begun, err := h.app.Login.BeginStepUp(ctx, c.Caller)
		if err != nil {
			return ui.View{}, err
		}
		token = begun.Token.Reveal()
		if with == doorward.BySSO && begun.ConnectionID != "" {
			return toProvider(c, begun), nil
		}
	}
	if c.Caller.HasFactor && c.Caller.Issuer == doorward.OwnIssuer { // then the page has no field for a password, so no place for its error
		evidence.Password = ""
	}
	opened, err := h.app.Login.StepUp(ctx, c.Caller, token, evidence)
	if doorward.HasCode(err, doorward.CodeChallengeOver) { // expired or used up, or the password has since changed
		return c.RedirectKeepingReturn("/step-up"), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	c.SetSession(opened)
	if c.ReturnTo() == "" {
		return c.To("/step-up?done=proved"), nil
	}
	return c.Back(), nil
}

// toProvider redirects to the sign-in by the connection that answers the challenge, which leads back.
func toProvider(c *ui.Call, begun factor.NewChallenge) ui.View {
	to := front.StartURL(c.Site().BaseURL(), begun.ConnectionID, begun.Token.Reveal())
	if back := c.ReturnTo(); back != "" {
		to += "&" + url.Values{"return": {back}}.Encode()
	}
	return c.Redirect(to)
}

// fieldFor returns the name of the field that one of the methods needs, other than a passkey. with is that
// of the form, where the page has one for the factor and one for the password.
func fieldFor(methods []string, with string) string {
	hasFactor := slices.Contains(methods, doorward.ByCode) || slices.Contains(methods, doorward.ByRecovery)
	switch {
	case slices.Contains(methods, doorward.ByPassword) && (with == doorward.ByPassword || !hasFactor):
		return "password"
	case slices.Contains(methods, doorward.ByRecovery):
		return "recoveryCode"
	}
	return "code"
}
