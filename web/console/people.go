package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// peopleFilters are the filters of the list: those of the API.
var peopleFilters = []string{"q", "role", "status", "factor", "sort"}

// peopleSorting is how the list can be sorted, of what the API can.
var peopleSorting = sorting{[]column{
	{"name", "people.person", "text"}, {"role", "field.role", "rank"}, {"createdAt", "people.joined", "time"}, {"lastLoginAt", "people.seen", "time"},
}, "createdAt"}

// people is the content of the list.
type people struct {
	pageData
	pager
	Roles  []doorward.Role
	Items  []member
	Export string       // link to the list as a file, or to a proof of identity if one is needed first
	Given  []roleChoice // roles that the caller may give
}

// member is a row of the list.
type member struct {
	doorward.User
	CanManage bool // the caller may change this member
	CanReset  bool // the caller may reset the second factors that this member has
}

// MenuKinds are the kinds of the row for its menu.
func (m member) MenuKinds() string {
	if m.CanReset {
		return string(m.Status) + " factors"
	}
	return string(m.Status)
}

// Avatar is shown in place of a picture.
func (m member) Avatar() ui.Avatar { return ui.Avatar{Name: m.Name, Email: m.Email, ID: m.ID} }

// Listed returns the person for the first cell of a row, whose link has the query.
func (m member) Listed(f ui.Frame, query string) listedPerson {
	return listedPerson{m, f.Base + peoplePath + "/" + m.ID + query, f.Can(doorward.UserManage) && m.Factors == 0}
}

// listedPerson is a person as lists show people.
type listedPerson struct {
	member
	Link        string
	LacksFactor bool // and the caller may know that
}

func memberOf(c *ui.Call, u doorward.User) member {
	canManage := c.CanOn(doorward.UserManage, doorward.Object{TenantID: u.TenantID, Held: u.Role})
	return member{u, canManage, canManage && u.Factors > 0 && u.ID != c.Caller.ID}
}

func (h *console) people(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	pages, window, err := readWindow(ctx, c, peopleFilters, peopleSorting)
	if err != nil {
		return ui.View{}, err
	}
	f := user.Filter{Text: pages.Filter.Get("q"), Role: pages.Filter.Get("role"), Status: pages.Filter.Get("status"), Factor: pages.Filter.Get("factor")}
	found, err := h.app.Users.List(ctx, c.Caller, f, window)
	if err == nil {
		pages.Total = found.Total
		err = pages.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	}
	body := people{pageData: s, pager: pages, Roles: highestFirst(c.Caller.Rules), Export: h.exportLink(c, peoplePath, pages, "/api/v2/users"+pages.Filter.With("format", front.Spreadsheet))}
	for _, role := range body.Roles {
		if c.CanOn(doorward.UserRole, doorward.Object{TenantID: s.Tenant.ID, Granted: role}) {
			body.Given = append(body.Given, roleChoice{role, false})
		}
	}
	for _, u := range found.Items {
		body.Items = append(body.Items, memberOf(c, u))
	}
	return badFilter(autoRefresh(c, ui.View{Page: "people", Body: body, Wide: true}), err)
}

// exportLink returns the address of the file of a list, or of the page for the recent proof that
// the file needs, which leads back to the list.
func (h *console) exportLink(c *ui.Call, list string, r pager, file string) string {
	base := c.Site().BasePath()
	if h.app.Access.NeedProof(c.Caller) != nil {
		return base + "/step-up?" + url.Values{"return": {base + list + "?" + r.Query}}.Encode()
	}
	return base + file
}

// Folded counts the filters in use that a narrow screen folds.
func (p people) Folded() int { return p.Filter.Count("role", "status", "factor") }

// RolePicker is the field for the new role of the chosen people.
func (p people) RolePicker(f ui.Frame) rolePicker {
	return rolePicker{Frame: f, Choices: p.Given, Button: "picker.next", Act: roleAct}
}

// Factors are the values of the filter by second factors.
func (people) Factors() []string { return []string{"none", "any"} }

// highestFirst lists the roles of a tenant, the highest first.
func highestFirst(rules *doorward.Rules) []doorward.Role {
	all := rules.Roles()
	slices.Reverse(all)
	return all
}

// person is the content of the page of a member; what the caller may not see is empty.
type person struct {
	pageData
	User        doorward.User
	DisplayName string
	IsCaller    bool
	CanManage   bool // the caller may change this member
	MayOverride bool // the caller may lift what a directory has decided
	Tabs        ui.Tabs
	Roles       []roleChoice
	Sessions    []doorward.Session
	OwnSession  string         // id of the caller's session
	Actions     []policyAction // that the caller may have explained
	Activity    activity
	LastDays    *personDays // beside Activity
	edited
	// Connections are those of the tenant, to name those that vouch for sessions and have identities of the
	// person; empty where there are neither.
	Connections []doorward.Connection
	Identities  []doorward.Identity // at those connections
	Said        []saidOfPerson      // by directories
	Floor       directory.ByHand    // the role below which no group of a directory lowers the person's
}

// ConnectionName is the name of a connection; its id if it is gone.
func (p person) ConnectionName(id string) string {
	return cmp.Or(nameOfConnection(p.Connections, id), id)
}

// HeldBy returns the ids of the connections whose directories have switched the person off.
func (p person) HeldBy() []string {
	return slices.DeleteFunc(p.User.Suspensions(), func(reason string) bool { return reason == doorward.ByAdministrator })
}

// IsHeldByHand reports whether an administrator has suspended the person.
func (p person) IsHeldByHand() bool {
	return slices.Contains(p.User.Suspensions(), doorward.ByAdministrator)
}

// IsManaged reports whether a connection of the tenant has made the account, which has no password yet.
func (p person) IsManaged() bool {
	return p.User.ManagedBy != "" && p.User.ManagedBy == p.User.TenantID
}

// Avatar is shown in place of a picture.
func (p person) Avatar() ui.Avatar {
	return ui.Avatar{Name: p.User.Name, Email: p.User.Email, ID: p.User.ID}
}

// Tags are shown below the name.
func (p person) Tags() ui.Tags {
	tags := ui.Tags{State: "status." + string(p.User.Status), Role: p.User.Role}
	if p.CanManage && p.User.Factors == 0 {
		tags.Kinds = append(tags.Kinds, "factor.none")
	}
	if p.IsCaller {
		tags.Kinds = append(tags.Kinds, "person.self")
	}
	if p.User.Name != "" {
		tags.About = p.User.Email
	}
	return tags
}

// ResetUntil returns until when the tenant's word for a reset of the person's factors holds; nil for none.
func (p person) ResetUntil() *time.Time {
	if p.User.ResetAskedAt == nil {
		return nil
	}
	until := p.User.ResetAskedAt.Add(doorward.FactorWordLife)
	return &until
}

// SessionTable has the person's sessions, the newest first.
func (p person) SessionTable(f ui.Frame) ui.SessionTable {
	t := ui.SessionTable{Frame: f, Label: "sessions-title", Action: f.Base + peoplePath + "/" + p.User.ID + "/end-session?tab=sessions", List: p.List}
	for _, s := range p.Sessions {
		row := ui.SessionRow{Session: s, IsThis: s.ID == p.OwnSession}
		if s.Issuer != doorward.OwnIssuer {
			row.Connection = p.ConnectionName(string(s.Issuer))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// roleChoice is a role that could be given.
type roleChoice struct {
	Role    doorward.Role
	Current bool
}

// rolePicker is the field for one role of several.
type rolePicker struct {
	Frame   ui.Frame
	Choices []roleChoice
	Fault   string
	Button  string // key of a message, for a button below the choices; empty for none
	Action  string // where the button sends the form; empty: where the form goes
	Act     string // value of the field "act" that the button sends; empty for none
}

func (h *console) person(ctx context.Context, c *ui.Call) (ui.View, error) {
	v := ui.View{Page: "person", Wide: true}
	p, err := h.loadPerson(ctx, c)
	if err == nil {
		err = h.fillSaid(ctx, c, &p)
	}
	p.edited, v.Note = keepTyped(c, p.Version(), "notice.person.precondition_failed", []editedField{textField(c, "name", "field.name", p.User.Name)})
	p.Tabs = personTabs(c, p)
	if err == nil && p.Tabs.Is("sessions") {
		p.Sessions, err = h.app.Sessions.Of(ctx, c.Caller, p.User)
		v = autoRefresh(c, v)
	}
	if err == nil {
		err = h.fillSignOn(ctx, c, &p)
	}
	if err == nil && p.Tabs.Is("activity") {
		if p.Activity, err = h.activity(ctx, c, "person", p.User.ID); err == nil {
			p.LastDays, err = h.personDays(ctx, c, p.User)
		}
	}
	if c.Can(doorward.PolicyRead) {
		p.Actions = policyActions(c.Caller.Rules)
	}
	v.Body = p
	return v, err
}

// fillSignOn adds the identities to the tab about security, for those who manage sign-on, and the connections
// that the page names.
func (h *console) fillSignOn(ctx context.Context, c *ui.Call, p *person) (err error) {
	if p.Tabs.Is("security") && c.Can(doorward.SSOManage) {
		p.Identities, err = h.app.Connections.IdentitiesOf(ctx, c.Caller, p.User.ID)
	}
	isVouched := func(s doorward.Session) bool { return s.Issuer != doorward.OwnIssuer }
	if err == nil && (len(p.Identities) > 0 || slices.ContainsFunc(p.Sessions, isVouched) || len(p.HeldBy()) > 0) {
		p.Connections, err = h.app.Connections.Of(ctx, c.Caller.TenantID)
	}
	return err
}

// personTabs are the tabs of which the caller may see something.
func personTabs(c *ui.Call, p person) ui.Tabs {
	names := []string{"profile"}
	if p.CanManage {
		names = append(names, "sessions")
	}
	if p.CanManage || c.Can(doorward.PolicyRead) {
		names = append(names, "security")
	}
	if len(p.Said) > 0 {
		names = append(names, "directory")
	}
	return c.Tabs(peoplePath+"/"+p.User.ID, keptList(p.List), withActivity(c, names)...)
}

// loadPerson returns the member whom the path names, without sessions, actions and events.
func (h *console) loadPerson(ctx context.Context, c *ui.Call) (person, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return person{}, err
	}
	id, err := c.ID("id", doorward.PrefixUser)
	if err != nil {
		return person{}, err
	}
	u, err := h.app.Users.Get(ctx, c.Caller, id)
	if err != nil {
		return person{}, err
	}
	p := person{pageData: s, User: u, DisplayName: displayName(u), IsCaller: u.ID == c.Caller.ID, OwnSession: c.Caller.SessionID}
	p.CanManage, p.MayOverride = memberOf(c, u).CanManage, c.Caller.ActsAs == doorward.RoleOwner
	for _, role := range highestFirst(c.Caller.Rules) {
		if c.CanOn(doorward.UserRole, doorward.Object{TenantID: u.TenantID, Held: u.Role, Granted: role}) {
			p.Roles = append(p.Roles, roleChoice{role, role == u.Role})
		}
	}
	return p, nil
}

func (h *console) rename(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixUser)
	if err != nil {
		return ui.View{}, err
	}
	name := c.Value("name")
	target := doorward.User{ID: id, TenantID: c.Caller.TenantID}
	_, _, err = h.app.Users.Edit(ctx, c.Caller, target, user.Edit{Name: &name, Versions: version(c)})
	return redirectDone(c, "/console/people/"+id, "renamed", nil), err
}
