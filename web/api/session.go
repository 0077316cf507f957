package api

import (
	"context"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

type current struct {
	Session front.Session `json:"session"`
	User    front.User    `json:"user"`
}

var docSession = front.Doc{
	ID: "session", Tag: "Sessions", Summary: "Show the session and who is signed in",
	Description: "Counts as a use of the session.",
}

func (a *api) session(ctx context.Context, c *front.Call, _ front.None) (current, error) {
	cred, err := a.app.Sessions.Describe(ctx, c.AllSessions()[0])
	return current{front.ViewSession(cred.Session, true, a.app.Sessions.Limits()), front.ViewUser(cred.User)}, err
}

type sessionList struct {
	Items []front.Session `json:"items"`
	front.Total
}

var docSessions = front.Doc{
	ID: "listSessions", Tag: "Sessions", Summary: "List one's own sessions",
	Description: "In all tenants, usually the newest first; `current` is the one of the request.",
	Sort:        sessionSorts,
}

func (a *api) sessions(ctx context.Context, c *front.Call, _ front.None) (sessionList, error) {
	all, err := a.app.Sessions.Own(ctx, c.Caller)
	if err != nil {
		return sessionList{}, err
	}
	return a.viewSessions(c, all)
}

func (a *api) viewSessions(c *front.Call, all []doorward.Session) (out sessionList, err error) {
	out.Items = make([]front.Session, 0, len(all))
	for _, s := range all {
		out.Items = append(out.Items, front.ViewSession(s, s.ID == c.Caller.SessionID, a.app.Sessions.Limits()))
	}
	out.Total, err = front.Sorted(c, out.Items, sessionOrders)
	return out, err
}

var docEndSession = front.Doc{
	ID: "endSession", Tag: "Sessions", Summary: "End one of one's own sessions",
	WhilePaused: true,
	Description: "Ending the session of the request clears the cookie.",
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) endSession(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := c.ID("id", doorward.PrefixSession)
	if err != nil {
		return front.None{}, err
	}
	revocation, err := a.app.Sessions.EndOwn(ctx, c.Caller, id)
	c.Revoked(revocation)
	if err != nil {
		return front.None{}, err
	}
	if id == c.Caller.SessionID {
		c.ClearSession()
	}
	return front.None{}, nil
}

var docEndOtherSessions = front.Doc{
	ID: "endOtherSessions", Tag: "Sessions", Summary: "End all one's own sessions except this one",
	WhilePaused: true,
	Description: "In every tenant. Other browsers that have signed in before are no longer known: their `doorward_device` is void.",
}

func (a *api) endOtherSessions(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	revocation, err := a.app.Sessions.EndOthers(ctx, c.Caller)
	c.Revoked(revocation)
	return front.None{}, err
}
