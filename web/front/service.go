package front

import (
	"context"
	"net/http"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/decide"
)

// TenantHeader names the tenant in which a service key acts. It has no effect on other
// credentials.
const TenantHeader = "Doorward-Tenant"

// admitService is Admit for a service key. Errors: forbidden, not_for_keys,
// tenant_required, not_found for a tenant that the key doesn't cover, tenant_frozen,
// tenant_closing, unavailable.
func (g Guard) admitService(ctx context.Context, s *Site, by doorward.Caller, r *http.Request) (doorward.Caller, error) {
	if g.acrossTenants != "" && by.Service.Has(g.acrossTenants) && len(r.Header.Values(TenantHeader)) == 0 {
		return by, nil
	}
	if d := g.decideService(&by.Principal); !d.Allowed {
		return by, s.refuseEntry(ctx, by, r, d.Refusal())
	}
	if g.name == operator {
		return by, nil
	}
	tenants := r.Header.Values(TenantHeader)
	if g.openToInstallation && len(tenants) == 0 && by.Service.Covers("") { // the key isn't limited to tenants
		return by, s.App.Access.Require(ctx, by, g.action, by.Tenant())
	}
	if len(tenants) != 1 || tenants[0] == "" {
		return by, doorward.Fail(doorward.CodeTenantRequired, "")
	}
	if !IsID(tenants[0], doorward.PrefixTenant) {
		return by, doorward.Fail(doorward.CodeNotFound, "")
	}
	by, err := s.App.Keys.InTenant(ctx, by, tenants[0])
	if err != nil {
		return by, err
	}
	return by, s.App.Access.Require(ctx, by, g.action, by.Tenant())
}

// decideService is decideEntry for a service key, before the tenant is read in which it acts.
func (g Guard) decideService(p *doorward.Principal) decide.Decision {
	if need := g.Service(); g.name != operator && need != "" {
		return decide.Enter(p, decide.Route{Credential: decide.OfService, Actions: []doorward.Action{need}})
	}
	return g.decideEntry(p)
}
