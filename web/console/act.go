package console

import (
	"context"
	"maps"
	"net/url"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/ui"
)

// memberAction is an action on a member that is confirmed first.
type memberAction struct {
	endsSessions bool       // ends the member's sessions
	danger       bool       // the button is shown as dangerous
	removes      bool       // removes the member
	tab          url.Values // of the person's page, which shows the result; nil for the first
	do           func(ctx context.Context, h *console, c *ui.Call, u doorward.User) (doorward.Ended, error)
}

// memberActions are keyed by the last part of their path.
var memberActions = map[string]memberAction{
	"role": {do: func(ctx context.Context, h *console, c *ui.Call, u doorward.User) (doorward.Ended, error) {
		role := doorward.Role(c.Value("role"))
		return edit(ctx, h, c, u, user.Edit{Role: &role})
	}},
	"suspend": {endsSessions: true, danger: true, do: func(ctx context.Context, h *console, c *ui.Call, u doorward.User) (doorward.Ended, error) {
		status := doorward.UserSuspended
		return edit(ctx, h, c, u, user.Edit{Status: &status, Keys: handover(c)})
	}},
	"resume": {do: func(ctx context.Context, h *console, c *ui.Call, u doorward.User) (doorward.Ended, error) {
		status := doorward.UserActive
		return edit(ctx, h, c, u, user.Edit{Status: &status, Override: c.Value("override") == "true"})
	}},
	"sign-out": {endsSessions: true, tab: url.Values{ui.TabParameter: {"sessions"}}, do: func(ctx context.Context, h *console, c *ui.Call, u doorward.User) (doorward.Ended, error) {
		return h.app.Users.SignOut(ctx, c.Caller, u)
	}},
	"reset-factors": {endsSessions: true, danger: true, tab: url.Values{ui.TabParameter: {"security"}}, do: func(ctx context.Context, h *console, c *ui.Call, u doorward.User) (doorward.Ended, error) {
		return h.app.Factors.Reset(ctx, c.Caller, u)
	}},
	"remove": {endsSessions: true, danger: true, removes: true, do: func(ctx context.Context, h *console, c *ui.Call, u doorward.User) (doorward.Ended, error) {
		return h.app.Users.Remove(ctx, c.Caller, u, handover(c), version(c))
	}},
}

// handover returns whether the form lets the caller take over the member's API keys; otherwise
// they end.
func handover(c *ui.Call) user.Handover {
	return user.Handover{Transfer: c.Value("keys") == "transfer"}
}

func edit(ctx context.Context, h *console, c *ui.Call, u doorward.User, e user.Edit) (doorward.Ended, error) {
	e.Versions = version(c)
	_, ended, err := h.app.Users.Edit(ctx, c.Caller, u, e)
	return ended, err
}

// question is the content of the page that asks to confirm an action on a member.
type question struct {
	person
	Act          string
	Danger       bool
	EndsSessions bool
	Affected     ended // what will end
	Webhooks     []doorward.MadeWebhook
	Offers       []offeredRole // for a change of role
}

// offeredRole is a role that the person can be given, with the permissions that this would add and take away.
type offeredRole struct {
	Role         doorward.Role
	IsChosen     bool
	Gains, Loses []ui.Permission
}

func (h *console) ask(ctx context.Context, c *ui.Call) (ui.View, error) {
	action, ok := memberActions[c.R.PathValue("act")]
	if !ok {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	p, err := h.loadPerson(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	_, note := keepTyped(c, p.Version(), changedSince, nil)
	q := question{person: p, Act: c.R.PathValue("act"), Danger: action.danger, EndsSessions: action.endsSessions}
	affected, err := h.app.Overviews.CountAffected(ctx, c.Caller, p.User)
	if err != nil {
		return ui.View{}, err
	}
	q.Affected = endedOf(affected)
	if q.Act == "suspend" || q.Act == "remove" {
		q.Webhooks = affected.Webhooks
	} else { // the others end sessions at most
		q.Affected.Invitations, q.Affected.Keys = 0, 0
	}
	if q.Act == "reset-factors" && p.IsCaller { // people remove their own factors on their account
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	if q.Act == "role" {
		q.Offers = offeredRoles(p, requestedRole(c))
	}
	return ui.View{Page: "act", Title: "act." + q.Act + ".title", Note: note, Body: q}, nil
}

// offeredRoles returns the roles that the person can be given, but the present one, of which the chosen one is marked.
func offeredRoles(p person, chosen doorward.Role) (all []offeredRole) {
	rules, had := p.User.Rules, p.User.Role
	for _, choice := range p.Roles {
		if choice.Role != had {
			all = append(all, offeredRole{choice.Role, choice.Role == chosen, additionalActions(rules, choice.Role, had), additionalActions(rules, had, choice.Role)})
		}
	}
	return all
}

// requestedRole returns the role from the form, or else from the query.
func requestedRole(c *ui.Call) doorward.Role {
	if role := c.Value("role"); role != "" {
		return doorward.Role(role)
	}
	return doorward.Role(c.R.URL.Query().Get("role"))
}

// additionalActions returns the permissions that role grants and other doesn't.
func additionalActions(rules *doorward.Rules, role, other doorward.Role) []ui.Permission {
	return describeAdditional(rules, permissionsOf(rules, role), permissionsOf(rules, other))
}

func (h *console) act(ctx context.Context, c *ui.Call) (ui.View, error) {
	name := c.R.PathValue("act")
	action, ok := memberActions[name]
	if !ok {
		return ui.View{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	id, err := c.ID("id", doorward.PrefixUser)
	if err != nil {
		return ui.View{}, err
	}
	u, err := h.app.Users.Get(ctx, c.Caller, id)
	if err != nil {
		return ui.View{}, err
	}
	affected, err := action.do(ctx, h, c, u)
	c.SetRevocation(affected.Revocation)
	if err != nil {
		return ui.View{}, err
	}
	var shown *ended
	if action.endsSessions {
		counts := endedOf(affected)
		shown = &counts
	}
	if action.removes {
		return redirectToList(c, peoplePath, name, shown), nil
	}
	return redirectToTab(c, "/console/people/"+id, action.tab, name, shown), nil
}

// redirectToList redirects to the page of the list at the path that the caller came from.
func redirectToList(c *ui.Call, path, done string, counts *ended) ui.View {
	q := noticeQuery(done, counts)
	list, _ := url.ParseQuery(listQueryOf(c)) // listQueryOf encoded it
	maps.Copy(q, list)
	return c.To(path + "?" + q.Encode())
}
