package console

import (
	"cmp"
	"context"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/web/ui"
)

// effectiveAccent is the accent of the tenant's pages, the initial value of the colour
// picker, which can't be empty.
func effectiveAccent(c *ui.Call, t doorward.Tenant) string {
	return cmp.Or(t.Brand.Accent, c.Site().Brand().Accent, doorward.DefaultAccent)
}

// setAccent takes the colour from the picker if only that was changed, or else from the text
// field: without scripts the two aren't synchronised.
func (h *console) setAccent(ctx context.Context, c *ui.Call) (ui.View, error) {
	before, err := h.app.Tenants.Get(ctx, c.Caller.TenantID)
	if err != nil {
		return ui.View{}, err
	}
	accent := strings.TrimSpace(c.Value("accent"))
	if pick := c.Value("picked"); accent == before.Brand.Accent && pick != "" && pick != effectiveAccent(c, before) {
		accent = pick
	}
	if ui.IsColour("#" + accent) {
		accent = "#" + accent
	}
	edited, err := h.app.Tenants.Edit(ctx, c.Caller, tenant.Edit{Settings: map[string]any{doorward.SettingAccent: accent}, Versions: version(c)})
	c.SetRevocation(edited.Revocation)
	return redirectDone(c, settingsPath, "accent", nil), err
}

func (h *console) setLogo(ctx context.Context, c *ui.Call) (ui.View, error) {
	if len(c.File()) == 0 {
		return ui.View{}, doorward.Invalid("/logo", "required", "Choose a file.")
	}
	_, err := h.app.Tenants.SetLogo(ctx, c.Caller, c.File(), version(c))
	return redirectDone(c, settingsPath, "logo", nil), err
}

func (h *console) removeLogo(ctx context.Context, c *ui.Call) (ui.View, error) {
	return redirectDone(c, settingsPath, "logo-remove", nil), h.app.Tenants.RemoveLogo(ctx, c.Caller, version(c))
}
