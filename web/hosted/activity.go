package hosted

import (
	"context"
	"strings"

	"github.com/doorward/doorward"
	accounts "github.com/doorward/doorward/app/account"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/web/ui"
)

// security is the content of the page of one's own security: what one signs in with, from
// where, and what happened last.
type security struct {
	factor.OwnFactors
	ownSessions
	Recent        []recentEvent
	CanAddPasskey bool // the address of the installation allows passkeys
}

// Names returns the names of the memberships' tenants.
func (security) Names(memberships []doorward.User) string {
	names := make([]string, len(memberships))
	for i, m := range memberships {
		names[i] = m.TenantName
	}
	return strings.Join(names, ", ")
}

// recentEvent is an event, and the key of the message that describes it.
type recentEvent struct {
	accounts.Recent
	Key string
}

// loadSecurity returns the content of the page, without CanAddPasskey.
func (h *hosted) loadSecurity(ctx context.Context, c *ui.Call, own factor.OwnFactors) (security, error) {
	memberships, err := h.app.Users.Memberships(ctx, c.Caller)
	if err != nil {
		return security{}, err
	}
	sessions, err := h.sessions(ctx, c, memberships, securityPage)
	if err != nil {
		return security{}, err
	}
	recent, err := h.app.Accounts.Recent(ctx, c.Caller)
	return security{OwnFactors: own, ownSessions: sessions, Recent: describeAll(recent)}, err
}

func describeAll(recent []accounts.Recent) (all []recentEvent) {
	for _, r := range recent {
		key := "recent." + string(r.Action)
		if r.Variant != "" {
			key += "." + r.Variant
		}
		all = append(all, recentEvent{r, key})
	}
	return all
}

func (h *hosted) endSecuritySession(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.endSessionAt(ctx, c, securityPage)
}

func (h *hosted) endSecurityOthers(ctx context.Context, c *ui.Call) (ui.View, error) {
	return h.endOthersAt(ctx, c, securityPage)
}

func (h *hosted) forgetBrowser(ctx context.Context, c *ui.Call) (ui.View, error) {
	if err := requireFields(c, "id"); err != nil { // an empty id would forget all browsers
		return ui.View{}, err
	}
	return afterForget(c, h.app.Factors.ForgetBrowser(ctx, c.Caller, c.Value("id")))
}

func (h *hosted) forgetBrowsers(ctx context.Context, c *ui.Call) (ui.View, error) {
	return afterForget(c, h.app.Factors.ForgetBrowser(ctx, c.Caller, ""))
}

// afterForget redirects after browsers were forgotten, also if that has happened before.
func afterForget(c *ui.Call, err error) (ui.View, error) {
	if err != nil && !doorward.HasCode(err, doorward.CodeNotFound) {
		return ui.View{}, err
	}
	return c.To(securityPage + "?done=forgotten"), nil
}
