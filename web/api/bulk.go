package api

import (
	"context"
	"net/http"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/invite"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/front"
)

type idsInput struct {
	IDs []string `json:"ids" minItems:"1" maxItems:"100" doc:"1 to 100 ids"`
}

func (in idsInput) check() error {
	if len(in.IDs) < 1 || len(in.IDs) > maxBulk {
		return doorward.Invalid("/ids", "out_of_range", "Send 1 to 100 ids.")
	}
	return nil
}

// outcomeView is the outcome for one id, as a request about it alone would have it.
type outcomeView struct {
	ID      string         `json:"id" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Status  int            `json:"status" example:"200"`
	Ended   *front.Ended   `json:"ended,omitempty" doc:"What suspending or removing the person has ended"`
	Problem *front.Problem `json:"problem,omitempty" doc:"Why it was not done; absent if it was"`
}

type outcomes struct {
	Items []outcomeView `json:"items" doc:"In the order of the ids"`
}

func viewOutcome(c *front.Call, id string, success int, err error) outcomeView {
	if err != nil {
		p := c.Problem(err)
		return outcomeView{ID: id, Status: p.Status, Problem: &p}
	}
	return outcomeView{ID: id, Status: success}
}

const oneByOne = " Each is decided and recorded by itself, and has its own outcome, with the status of a request about it alone. If no time is left for some of them, these have 503: send them again."

var docResendAll = front.Doc{
	ID: "resendInvitations", Tag: "Invitations", Summary: "Send several invitations again",
	Description: "1 to 100." + oneByOne,
	Errors:      []doorward.Code{doorward.CodeStepUpRequired},
}

func (a *api) resendInvitations(ctx context.Context, c *front.Call, in idsInput) (outcomes, error) {
	return a.eachInvitation(ctx, c, in, http.StatusOK, a.app.Invitations.ResendAll)
}

var docRevokeAll = front.Doc{
	ID: "revokeInvitations", Tag: "Invitations", Summary: "Revoke several invitations",
	WhilePaused: true,
	Description: "1 to 100." + oneByOne,
}

func (a *api) revokeInvitations(ctx context.Context, c *front.Call, in idsInput) (outcomes, error) {
	return a.eachInvitation(ctx, c, in, http.StatusNoContent, a.app.Invitations.RevokeAll)
}

func (a *api) eachInvitation(ctx context.Context, c *front.Call, in idsInput, success int, act func(context.Context, doorward.Caller, []string) ([]invite.Outcome, error)) (outcomes, error) {
	if err := in.check(); err != nil {
		return outcomes{}, err
	}
	all, err := act(ctx, c.Caller, in.IDs)
	out := outcomes{Items: make([]outcomeView, 0, len(all))}
	for _, o := range all {
		out.Items = append(out.Items, viewOutcome(c, o.ID, success, o.Err))
	}
	return out, err
}

type bulkUsersInput struct {
	IDs    []string `json:"ids" minItems:"1" maxItems:"100" doc:"1 to 100 ids"`
	Role   *string  `json:"role,omitempty" example:"USER"`
	Status *string  `json:"status,omitempty" enum:"active,suspended"`
	Remove bool     `json:"remove,omitempty"`
}

var docBulkUsers = front.Doc{
	ID: "bulkUsers", Tag: "People", Summary: "Change or remove several people",
	Description: "1 to 100, with exactly one of `role`, `status` and `remove: true`. API keys that they own end." + oneByOne + " Suspending or removing oneself clears the cookie.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired},
}

func (a *api) bulkUsers(ctx context.Context, c *front.Call, in bulkUsersInput) (outcomes, error) {
	if err := (idsInput{in.IDs}).check(); err != nil {
		return outcomes{}, err
	}
	b := user.Bulk{Role: (*doorward.Role)(in.Role), Status: (*doorward.UserStatus)(in.Status), Remove: in.Remove}
	all, err := a.app.Users.ChangeAll(ctx, c.Caller, in.IDs, b)
	out := outcomes{Items: make([]outcomeView, 0, len(all))}
	endsAccess := in.Remove || in.Status != nil && *in.Status == string(doorward.UserSuspended)
	var slowest doorward.Revocation // of all, for the headers
	for _, o := range all {
		v := viewOutcome(c, o.ID, http.StatusOK, o.Err)
		if o.Err == nil && endsAccess {
			v.Ended = new(front.ViewEnded(o.Ended))
			if o.ID == c.Caller.ID {
				c.ClearSession()
			}
		}
		if o.Ended.Revocation.Took >= slowest.Took {
			slowest = o.Ended.Revocation
		}
		out.Items = append(out.Items, v)
	}
	c.SetRevocation(slowest)
	return out, err
}
