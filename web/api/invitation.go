package api

import (
	"context"
	"net/http"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/web/front"
)

type invitationList struct {
	Items []invitationView `json:"items"`
	front.PageInfo
}

var docInvitations = front.Doc{
	ID: "listInvitations", Tag: "Invitations", Summary: "List the tenant's invitations",
	Description: "The newest first, unless sorted otherwise. Pages neither repeat nor skip invitations when others are added or removed. With `format=csv` the answer is a file for spreadsheets, for which a session needs a recent proof of identity; text that a spreadsheet would take for a formula begins with an apostrophe.",
	List:        true,
	Sort:        []string{"createdAt", "expiresAt", "name", "email", "role"},
	Query: []front.Parameter{
		csvFormat,
		{Name: "q", Description: "Only invitations whose address or name contains these words, in any order, without regard to case and accents", Example: "ann"},
		{Name: "role", Description: "Only invitations to this role, built in or made by the tenant", Example: "USER"},
		{Name: "status", Description: "Only invitations in this state", Enum: []string{"PENDING", "ACCEPTED", "REVOKED", "EXPIRED"}},
		{Name: "delivery", Description: "Only invitations whose newest mail is in this state", Enum: []string{"queued", "sent", "failed"}},
	},
	Errors: []doorward.Code{doorward.CodeStepUpRequired},
}

func (a *api) invitations(ctx context.Context, c *front.Call, _ front.None) (out invitationList, err error) {
	f, err := invitationFilter(c)
	if err != nil {
		return out, err
	}
	now := a.app.Now()
	out.Items, out.PageInfo, err = front.List(ctx, c, front.With(f, a.app.Invitations.List), func(i doorward.Invitation) invitationView { return viewInvitation(i, now) })
	return out, err
}

func (a *api) invitationRows(ctx context.Context, c *front.Call, w doorward.Window) ([][]string, *doorward.Position, error) {
	f, err := invitationFilter(c)
	if err != nil {
		return nil, nil, err
	}
	page, err := a.app.Invitations.List(ctx, c.Caller, f, w)
	return front.InvitationRows(page.Items, a.app.Now()), page.Next, err
}

func invitationFilter(c *front.Call) (f invite.Filter, err error) {
	err = c.Filters(front.To("q", &f.Text), front.To("role", &f.Role), front.To("status", &f.State), front.To("delivery", &f.Delivery))
	return f, err
}

var docInvitation = front.Doc{
	ID: "getInvitation", Tag: "Invitations", Summary: "Show an invitation",
	Errors: []doorward.Code{doorward.CodeNotFound},
}

func (a *api) invitation(ctx context.Context, c *front.Call, _ front.None) (invitationView, error) {
	id, err := c.ID("id", doorward.PrefixInvitation)
	if err != nil {
		return invitationView{}, err
	}
	inv, err := a.app.Invitations.Get(ctx, c.Caller, id)
	return a.viewInvitationNow(c, inv), err
}

var docResendInvitation = front.Doc{
	ID: "resendInvitation", Tag: "Invitations", Summary: "Send an invitation again",
	Description: "With a new token and a new expiry; tokens in earlier mails stop working. At the earliest a minute after the last mail, and at most five times a day per address.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeInvitationNotPending, doorward.CodeResendTooSoon, doorward.CodeQuotaExceeded},
}

func (a *api) resendInvitation(ctx context.Context, c *front.Call, _ front.None) (doorward.Invitation, error) {
	id, err := c.ID("id", doorward.PrefixInvitation)
	if err != nil {
		return doorward.Invitation{}, err
	}
	return a.app.Invitations.Resend(ctx, c.Caller, id)
}

func (a *api) viewInvitationNow(_ *front.Call, inv doorward.Invitation) invitationView {
	return viewInvitation(inv, a.app.Now())
}

var docRevokeInvitation = front.Doc{
	ID: "revokeInvitation", Tag: "Invitations", Summary: "Revoke an invitation",
	WhilePaused: true,
	Description: "If somebody accepts at the same time, one of the two succeeds and the other gets an error.",
	Errors:      []doorward.Code{doorward.CodeNotFound, doorward.CodeInvitationNotPending},
}

func (a *api) revokeInvitation(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := c.ID("id", doorward.PrefixInvitation)
	if err != nil {
		return front.None{}, err
	}
	return front.None{}, a.app.Invitations.Revoke(ctx, c.Caller, id)
}

// bulkOffer is an inviteInput without constraints in the document: faults of a row are
// answered in that row.
type bulkOffer struct {
	Email         string     `json:"email,omitempty" example:"ann@acme.example" doc:"Whom to invite"`
	Role          string     `json:"role,omitempty" example:"USER" doc:"At most one's own role"`
	Name          string     `json:"name,omitempty" example:"Ann Lee" doc:"At most 100 characters"`
	ExpiresInDays *front.Int `json:"expiresInDays,omitempty" example:"7" doc:"1 to 30; if absent 7, or the tenant's maximum if that is lower"`
	Locale        string     `json:"locale,omitempty" example:"en" doc:"Language of the mail (BCP 47): English or German; English for any other"`
}

type bulkInput struct {
	Invitations []bulkOffer `json:"invitations" minItems:"1" maxItems:"100"`
}

// bulkRow is the answer to one row, as a single invitation would have it.
type bulkRow struct {
	Status     int             `json:"status" example:"201"`
	Invitation *invitationView `json:"invitation,omitempty" doc:"With the status 201"`
	Problem    *front.Problem  `json:"problem,omitempty" doc:"With any other status; pointers count from the row"`
}

type bulkAnswer struct {
	Items []bulkRow `json:"items" doc:"In the order of the rows"`
}

// maxBulk is how many people or invitations a bulk request may be about.
const maxBulk = 100

var docInviteBulk = front.Doc{
	ID: "inviteBulk", Tag: "Invitations", Summary: "Invite several people",
	Description: "1 to 100. Each row is a separate invitation with its own answer; a malformed row is 400 for all. If the database fails before any row is invited, the answer is 503; later, the remaining rows have 503.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired},
}

func (a *api) inviteBulk(ctx context.Context, c *front.Call, in bulkInput) ([]invite.Sent, error) {
	if len(in.Invitations) < 1 || len(in.Invitations) > maxBulk {
		return nil, doorward.Invalid("/invitations", "out_of_range", "Send 1 to 100 invitations.")
	}
	offers := make([]invite.Offer, 0, len(in.Invitations))
	for _, row := range in.Invitations {
		offers = append(offers, inviteInput(row).offer())
	}
	return a.app.Invitations.SendAll(ctx, c.Caller, offers)
}

func viewSent(c *front.Call, sent []invite.Sent) bulkAnswer {
	out := bulkAnswer{Items: make([]bulkRow, 0, len(sent))}
	for _, s := range sent {
		out.Items = append(out.Items, viewRow(c, s.Invitation, s.Err))
	}
	return out
}

func viewRow(c *front.Call, inv doorward.Invitation, err error) bulkRow {
	if err != nil {
		p := c.Problem(err)
		return bulkRow{Status: p.Status, Problem: &p}
	}
	v := viewInvitation(inv, inv.CreatedAt)
	return bulkRow{Status: http.StatusCreated, Invitation: &v}
}

func (in inviteInput) offer() invite.Offer {
	return invite.Offer{Email: in.Email, Role: in.Role, Name: in.Name, Days: (*int64)(in.ExpiresInDays), Locale: in.Locale}
}

// viewInvitation returns the invitation with its state at that time.
func viewInvitation(i doorward.Invitation, now time.Time) invitationView {
	v := invitationView{
		ID: i.ID, Email: i.Email, Role: i.Role, Name: i.Name, Status: i.StateAt(now), TenantID: i.TenantID,
		CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt, AcceptedAt: i.AcceptedAt, RevokedAt: i.RevokedAt, Delivery: i.Delivery,
	}
	if i.InvitedBy != "" {
		v.InvitedBy = &i.InvitedBy
	}
	return v
}
