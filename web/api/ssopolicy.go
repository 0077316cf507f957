package api

import (
	"context"
	"net/http"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/demand"
	"github.com/doorward/doorward/web/front"
)

// ssoPolicyRoutes are the routes of a tenant's demand for sign-on.
func (a *api) ssoPolicyRoutes() []front.Route {
	guard := front.Allowed(doorward.SSOManage)
	return []front.Route{
		front.On("POST /api/v2/auth/discover", front.Public(), front.JSON(http.StatusOK, a.discover), docDiscover),
		front.On("GET /api/v2/sso/policy", guard, front.JSON(http.StatusOK, a.ssoPolicy), docSSOPolicy),
		front.On("PUT /api/v2/sso/policy", front.Allowed(doorward.SSOPolicyChange), front.JSON(http.StatusOK, a.putSSOPolicy), docPutSSOPolicy),
		front.On("POST /api/v2/sso/policy/confirm", front.Allowed(doorward.SSOConfirm), front.JSON(http.StatusOK, a.confirmSSOPolicy), docConfirmSSOPolicy),
		front.On("GET /api/v2/sso/readiness", guard, front.JSON(http.StatusOK, a.ssoReadiness), docSSOReadiness),
	}
}

type ssoPolicyView struct {
	Mode      doorward.SSOMode `json:"mode" enum:"off,optional,required" doc:"off: no connection signs anybody in. required: members whom the demand covers sign in by a connection alone"`
	Guests    string           `json:"guests" enum:"allowed,refused" doc:"What becomes, while sign-on is required, of members whose address lies in no domain of the tenant and who have no identity at its connections"`
	ConfirmBy *time.Time       `json:"confirmBy,omitempty" doc:"When the policy returns to what it was, unless it is confirmed before; absent: it holds for good"`
}

func viewSSOPolicy(c *front.Call, p doorward.SSOPolicy) ssoPolicyView {
	c.SetVersion(p.Version())
	return ssoPolicyView{p.Mode, p.Guests(), p.ConfirmBy}
}

func viewChangedSSOPolicy(c *front.Call, changed demand.Changed, err error) (ssoPolicyView, error) {
	if err != nil {
		return ssoPolicyView{}, err
	}
	c.SetRevocation(changed.Ended.Revocation)
	return viewSSOPolicy(c, changed.SSOPolicy), nil
}

var docSSOPolicy = front.Doc{
	ID: "getSsoPolicy", Tag: "Sign-on", Summary: "Show whether sign-on is demanded",
	Description: "What holds now. A provisional change whose `confirmBy` is over has returned to what was before.",
	Versioned:   true,
}

func (a *api) ssoPolicy(ctx context.Context, c *front.Call, _ front.None) (ssoPolicyView, error) {
	policy, err := a.app.Demands.Get(ctx, c.Caller)
	if err != nil {
		return ssoPolicyView{}, err
	}
	return viewSSOPolicy(c, policy), nil
}

type ssoPolicyInput struct {
	Mode           string     `json:"mode" enum:"off,optional,required"`
	Guests         string     `json:"guests" enum:"allowed,refused"`
	ConfirmMinutes *front.Int `json:"confirmMinutes,omitempty" minimum:"5" maximum:"60" example:"30" doc:"How long there is to confirm a demand; 30 if absent"`
}

var docPutSSOPolicy = front.Doc{
	ID: "putSsoPolicy", Tag: "Sign-on", Summary: "Demand sign-on, offer it, or turn it off",
	Description: "With `off` the sessions of the tenant's connections end before the answer. `required`, and a change of `guests` under it, is provisional: sign-ins follow it from now on, sessions end when it is confirmed, and without that it returns to what it was at `confirmBy`. An OWNER with a password and a second factor, or with a passkey, always gets in: all OWNERs then get a mail.",
	Versioned:   true, MustMatch: true,
	Errors: []doorward.Code{doorward.CodeStepUpRequired, doorward.CodeConnectionNeeded, doorward.CodeDomainNeeded, doorward.CodeNoWayBack},
}

func (a *api) putSSOPolicy(ctx context.Context, c *front.Call, in ssoPolicyInput) (ssoPolicyView, error) {
	versions, err := c.NeedVersions()
	if err != nil {
		return ssoPolicyView{}, err
	}
	if err := required(field{"/mode", in.Mode}, field{"/guests", in.Guests}); err != nil {
		return ssoPolicyView{}, err
	}
	draft := demand.Draft{Mode: in.Mode, Guests: in.Guests}
	if in.ConfirmMinutes != nil {
		if draft.ConfirmMinutes = int(*in.ConfirmMinutes); draft.ConfirmMinutes == 0 {
			draft.ConfirmMinutes = -1 // out of range; 0 is the default
		}
	}
	changed, err := a.app.Demands.Put(ctx, c.Caller, draft, versions)
	return viewChangedSSOPolicy(c, changed, err)
}

var docConfirmSSOPolicy = front.Doc{
	ID: "confirmSsoPolicy", Tag: "Sign-on", Summary: "Confirm that sign-on is demanded",
	Description: "In a session that an active connection of the tenant vouches for, opened after the change: it shows that the sign-on works. Then the sessions that the demand shuts out end: those of covered members that were opened with a password or a passkey, and with `guests` refused those of guests. With `If-Match` only the policy that the caller has seen is confirmed.",
	Versioned:   true, Conditional: true,
	Errors: []doorward.Code{doorward.CodeSignInRequired, doorward.CodeNothingToConfirm, doorward.CodePreconditionFailed},
}

func (a *api) confirmSSOPolicy(ctx context.Context, c *front.Call, _ front.None) (ssoPolicyView, error) {
	changed, err := a.app.Demands.Confirm(ctx, c.Caller, c.Versions())
	return viewChangedSSOPolicy(c, changed, err)
}

type readiness struct {
	Members  int        `json:"members" example:"212" doc:"Active members"`
	BySSO30d int        `json:"bySso30d" example:"180" doc:"Of these, who have signed in by an active connection within 30 days"`
	Never    []unready  `json:"never" nullable:"false" doc:"Members who would be shut out and have never signed in by an active connection, at most 100"`
	Guests   int        `json:"guests" example:"4" doc:"Members whom the demand doesn't cover"`
	Owners   []ssoOwner `json:"owners" nullable:"false" doc:"At most 100"`
}

type unready struct {
	UserID string     `json:"userId" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Email  string     `json:"email" format:"email" example:"ann@acme.example"`
	Why    demand.Why `json:"why" enum:"not_yet,domain_lapsed,no_connection,guest" doc:"not_yet: by the connection of the domain they can sign in, and haven't; domain_lapsed: nobody is joined by that domain; no_connection: the domain has no active connection; guest: guests are refused"`
}

type ssoOwner struct {
	UserID     string `json:"userId" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	HasWayBack bool   `json:"hasWayBack" doc:"Whether they get in without the sign-on: by a password and a second factor, or by a passkey"`
}

var docSSOReadiness = front.Doc{
	ID: "getSsoReadiness", Tag: "Sign-on", Summary: "Show whom a demand for sign-on would shut out",
	Description: "By the same rules as a sign-in, with the present `guests`. Nothing is changed.",
}

func (a *api) ssoReadiness(ctx context.Context, c *front.Call, _ front.None) (readiness, error) {
	r, err := a.app.Demands.Readiness(ctx, c.Caller)
	if err != nil {
		return readiness{}, err
	}
	out := readiness{Members: r.Members, BySSO30d: r.Recently, Guests: r.Guests, Never: []unready{}, Owners: []ssoOwner{}}
	for _, n := range r.Never {
		out.Never = append(out.Never, unready(n))
	}
	for _, o := range r.Owners {
		out.Owners = append(out.Owners, ssoOwner(o))
	}
	return out, nil
}

type discoverInput struct {
	Email string `json:"email" format:"email" example:"ann@acme.example"`
}

type discovered struct {
	Methods      []string `json:"methods" example:"[\"sso\"]" nullable:"false" enum:"sso,password,passkey" doc:"sso alone where the organisation of the domain demands its sign-on"`
	ConnectionID string   `json:"connectionId,omitempty" example:"con_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"With sso"`
	StartURL     string   `json:"startUrl,omitempty" format:"uri" doc:"With sso: where the sign-on begins; may be followed by return and loginHint"`
}

var docDiscover = front.Doc{
	ID: "discover", Tag: "Sign-on", Summary: "Ask how somebody signs in",
	WhilePaused: true,
	Description: "By the domain of the address alone: whether there is such an account, the answer doesn't say. 60 a minute and client address.",
	Errors:      []doorward.Code{doorward.CodeTooManyAttempts},
}

func (a *api) discover(ctx context.Context, c *front.Call, in discoverInput) (discovered, error) {
	if err := required(field{"/email", in.Email}); err != nil {
		return discovered{}, err
	}
	home, err := a.app.Demands.Discover(ctx, c.Caller, in.Email)
	if err != nil {
		return discovered{}, err
	}
	own := []string{"password", "passkey"}
	if home.ConnectionID == "" {
		return discovered{Methods: own}, nil
	}
	out := discovered{Methods: []string{"sso"}, ConnectionID: home.ConnectionID, StartURL: front.StartURL(c.Site().BaseURL(), home.ConnectionID, "")}
	if !home.IsRequired {
		out.Methods = append(out.Methods, own...)
	}
	return out, nil
}
