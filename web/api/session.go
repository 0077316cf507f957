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
	cred, err := a.app.Sessions.Describe(ctx, c.AllSessions()[0]) // the guard requires exactly one
	return current{front.ViewCurrentSession(cred.Session, a.app.Sessions.Limits()), front.ViewUser(cred.User)}, err
}

type sessionList struct {
	Items []front.Session `json:"items"`
	front.PageInfo
}

var sessionSorts = []string{"createdAt", "lastSeenAt"}

var sessionOrders = map[string]front.Order[front.Session]{
	"createdAt":  func(a, b front.Session) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"lastSeenAt": func(a, b front.Session) int { return a.LastSeenAt.Compare(b.LastSeenAt) },
}

var docSessions = front.Doc{
	ID: "listSessions", Tag: "Sessions", Summary: "List one's own sessions",
	Description: "In all tenants, the newest first, unless sorted otherwise; `current` is the one of the request.",
	List:        true,
	Sort:        sessionSorts,
}

func (a *api) sessions(ctx context.Context, c *front.Call, _ front.None) (sessionList, error) {
	all, err := a.app.Sessions.Own(ctx, c.Caller)
	if err != nil {
		return sessionList{}, err
	}
	return a.viewSessions(ctx, c, all)
}

func (a *api) viewSessions(ctx context.Context, c *front.Call, all []doorward.Session) (out sessionList, err error) {
	view := make([]front.Session, 0, len(all))
	for _, s := range all {
		view = append(view, front.ViewSession(s, s.ID == c.Caller.SessionID, a.app.Sessions.Limits()))
	}
	out.Items, out.PageInfo, err = front.PageOf(ctx, c, view, func(s front.Session) string { return s.ID }, sessionOrders)
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
	c.SetRevocation(revocation)
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
	c.SetRevocation(revocation)
	return front.None{}, err
}

var docUserSessions = front.Doc{
	ID: "listUserSessions", Tag: "People", Summary: "List a person's sessions in this tenant",
	Description: "The newest first, unless sorted otherwise. Sessions of the person in other tenants are not shown.",
	List:        true,
	Sort:        sessionSorts,
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) userSessions(ctx context.Context, c *front.Call, _ front.None) (sessionList, error) {
	target, err := a.storedMember(ctx, c)
	if err != nil {
		return sessionList{}, err
	}
	all, err := a.app.Sessions.Of(ctx, c.Caller, target)
	if err != nil {
		return sessionList{}, err
	}
	return a.viewSessions(ctx, c, all)
}

// storedMember returns the user of the path as stored, with the role, which decides who may act
// on the user.
func (a *api) storedMember(ctx context.Context, c *front.Call) (doorward.User, error) {
	target, err := member(c)
	if err != nil {
		return target, err
	}
	return a.app.Users.Get(ctx, c.Caller, target.ID)
}

var docEndUserSession = front.Doc{
	ID: "endUserSession", Tag: "People", Summary: "End one of a person's sessions in this tenant",
	WhilePaused: true,
	Description: "On every node before the answer. Ending the session of the request clears the cookie.",
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) endUserSession(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	target, err := a.storedMember(ctx, c)
	if err != nil {
		return front.None{}, err
	}
	id, err := c.ID("sid", doorward.PrefixSession)
	if err != nil {
		return front.None{}, err
	}
	revocation, err := a.app.Sessions.EndOf(ctx, c.Caller, target, id)
	c.SetRevocation(revocation)
	if err == nil && id == c.Caller.SessionID {
		c.ClearSession()
	}
	return front.None{}, err
}
