package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/setuplink"
	"github.com/doorward/doorward/web/front"
)

// setupLinkRoutes make and end links for the customer's own IT. Their pages are in package hosted.
func (a *api) setupLinkRoutes() []front.Route {
	guard := front.Allowed(doorward.SetupLinkManage)
	return []front.Route{
		front.On("POST /api/v2/sso/connections/{id}/setup-link", guard, front.Create(http.StatusCreated, a.makeSetupLink, viewSetupLink), docMakeSetupLink),
		front.On("DELETE /api/v2/sso/connections/{id}/setup-link", guard, front.JSON(http.StatusNoContent, a.endSetupLink), docEndSetupLink),
	}
}

type setupLinkInput struct {
	Days *front.Int `json:"days,omitempty" example:"7" minimum:"1" maximum:"7" doc:"How long the link is good; 7 if absent"`
}

// OptionalBody implements front.OptionalBody.
func (setupLinkInput) OptionalBody() {}

type setupLinkView struct {
	URL       string    `json:"url" format:"uri" example:"https://auth.example.com/setup#token=XJ0Mvz5XtmLcDHXCQ1AFSSSmYyKJGEcjKMoTPcuMgRk" doc:"The link. No other answer shows it again"`
	ExpiresAt time.Time `json:"expiresAt"`
}

func viewSetupLink(_ *front.Call, m setuplink.Made) setupLinkView {
	return setupLinkView{m.URL, m.EndsAt}
}

var docMakeSetupLink = front.Doc{
	ID: "makeSetupLink", Tag: "Sign-on", Summary: "Make a link for the customer's own IT",
	Description: "Opens pages on which somebody without an account sets this one connection up: what it signs in by, its client secrets, the records of its domains, tests and the protocol. Who joins, roles, the status and the domains themselves stay with the tenant's OWNERs. The link is bound to the first browser in which somebody presses Begin. It acts as far as the person who made it may; it ends with a newer one, with that person's membership, and with the connection.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound, doorward.CodeValidationFailed, doorward.CodeQuotaExceeded},
}

func (a *api) makeSetupLink(ctx context.Context, c *front.Call, in setupLinkInput) (setuplink.Made, error) {
	id, err := connectionID(c)
	if err != nil {
		return setuplink.Made{}, err
	}
	days := 0 // the default
	if in.Days != nil {
		days = cmp.Or(int(*in.Days), -1) // 0 is out of range here
	}
	return a.app.SetupLinks.Make(ctx, c.Caller, id, days)
}

var docEndSetupLink = front.Doc{
	ID: "endSetupLink", Tag: "Sign-on", Summary: "End the link for the customer's own IT",
	Description: "From the answer on it opens nothing, in no browser. 404 if there is none.",
	Errors:      []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeNotFound},
}

func (a *api) endSetupLink(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := connectionID(c)
	if err != nil {
		return front.None{}, err
	}
	return front.None{}, a.app.SetupLinks.End(ctx, c.Caller, id)
}
