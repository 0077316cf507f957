package hosted

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// closing is a tenant between its closing and its destruction.
type closing struct {
	Tenant    doorward.Tenant
	Until     time.Time // its destruction
	Elsewhere bool      // the person is in other tenants, too
}

// showClosing is for the OWNERs, who alone can sign in to a tenant that is being closed.
func (h *hosted) showClosing(ctx context.Context, c *ui.Call) (ui.View, error) {
	t, err := h.app.Tenants.Get(ctx, c.Caller.TenantID)
	if err != nil {
		return ui.View{}, err
	}
	if t.Status != doorward.TenantClosing {
		return c.To(accountPage), nil
	}
	memberships, err := h.app.Users.Memberships(ctx, c.Caller)
	return ui.View{Page: "closing", Tenant: t, Body: closing{t, h.app.Tenants.DestroyedAt(t), len(usableMemberships(memberships)) > 1}}, err
}

func (h *hosted) restore(ctx context.Context, c *ui.Call) (ui.View, error) {
	restored, err := h.app.Tenants.Restore(ctx, c.Caller)
	if err != nil {
		return ui.View{}, err
	}
	c.SetRevocation(restored.Revocation)
	return c.To("/account?done=restored"), nil
}
