package api

import (
	"cmp"
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
	"github.com/doorward/doorward/web/front"
)

type membershipView struct {
	TenantID   string              `json:"tenantId"`
	TenantName string              `json:"tenantName"`
	Role       doorward.Role       `json:"role" example:"USER"`
	Status     doorward.UserStatus `json:"status" enum:"active,suspended"`
	Current    bool                `json:"current" doc:"Whether the session is in this tenant"`
}

type membershipList struct {
	Items []membershipView `json:"items"`
	front.PageInfo
}

var docMemberships = front.Doc{
	ID: "listMemberships", Tag: "Sessions", Summary: "List the tenants one belongs to",
	Description: "The oldest membership first, unless sorted otherwise.",
	List:        true,
	Sort:        []string{"tenantName"},
}

var membershipOrders = map[string]front.Order[membershipView]{
	"tenantName": func(a, b membershipView) int { return cmp.Compare(fold.Key(a.TenantName), fold.Key(b.TenantName)) },
}

func (a *api) memberships(ctx context.Context, c *front.Call, _ front.None) (membershipList, error) {
	all, err := a.app.Users.Memberships(ctx, c.Caller)
	if err != nil {
		return membershipList{}, err
	}
	view := make([]membershipView, 0, len(all))
	for _, m := range all {
		view = append(view, membershipView{
			TenantID: m.TenantID, TenantName: m.TenantName, Role: m.Role, Status: m.Status,
			Current: m.TenantID == c.Caller.TenantID,
		})
	}
	var out membershipList
	out.Items, out.PageInfo, err = front.PageOf(ctx, c, view, func(m membershipView) string { return m.TenantID }, membershipOrders)
	return out, err
}

var docLeaveTenant = front.Doc{
	ID: "leaveTenant", Tag: "Sessions", Summary: "Leave a tenant",
	Description: "Ends one's own membership with its sessions and the invitations sent there. It needs a recent proof of identity, as what concerns the whole account does. The last active OWNER of an active tenant can't leave; a frozen or closing one holds nobody back. Leaving the tenant of the session clears the cookie.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeLastOwner, doorward.CodeNoWayBack},
}

func (a *api) leaveTenant(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := c.ID("tenantId", doorward.PrefixTenant)
	if err != nil {
		return front.None{}, err
	}
	ended, err := a.app.Users.Leave(ctx, c.Caller, id)
	if err != nil {
		return front.None{}, err
	}
	c.SetRevocation(ended.Revocation)
	if id == c.Caller.TenantID {
		c.ClearSession()
	}
	return front.None{}, nil
}

type switchInput struct {
	TenantID string `json:"tenantId" example:"tnt_7vkq2m5x3yh4n6rj7wd2c5tpae"`
}

var docSwitchTenant = front.Doc{
	ID: "switchTenant", Tag: "Sessions", Summary: "Switch to another tenant",
	WhilePaused: true,
	Description: "Opens a session in the other tenant and ends the one of the request. The new one keeps the login time of the old one as its `createdAt`, from which the other tenant's limit runs. Where that tenant asks for a second factor, the answer is `mfa_required` with a challenge that login/second completes; until then the session of the request stays. Where it demands a factor and the account has none, the session must have been proved recently, as for setting up a factor.",
	Errors:      []doorward.Code{doorward.CodeSignInRequired, doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeLoginTooOld, doorward.CodeTenantFrozen, doorward.CodeTenantClosing, doorward.CodeMFARequired, doorward.CodeMFAEnrolmentRequired, doorward.CodeTooManyAttempts, doorward.CodeSSORequired, doorward.CodeGuestsRefused},
}

func (a *api) switchTenant(ctx context.Context, c *front.Call, in switchInput) (signedIn, error) {
	if err := required(field{"/tenantId", in.TenantID}); err != nil {
		return signedIn{}, err
	}
	outcome, err := a.app.Login.Switch(ctx, c.Caller, in.TenantID)
	if err != nil {
		return signedIn{}, err
	}
	return a.signIn(c, outcome)
}
