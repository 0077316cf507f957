package hosted

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/doorward/doorward/internal/mailaddr"
	"github.com/doorward/doorward/web/ui"
)

// A browser remembers the addresses that people have asked it to, in a cookie: no table has them. The cookie is
// sealed, so that what reads cookies or logs of a proxy has no address; the login page shows them to whom has the
// browser.
const (
	accountsCookie = "doorward_accounts"
	accountsLife   = 90 * 24 * 60 * 60 // seconds, from the last time that one was remembered
	accountsPlace  = "value"           // in the cookie
	maxAccounts    = 5                 // with the longest addresses the cookie has about 2 KB, of the 4 KB that browsers take
)

// keepField is the field that asks to remember the address.
const keepField = "keep"

// remembered is an account that the browser remembers.
type remembered struct {
	ID        string `json:"id"` // random, for the forms of the page
	Email     string `json:"email"`
	ByPasskey bool   `json:"passkey,omitempty"` // that is how somebody signed in last
}

// rememberedAccounts returns the accounts that the browser remembers, the last one first. There are none when
// the cookie was made elsewhere, or while the database doesn't answer.
func (h *hosted) rememberedAccounts(ctx context.Context, c *ui.Call) (all []remembered) {
	isOurs, err := h.accounts.Open(ctx, accountsCookie, accountsPlace, c.Cookie(accountsCookie), &all)
	if err != nil || !isOurs {
		return nil
	}
	return all[:min(len(all), maxAccounts)]
}

// setAccounts has the browser remember the accounts. If it can't be done, nobody is kept from signing in: the
// browser then remembers what it did before.
func (h *hosted) setAccounts(ctx context.Context, c *ui.Call, all []remembered) {
	if len(all) == 0 {
		c.SetCookie(accountsCookie, "", 0)
		return
	}
	text, err := h.accounts.Seal(ctx, accountsCookie, accountsPlace, all[:min(len(all), maxAccounts)])
	if err != nil {
		return
	}
	c.SetCookie(accountsCookie, text, accountsLife)
}

// keepAccount remembers the address that signs in, or forgets it, as the form asks.
func (h *hosted) keepAccount(ctx context.Context, c *ui.Call) {
	email, err := mailaddr.Parse(c.Value("email"))
	if err != nil {
		return
	}
	if c.Value(keepField) == "" {
		h.forget(ctx, c, func(a remembered) bool { return a.Email == email })
		return
	}
	h.putFirst(ctx, c, remembered{ID: rand.Text(), Email: email})
}

// noteByPasskey notes, of an account that the browser remembers, that somebody has signed in by a passkey.
func (h *hosted) noteByPasskey(ctx context.Context, c *ui.Call, email string) {
	all := h.rememberedAccounts(ctx, c)
	if i := slices.IndexFunc(all, func(a remembered) bool { return a.Email == email }); i >= 0 {
		all[i].ByPasskey = true
		h.putFirst(ctx, c, all[i])
	}
}

func (h *hosted) putFirst(ctx context.Context, c *ui.Call, first remembered) {
	others := slices.DeleteFunc(h.rememberedAccounts(ctx, c), func(a remembered) bool { return a.Email == first.Email })
	h.setAccounts(ctx, c, append([]remembered{first}, others...))
}

// forget forgets the accounts that are so; it sets no cookie if there are none.
func (h *hosted) forget(ctx context.Context, c *ui.Call, is func(remembered) bool) {
	all := h.rememberedAccounts(ctx, c)
	if slices.ContainsFunc(all, is) {
		h.setAccounts(ctx, c, slices.DeleteFunc(all, is))
	}
}

// isRemembered reports whether the browser remembers the address of the form.
func (h *hosted) isRemembered(ctx context.Context, c *ui.Call) bool {
	email, err := mailaddr.Parse(c.Value("email"))
	return err == nil && slices.ContainsFunc(h.rememberedAccounts(ctx, c), func(a remembered) bool { return a.Email == email })
}

// chooseAccount goes on with a remembered account: to the sign-on that its organisation demands, or to the login
// with the address filled in.
func (h *hosted) chooseAccount(ctx context.Context, c *ui.Call) (ui.View, error) {
	all := h.rememberedAccounts(ctx, c)
	i := slices.IndexFunc(all, func(a remembered) bool { return a.ID == c.Value("account") })
	if i < 0 { // forgotten in another tab
		return c.RedirectKeepingReturn("/login"), nil
	}
	home, err := h.app.Demands.HomeOf(ctx, all[i].Email)
	if err != nil {
		return ui.View{}, err
	}
	if home.IsRequired {
		return c.SignOn(home.ConnectionID, all[i].Email), nil
	}
	c.Preset("email", all[i].Email)
	return h.loginWith(ctx, c, signingIn{Passkeys: true, Autofill: !all[i].ByPasskey, PasskeyFirst: all[i].ByPasskey, Chosen: true}), nil
}

// forgetAccount forgets one account, by the button beside it.
func (h *hosted) forgetAccount(ctx context.Context, c *ui.Call) (ui.View, error) {
	h.forget(ctx, c, func(a remembered) bool { return a.ID == c.Value("account") })
	return c.RedirectKeepingReturn("/login?done=address-forgotten"), nil
}
