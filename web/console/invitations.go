package console

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// invitationFilters are the filters of the list: those of the API.
var invitationFilters = []string{"q", "role", "status", "delivery", "sort"}

// invitationSorting is how the list can be sorted, of what the API can.
var invitationSorting = sorting{[]column{{"email", "field.email", "text"}, {"role", "field.role", "rank"}, {"createdAt", "invitations.sent", "time"}}, "-createdAt"}

// invitationStates lists the states, the most interesting first.
var invitationStates = []doorward.InvitationState{
	doorward.InvitationPending, doorward.InvitationAccepted, doorward.InvitationExpired, doorward.InvitationRevoked,
}

// mailStates lists the states of an invitation's mail, the most urgent first.
var mailStates = []doorward.Delivery{doorward.DeliveryFailed, doorward.DeliveryQueued, doorward.DeliverySent}

// listedInvitation is an invitation with its current state.
type listedInvitation struct {
	doorward.Invitation
	State     doorward.InvitationState
	CanManage bool // the caller may send it again and revoke it: user.invite permits both
}

// Avatar is shown in place of a picture.
func (i listedInvitation) Avatar() ui.Avatar {
	return ui.Avatar{Name: i.Name, Email: i.Email, ID: i.ID}
}

// Tags are shown below the address.
func (i listedInvitation) Tags() ui.Tags {
	return ui.Tags{State: "state." + string(i.State), Role: i.Role, About: i.Name}
}

// ShowsDelivery reports whether the mail's delivery still matters: the invitation can be
// accepted, or has expired and can be sent again.
func (i listedInvitation) ShowsDelivery() bool {
	return i.State == doorward.InvitationPending || i.State == doorward.InvitationExpired
}

func (h *console) listedInvitation(c *ui.Call, inv doorward.Invitation) listedInvitation {
	on := doorward.Object{TenantID: inv.TenantID, Granted: inv.Role}
	return listedInvitation{inv, inv.StateAt(c.Now()), c.CanOn(doorward.InvitationRevoke, on)}
}

// invitations is the content of the list.
type invitations struct {
	pageData
	pager
	States     []doorward.InvitationState
	Deliveries []doorward.Delivery
	Roles      []doorward.Role
	Items      []listedInvitation
	Export     string // link to the file
}

// Folded counts the filters in use that a narrow screen folds.
func (i invitations) Folded() int { return i.Filter.Count("role", "status", "delivery") }

func (h *console) invitations(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	pages, window, err := readWindow(ctx, c, invitationFilters, invitationSorting)
	if err != nil {
		return ui.View{}, err
	}
	body := invitations{pageData: s, pager: pages, States: invitationStates, Deliveries: mailStates, Roles: highestFirst(c.Caller.Rules)}
	body.Export = h.exportLink(c, invitationsPath, pages, "/api/v2/invitations"+pages.Filter.With("format", front.Spreadsheet))
	found, err := h.app.Invitations.List(ctx, c.Caller, invite.Filter{
		Text: pages.Filter.Get("q"), Role: pages.Filter.Get("role"), State: pages.Filter.Get("status"), Delivery: pages.Filter.Get("delivery"),
	}, window)
	for _, inv := range found.Items {
		body.Items = append(body.Items, h.listedInvitation(c, inv))
	}
	if err == nil {
		body.Total = found.Total
		err = body.setLinks(ctx, c, len(found.Items), found.Prev, found.Next)
	}
	// badFilter shows the page with a note if err is about a filter.
	return badFilter(autoRefresh(c, ui.View{Page: "invitations", Body: body, Wide: true}), err)
}

// invitation is the content of the page of one invitation.
type invitation struct {
	pageData
	Invitation  listedInvitation
	Inviter     string // empty: the operator of the installation, a service, or somebody who has left
	InviterLeft bool   // the inviter isn't in the tenant any more
}

func (h *console) invitation(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	id, err := c.ID("id", doorward.PrefixInvitation)
	if err != nil {
		return ui.View{}, err
	}
	inv, err := h.app.Invitations.Get(ctx, c.Caller, id)
	if err != nil {
		return ui.View{}, err
	}
	body := invitation{pageData: s, Invitation: h.listedInvitation(c, inv)}
	if inv.InvitedBy != "" {
		inviter, err := h.memberName(ctx, c, inv.InvitedBy)
		if body.InviterLeft = doorward.HasCode(err, doorward.CodeNotFound); err != nil && !body.InviterLeft {
			return ui.View{}, err
		}
		body.Inviter = inviter
	}
	return ui.View{Page: "invitation", Body: body, Wide: true}, nil
}

func (h *console) resend(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixInvitation)
	if err == nil {
		_, err = h.app.Invitations.Resend(ctx, c.Caller, id)
	}
	return redirectDone(c, "/console/invitations/"+id, "resent", nil), err
}

func (h *console) revoke(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("id", doorward.PrefixInvitation)
	if err == nil {
		err = h.app.Invitations.Revoke(ctx, c.Caller, id)
	}
	return redirectDone(c, "/console/invitations/"+id, "revoked", nil), err
}
