package api

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/tenant"
	"github.com/doorward/doorward/web/front"
)

type tenantView struct {
	ID          string                `json:"id" example:"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae"`
	Name        string                `json:"name" example:"Acme"`
	Status      doorward.TenantStatus `json:"status" enum:"active,frozen,closing"`
	CreatedAt   time.Time             `json:"createdAt"`
	DestroyedAt *time.Time            `json:"destroyedAt,omitempty" doc:"After an OWNER has closed it: when its data is destroyed, unless it is frozen at that time"`
	Settings    settingsView          `json:"settings"`
	Quotas      *quotasView           `json:"quotas,omitempty" doc:"What the operator allows the tenant to have; absent: as much as it likes"`
	Logo        *logoView             `json:"logo,omitempty" doc:"Absent: that of the installation"`
	Ended       *front.Ended          `json:"ended,omitempty" doc:"In the answer to closing, freezing and thawing: what it has ended"`
}

// quotasView has the quotas that are set.
type quotasView struct {
	People   *int64 `json:"people,omitempty" example:"50" doc:"Members, suspended ones too; pending invitations count when somebody is invited"`
	APIKeys  *int64 `json:"apiKeys,omitempty" example:"10"`
	Webhooks *int64 `json:"webhooks,omitempty" example:"3"`

	EventsPerDay *int64 `json:"eventsPerDay,omitempty" example:"2000" doc:"Events of changes by people, keys and services in a day of UTC"`
}

func viewQuotas(q doorward.Quotas) *quotasView {
	if q == (doorward.Quotas{}) {
		return nil
	}
	return &quotasView{q.People, q.APIKeys, q.Webhooks, q.EventsPerDay}
}

// logoView has the public address of the image; another image has another address.
type logoView struct {
	URL    string `json:"url" format:"uri" example:"https://auth.example.com/assets/logos/3f786850e387550fdab836ed7e6dc881de23001b.png"`
	Width  int    `json:"width" example:"512" doc:"Pixels"`
	Height int    `json:"height" example:"128" doc:"Pixels"`
}

func (a *api) viewTenant(c *front.Call, t doorward.Tenant) tenantView {
	v := tenantView{
		ID: t.ID, Name: t.Name, Status: t.Status, CreatedAt: t.CreatedAt, Settings: viewSettings(a.app.Tenants.Settings(), t),
		Quotas: viewQuotas(t.Quotas),
	}
	if l := t.Brand.Logo; l.Hash != "" {
		v.Logo = &logoView{c.Site().BaseURL() + l.Path(), l.Width, l.Height}
	}
	if t.ClosedAt != nil {
		at := a.app.Tenants.DestroyedAt(t)
		v.DestroyedAt = &at
	}
	return v
}

var docTenant = front.Doc{
	ID: "getTenant", Tag: "Tenants", Summary: "Show the tenant",
	Description: "The settings are the effective ones. Works while the tenant is closing, too.",
	Versioned:   true,
}

func (a *api) tenant(ctx context.Context, c *front.Call, _ front.None) (tenantView, error) {
	t, err := a.app.Tenants.Get(ctx, c.Caller.TenantID)
	if err != nil {
		return tenantView{}, err
	}
	c.SetVersion(t.Version())
	return a.viewTenant(c, t), nil
}

type editTenantInput struct {
	Name     *string        `json:"name,omitempty" example:"Acme" doc:"At most 100 characters"`
	Settings *settingsInput `json:"settings,omitempty" doc:"Absent settings stay unchanged. A tenant can be stricter than the installation, not laxer"`
}

var docEditTenant = front.Doc{
	ID: "editTenant", Tag: "Tenants", Summary: "Change name and settings of the tenant",
	Description: "Stricter limits also apply to open sessions, on every node before the answer. To raise `stepUpMinutes`, or to demand a second factor of fewer roles, a session needs a recent proof of identity. With `If-Match`, a change by somebody else since is 412.",
	Versioned:   true,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotForKeys, doorward.CodePreconditionFailed, doorward.CodeMasterKeyMissing, doorward.CodeQuotaExceeded},
}

func (a *api) editTenant(ctx context.Context, c *front.Call, in editTenantInput) (tenantView, error) {
	e := tenant.Edit{Name: in.Name, Versions: c.Versions()}
	if in.Settings != nil {
		e.Settings = in.Settings.byName()
	}
	t, err := a.app.Tenants.Edit(ctx, c.Caller, e)
	if err != nil {
		return tenantView{}, err
	}
	c.SetRevocation(t.Revocation)
	c.SetVersion(t.Version())
	return a.viewTenant(c, t.Tenant), nil
}

// viewEnded returns the tenant with what its change has ended.
func (a *api) viewEnded(c *front.Call, t doorward.Tenant, counts doorward.Ended) tenantView {
	c.SetRevocation(counts.Revocation)
	v, ended := a.viewTenant(c, t), front.ViewEnded(counts)
	v.Ended = &ended
	return v
}

type closeInput struct {
	Confirm string `json:"confirm" example:"Acme Limited" doc:"The name of the tenant, letter for letter"`
}

var docCloseTenant = front.Doc{
	ID: "closeTenant", Tag: "Tenants", Summary: "Close the tenant",
	Description: "Ends all sessions and keys at once, on every node before the answer. The data is destroyed at `destroyedAt`; until then an OWNER may log in and restore the tenant, and everything else there is 403 `tenant_closing`.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired},
}

func (a *api) closeTenant(ctx context.Context, c *front.Call, in closeInput) (tenantView, error) {
	t, counts, err := a.app.Tenants.Close(ctx, c.Caller, in.Confirm)
	if err != nil {
		return tenantView{}, err
	}
	c.ClearSession()
	return a.viewEnded(c, t, counts), nil
}

var docRestoreTenant = front.Doc{
	ID: "restoreTenant", Tag: "Tenants", Summary: "Restore a tenant that is being closed",
	Description: "Possible until its data is destroyed. People must log in again.",
	Errors:      []doorward.Code{doorward.CodeTenantNotClosing},
}

func (a *api) restoreTenant(ctx context.Context, c *front.Call, _ front.None) (tenantView, error) {
	t, err := a.app.Tenants.Restore(ctx, c.Caller)
	if err != nil {
		return tenantView{}, err
	}
	c.SetRevocation(t.Revocation)
	return a.viewTenant(c, t.Tenant), nil
}

type createTenantInput struct {
	Name       string `json:"name" doc:"At most 100 characters" example:"Acme"`
	OwnerEmail string `json:"ownerEmail" format:"email" doc:"Who is invited as the first OWNER" example:"ann@acme.example"`
	Locale     string `json:"locale,omitempty" doc:"Language of the mails to this person (BCP 47): English or German; English for any other" example:"de"`
}

type createdTenant struct {
	Tenant     tenantView     `json:"tenant"`
	Invitation invitationView `json:"invitation"`
}

var docCreateTenant = front.Doc{
	ID: "createTenant", Tag: "Tenants", Summary: "Create a tenant",
	Description: "Invites its first OWNER by mail.",
}

func (a *api) createTenant(ctx context.Context, c *front.Call, in createTenantInput) (tenant.Created, error) {
	return a.app.Tenants.Create(ctx, c.Caller, tenant.Draft{Name: in.Name, OwnerEmail: in.OwnerEmail, Locale: in.Locale})
}

func (a *api) viewCreated(c *front.Call, made tenant.Created) createdTenant {
	return createdTenant{a.viewTenant(c, made.Tenant), viewInvitation(made.Invitation, made.Invitation.CreatedAt)}
}

type tenantList struct {
	Items []tenantView `json:"items"`
	front.PageInfo
}

var docTenants = front.Doc{
	ID: "listTenants", Tag: "Tenants", Summary: "List the tenants of the installation",
	Description: "The oldest first, unless sorted otherwise. Pages neither repeat nor skip tenants when others are added or destroyed.",
	List:        true,
	Sort:        []string{"createdAt", "name"},
	Query: []front.Parameter{
		{Name: "status", Description: "Only tenants with this status; one that is closed and frozen, too, is frozen", Enum: []string{"active", "frozen", "closing"}},
		{Name: "q", Description: "Only tenants whose name or id contains these words, in any order, without regard to case and accents", Example: "acme"},
	},
}

func (a *api) tenants(ctx context.Context, c *front.Call, _ front.None) (out tenantList, err error) {
	var f tenant.Filter
	if err := c.Filters(front.To("status", &f.Status), front.To("q", &f.Text)); err != nil {
		return out, err
	}
	out.Items, out.PageInfo, err = front.List(ctx, c, front.With(f, a.app.Tenants.List), func(t doorward.Tenant) tenantView { return a.viewTenant(c, t) })
	return out, err
}

var docTenantByID = front.Doc{
	ID: "getTenantById", Tag: "Tenants", Summary: "Show a tenant of the installation",
	Versioned: true,
	Errors:    []doorward.Code{doorward.CodeNotFound},
}

func (a *api) tenantByID(ctx context.Context, c *front.Call, _ front.None) (tenantView, error) {
	id, err := c.ID("id", doorward.PrefixTenant)
	if err != nil {
		return tenantView{}, err
	}
	t, err := a.app.Tenants.Find(ctx, c.Caller, id)
	if err != nil {
		return tenantView{}, err
	}
	c.SetVersion(t.Version())
	return a.viewTenant(c, t), nil
}

type tenantStatusInput struct {
	Status string       `json:"status,omitempty" enum:"active,frozen,closing"`
	Quotas *quotasInput `json:"quotas,omitempty" doc:"What the tenant may have, by an operator key only. Absent quotas stay unchanged; what it has beyond one stays, too"`
}

type quotasInput struct {
	People   *front.Int `json:"people,omitempty" minimum:"-1" example:"50" doc:"-1 removes the quota"`
	APIKeys  *front.Int `json:"apiKeys,omitempty" minimum:"-1" example:"10"`
	Webhooks *front.Int `json:"webhooks,omitempty" minimum:"-1" example:"3"`

	EventsPerDay *front.Int `json:"eventsPerDay,omitempty" minimum:"-1" example:"2000"`
}

// byName returns the quotas that are in the body.
func (q *quotasInput) byName() map[doorward.Quota]int64 {
	quotas := map[doorward.Quota]int64{}
	for name, n := range map[doorward.Quota]*front.Int{
		doorward.QuotaPeople: q.People, doorward.QuotaAPIKeys: q.APIKeys, doorward.QuotaWebhooks: q.Webhooks, doorward.QuotaEventsPerDay: q.EventsPerDay,
	} {
		if n != nil {
			quotas[name] = int64(*n)
		}
	}
	return quotas
}

var docTenantStatus = front.Doc{
	ID: "setTenantStatus", Tag: "Tenants", Summary: "Freeze, thaw or close a tenant, or set its quotas",
	Description: "All changes or none. Freezing ends all sessions and keys there at once, on every node before the answer, and nobody can sign in until the tenant is thawed, with `active`. A tenant that is closed can be frozen and thawed, too: its data isn't destroyed while it is frozen, and once thawed it is `closing` again. `active` doesn't restore it: asking for that is 403 `tenant_closing`. With an operator key `closing` closes the tenant as its OWNER would. An OWNER or `doorward tenant restore` undoes it. With `If-Match`, a change by somebody else since is 412.",
	Versioned:   true,
	Errors:      []doorward.Code{doorward.CodeNotFound, doorward.CodePreconditionFailed, doorward.CodeTenantClosing},
}

func (a *api) setTenantStatus(ctx context.Context, c *front.Call, in tenantStatusInput) (tenantView, error) {
	id, err := c.ID("id", doorward.PrefixTenant)
	if err != nil {
		return tenantView{}, err
	}
	if _, err := a.app.Tenants.Find(ctx, c.Caller, id); err != nil {
		return tenantView{}, err
	}
	change := tenant.Change{Status: doorward.TenantStatus(in.Status), Versions: c.Versions()}
	if in.Quotas != nil {
		change.Quotas = in.Quotas.byName()
	}
	t, counts, err := a.app.Tenants.Change(ctx, c.Caller, id, change)
	if err != nil {
		return tenantView{}, err
	}
	c.SetVersion(t.Version())
	return a.viewEnded(c, t, counts), nil
}
