package console

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/ui"
)

// rolesPath is the list of roles.
const rolesPath = "/console/roles"

// roleEntry is a role as the pages show it.
type roleEntry struct {
	role.Role
	May       []ui.Permission
	CanManage bool // the caller may change it
}

func roleOf(c *ui.Call, r role.Role) roleEntry {
	one := roleEntry{Role: r}
	for _, a := range r.Permissions {
		one.May = append(one.May, ui.Describe(c.Caller.Rules.Model(), a))
	}
	on := doorward.Object{TenantID: c.Caller.TenantID, Held: r.Name}
	one.CanManage = !r.BuiltIn && c.CanOn(doorward.RoleUpdate, on)
	return one
}

// Tags are shown below the name.
func (r roleEntry) Tags() ui.Tags {
	if r.BuiltIn {
		return ui.Tags{Kinds: []string{"roles.builtin"}}
	}
	return ui.Tags{Kinds: []string{"roles.own"}, About: r.About}
}

// Groups are the permissions in groups.
func (r roleEntry) Groups(m *doorward.Model) []permissionGroup {
	return groupPermissions(m, r.Permissions, func(doorward.Action) permissionChoice { return permissionChoice{Chosen: true} })
}

// roleList is the content of the list.
type roleList struct {
	pageData
	Items []roleEntry
	Full  bool // the tenant has as many as it can have
}

func (h *console) roles(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	all, err := h.app.Roles.List(ctx, c.Caller)
	body := roleList{pageData: s, Full: len(all) >= doorward.CustomRolesMax+len(doorward.Roles)}
	for _, r := range slices.Backward(all) { // the highest first
		body.Items = append(body.Items, roleOf(c, r))
	}
	return ui.View{Page: "roles", Body: body, Wide: true}, err
}

// rolePage is the page of one role.
type rolePage struct {
	pageData
	pager
	Tabs        ui.Tabs
	Role        roleEntry
	Groups      []permissionGroup
	Invitations int // that can be accepted
	Keys        int // that have not ended
	Holders     []member
	Activity    activity
}

func (h *console) rolePage(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	pages, window, err := readWindow(ctx, c, []string{ui.TabParameter}, sorting{})
	if err != nil {
		return ui.View{}, err
	}
	one, err := h.roleAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	body := rolePage{pageData: s, pager: pages, Role: one, Groups: one.Groups(c.Caller.Rules.Model())}
	use, err := h.app.Roles.CountUse(ctx, c.Caller, one.Name)
	if err != nil {
		return ui.View{}, err
	}
	body.Invitations, body.Keys = int(use.Invitations), int(use.Keys)
	if body.Tabs = roleTabs(c, one); body.Tabs.Is("activity") {
		body.Activity, err = h.activity(ctx, c, "roles", one.ID)
	}
	if body.Tabs.Is("members") {
		found, err := h.app.Users.List(ctx, c.Caller, user.Filter{Role: string(one.Name)}, window)
		if err == nil {
			err = body.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
		}
		if err != nil {
			return ui.View{}, err
		}
		body.Total = found.Total
		for _, u := range found.Items {
			body.Holders = append(body.Holders, memberOf(c, u))
		}
	}
	return ui.View{Page: "role", Title: "roles.title", Body: body, Wide: true}, err
}

// roleTabs are the tabs of the pages about a role. The last one is the page of editRole.
func roleTabs(c *ui.Call, one roleEntry) ui.Tabs {
	path := rolesPath + "/" + one.ID
	names := []string{"permissions"}
	if c.Can(doorward.UserRead) {
		names = append(names, "members")
	}
	tabs := c.Tabs(path, nil, withActivity(c, names)...)
	if len(names) > 1 {
		tabs.Items[1].Count = one.Members
	}
	if one.CanManage {
		tabs.Items = append(tabs.Items, ui.Tab{Name: "settings", Link: c.Site().BasePath() + path + "/edit"})
	}
	return tabs
}

// roleAt returns the role that the path names.
func (h *console) roleAt(ctx context.Context, c *ui.Call) (roleEntry, error) {
	id, err := c.ID("id", doorward.PrefixRole)
	if err != nil {
		return roleEntry{}, err
	}
	r, err := h.app.Roles.Get(ctx, c.Caller, id)
	return roleOf(c, r), err
}

// roleToChange is roleAt for the pages that change a role. Errors: forbidden for one that
// the caller may not change.
func (h *console) roleToChange(ctx context.Context, c *ui.Call) (roleEntry, error) {
	one, err := h.roleAt(ctx, c)
	if err == nil && !one.CanManage {
		err = doorward.Fail(doorward.CodeForbidden, "")
	}
	return one, err
}

// roleAndPage returns what a page that changes a role shows: pageData and roleToChange.
func (h *console) roleAndPage(ctx context.Context, c *ui.Call) (pageData, roleEntry, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return s, roleEntry{}, err
	}
	one, err := h.roleToChange(ctx, c)
	return s, one, err
}

// hasPermission returns a function that reports whether the role has a permission.
func hasPermission(r roleEntry) func(doorward.Action) bool {
	return func(a doorward.Action) bool { return slices.Contains(r.Permissions, a) }
}

// mayGive returns a function that reports whether the caller may put a permission into a
// role.
func mayGive(c *ui.Call) func(doorward.Action) bool {
	return func(a doorward.Action) bool {
		on := doorward.Object{TenantID: c.Caller.TenantID, Grant: c.Caller.Rules.Model().GrantOf([]doorward.Action{a})}
		return c.CanOn(doorward.RoleCreate, on)
	}
}

// allPermissions are those that a role can have.
func allPermissions(m *doorward.Model) (all []doorward.Action) {
	for _, v := range m.Verbs() {
		if v.IsPermission() {
			all = append(all, v.Action)
		}
	}
	return all
}

// roleForm is the form for a new role, or for one that is edited.
type roleForm struct {
	pageData
	Role roleEntry // zero for a new one
	Tabs ui.Tabs   // of the role; none for a new one
	permissionForm
	edited
}

func roleFields(c *ui.Call, r roleEntry) []editedField {
	permissions := make([]string, len(r.Permissions))
	for i, p := range r.Permissions {
		permissions[i] = string(p)
	}
	return []editedField{
		textField(c, "roleName", "field.name", string(r.Name)), textField(c, "about", "field.about", r.About),
		choiceField(c, "permissions", "keys.may", "", permissions),
	}
}

// Version returns the version of the role, for forms.
func (f roleForm) Version() string { return f.Role.Version() }

func (h *console) newRole(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	form := rolePermissions(c.Caller.Rules.Model(), sentPermissions(c), mayGive(c))
	return ui.View{Page: "roleform", Body: roleForm{pageData: s, permissionForm: form}, Wide: true}, err
}

// moveRoleFaults moves the faults of a role to the fields of its form. The name of a role has
// other rules than other names, and so its field has another name.
func moveRoleFaults(err error) error {
	var e *doorward.Error
	if err = faultsToFormFields(err); errors.As(err, &e) {
		for i, f := range e.Fields { // faultsToFormFields has copied them
			if f.Pointer == "/name" {
				e.Fields[i].Pointer = "/roleName"
			}
		}
	}
	return err
}

func (h *console) createRole(ctx context.Context, c *ui.Call) (ui.View, error) {
	draft := role.Draft{Name: c.Value("roleName"), About: c.Value("about"), Permissions: c.Values("permissions")}
	made, err := h.app.Roles.Create(ctx, c.Caller, draft)
	return redirectDone(c, rolesPath+"/"+made.ID, "role-create", nil), moveRoleFaults(err)
}

func (h *console) editRole(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, one, err := h.roleAndPage(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	form, note := keepTyped(c, one.Version(), "notice.roleform.precondition_failed", roleFields(c, one))
	body := roleForm{pageData: s, Role: one, Tabs: roleTabs(c, one), edited: form}
	body.Tabs.Current = "settings"
	chosen := hasPermission(one)
	if c.Value("version") != "" { // the form is shown again
		chosen = sentPermissions(c)
	}
	body.permissionForm = rolePermissions(c.Caller.Rules.Model(), chosen, mayGive(c))
	c.Suggest("roleName", string(one.Name))
	c.Suggest("about", one.About)
	return ui.View{Page: "roleform", Note: note, Body: body, Wide: true}, nil
}

// roleChange is the page that asks for the confirmation of an edit.
type roleChange struct {
	pageData
	ID            string
	Plan          role.Plan
	Gains, Loses  []ui.Permission
	CallerHasRole bool // the caller has the role
}

// Members, Invitations and Keys count what has the role.
func (p roleChange) Members() int     { return int(p.Plan.Use.Members) }
func (p roleChange) Invitations() int { return int(p.Plan.Use.Invitations) }
func (p roleChange) Keys() int        { return int(p.Plan.Use.Keys) }

// planRole shows what the sent edit would do.
func (h *console) planRole(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, one, err := h.roleAndPage(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	plan, err := h.app.Roles.Plan(ctx, c.Caller, one.ID, editOf(c, one))
	if err != nil {
		return ui.View{}, moveRoleFaults(err)
	}
	if plan.Was.Version() == plan.Is.Version() {
		return redirectDone(c, rolesPath+"/"+one.ID, "role-same", nil), nil
	}
	body := roleChange{pageData: s, ID: one.ID, Plan: plan, CallerHasRole: c.Caller.Role == one.Name}
	body.Gains = describeAdditional(c.Caller.Rules, plan.Is.Permissions, plan.Was.Permissions)
	body.Loses = describeAdditional(c.Caller.Rules, plan.Was.Permissions, plan.Is.Permissions)
	return ui.View{Page: "rolechange", Body: body}, nil
}

// describeAdditional returns the permissions of all that are not among the others.
func describeAdditional(rules *doorward.Rules, all, others []doorward.Action) (found []ui.Permission) {
	for _, a := range all {
		if !slices.Contains(others, a) {
			found = append(found, ui.Describe(rules.Model(), a))
		}
	}
	return found
}

// editOf returns the edit of the form. If the permissions are as shown, it doesn't change them:
// the role keeps those that have left the model.
func editOf(c *ui.Call, r roleEntry) role.Edit {
	name, about, chosen := c.Value("roleName"), c.Value("about"), c.Values("permissions")
	e := role.Edit{Name: &name, About: &about, Versions: version(c)}
	same := len(chosen) == len(r.Permissions) && !slices.ContainsFunc(r.Permissions, func(a doorward.Action) bool { return !slices.Contains(chosen, string(a)) })
	if !same {
		e.Permissions = &chosen
	}
	return e
}

func (h *console) saveRole(ctx context.Context, c *ui.Call) (ui.View, error) {
	one, err := h.roleToChange(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	_, revocation, err := h.app.Roles.Edit(ctx, c.Caller, one.ID, editOf(c, one))
	c.SetRevocation(revocation)
	return redirectDone(c, rolesPath+"/"+one.ID, "role-update", nil), moveRoleFaults(err)
}

// roleEnd is the page that asks for the confirmation of a deletion.
type roleEnd struct {
	pageData
	Role                       roleEntry
	Members, Invitations, Keys int
	Replacements               []replacement
	CallerHasRole              bool // the caller has the role
}

// Used reports whether members, invitations or keys have the role; they get another one.
func (e roleEnd) Used() bool { return e.Members+e.Invitations+e.Keys > 0 }

// replacement is a role that could take the place of a deleted one, and what that would
// change for those who have it.
type replacement struct {
	Role         doorward.Role
	Gains, Loses []ui.Permission
}

func (h *console) askRoleEnd(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, one, err := h.roleAndPage(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	use, err := h.app.Roles.CountUse(ctx, c.Caller, one.Name)
	body := roleEnd{pageData: s, Role: one, Members: int(use.Members), Invitations: int(use.Invitations), Keys: int(use.Keys), CallerHasRole: c.Caller.Role == one.Name}
	if body.Used() {
		body.Replacements = replacements(c, one.Name, use.Keys > 0)
	}
	return ui.View{Page: "roleend", Body: body}, err
}

// replacements returns the roles that the caller may give in place of the deleted one, the
// highest first. OWNER is left out if API keys have the deleted one, since keys can't be OWNER.
func replacements(c *ui.Call, deleted doorward.Role, hasKeys bool) (all []replacement) {
	rules := c.Caller.Rules
	for _, r := range highestFirst(rules) {
		on := doorward.Object{TenantID: c.Caller.TenantID, Held: deleted, Granted: r}
		if r == deleted || hasKeys && r == doorward.RoleOwner || !c.CanOn(doorward.RoleDelete, on) {
			continue
		}
		all = append(all, replacement{r, additionalActions(rules, r, deleted), additionalActions(rules, deleted, r)})
	}
	return all
}

func (h *console) deleteRole(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixRole)
	if err != nil {
		return ui.View{}, err
	}
	revocation, err := h.app.Roles.Delete(ctx, c.Caller, id, doorward.Role(c.Value("replaceBy")))
	c.SetRevocation(revocation)
	if doorward.HasCode(err, doorward.CodeValidationFailed) {
		err = doorward.Invalid("/replaceBy", "invalid", "This role can't take its place.")
	}
	return redirectDone(c, rolesPath, "role-delete", nil), err
}
