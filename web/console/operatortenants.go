package console

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/web/ui"
)

// operatorTenantFilters are the filters of the list of tenants.
var operatorTenantFilters = []string{"q", "status", "sort"}

// operatorTenantSorting is how the list can be sorted.
var operatorTenantSorting = sorting{[]column{{"name", "field.name", "text"}, {"createdAt", "operator.created", "time"}}, "createdAt"}

// tenantStatuses lists the statuses.
var tenantStatuses = []doorward.TenantStatus{doorward.TenantActive, doorward.TenantFrozen, doorward.TenantClosing}

// operatorTenants is the list of tenants.
type operatorTenants struct {
	opened
	pager
	Statuses []doorward.TenantStatus
	Items    []usedTenant
}

// Folded counts the filters in use that are folded.
func (t operatorTenants) Folded() int { return t.Filter.Count("status") }

// usedTenant is a tenant with what it has of its quotas.
type usedTenant struct {
	doorward.Tenant
	Use tenant.Use
}

// usage is how much of a quota is used.
type usage struct {
	Name     doorward.Quota
	Used     int64
	Most     *int64 // nil: no quota
	IsCapped bool   // there may be more than Used
}

// Width is the part that is used, of usageWidth, and not more; at least 2 if something is.
func (u usage) Width() int64 {
	switch {
	case u.Most == nil || u.Used == 0:
		return 0
	case u.Used >= *u.Most:
		return usageWidth
	}
	return max(2, u.Used*usageWidth / *u.Most)
}

// usageWidth is the width of the bar of a full quota.
const usageWidth = 100

// IsNear reports whether nine tenths or more of the quota are used, IsFull whether all of it is.
func (u usage) IsNear() bool { return u.Most != nil && isNear(u.Used, *u.Most) }

// isNear reports whether nine tenths or more of what a quota allows are used. Neither is multiplied: an operator may have
// set the greatest number there is.
func isNear(used, most int64) bool { return used >= most-most/10 }

// IsFull reports whether no more of it is allowed.
func (u usage) IsFull() bool { return u.Most != nil && u.Used >= *u.Most }

// Usage returns the usage of the quota with the name.
func (t usedTenant) Usage(name doorward.Quota) usage {
	isPart := name == doorward.QuotaPeople || name == doorward.QuotaAPIKeys
	return usage{name, t.Use.Of(name), *t.Quotas.At(name), t.Use.IsCapped && isPart && t.Use.Of(name) >= doorward.MaxTotal}
}

// People is the usage of the quota of people.
func (t usedTenant) People() usage { return t.Usage(doorward.QuotaPeople) }

// All returns the usage of all quotas.
func (t usedTenant) All() (all []usage) {
	for _, name := range doorward.QuotaNames {
		all = append(all, t.Usage(name))
	}
	return all
}

// Fullest returns the usage of the other quota than that of people of which the largest part is used; nil without one.
func (t usedTenant) Fullest() *usage {
	others := slices.DeleteFunc(t.All(), func(u usage) bool { return u.Most == nil || u.Name == doorward.QuotaPeople })
	if len(others) == 0 {
		return nil
	}
	fullest := slices.MaxFunc(others, func(a, b usage) int { return int(a.Width() - b.Width()) })
	return &fullest
}

func (h *console) operatorTenants(ctx context.Context, c *ui.Call, o opened) (ui.View, error) {
	pages, window, err := readWindow(ctx, c, operatorTenantFilters, operatorTenantSorting)
	if err != nil {
		return ui.View{}, err
	}
	body := operatorTenants{opened: o, pager: pages, Statuses: tenantStatuses}
	found, err := h.app.Tenants.List(ctx, o.By, tenant.Filter{Text: pages.Filter.Get("q"), Status: pages.Filter.Get("status")}, window)
	body.Total = found.Total
	if err == nil {
		body.Items, err = h.usedTenants(ctx, found.Items)
	}
	if err == nil {
		err = body.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	}
	return badFilter(ui.View{Page: "operator", Body: body}, err)
}

// usedTenants adds to each tenant what it has.
func (h *console) usedTenants(ctx context.Context, found []doorward.Tenant) (all []usedTenant, err error) {
	uses, err := h.app.Tenants.Uses(ctx, found)
	for i, u := range uses {
		all = append(all, usedTenant{found[i], u})
	}
	return all, err
}

// operatorTenant is the page of a tenant.
type operatorTenant struct {
	opened
	usedTenant
	// DestroyedAt is when the data of a closed tenant is destroyed; the zero Time for others.
	DestroyedAt time.Time
}

// ActsNow returns the acts of the link that the status of the tenant allows.
func (t operatorTenant) ActsNow() []string { return t.fitting(t.Acts) }

// ActsLacked returns the acts that its status allows and the link doesn't have.
func (t operatorTenant) ActsLacked() []string {
	return t.fitting(slices.DeleteFunc(installation.PageActs(), t.May))
}

// fitting returns the acts that would change the tenant.
func (t operatorTenant) fitting(acts []string) []string {
	return slices.DeleteFunc(slices.Clone(acts), func(act string) bool { return !fitsStatus(act, t.Tenant) })
}

// fitsStatus reports whether the act changes a tenant that has this status. Freezing and closing are independent.
func fitsStatus(act string, t doorward.Tenant) bool {
	switch act {
	case "freeze":
		return t.Status != doorward.TenantFrozen
	case "thaw":
		return t.Status == doorward.TenantFrozen
	}
	return t.ClosedAt == nil
}

// Tags are what the head of the page says.
func (t operatorTenant) Tags() ui.Tags {
	tags := ui.Tags{State: "status." + string(t.Status), About: t.ID}
	if t.Status == doorward.TenantFrozen && t.ClosedAt != nil {
		tags.Kinds = []string{"operator.alsoClosing"}
	}
	return tags
}

// readOperatorTenant reads the tenant of the path. Errors: not_found.
func (h *console) readOperatorTenant(ctx context.Context, c *ui.Call, o opened) (t operatorTenant, err error) {
	t.opened = o
	id, err := c.ID("id", doorward.PrefixTenant)
	if err == nil {
		t.Tenant, err = h.app.Tenants.Find(ctx, o.By, id)
	}
	if err == nil && t.ClosedAt != nil {
		t.DestroyedAt = h.app.Tenants.DestroyedAt(t.Tenant)
	}
	return t, err
}

func (h *console) operatorTenant(ctx context.Context, c *ui.Call, o opened) (ui.View, error) {
	body, err := h.readOperatorTenant(ctx, c, o)
	if err != nil {
		return ui.View{}, err
	}
	used, err := h.usedTenants(ctx, []doorward.Tenant{body.Tenant})
	if err == nil {
		body.usedTenant = used[0]
	}
	return ui.View{Page: "operatortenant", Body: body}, err
}

// operatorAct is the page that asks to confirm an act.
type operatorAct struct {
	operatorTenant
	Act      string
	Sessions int // that end
	DaysLeft int // until the data is destroyed, if the tenant is closed now
}

// IsGrave reports whether the act shuts people out.
func (a operatorAct) IsGrave() bool { return a.Act != "thaw" }

// askOperatorAct asks to type the name of the tenant. Errors: not_found; forbidden if the link doesn't have the act.
func (h *console) askOperatorAct(ctx context.Context, c *ui.Call, o opened) (ui.View, error) {
	body := operatorAct{Act: c.R.PathValue("act")}
	action, known := installation.ActionOf(body.Act)
	if !known {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	t, err := h.readOperatorTenant(ctx, c, o)
	if err != nil {
		return ui.View{}, err
	}
	body.operatorTenant = t
	if err := h.app.Access.Require(ctx, o.By, action, doorward.Object{Type: "tenant", ID: t.ID, TenantID: t.ID}); err != nil {
		return ui.View{}, err
	}
	if !fitsStatus(body.Act, t.Tenant) {
		return redirectDone(c, operatorTenantsPath+"/"+t.ID, "operator.unchanged", nil), nil
	}
	sessions, err := h.app.Tenants.CountSessions(ctx, t.ID)
	body.Sessions = int(sessions)
	if now := c.Now(); body.Act == "close" {
		t.Tenant.ClosedAt, t.Tenant.DestroyAt = &now, nil
		body.DestroyedAt = h.app.Tenants.DestroyedAt(t.Tenant)
		body.DaysLeft = int(body.DestroyedAt.Sub(now).Hours()+12) / 24 // rounded to days
	}
	return ui.View{Page: "operatoract", Title: "operator." + body.Act + ".title", Body: body}, err
}

// operatorAct does what was confirmed, and says on the page of the tenant what has ended.
func (h *console) operatorAct(ctx context.Context, c *ui.Call, o opened) (ui.View, error) {
	act := c.R.PathValue("act")
	action, known := installation.ActionOf(act)
	if !known {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	id, err := c.ID("id", doorward.PrefixTenant)
	if err != nil {
		return ui.View{}, err
	}
	over, changed, err := h.app.Tenants.Confirmed(ctx, o.By, action, id, c.Value("confirm"))
	if err != nil {
		return ui.View{}, err
	}
	c.SetRevocation(over.Revocation)
	at := operatorTenantsPath + "/" + id
	if !changed {
		return redirectDone(c, at, "operator.unchanged", nil), nil
	}
	if act == "thaw" {
		return redirectDone(c, at, "operator.thaw", nil), nil
	}
	return redirectDone(c, at, "operator."+act, &ended{Sessions: int(over.Sessions)}), nil
}
