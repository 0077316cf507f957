package console

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/web/ui"
)

// rotateKey shows the new secret. Sent twice, as when the page is loaded again, it is
// refused: a second rotation would end the secret that is still in use.
func (h *console) rotateKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	k, err := h.keyOf(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	if err := doorward.CheckVersion(k.Hint, []string{c.Value("hint")}); err != nil {
		return ui.View{}, err
	}
	grace, faults := optionalNumber(c, "graceHours", nil)
	if len(faults) > 0 {
		return ui.View{}, doorward.InvalidFields(faults...)
	}
	r, err := h.app.APIKeys.Rotate(ctx, c.Caller, k.ID, grace)
	if err != nil {
		return ui.View{}, err
	}
	c.SetRevocation(r.Revocation)
	return h.showSecret(ctx, c, r.Key, r.Secret.Reveal(), rotatedSecret)
}

func (h *console) endPreviousSecret(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixKey)
	if err != nil {
		return ui.View{}, err
	}
	revocation, err := h.app.APIKeys.EndPrevious(ctx, c.Caller, id)
	c.SetRevocation(revocation)
	return redirectDone(c, "/console/keys/"+id, "previous", nil), err
}

// keyAction is an action on a key that is confirmed first.
type keyAction struct {
	danger bool
	do     func(ctx context.Context, h *console, c *ui.Call, id string) (doorward.Revocation, error)
}

// keyActions are keyed by the last part of their path.
var keyActions = map[string]keyAction{
	"disable": {danger: true, do: setKeyStatus(doorward.APIKeyDisabled)},
	"enable":  {do: setKeyStatus(doorward.APIKeyActive)},
	"revoke": {danger: true, do: func(ctx context.Context, h *console, c *ui.Call, id string) (doorward.Revocation, error) {
		return h.app.APIKeys.Revoke(ctx, c.Caller, id)
	}},
}

func setKeyStatus(status doorward.APIKeyStatus) func(context.Context, *console, *ui.Call, string) (doorward.Revocation, error) {
	return func(ctx context.Context, h *console, c *ui.Call, id string) (doorward.Revocation, error) {
		to := string(status)
		_, revocation, err := h.app.APIKeys.Edit(ctx, c.Caller, id, apikey.Edit{Status: &to})
		return revocation, err
	}
}

// keyQuestion is the page that asks to confirm an action on a key.
type keyQuestion struct {
	pageData
	Key    apiKey
	Act    string
	Danger bool
}

func (h *console) askKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	name := c.R.PathValue("act")
	act, ok := keyActions[name]
	if !ok {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	k, err := h.keyOf(ctx, c)
	return ui.View{Page: "keyact", Title: "keys." + name + ".title", Body: keyQuestion{s, k, name, act.danger}}, err
}

func (h *console) actOnKey(ctx context.Context, c *ui.Call) (ui.View, error) {
	name := c.R.PathValue("act")
	act, ok := keyActions[name]
	if !ok {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	id, err := c.ID("id", doorward.PrefixKey)
	if err != nil {
		return ui.View{}, err
	}
	revocation, err := act.do(ctx, h, c, id)
	c.SetRevocation(revocation)
	return redirectDone(c, "/console/keys/"+id, "key-"+name, nil), err
}
