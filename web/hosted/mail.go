package hosted

import (
	"context"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

func (h *hosted) showForgot(_ context.Context, c *ui.Call) (ui.View, error) {
	if email, ok := rememberedAddress(c); ok {
		c.Suggest("email", email)
	}
	return ui.View{Page: "forgot", KeepsReturn: true}, nil
}

// forgot reveals nothing: the next page is the same for every address.
func (h *hosted) forgot(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := h.app.Passwords.Forgot(ctx, c.Caller, c.Value("email"), c.ReturnTo()); err != nil {
		return ui.View{}, err
	}
	rememberAddress(c, c.Value("email"))
	return c.RedirectKeepingReturn("/forgot/sent"), nil
}

func (h *hosted) showSent(context.Context, *ui.Call) (ui.View, error) {
	return ui.View{Page: "sent", KeepsReturn: true}, nil
}

// codeForm is the form for the code of a mail. The script of the page takes it from the
// fragment of the link, which no browser sends and no server logs; without the
// script people paste it.
type codeForm struct {
	Action    string // path of the form
	KeyPrefix string // of the messages
	Label     string // key of the label of its field; with .hint that of the hint
	GoOn      string // path of a page that the browser has opened by a code before; empty: none
}

// codeScript is the script of the pages that a link in a mail may open.
var codeScript = []string{"code.js"}

// askCode returns the page that asks for the code of a mail. The name is its path, and begins
// the keys of its messages.
func askCode(name string) ui.View {
	return ui.View{Page: "code", Title: name + ".title", Scripts: codeScript, KeepsReturn: true, Body: codeForm{Action: "/" + name, KeyPrefix: name, Label: "field.token"}}
}

func (h *hosted) askResetCode(context.Context, *ui.Call) (ui.View, error) {
	return askCode("reset"), nil
}

// resetForm is the form for a new password.
type resetForm struct {
	Token, Email string
	MinLength    int
	BannedWords  string
}

// openReset shows the form for the new password, or why there is none.
func (h *hosted) openReset(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "token"); err != nil {
		return askCode("reset"), err
	}
	token := ui.PastedCode(c.Value("token"))
	email, words, err := h.app.Passwords.Show(ctx, token)
	if err != nil {
		return h.errorOrPage(c, err, h.refusedReset)
	}
	return ui.View{Page: "reset", Scripts: codeScript, KeepsReturn: true, Body: resetForm{token, email, h.app.PasswordRules.Load().MinLength, bannedWords(email, words...)}}, nil
}

// errorOrPage returns err, unless a form was already refused. Then its caller shows the form
// again and fails for the same reason as the form did, so errorOrPage returns the page instead.
// An error of the kind unavailable is always returned.
func (h *hosted) errorOrPage(c *ui.Call, err error, page func(context.Context, *ui.Call) (ui.View, error)) (ui.View, error) {
	if !c.WasRefused() || front.AsError(err).Kind() == doorward.KindUnavailable {
		return ui.View{}, err
	}
	return page(c.R.Context(), c)
}

// bannedWords returns the words that a password may not contain, for the hint
// that the page's script shows while it is typed.
func bannedWords(email string, words ...string) string {
	local, _, _ := strings.Cut(email, "@")
	return strings.Join(append(words, email, local), "\n")
}

// endedLink is the page for a link that is no longer valid, with one way to continue at most.
type endedLink struct {
	KeyPrefix string // of the messages
	Next      string // path of the button; empty for none
}

// Sign is that of what the link has led to: who is a member already can go on.
func (e endedLink) Sign() string {
	if e.KeyPrefix == "ended."+string(doorward.CodeAlreadyMember) {
		return ui.SignOpen
	}
	return ui.SignClosed
}

func (h *hosted) refusedReset(_ context.Context, c *ui.Call) (ui.View, error) {
	switch code := c.RefusalCode(); code {
	case doorward.CodeResetExpired, doorward.CodeResetUsed:
		return endedPage(code, "/forgot"), nil
	}
	return askCode("reset"), nil
}

func endedPage(code doorward.Code, next string) ui.View {
	key := "ended." + string(code)
	return ui.View{Page: "ended", Scripts: codeScript, Title: key + ".title", KeepsReturn: true, Body: endedLink{key, next}}
}

func (h *hosted) reset(ctx context.Context, c *ui.Call) (ui.View, error) {
	token := ui.PastedCode(c.Value("token"))
	email, _, err := h.app.Passwords.Show(ctx, token)
	if err != nil {
		return ui.View{}, err
	}
	revocation, err := h.app.Passwords.Reset(ctx, c.Caller, token, c.Value("password"), c.Value("confirmPassword"))
	c.SetRevocation(revocation)
	if err != nil {
		return ui.View{}, err
	}
	rememberAddress(c, email)
	c.ClearSession() // the reset has ended it, unless somebody else was signed in here
	return c.RedirectKeepingReturn("/login?done=reset"), nil
}
