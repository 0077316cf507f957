package api

import (
	"context"
	"net/http"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

func (a *api) domainRoutes() []front.Route {
	return []front.Route{
		front.On("GET /api/v2/domains", front.Allowed(doorward.SSOManage), front.JSON(http.StatusOK, a.domains), docDomains),
		front.On("POST /api/v2/domains", front.Allowed(doorward.DomainCreate), front.Create(http.StatusCreated, a.addDomain, viewNewDomain), docAddDomain),
		front.On("GET /api/v2/domains/{id}", front.Allowed(doorward.SSOManage), front.JSON(http.StatusOK, a.domain), docDomain),
		front.On("PATCH /api/v2/domains/{id}", front.Allowed(doorward.DomainUpdate), front.JSON(http.StatusOK, a.editDomain), docEditDomain),
		front.On("POST /api/v2/domains/{id}/verify", front.Allowed(doorward.DomainVerify), front.JSON(http.StatusOK, a.verifyDomain), docVerifyDomain).CallsOut(),
		front.On("DELETE /api/v2/domains/{id}", front.Allowed(doorward.DomainDelete), front.JSON(http.StatusNoContent, a.deleteDomain), docDeleteDomain),
	}
}

type domainRecord struct {
	Name  string `json:"name" example:"_doorward.acme.example"`
	Type  string `json:"type" enum:"TXT"`
	Value string `json:"value" example:"doorward-verification=5tqm7x3yh4n6rj7wd2c5tpae7k"`
}

type domainView struct {
	ID           string                `json:"id" example:"dom_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Domain       string                `json:"domain" example:"acme.example" doc:"As A-labels, in lower case"`
	ConnectionID string                `json:"connectionId,omitempty" example:"con_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"By which the domain's people sign in; absent: none"`
	Status       doorward.DomainStatus `json:"status" enum:"pending,verified,lapsed"`
	Record       domainRecord          `json:"record" doc:"The DNS record that proves the domain"`
	CreatedAt    time.Time             `json:"createdAt"`
	VerifiedAt   *time.Time            `json:"verifiedAt,omitempty" doc:"Since when it is verified, or was before it lapsed"`
	CheckedAt    *time.Time            `json:"checkedAt,omitempty" doc:"When the name servers last said whether the record is there"`
	MissingSince *time.Time            `json:"missingSince,omitempty" doc:"Since when the record of a domain that was verified is missing; after 72 hours the domain lapses"`
}

func viewDomain(d doorward.Domain) domainView {
	name, value := d.Record()
	return domainView{
		ID: d.ID, Domain: d.Name, ConnectionID: d.ConnectionID, Status: d.Status, Record: domainRecord{name, "TXT", value},
		CreatedAt: d.CreatedAt, VerifiedAt: d.VerifiedAt, CheckedAt: d.CheckedAt, MissingSince: d.MissingSince,
	}
}

func viewNewDomain(_ *front.Call, d doorward.Domain) domainView { return viewDomain(d) }

type domainList struct {
	Items []domainView `json:"items"`
	front.PageInfo
}

var docDomains = front.Doc{
	ID: "listDomains", Tag: "Domains", Summary: "List the tenant's domains",
	Description: "The newest first.",
	List:        true,
	Sort:        []string{"createdAt"},
}

func (a *api) domains(ctx context.Context, c *front.Call, _ front.None) (out domainList, err error) {
	out.Items, out.PageInfo, err = front.List(ctx, c, a.app.Domains.List, viewDomain)
	return out, err
}

var docDomain = front.Doc{
	ID: "getDomain", Tag: "Domains", Summary: "Show a domain",
	Versioned: true,
	Errors:    []doorward.Code{doorward.CodeNotFound},
}

func (a *api) domain(ctx context.Context, c *front.Call, _ front.None) (domainView, error) {
	id, err := c.ID("id", doorward.PrefixDomain)
	if err != nil {
		return domainView{}, err
	}
	d, err := a.app.Domains.Get(ctx, c.Caller, id)
	return withVersion(c, d, err, viewDomain)
}

type addDomainInput struct {
	Domain string `json:"domain" example:"acme.example" doc:"A domain of one's own, also with characters beyond ASCII. Public suffixes such as co.uk, and providers of free mail addresses, are refused. A subdomain needs a record of its own"`
}

var docAddDomain = front.Doc{
	ID: "addDomain", Tag: "Domains", Summary: "Add a domain",
	Description: "The domain is `pending` until it is verified: publish the DNS record that the answer shows, then call `verify`. The answer depends on the tenant alone, not on who else has the domain.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeTooManyDomains, doorward.CodeDomainExists, doorward.CodeQuotaExceeded},
}

func (a *api) addDomain(ctx context.Context, c *front.Call, in addDomainInput) (doorward.Domain, error) {
	if err := required(field{"/domain", in.Domain}); err != nil {
		return doorward.Domain{}, err
	}
	return a.app.Domains.Add(ctx, c.Caller, in.Domain)
}

type editDomainInput struct {
	ConnectionID *string `json:"connectionId" example:"con_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"A connection of the tenant, by which the domain's people sign in; empty: none"`
}

var docEditDomain = front.Doc{
	ID: "editDomain", Tag: "Domains", Summary: "Give a domain to a connection, or take it away",
	Description: "A domain has one connection at most: take it away from that one first. With `If-Match`, a change by somebody else since is 412.",
	Versioned:   true,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodePreconditionFailed, doorward.CodeDomainInUse, doorward.CodeQuotaExceeded},
}

func (a *api) editDomain(ctx context.Context, c *front.Call, in editDomainInput) (domainView, error) {
	id, err := c.ID("id", doorward.PrefixDomain)
	if err != nil {
		return domainView{}, err
	}
	if in.ConnectionID == nil {
		return domainView{}, doorward.Invalid("/connectionId", "required", "Name a connection of the tenant, or send an empty text for none.")
	}
	d, err := a.app.Domains.SetConnection(ctx, c.Caller, id, *in.ConnectionID, c.Versions())
	return withVersion(c, d, err, viewDomain)
}

var docVerifyDomain = front.Doc{
	ID: "verifyDomain", Tag: "Domains", Summary: "Look for a domain's record now",
	Description: "If the record is there, the domain is `verified`: the tenant holds it. One tenant of an installation holds a domain. The record is looked for once a day from then on; when it has been missing for 72 hours, the domain lapses. " +
		"The answer comes within 12 seconds, whatever the name servers do. A tenant has 120 of these requests a minute.",
	Errors: []doorward.Code{
		doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeDomainNotProved, doorward.CodeDomainTaken,
		doorward.CodeTooManyAttempts, doorward.CodeProviderUnavailable, doorward.CodeQuotaExceeded,
	},
}

func (a *api) verifyDomain(ctx context.Context, c *front.Call, _ front.None) (domainView, error) {
	id, err := c.ID("id", doorward.PrefixDomain)
	if err != nil {
		return domainView{}, err
	}
	d, err := a.app.Domains.Verify(ctx, c.Caller, id)
	if err != nil {
		return domainView{}, err
	}
	return viewDomain(d), nil
}

var docDeleteDomain = front.Doc{
	ID: "deleteDomain", Tag: "Domains", Summary: "Delete a domain",
	Description: "The tenant holds the domain no longer, and anybody can prove it. Added again, it needs another record. With `If-Match`, a change by somebody else since is 412.",
	Conditional: true,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodePreconditionFailed},
}

func (a *api) deleteDomain(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := c.ID("id", doorward.PrefixDomain)
	if err != nil {
		return front.None{}, err
	}
	return front.None{}, a.app.Domains.Delete(ctx, c.Caller, id, c.Versions()...)
}
