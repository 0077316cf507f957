// Package console has the pages under /console, on which people manage their
// tenant: members, invitations, audit trail, settings.
//
// Every member may open it and sees what their role allows; forms that a role may
// not send are hidden. The pages call the same features as the API and decide
// nothing: the feature refuses what a page doesn't show.
//
// An action that ends something is confirmed on a separate page, which shows what will
// end; the page afterwards shows what has ended. A form contains the version of its
// object, so an outdated form overwrites nothing.
//
//	overview.go     figures of the tenant; the chart of sign-ins
//	attention.go    the overview: what needs attention, a function for each source
//	chart.go        bars over time, the strip of 24 hours, numbers as horizontal bars
//	people.go       the list of people, one person with sessions
//	act.go          role, suspension, sign-out, second factors, removal: confirmed, then done
//	chosen.go       several people or invitations at once; one session of a member
//	invitations.go  the list of invitations, one invitation
//	invite.go       inviting one or many
//	paste.go        reading people from pasted text and files
//	preview.go      what was read, to be corrected and sent
//	roles.go        roles: the list, creating, one role with who has it
//	keys.go         API keys: the list, one key; creating (keynew.go), rotation and ending
//	                (keyact.go), whether a request would pass (keytrial.go)
//	webhooks.go     webhooks: the list, creating, one webhook with what is done to it
//	deliveries.go   webhooks: attempts and their chart, one delivery
//	connections.go  sign-on: the list of connections, creating
//	connection.go   sign-on: one connection with its secrets, test, identities and protocol; who gets in
//	                (connectionaccess.go); what is confirmed first (connectionact.go)
//	linkactor.go    the audit trail: who has made a set-up link that acted
//	setuplink.go    sign-on: links by which a customer's own IT sets a connection up
//	domains.go      sign-on: domains and their records
//	ssopolicy.go    sign-on: what the tenant demands, whom it would shut out
//	policy.go       policies: the editor, versions with their differences
//	plan.go         policies: what a text would change
//	matrix.go       policies: who may do what before and after a change
//	explain.go      why somebody may do something, or may not
//	find.go         the search for pages, people, keys, webhooks and roles
//	audit.go        the audit trail: its filters, events in words
//	trail.go        the trail as a table, with its histogram and one event open
//	change.go       the trail: changes in words
//	operator.go     /operator, the operator's page: what its link lets it do; tenants (operatortenants.go), the
//	                installation's own trail (operatortrail.go), nodes and queues
//	pick.go         the trail: people by name, presets of filters
//	permission.go   permissions to choose from
//	field.go        fields of forms
//	conflict.go     forms of an object that somebody else has changed
//	duration.go     settings in minutes, hours or days
//	settings.go     settings; closing the tenant
//	demand.go       settings: whom a demand for second factors concerns
//	brand.go        colour and logo
//	list.go         filters and pages of lists
//	fail.go         errors, with the navigation
//	nav.go          the navigation: groups of links, each with the permission it needs
package console

import (
	"context"
	"embed"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

//go:embed html text
var files embed.FS

//go:embed assets
var assets embed.FS

var set = ui.NewSet("console", files).WithErrorView(errorView)

// Pages returns the set of the pages, to check and list their texts.
func Pages() *ui.Set { return set }

// console has the handlers.
type console struct{ app *app.App }

// Routes returns the routes of the pages over the features of a.
func Routes(a *app.App) []front.Route {
	h := &console{a}
	reads, manages, invites := front.Allowed(doorward.UserRead), front.Allowed(doorward.UserManage), front.Allowed(doorward.UserInvite)
	longText := func(path, pagePath string, g front.Guard, take, again page) front.Route {
		return front.On("POST "+path, g, set.TakeText(pagePath, maxPolicyForm, withTenantStyle(take), withTenantStyle(again)), front.Doc{})
	}
	readsPolicy, managesPolicy := front.Allowed(doorward.PolicyRead), front.Allowed(doorward.PolicyManage)
	destroys, keys := front.Allowed(doorward.TenantDestroy), front.Allowed(doorward.APIKeyManage)
	roles := front.Allowed(doorward.RoleManage)
	return append(slices.Concat(h.webhookRoutes(), h.connectionRoutes(), h.domainRoutes(), h.ssoPolicyRoutes(), h.setupLinkRoutes(), h.directoryRunRoutes(), h.operatorRoutes(), ui.Sheets("console.css", assets)), []front.Route{
		get("/console", ui.SignedIn(), h.overview),
		front.On("GET /console/{$}", front.Public(), front.Raw(withoutSlash), front.Doc{}),

		get("/console/people", reads, h.people, peopleFilters...),
		get("/console/people/{id}", reads, h.person),
		front.On("POST /console/people/chosen", manages, set.Open(peoplePath, withTenantStyle(h.choosePeople), withTenantStyle(h.people)), front.Doc{}),
		post("/console/people/chosen/do", peoplePath, manages, h.changePeople, h.choosePeople),
		post("/console/people/{id}/end-session", peoplePath, manages, h.endSession, h.person),
		post("/console/people/{id}/name", "/console/people", manages, h.rename, h.person),
		post("/console/people/{id}/from-directory", "/console/people", manages, h.leaveRole, h.person),
		post("/console/people/{id}/keep-role", "/console/people", manages, h.keepRole, h.person),
		get("/console/people/{id}/{act}", manages, h.ask),
		post("/console/people/{id}/{act}", "/console/people", manages, h.act, h.ask),

		get("/console/invitations", invites, h.invitations, invitationFilters...),
		get("/console/invitations/new", invites, h.newInvitation),
		front.On("POST /console/invitations/new", invites, set.TakeText("/console/invitations/new", maxPeopleForm, withTenantStyle(h.invite), withTenantStyle(h.newInvitation)), front.Doc{}),
		front.On("POST "+previewPath, invites, set.OpenText("/console/invitations/new", maxPeopleForm, withTenantStyle(h.previewInvitations), withTenantStyle(h.newInvitation)), front.Doc{}),
		front.On("POST "+previewPath+"/file", invites,
			set.TakeFile("/console/invitations/new", "file", maxPeopleFile, withTenantStyle(h.previewInvitations), withTenantStyle(h.newInvitation)), front.Doc{}),
		front.On("POST "+previewPath+"/send", invites, set.TakeText("/console/invitations/new", maxPeopleForm, withTenantStyle(h.sendPreview), withTenantStyle(h.newInvitation)), front.Doc{}),
		front.On("POST "+importPath, invites, set.TakeText("/console/invitations/new", maxPeopleForm, withTenantStyle(h.sendImport), withTenantStyle(h.showImportAgain)), front.Doc{}),
		front.On("POST /console/invitations/chosen", invites, set.Open(invitationsPath, withTenantStyle(h.chooseInvitations), withTenantStyle(h.invitations)), front.Doc{}),
		post("/console/invitations/chosen/do", invitationsPath, invites, h.changeInvitations, h.chooseInvitations),
		get("/console/invitations/{id}", invites, h.invitation),
		post("/console/invitations/{id}/resend", "/console/invitations", invites, h.resend, h.invitation),
		post("/console/invitations/{id}/revoke", "/console/invitations", invites, h.revoke, h.invitation),

		get(rolesPath, roles, h.roles),
		get(rolesPath+"/new", roles, h.newRole),
		post(rolesPath+"/new", rolesPath+"/new", roles, h.createRole, h.newRole),
		get(rolesPath+"/{id}", roles, h.rolePage, ui.TabParameter),
		get(rolesPath+"/{id}/edit", roles, h.editRole),
		front.On("POST "+rolesPath+"/{id}/edit", roles, set.Open(rolesPath, withTenantStyle(h.planRole), withTenantStyle(h.editRole)), front.Doc{}),
		post(rolesPath+"/{id}/save", rolesPath, roles, h.saveRole, h.editRole),
		get(rolesPath+"/{id}/delete", roles, h.askRoleEnd),
		post(rolesPath+"/{id}/delete", rolesPath, roles, h.deleteRole, h.askRoleEnd),

		get("/console/keys", keys, h.apiKeys, keyFilters...),
		get("/console/keys/new", keys, h.newKey),
		post("/console/keys/new", "/console/keys/new", keys, h.createKey, h.newKey),
		front.On("POST /console/keys/new/role", keys, set.Open("/console/keys/new", withTenantStyle(h.newKey), withTenantStyle(h.newKey)), front.Doc{}),
		get("/console/keys/{id}", keys, h.keyPage),
		post("/console/keys/{id}/edit", "/console/keys", keys, h.editKey, h.keyPage),
		post("/console/keys/{id}/rotate", "/console/keys", keys, h.rotateKey, h.keyPage),
		post("/console/keys/{id}/previous", "/console/keys", keys, h.endPreviousSecret, h.keyPage),
		get("/console/keys/{id}/{act}", keys, h.askKey),
		post("/console/keys/{id}/{act}", "/console/keys", keys, h.actOnKey, h.askKey),

		get(policyPath, readsPolicy, h.policyPage),
		longText(policyPath, policyPath, managesPolicy, h.putPolicy, h.policyPage),
		front.On("POST "+policyPath+"/plan", managesPolicy, set.OpenText(policyPath, maxPolicyForm, withTenantStyle(h.planPolicy), withTenantStyle(h.policyPage)), front.Doc{}),
		front.On("POST "+policyPath+"/example", managesPolicy, set.OpenText(policyPath, maxPolicyForm, withTenantStyle(h.policyPage), withTenantStyle(h.policyPage)), front.Doc{}),
		post(policyPath+"/confirm", policyPath, managesPolicy, h.confirmPolicy, h.confirmAgain),
		get(policyPath+"/versions", readsPolicy, h.policyVersions),
		get(policyPath+"/versions/{version}", readsPolicy, h.policyVersionPage),
		get(policyPath+"/versions/{version}/restore", managesPolicy, h.askRestore),
		post(policyPath+"/versions/{version}/restore", policyPath+"/versions", managesPolicy, h.restorePolicy, h.askRestore),

		get(explainPath, readsPolicy, h.explain),

		get(findPath, ui.SignedIn(), h.find, "q"),

		get(auditPath, front.Allowed(doorward.AuditRead), h.audit, auditFilters...),

		get("/console/settings", front.Allowed(doorward.TenantRead), h.settings),
		post("/console/settings", "/console/settings", front.Allowed(doorward.SettingsManage), h.setSettings, h.settings),
		post("/console/settings/accent", "/console/settings", front.Allowed(doorward.SettingsManage), h.setAccent, h.settings),
		front.On("POST /console/settings/logo", front.Allowed(doorward.SettingsManage),
			set.TakeFile("/console/settings", "logo", doorward.MaxLogoSent, withTenantStyle(h.setLogo), withTenantStyle(h.settings)), front.Doc{}),
		post("/console/settings/logo/remove", "/console/settings", front.Allowed(doorward.SettingsManage), h.removeLogo, h.settings),
		get("/console/close", destroys, h.askClosing),
		post("/console/close", "/console/close", destroys, h.closeTenant, h.askClosing),

		ui.Asset("console.js", "text/javascript; charset=utf-8", assets),
		ui.Asset("live.js", "text/javascript; charset=utf-8", assets),
		ui.Asset("settings.js", "text/javascript; charset=utf-8", assets),
	}...)
}

// get returns the route of a page.
func get(path string, g front.Guard, show page, filters ...string) front.Route {
	return front.On("GET "+path, g, set.Show(withTenantStyle(show)), front.Doc{Query: filterParameters(filters)})
}

// post returns the route of a form on the page at pagePath; again shows the form again, with
// its faults.
func post(path, pagePath string, g front.Guard, take, again page) front.Route {
	return front.On("POST "+path, g, set.Take(pagePath, withTenantStyle(take), withTenantStyle(again)), front.Doc{})
}

// withoutSlash redirects an address with a trailing slash.
func withoutSlash(_ context.Context, c *front.Call) error {
	to := url.URL{Path: c.Site().BasePath() + "/console", RawQuery: c.R.URL.RawQuery}
	c.W.Header().Set("Location", to.String())
	c.W.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

// page handles a page or its form.
type page = func(ctx context.Context, c *ui.Call) (ui.View, error)

// withTenantStyle adds the console's style sheet and script, and the tenant's brand, to the
// page. A page that was loaded by GET can search; the answer to a form has only the link to the search.
func withTenantStyle(p page) page {
	return func(ctx context.Context, c *ui.Call) (ui.View, error) {
		v, err := p(ctx, c)
		v.Styles, v.Scripts = []string{"console.css"}, append([]string{"console.js"}, v.Scripts...)
		v.Connects = v.Connects || front.Safe(c.R.Method)
		if shown, ok := v.Body.(interface{ tenantShown() doorward.Tenant }); ok {
			v.Tenant = shown.tenantShown()
		}
		if shown, ok := v.Body.(interface{ factorDue() *user.FactorDue }); ok {
			v.FactorDue = shown.factorDue()
		}
		return v, err
	}
}

// autoRefresh enables the automatic refresh of a page. The answer to a form has
// none: its address can't be loaded again.
func autoRefresh(c *ui.Call, v ui.View) ui.View {
	if front.Safe(c.R.Method) {
		v.Scripts = []string{"live.js"}
	}
	return v
}

// pageData is common to all pages.
type pageData struct {
	Tenant doorward.Tenant
	Ended  *ended          // what the last action has ended; nil for none
	Count  int             // how many were changed, for actions on several
	List   string          // query of the list that the caller came from
	Others []doorward.User // the caller's memberships in other tenants
	Due    *user.FactorDue // of the caller; nil for none
}

// listQuery is the query that the page of one row keeps for its link back to the
// list.
const listQuery = "list"

// listQueryOf returns the query of the list that the request came from, reduced to known
// parameters.
func listQueryOf(c *ui.Call) string {
	text := c.Value(listQuery)
	if text == "" {
		text = c.R.URL.Query().Get(listQuery)
	}
	sent, _ := url.ParseQuery(text) // invalid parts are left out
	known := url.Values{}
	for _, name := range append([]string{"cursor", "before", rowParameter}, slices.Concat(peopleFilters, invitationFilters, keyFilters, deliveryFilters)...) {
		if value := sent.Get(name); value != "" {
			known.Set(name, value)
		}
	}
	return known.Encode()
}

// ListQuery returns the query of the link back to the list.
func (s pageData) ListQuery() string {
	if s.List == "" {
		return ""
	}
	return "?" + s.List
}

// ReturnToList returns the query of a link, with which the linked page can link back to the
// list.
func (s pageData) ReturnToList() string { return returnToList(s.List) }

func returnToList(list string) string {
	if list == "" {
		return ""
	}
	return "?" + keptList(list).Encode()
}

// keptList is the parameter of links between the pages of an object, by which each can link back to
// the list; empty for none.
func keptList(list string) url.Values {
	if list == "" {
		return nil
	}
	return url.Values{listQuery: {list}}
}

// tenantShown returns the tenant that the page is about.
func (s pageData) tenantShown() doorward.Tenant { return s.Tenant }

// factorDue returns when a tenant demands a second factor that the caller lacks; nil for no demand.
func (s pageData) factorDue() *user.FactorDue { return s.Due }

// ended counts what has ended or will end. Transferred are keys that got another owner instead.
// Webhooks go on.
type ended struct{ Sessions, Keys, Transferred, Invitations, Webhooks int }

func endedOf(e doorward.Ended) ended {
	return ended{int(e.Sessions), int(e.APIKeys), int(e.APIKeysTransferred), int(e.Invitations), len(e.Webhooks)}
}

func (h *console) pageData(ctx context.Context, c *ui.Call) (pageData, error) {
	t, err := h.app.Tenants.Get(ctx, c.Caller.TenantID)
	s := pageData{Tenant: t, Count: queryNumber(c, "count"), List: listQueryOf(c)}
	if err != nil {
		return s, err
	}
	memberships, err := h.app.Users.Memberships(ctx, c.Caller)
	if err != nil {
		return s, err
	}
	s.Due, err = h.app.Users.FactorDue(ctx, memberships)
	s.Others = otherTenants(c.Caller, memberships)
	if c.R.URL.Query().Has("sessions") {
		s.Ended = &ended{queryNumber(c, "sessions"), queryNumber(c, "keys"), queryNumber(c, "taken"), queryNumber(c, "invitations"), queryNumber(c, "webhooks")}
	}
	return s, err
}

// otherTenants are the memberships in tenants that the caller can switch to. One that demands a second
// factor asks for it on the way.
func otherTenants(by doorward.Caller, all []doorward.User) []doorward.User {
	return slices.DeleteFunc(all, func(m doorward.User) bool {
		return m.TenantID == by.TenantID || session.CheckUsable(m) != nil
	})
}

// queryNumber returns a positive number in the query, 0 for anything else: a crafted link can't
// inject text.
func queryNumber(c *ui.Call, name string) int {
	n, err := strconv.Atoi(c.R.URL.Query().Get(name))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// redirectDone redirects to the path and the tab of the form, where the page says what was done and
// what has ended.
func redirectDone(c *ui.Call, path, done string, counts *ended) ui.View {
	return redirectToTab(c, path, c.TabQuery(), done, counts)
}

// redirectToTab is redirectDone with the tab of the query.
func redirectToTab(c *ui.Call, path string, tab url.Values, done string, counts *ended) ui.View {
	q := noticeQuery(done, counts)
	maps.Copy(q, tab)
	if list := listQueryOf(c); list != "" {
		q.Set(listQuery, list)
	}
	return c.To(path + "?" + q.Encode())
}

// noticeQuery returns the query by which the next page shows what was done. Its message has
// the key "done." and the value of done.
func noticeQuery(done string, counts *ended) url.Values {
	q := url.Values{"done": {done}}
	if counts != nil {
		q.Set("sessions", strconv.Itoa(counts.Sessions))
		q.Set("invitations", strconv.Itoa(counts.Invitations))
		if counts.Keys > 0 {
			q.Set("keys", strconv.Itoa(counts.Keys))
		}
		if counts.Transferred > 0 {
			q.Set("taken", strconv.Itoa(counts.Transferred))
		}
		if counts.Webhooks > 0 {
			q.Set("webhooks", strconv.Itoa(counts.Webhooks))
		}
	}
	return q
}

// memberName returns the displayName of a member, or the id if the caller may not read people.
// Errors: not_found, unavailable.
func (h *console) memberName(ctx context.Context, c *ui.Call, id string) (string, error) {
	if !c.Can(doorward.UserRead) {
		return id, nil
	}
	u, err := h.app.Users.Get(ctx, c.Caller, id)
	return displayName(u), err
}

// displayName returns the name of a member, or else the address.
func displayName(u doorward.User) string {
	if u.Name != "" {
		return u.Name
	}
	return u.Email
}

// Version returns the version of the tenant, for forms. A form that is shown again keeps
// its first version, since somebody may have changed the tenant; a form that was refused for
// that gets the present one, see keepTyped.
func (s pageData) Version() string { return s.Tenant.Version() }

// Version returns the version of the member, for forms.
func (p person) Version() string { return p.User.Version() }

// version returns the version of the object that the form was made for, as the field Versions
// of an edit; nil if the form has none.
func version(c *ui.Call) []string {
	if v := c.Value("version"); v != "" {
		return []string{v}
	}
	return nil
}
