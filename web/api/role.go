package api

import (
	"cmp"
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/role"
	"github.com/doorward/doorward/web/front"
)

// roleView is a role of a tenant.
type roleView struct {
	ID          string            `json:"id" example:"rol_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Name        doorward.Role     `json:"name" example:"SUPPORT"`
	About       string            `json:"about" example:"Answers customers" doc:"Empty when not given, and for the built-in roles"`
	Permissions []doorward.Action `json:"permissions" doc:"Sorted"`
	Rank        doorward.Role     `json:"rank" enum:"OWNER,ADMIN,USER,VIEWER" doc:"The lowest built-in role that has all of the permissions. It bounds who may give the role and who may act on those who have it"`
	Members     int64             `json:"members" doc:"How many people of the tenant have it, suspended ones included"`
	BuiltIn     bool              `json:"builtin"`
}

type roleList struct {
	Items []roleView `json:"items"`
	front.PageInfo
}

func viewRole(r role.Role) roleView {
	return roleView{r.ID, r.Name, r.About, append([]doorward.Action{}, r.Permissions...), r.Rank, r.Members, r.BuiltIn}
}

func viewNewRole(_ *front.Call, r role.Role) roleView { return viewRole(r) }

var docRoles = front.Doc{
	ID: "listRoles", Tag: "Roles", Summary: "List the roles of the tenant",
	Description: "The four built-in roles and those that the tenant has made, at most 50; the lowest rank first, unless sorted otherwise.",
	List:        true,
	Sort:        []string{"name", "members"},
}

var roleOrders = map[string]front.Order[roleView]{
	"name":    func(a, b roleView) int { return cmp.Compare(a.Name, b.Name) },
	"members": func(a, b roleView) int { return cmp.Compare(a.Members, b.Members) },
}

func (a *api) roles(ctx context.Context, c *front.Call, _ front.None) (roleList, error) {
	all, err := a.app.Roles.List(ctx, c.Caller)
	if err != nil {
		return roleList{}, err
	}
	view := make([]roleView, 0, len(all))
	for _, r := range all {
		view = append(view, viewRole(r))
	}
	var out roleList
	out.Items, out.PageInfo, err = front.PageOf(ctx, c, view, func(r roleView) string { return r.ID }, roleOrders)
	return out, err
}

var docRole = front.Doc{
	ID: "getRole", Tag: "Roles", Summary: "Show a role",
	Versioned: true,
	Errors:    []doorward.Code{doorward.CodeNotFound},
}

func (a *api) role(ctx context.Context, c *front.Call, _ front.None) (roleView, error) {
	id, err := c.ID("id", doorward.PrefixRole)
	if err != nil {
		return roleView{}, err
	}
	r, err := a.app.Roles.Get(ctx, c.Caller, id)
	return withVersion(c, r, err, viewRole)
}

type createRoleInput struct {
	Name        string   `json:"name" example:"SUPPORT" doc:"2 to 32 capital letters, digits and underscores, beginning with a letter; none of the built-in names"`
	About       string   `json:"about,omitempty" doc:"At most 200 characters"`
	Permissions []string `json:"permissions" example:"[\"user.read\",\"message.read\"]" doc:"Only those that one has oneself"`
}

var docCreateRole = front.Doc{
	ID: "createRole", Tag: "Roles", Summary: "Create a role",
	Description: "With permissions that one has oneself. The role can then be given like a built-in one.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeTooManyRoles, doorward.CodeQuotaExceeded},
}

func (a *api) createRole(ctx context.Context, c *front.Call, in createRoleInput) (role.Role, error) {
	return a.app.Roles.Create(ctx, c.Caller, role.Draft{Name: in.Name, About: in.About, Permissions: in.Permissions})
}

type editRoleInput struct {
	Name        *string   `json:"name,omitempty" doc:"Holds at once for everybody and everything that has the role"`
	About       *string   `json:"about,omitempty" doc:"At most 200 characters; empty clears it"`
	Permissions *[]string `json:"permissions,omitempty" doc:"All that the role grants; only those that one has oneself"`
}

var docEditRole = front.Doc{
	ID: "editRole", Tag: "Roles", Summary: "Change a role",
	Description: "All changes or none. Effective on every node before the answer, for the people and API keys that have the role. The built-in roles can't be changed, nor roles whose rank is above one's own. With `If-Match`, a change by somebody else since is 412.",
	Versioned:   true,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodePreconditionFailed, doorward.CodeQuotaExceeded},
}

func (a *api) editRole(ctx context.Context, c *front.Call, in editRoleInput) (roleView, error) {
	id, err := c.ID("id", doorward.PrefixRole)
	if err != nil {
		return roleView{}, err
	}
	r, revocation, err := a.app.Roles.Edit(ctx, c.Caller, id, role.Edit{Name: in.Name, About: in.About, Permissions: in.Permissions, Versions: c.Versions()})
	c.SetRevocation(revocation)
	return withVersion(c, r, err, viewRole)
}

var docDeleteRole = front.Doc{
	ID: "deleteRole", Tag: "Roles", Summary: "Delete a role",
	Description: "A role that members, pending invitations or API keys have is 409, unless `replaceBy` names the role that they get, which one must be allowed to give. So is the only role that the setting `mfaRoles` names. Effective on every node before the answer. With `If-Match`, a change by somebody else since is 412.",
	Conditional: true,
	Query: []front.Parameter{
		{Name: "replaceBy", Description: "Name of the role that takes its place", Example: "VIEWER"},
	},
	Errors: []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeInvalidQuery, doorward.CodeNotFound, doorward.CodePreconditionFailed, doorward.CodeRoleInUse},
}

func (a *api) deleteRole(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	if err := c.RefuseUnknownParameters(); err != nil {
		return front.None{}, err
	}
	id, err := c.ID("id", doorward.PrefixRole)
	if err != nil {
		return front.None{}, err
	}
	replaceBy, err := c.Filter("replaceBy")
	if err != nil {
		return front.None{}, err
	}
	revocation, err := a.app.Roles.Delete(ctx, c.Caller, id, doorward.Role(replaceBy), c.Versions()...)
	c.SetRevocation(revocation)
	return front.None{}, err
}
