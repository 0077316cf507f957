package hosted

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

const erasePage = "/account/erase"

// erasing is the content of /account/erase.
type erasing struct {
	Email   string
	Tenants []doorward.User // memberships that end with the account
	// LastOwnerOf has the memberships in tenants without another active OWNER, which prevent
	// the erasure.
	LastOwnerOf []doorward.User
	Proved      bool // recently; else /step-up comes first
}

// At is the path of the page.
func (erasing) At() string { return accountPage + "/erase" }

// Cancel is the path of the page to go back to.
func (erasing) Cancel() string { return accountPage + "?tab=data" }

// showErase says what an erasure ends before anybody can ask for it.
func (h *hosted) showErase(ctx context.Context, c *ui.Call) (ui.View, error) {
	memberships, err := h.app.Users.Memberships(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	lastOwnerOf, err := h.app.Users.LastOwnerOf(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	proved, err := isProved(h.app.Access.Require(ctx, c.Caller, doorward.AccountErase, doorward.Object{Type: "user", ID: c.Caller.ID}))
	return ui.View{Page: "erase", Body: erasing{c.Caller.Email, memberships, lastOwnerOf, proved}}, err
}

// isProved reports whether the caller's proof of identity is recent enough, by the refusal of
// an action that needs one. It returns other refusals as errors.
func isProved(refusal error) (bool, error) {
	if doorward.HasCode(refusal, doorward.CodeStepUpRequired) {
		return false, nil
	}
	return refusal == nil, refusal
}

// erase redirects to the page if the proof has become too old: the page says how to go on.
func (h *hosted) erase(ctx context.Context, c *ui.Call) (ui.View, error) {
	erased, err := h.app.Users.Erase(ctx, c.Caller, c.Value("confirm"))
	if doorward.HasCode(err, doorward.CodeStepUpRequired) {
		return c.To(erasePage), nil
	}
	if err != nil {
		return ui.View{}, err
	}
	c.SetRevocation(erased.Revocation)
	c.ClearSession()
	for _, cookie := range []string{front.DeviceCookie, addressCookie} { // they are about the account
		c.SetCookie(cookie, "", 0)
	}
	h.forget(ctx, c, func(a remembered) bool { return a.Email == c.Caller.Email })
	return c.To("/login?done=erased"), nil
}
