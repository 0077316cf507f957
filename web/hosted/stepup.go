package hosted

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/web/ui"
)

// stepUp is the content of /step-up: by what the person can prove the session anew.
type stepUp struct{ ByCode, ByPassword bool }

func (h *hosted) showStepUp(_ context.Context, c *ui.Call) (ui.View, error) {
	p := c.Caller.Principal
	return ui.View{Page: "step-up", Returns: true, Body: stepUp{p.HasCode, !p.HasFactor}}, nil
}

// proveSession begins and finishes a step-up at once: without scripts there is nothing in
// between. It leads back, or says that the page before can be used again.
func (h *hosted) proveSession(ctx context.Context, c *ui.Call) (ui.View, error) {
	field := "password"
	if c.Caller.HasFactor {
		field = "code"
	}
	if err := required(c, field); err != nil {
		return ui.View{}, err
	}
	begun, err := h.app.Login.BeginStepUp(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	with := login.Evidence{Password: c.Value("password"), Answer: factor.Answer{Code: c.Value("code")}}
	if c.Caller.HasFactor {
		with.Password = ""
	}
	opened, err := h.app.Login.StepUp(ctx, c.Caller, begun.Token.Reveal(), with)
	if doorward.HasCode(err, doorward.CodeChallengeOver) { // the password has changed in between
		return c.WithReturnTo("/step-up"), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	c.Revoked(opened.Revocation)
	c.SetSession(opened.Token)
	if c.ReturnTo() == "" {
		return c.To("/step-up?done=proved"), nil
	}
	return c.Back(), nil
}
