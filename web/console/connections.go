package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// connectionPath is the beginning of the path of a connection's page.
const connectionPath = ssoPath + "/connections"

func (h *console) connectionRoutes() []front.Route {
	manage := front.Allowed(doorward.SSOManage)
	at := connectionPath + "/{id}"
	return []front.Route{
		get(ssoPath, manage, h.connections),
		get(ssoPath+"/new", manage, h.newConnection),
		post(ssoPath+"/new", ssoPath+"/new", manage, h.createConnection, h.newConnection),
		get(at, manage, h.connectionPage, protocolFilters...),
		post(at+"/edit", connectionPath, manage, h.editConnection, h.connectionPage).CallsOut(),
		front.On("POST "+at+"/saml", manage,
			set.TakeFileOrText(connectionPath, ui.MetadataFile, ui.MaxMetadata, ui.MaxMetadataFields, withTenantStyle(h.editSAML), withTenantStyle(h.connectionPage)), front.Doc{}).CallsOut(),
		post(at+"/refresh", connectionPath, manage, h.refreshConnection, h.connectionPage).CallsOut(),
		post(at+"/access", connectionPath, manage, h.editAccess, h.connectionPage),
		post(at+"/test", connectionPath, manage, h.testConnection, h.connectionPage).CallsOut(),
		post(at+"/secrets", connectionPath, manage, h.addConnectionSecret, h.connectionPage),
		post(at+"/directory", connectionPath, manage, h.editDirectory, h.connectionPage),
		post(at+"/scim-secrets", connectionPath, manage, h.makeSCIMSecret, h.connectionPage),
		get(at+"/{act}", manage, h.askConnection),
		post(at+"/{act}", connectionPath, manage, h.actOnConnection, h.askConnection),
		get(at+"/{act}/{of}", manage, h.askConnection),
		post(at+"/{act}/{of}", connectionPath, manage, h.actOnConnection, h.askConnection),
	}
}

// secretEndsSoon is how long before its end the pages warn of a client secret; mails begin then, too.
const secretEndsSoon = 30 * 24 * time.Hour

// provider is a connection, for templates.
type provider struct {
	connection.Shown
	now time.Time
}

// State is the key of the message about the status.
func (p provider) State() string { return "sso.state." + string(p.Status) }

// Tags are shown below the name.
func (p provider) Tags() ui.Tags {
	tags := ui.Tags{State: p.State(), Warnings: p.Warnings(), About: p.ProductName()}
	if p.IsDirectory() {
		tags.Kinds = append(tags.Kinds, "scim.alone")
	}
	if p.IsSAML() {
		tags.Kinds = append(tags.Kinds, "saml.protocol")
	}
	return tags
}

// IsDirectory reports whether the connection is a directory alone, by which nobody signs in.
func (p provider) IsDirectory() bool { return p.Type == doorward.SCIMDirectory }

// LinkKey ends the keys of the messages about what a set-up link is for: by that of a directory alone nobody tests, and
// only of a draft it makes secrets.
func (p provider) LinkKey() string {
	switch {
	case !p.IsDirectory():
		return ""
	case p.Status == doorward.ConnectionDraft:
		return ".draft"
	}
	return ".directory"
}

// CanBeEnabled reports whether nothing has to be tested first.
func (p provider) CanBeEnabled() bool { return p.IsTested() || p.IsDirectory() }

// AskedAt is when the directory last asked for something; nil: never.
func (p provider) AskedAt() *time.Time { return ui.LastAsked(p.SCIM) }

// ProductName is the name of the provider's product; empty for another one.
func (p provider) ProductName() string { return ui.ProductName(p.Product) }

// Warnings are the keys of messages about what is left to do.
func (p provider) Warnings() (all []string) {
	all = append(p.warned("sso.warn.secret", p.SecretEnds(), p.DirectoryEnds()), p.warned("sso.warn.certificate", p.CertificateEnds())...)
	if p.HasNoCertificate() {
		all = append(all, "sso.warn.nocertificate")
	}
	if p.Unread() != nil {
		all = append(all, "sso.warn.unread")
	}
	if p.Pending != nil {
		all = append(all, "sso.warn.pending")
	} else if !p.CanBeEnabled() && p.Status != doorward.ConnectionActive {
		all = append(all, "sso.warn.untested")
	}
	return all
}

// warned is the key of the message that something ends soon or, if one of the ends has passed, that it has ended;
// nothing without an end.
func (p provider) warned(key string, ends ...*time.Time) []string {
	ends = slices.DeleteFunc(ends, func(end *time.Time) bool { return end == nil })
	switch {
	case len(ends) == 0:
		return nil
	case slices.ContainsFunc(ends, func(end *time.Time) bool { return p.HasEnded(*end) }):
		return []string{key + ".ended"}
	}
	return []string{key}
}

// IsTested reports whether a test has passed of exactly what is in force.
func (p provider) IsTested() bool { return p.InForce.TestedAt != nil }

// IsActive reports whether the connection signs people in, as far as it decides.
func (p provider) IsActive() bool { return p.Status == doorward.ConnectionActive }

// Edited are the parameters that the form changes and a test tries.
func (p provider) Edited() doorward.ConnectionParameters {
	edited, _ := p.ToTest()
	return edited
}

// MissingForTest are the keys of the labels of what is missing for a test.
func (p provider) MissingForTest() []string { return ui.MissingForTest(p.Shown) }

// CanBeTested reports whether nothing is missing that a test needs.
func (p provider) CanBeTested() bool { return ui.CanBeTested(p.Shown) }

// UsesKeys reports whether Doorward authenticates by keys of its own, and needs no client secret.
func (p provider) UsesKeys() bool { return p.Edited().ClientAuth == doorward.PrivateKeyJWT }

// SecretEnds is the end of the client secret that ends last, if that is soon or has passed; else nil.
func (p provider) SecretEnds() *time.Time {
	if p.IsSAML() || p.UsesKeys() || len(p.Secrets) == 0 || slices.ContainsFunc(p.Secrets, func(s doorward.ConnectionSecret) bool { return s.ExpiresAt == nil }) {
		return nil
	}
	last := slices.MaxFunc(p.Secrets, func(a, b doorward.ConnectionSecret) int { return a.ExpiresAt.Compare(*b.ExpiresAt) }).ExpiresAt
	if last.Sub(p.now) > secretEndsSoon {
		return nil
	}
	return last
}

// DirectoryEnds is SecretEnds for the secrets of the directory.
func (p provider) DirectoryEnds() *time.Time {
	if len(p.SCIM) == 0 || slices.ContainsFunc(p.SCIM, func(s doorward.SCIMSecret) bool { return s.ExpiresAt == nil }) {
		return nil
	}
	last := slices.MaxFunc(p.SCIM, func(a, b doorward.SCIMSecret) int { return a.ExpiresAt.Compare(*b.ExpiresAt) }).ExpiresAt
	if last.Sub(p.now) > secretEndsSoon {
		return nil
	}
	return last
}

// Unread is since when what the provider says of itself can't be read, if people sign in by it and that is long ago; else
// nil.
func (p provider) Unread() *time.Time {
	if !p.IsUnread(p.now) {
		return nil
	}
	return &p.UnreadSince
}

// HasEnded reports whether the instant has passed.
func (p provider) HasEnded(at time.Time) bool { return !p.now.Before(at) }

// EndsSoon reports whether the instant is near, or has passed.
func (p provider) EndsSoon(at time.Time) bool { return at.Sub(p.now) <= secretEndsSoon }

// connectionList is the content of the list, which has one page: there are few.
type connectionList struct {
	pageData
	Tabs  ui.Tabs
	Items []listedConnection
	Full  bool // the tenant has as many as it can have
	// Idle: a connection is active, and the tenant's policy lets none sign anybody in.
	Idle bool
}

// listedConnection is a row of the list.
type listedConnection struct {
	provider
	Domains []string // whose people sign in by it
}

// OtherDomains counts the domains besides the first, which the list shows.
func (l listedConnection) OtherDomains() int { return max(0, len(l.Domains)-1) }

func (h *console) connections(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	found, err := h.app.Connections.List(ctx, c.Caller, doorward.Window{Limit: doorward.ConnectionsMax})
	if err != nil {
		return ui.View{}, err
	}
	domains, err := h.app.Domains.List(ctx, c.Caller, doorward.Window{Limit: doorward.DomainsMax})
	if err != nil {
		return ui.View{}, err
	}
	body := connectionList{pageData: s, Tabs: ssoTabs(c, "connections"), Full: len(found.Items) >= doorward.ConnectionsMax}
	isActive := false
	for _, one := range found.Items {
		row := listedConnection{provider: provider{one, c.Now()}}
		for _, d := range domains.Items {
			if d.ConnectionID == one.ID {
				row.Domains = append(row.Domains, d.Name)
			}
		}
		isActive = isActive || row.IsActive()
		body.Items = append(body.Items, row)
	}
	policy, err := h.app.Demands.Get(ctx, c.Caller)
	body.Idle = isActive && !policy.SignsIn()
	return autoRefresh(c, ui.View{Page: "connections", Title: "sso.title", Body: body, Wide: true}), err
}

// connectionsOf returns the tenant's connections, the oldest first.
func (h *console) connectionsOf(ctx context.Context, c *ui.Call) ([]doorward.Connection, error) {
	found, err := h.app.Connections.List(ctx, c.Caller, doorward.Window{Limit: doorward.ConnectionsMax})
	var all []doorward.Connection
	for _, one := range found.Items {
		all = append(all, one.Connection)
	}
	return all, err
}

// nameOfConnection returns the name of the connection of the id; empty if there is none.
func nameOfConnection(all []doorward.Connection, id string) string {
	for _, one := range all {
		if one.ID == id {
			return one.Name
		}
	}
	return ""
}

// doors returns the active connections, each with the address at which a sign-in begins that leads back to
// the policy.
func (h *console) doors(ctx context.Context, c *ui.Call) (open []door, err error) {
	all, err := h.connectionsOf(ctx, c)
	for _, one := range all {
		if one.Status == doorward.ConnectionActive {
			open = append(open, door{one.Name, startWithReturn(h.app.Connections.StartURL(one.ID), c.Site().BasePath()+ssoPolicyPath)})
		}
	}
	return open, err
}

// newConnection is the form for a connection.
type newConnection struct {
	pageData
	Product string // chosen
	Type    string // chosen
}

// Types are what a connection can be for, the usual one first.
func (newConnection) Types() []string { return connectionTypes }

var connectionTypes = []string{string(doorward.OpenIDConnect), string(doorward.SAML), string(doorward.SCIMDirectory)}

// Products are those to choose from.
func (newConnection) Products() []doorward.Product { return doorward.Products }

// ProductName is the name of a product; empty for another one.
func (newConnection) ProductName(p doorward.Product) string { return ui.ProductName(p) }

func (h *console) newConnection(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	return ui.View{Page: "connectionnew", Title: "sso.new", Body: newConnection{s, c.Value("product"), cmp.Or(c.Value("type"), connectionTypes[0])}, Wide: true}, err
}

// createConnection makes a draft; its page has the rest of the form beside the instructions. Without a name
// it has that of the product.
func (h *console) createConnection(ctx context.Context, c *ui.Call) (ui.View, error) {
	product := c.Value("product")
	name := cmp.Or(strings.TrimSpace(c.Value("name")), ui.ProductName(doorward.Product(product)))
	made, err := h.app.Connections.Create(ctx, c.Caller, connection.Draft{Type: cmp.Or(c.Value("type"), connectionTypes[0]), Product: &product, Name: &name})
	return redirectDone(c, connectionPath+"/"+made.ID, "connection-create", nil), err
}
