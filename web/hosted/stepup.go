package hosted

import (
	"context"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/web/ui"
)

// stepUp is the content of /step-up: the ways in which the person can prove who they are.
type stepUp struct{ ByCode, ByPassword, ByPasskey, ByRecovery bool }

func (h *hosted) showStepUp(ctx context.Context, c *ui.Call) (ui.View, error) {
	methods, err := h.app.Login.StepUpMethods(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	c.KeepOnly("return")
	can := func(method string) bool { return slices.Contains(methods, method) }
	v := ui.View{Page: "step-up", FormReturns: true, Body: stepUp{
		can(doorward.ByCode), can(doorward.ByPassword), can(doorward.ByPasskey), can(doorward.ByRecovery),
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
		if err := requireFields(c, fieldFor(methods)); err != nil {
			return ui.View{}, err
		}
		begun, err := h.app.Login.BeginStepUp(ctx, c.Caller)
		if err != nil {
			return ui.View{}, err
		}
		token = begun.Token.Reveal()
	}
	if c.Caller.HasFactor { // then the page has no field for a password, so no place for its error
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

// fieldFor returns the name of the field that one of the methods needs, other than a passkey.
func fieldFor(methods []string) string {
	switch {
	case slices.Contains(methods, doorward.ByPassword):
		return "password"
	case slices.Contains(methods, doorward.ByRecovery):
		return "recoveryCode"
	}
	return "code"
}
