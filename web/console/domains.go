package console

import (
	"context"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// domainsPath is the list of domains.
const domainsPath = ssoPath + "/domains"

func (h *console) domainRoutes() []front.Route {
	manage := front.Allowed(doorward.SSOManage)
	return []front.Route{
		get(domainsPath, manage, h.domains),
		post(domainsPath, domainsPath, front.Allowed(doorward.DomainCreate), h.addDomain, h.domains),
		get(domainsPath+"/{id}", manage, h.domainPage),
		post(domainsPath+"/{id}/verify", domainsPath, front.Allowed(doorward.DomainVerify), h.verifyDomain, h.domainPage).CallsOut(),
		post(domainsPath+"/{id}/connection", domainsPath, front.Allowed(doorward.DomainUpdate), h.setDomainConnection, h.domainPage),
		get(domainsPath+"/{id}/delete", manage, h.askDomainEnd),
		post(domainsPath+"/{id}/delete", domainsPath, front.Allowed(doorward.DomainDelete), h.deleteDomain, h.askDomainEnd),
	}
}

// shownDomain is a domain, for templates.
type shownDomain struct {
	doorward.Domain
	Connection string // its name; empty for none
}

// Tags are shown below the name.
func (d shownDomain) Tags() ui.Tags {
	return ui.Tags{State: "sso.proof." + string(d.Status), About: d.Connection}
}

// ProvingRecord is the record that proves the domain.
func (d shownDomain) ProvingRecord() ui.ProvingRecord { return ui.RecordOf(d.Domain) }

// LapsesAt is when a verified domain lapses, whose record is missing, unless it is seen again.
func (d shownDomain) LapsesAt() time.Time { return d.MissingSince.Add(doorward.DomainLapsesAfter) }

// domainList is the content of the list, which has one page: there are few.
type domainList struct {
	pageData
	Tabs  ui.Tabs
	Items []shownDomain
	Full  bool // the tenant has as many as it can have
}

func (h *console) domains(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	body := domainList{pageData: s, Tabs: ssoTabs(c, "domains")}
	body.Items, err = h.allDomains(ctx, c)
	body.Full = len(body.Items) >= doorward.DomainsMax
	return ui.View{Page: "domains", Body: body, Wide: true}, err
}

// allDomains returns the tenant's domains, the newest first, with the names of their connections.
func (h *console) allDomains(ctx context.Context, c *ui.Call) ([]shownDomain, error) {
	found, err := h.app.Domains.List(ctx, c.Caller, doorward.Window{Limit: doorward.DomainsMax})
	if err != nil {
		return nil, err
	}
	connections, err := h.connectionsOf(ctx, c)
	var all []shownDomain
	for _, d := range found.Items {
		all = append(all, shownDomain{d, nameOfConnection(connections, d.ConnectionID)})
	}
	return all, err
}

func (h *console) addDomain(ctx context.Context, c *ui.Call) (ui.View, error) {
	made, err := h.app.Domains.Add(ctx, c.Caller, strings.TrimSpace(c.Value("domain")))
	return redirectDone(c, domainsPath+"/"+made.ID, "domain-create", nil), err
}

// domainPage is the page of one domain.
type domainPage struct {
	pageData
	Domain      shownDomain
	Connections []doorward.Connection // to choose from
	// Seen are the records that were found in place of the right one, after a look that has not found it.
	Seen   []string
	Looked bool // such a look was just made
}

// Version returns the version of the domain, for forms.
func (p domainPage) Version() string { return p.Domain.Version() }

func (h *console) domainPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	d, err := h.domainAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	_, note := keepTyped(c, d.Version(), changedSince, nil)
	connections, err := h.connectionsOf(ctx, c)
	body := domainPage{pageData: s, Domain: shownDomain{d, nameOfConnection(connections, d.ConnectionID)}, Connections: connections}
	body.Seen, body.Looked = c.SeenRecords(), c.RefusalCode() == doorward.CodeDomainNotProved
	return ui.View{Page: "domain", Title: "sso.domains", Note: note, Scripts: []string{"secret.js"}, Body: body, Wide: true}, err
}

// domainAt returns the domain that the path names.
func (h *console) domainAt(ctx context.Context, c *ui.Call) (doorward.Domain, error) {
	id, err := c.ID("id", doorward.PrefixDomain)
	if err != nil {
		return doorward.Domain{}, err
	}
	return h.app.Domains.Get(ctx, c.Caller, id)
}

// verifyDomain says on the domain's page that the name servers don't answer: the page of that error is about
// providers.
func (h *console) verifyDomain(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixDomain)
	if err != nil {
		return ui.View{}, err
	}
	_, err = h.app.Domains.Verify(ctx, c.Caller, id)
	if doorward.HasCode(err, doorward.CodeProviderUnavailable) {
		v, err := h.domainPage(ctx, c)
		v.Note, v.Status = "sso.dns.silent", front.Status(doorward.CodeProviderUnavailable)
		return v, err
	}
	return redirectDone(c, domainsPath+"/"+id, "domain-verify", nil), err
}

// setDomainConnection gives the domain to a connection. One that has another is taken from it first: the
// feature does one at a time.
func (h *console) setDomainConnection(ctx context.Context, c *ui.Call) (ui.View, error) {
	d, err := h.domainAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	_, err = h.app.Domains.SetConnection(ctx, c.Caller, d.ID, c.Value("connectionId"), version(c))
	return redirectDone(c, domainsPath+"/"+d.ID, "domain-connection", nil), err
}

func (h *console) askDomainEnd(ctx context.Context, c *ui.Call) (ui.View, error) {
	v, err := h.domainPage(ctx, c)
	v.Page, v.Title, v.Scripts, v.Wide = "domainend", "sso.domain.delete.title", nil, false
	return v, err
}

func (h *console) deleteDomain(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixDomain)
	if err != nil {
		return ui.View{}, err
	}
	err = h.app.Domains.Delete(ctx, c.Caller, id)
	return redirectDone(c, domainsPath, "domain-delete", nil), err
}
