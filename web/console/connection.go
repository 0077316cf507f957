package console

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// protocolFilters are the parameters of the lists on a connection's page.
var protocolFilters = []string{ui.TabParameter}

// protocolPerPage and identitiesPerPage are fewer than the rows of a list: the page has a head and tabs.
const protocolPerPage, identitiesPerPage = 12, 15

// connectionPage is the page of one connection; what the shown tab doesn't need is empty.
type connectionPage struct {
	pageData
	edited
	pager
	Tabs       ui.Tabs
	Connection provider
	Form       ui.ParameterForm
	SAML       ui.SAMLForm
	Guide      ui.Guide
	SetupLink  *doorward.SetupLink // nil: none
	Test       *ui.TestResult      // nil: none
	Claims     string              // of the test, on several lines; empty for none
	Keys       []ui.PublishedKey
	ReadAt     *time.Time      // when the metadata in force were read or given; nil: never
	Reading    *ui.Attempt     // the last reading of metadata, if it has failed; nil otherwise
	Roles      []doorward.Role // that a connection may give, the highest first
	Mappings   []doorward.GroupMapping
	Identities []linked
	Attempts   []tried
	SignIns    chart // by day
	Activity   activity
	Domains    []string
	State      ui.DirectoryState
	Directory  ui.DirectoryGuide
	LastRun    *shownRun // of the directory; nil: none
	Idle       bool      // the connection is active, and the tenant's policy lets none sign anybody in
}

// Version returns the version of the connection, for forms.
func (p connectionPage) Version() string { return p.Connection.Version() }

// jits are what the form offers, in this order.
var jits = []string{string(doorward.JITOff), string(doorward.JITInvited), string(doorward.JITDomains)}

// JITs say who becomes a member at the first sign-in.
func (connectionPage) JITs() []string { return jits }

// NewMappings are empty rows of the form, for more mappings.
func (connectionPage) NewMappings() []int { return []int{1, 2} }

// MaxSecrets is how many client secrets a connection can have.
func (connectionPage) MaxSecrets() int { return doorward.ConnectionSecretsMax }

// Differences are the parameters in force beside those that wait for a switch.
func (p connectionPage) Differences() []difference {
	if p.Connection.IsSAML() {
		return samlDifferences(p.Connection)
	}
	a, b := p.Connection.InForce, p.Connection.Pending
	return []difference{
		{Label: "field.issuer", InForce: a.Issuer, Pending: b.Issuer},
		{Label: "field.clientId", InForce: a.ClientID, Pending: b.ClientID},
		{Label: "field.clientAuth", InForce: string(a.ClientAuth), Pending: string(b.ClientAuth), Words: "sso.auth."},
		{Label: "field.emailFrom", InForce: a.EmailFrom, Pending: b.EmailFrom},
	}
}

// difference is a parameter in force and as it waits for a switch. Words begins the keys of the messages about its values;
// Blank is the key of the message about an empty one.
type difference struct{ Label, InForce, Pending, Words, Blank string }

// Differs reports whether the switch changes it.
func (d difference) Differs() bool { return d.InForce != d.Pending }

// linked is an identity with its person.
type linked struct {
	doorward.Identity
	Email   string
	Current bool // it counts: it has been used since the last switch to another client
}

func (h *console) connectionPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	body := connectionPage{pageData: s, Connection: p, Tabs: connectionTabs(c, p)}
	var note string
	body.edited, note = keepTyped(c, p.Version(), "notice.connection.precondition_failed", connectionFields(c, p, body.Tabs.Current))
	body.Guide = ui.GuideOf(h.app.Connections, p.Connection)
	if p.IsActive() && !p.IsDirectory() {
		policy, err := h.app.Demands.Get(ctx, c.Caller)
		if err != nil {
			return ui.View{}, err
		}
		body.Idle = !policy.SignsIn()
	}
	err = h.fillTab(ctx, c, &body)
	v := ui.View{Page: "connection", Title: "sso.title", Note: note, Body: body, Wide: true}
	if slices.Contains([]string{"setup", "keys", "certificates", "test", "access", "directory"}, body.Tabs.Current) {
		v.Scripts = []string{"secret.js"}
	}
	return v, err
}

// fillTab reads what the shown tab needs.
func (h *console) fillTab(ctx context.Context, c *ui.Call, body *connectionPage) error {
	switch body.Tabs.Current {
	case "setup":
		body.Form = ui.ParameterFormOf(c, body.Connection.Edited())
		body.SAML = ui.SAMLFormOf(c, body.Connection.Connection)
		var err error
		body.SetupLink, err = h.setupLinkOf(ctx, c, body.Connection.ID)
		return err
	case "test":
		return h.fillTest(ctx, c, body)
	case "keys":
		return h.fillKeys(ctx, body)
	case "certificates":
		return h.fillCertificates(ctx, c, body)
	case "access":
		return h.fillAccess(ctx, c, body)
	case "identities":
		return h.fillIdentities(ctx, c, body)
	case "directory":
		return h.fillDirectory(ctx, c, body)
	case "protocol":
		return h.fillProtocol(ctx, c, body)
	case "activity":
		var err error
		body.Activity, err = h.activity(ctx, c, "connection", body.Connection.ID)
		return err
	}
	return nil
}

// connectionTabs are the tabs of the page of a connection: of its keys, of its client secrets, or of its provider's
// certificates. By a directory alone
// nobody signs in.
func connectionTabs(c *ui.Call, p provider) ui.Tabs {
	names := []string{"setup", "secrets", "test", "access", "identities", "directory", "protocol"}
	switch {
	case p.IsDirectory():
		names = []string{"directory", "access", "protocol"}
	case p.IsSAML():
		names[1] = "certificates"
	case p.UsesKeys():
		names[1] = "keys"
	}
	return c.Tabs(connectionPath+"/"+p.ID, nil, withActivity(c, names)...)
}

// connectionAt returns the connection that the path names.
func (h *console) connectionAt(ctx context.Context, c *ui.Call) (provider, error) {
	id, err := c.ID("id", doorward.PrefixConnection)
	if err != nil {
		return provider{}, err
	}
	found, err := h.app.Connections.Connection(ctx, c.Caller, id)
	return provider{found, c.Now()}, err
}

// connectionFields are the fields of the form on the tab. The first one is always sent.
func connectionFields(c *ui.Call, p provider, tab string) []editedField {
	switch tab {
	case "setup":
		if p.IsSAML() {
			return samlConnectionFields(c, p)
		}
		e := p.Edited()
		return []editedField{
			textField(c, "name", "field.name", p.Name), textField(c, "issuer", "field.issuer", e.Issuer), textField(c, "clientId", "field.clientId", e.ClientID),
			wordField(c, "clientAuth", "field.clientAuth", "clientAuth", string(e.ClientAuth), ui.ClientAuths), textField(c, "emailFrom", "field.emailFrom", e.EmailFrom),
		}
	case "access":
		return accessFields(c, p)
	case "directory":
		return directoryFields(c, p)
	}
	return nil
}

// editConnection saves what the connection is called and signs people in by.
func (h *console) editConnection(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	name, change := strings.TrimSpace(c.Value("name")), connection.Change{Versions: version(c)}
	change.Name = &name
	change.Issuer, change.ClientID, change.ClientAuth, change.EmailFrom = ui.TypedParameters(c)
	after, _, err := h.app.Connections.Edit(ctx, c.Caller, p.ID, change)
	return redirectDone(c, connectionPath+"/"+p.ID, savedConnection(after), nil), faultsToFormFields(err)
}

// addConnectionSecret adds a client secret.
func (h *console) addConnectionSecret(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	typed, err := ui.TypedSecret(c)
	if err != nil {
		return ui.View{}, err
	}
	_, err = h.app.ClientSecrets.Add(ctx, c.Caller, p.ID, typed)
	return redirectDone(c, connectionPath+"/"+p.ID, "connection-secret-add", nil), err
}

func (h *console) fillKeys(ctx context.Context, body *connectionPage) error {
	keys, err := h.app.Connections.Keys(ctx, body.Connection.ID)
	body.Keys = ui.PublishedKeys(keys)
	return err
}

func (h *console) fillIdentities(ctx context.Context, c *ui.Call, body *connectionPage) error {
	pages, window, err := readWindow(ctx, c, protocolFilters, sorting{})
	if err != nil {
		return err
	}
	window.Limit, pages.size = identitiesPerPage, identitiesPerPage
	found, err := h.app.Connections.Identities(ctx, c.Caller, body.Connection.ID, window)
	if err != nil {
		return err
	}
	for _, one := range found.Items {
		body.Identities = append(body.Identities, linked{one.Identity, one.Email, !one.LastUsedAt.Before(body.Connection.SwitchedAt)})
	}
	pages.Total = found.Total
	err = pages.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	body.pager = pages
	return err
}

// tried is an entry of the protocol as the page shows it.
type tried struct {
	ui.Attempt
	Person string // name of whom it concerns; empty for nobody known
}

func (h *console) fillProtocol(ctx context.Context, c *ui.Call, body *connectionPage) error {
	counts, err := h.app.Connections.Usage(ctx, c.Caller, body.Connection.ID, usageSince(c))
	if err != nil {
		return err
	}
	body.SignIns = chartOf("days-title", connectionSeries(), counts, c.Now(), oneDay, usageDays)
	pages, window, err := readWindow(ctx, c, protocolFilters, sorting{})
	if err != nil {
		return err
	}
	window.Limit, pages.size = protocolPerPage, protocolPerPage
	found, err := h.app.Connections.Attempts(ctx, c.Caller, body.Connection.ID, window)
	if err != nil {
		return err
	}
	for _, a := range found.Items {
		one := tried{Attempt: ui.Attempt{Attempt: a, Type: body.Connection.Type, Product: body.Connection.Product}}
		if a.UserID != "" {
			if one.Person, err = h.memberName(ctx, c, a.UserID); doorward.HasCode(err, doorward.CodeNotFound) {
				one.Person, err = a.UserID, nil // removed since
			}
		}
		if err != nil {
			return err
		}
		body.Attempts = append(body.Attempts, one)
	}
	pages.Total = found.Total
	err = pages.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	body.pager = pages
	return err
}

// connectionSeries are the outcomes of sign-ins by a connection.
func connectionSeries() []series {
	return []series{
		{Outcome: doorward.UsageSignedIn, Key: "chart.signed_in", Tone: "plain"},
		{Outcome: doorward.UsageRefused, Key: "chart.refused", Tone: "refused"},
		{Outcome: doorward.UsageUnavailable, Key: "chart.unavailable", Tone: "silent"},
	}
}

// testParameter is the query parameter with the id of the test whose result is shown.
const testParameter = "test"

// testConnection prepares a test. The page that follows has the link that begins it, and then its result.
func (h *console) testConnection(ctx context.Context, c *ui.Call) (ui.View, error) {
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	begun, err := h.app.Tests.Make(ctx, c.Caller, p.ID)
	if err != nil {
		return ui.View{}, err
	}
	q := url.Values{ui.TabParameter: {"test"}, testParameter: {begun.ID}}
	return c.To(connectionPath + "/" + p.ID + "?" + q.Encode()), nil
}

// fillTest reads the test that the query names, or else the one that was made last, here or by the set-up link.
func (h *console) fillTest(ctx context.Context, c *ui.Call, body *connectionPage) error {
	id := c.R.URL.Query().Get(testParameter)
	if id != "" && !front.IsID(id, doorward.PrefixTest) { // mistyped
		return nil
	}
	found, err := h.app.Tests.Show(ctx, c.Caller, body.Connection.ID, id)
	if doorward.HasCode(err, doorward.CodeNotFound) {
		return nil // a day later it is gone
	}
	if err != nil {
		return err
	}
	shown := ui.NewTestResult(found, body.Connection.Connection, body.Guide, "")
	if h.app.Tests.CanBegin(c.Caller, found) {
		shown.URL = h.app.Tests.URL(found)
	}
	body.Test, body.Claims = &shown, readable(found.Claims)
	return nil
}

// startWithReturn is where a sign-in begins that leads back to the path.
func startWithReturn(start, path string) string {
	return start + "?" + url.Values{"return": {path}}.Encode()
}
