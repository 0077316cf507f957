package api

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

type sessionView struct {
	ID            string    `json:"id" example:"ses_2kq7m5x3yh4n6rj7wd2c5tpae7"`
	Current       bool      `json:"current" doc:"Whether this is the session of the request"`
	TenantID      string    `json:"tenantId"`
	CreatedAt     time.Time `json:"createdAt"`
	LastSeenAt    time.Time `json:"lastSeenAt"`
	ExpiresAt     time.Time `json:"expiresAt" doc:"When the session ends whatever its use"`
	IdleExpiresAt time.Time `json:"idleExpiresAt" doc:"When the session ends if it isn't used"`
	IP            string    `json:"ip"`
	UserAgent     string    `json:"userAgent"`
}

func viewSession(s doorward.Session, current bool, l doorward.SessionLimits) sessionView {
	return sessionView{
		ID: s.ID, Current: current, TenantID: s.TenantID, CreatedAt: s.CreatedAt, LastSeenAt: s.LastSeenAt,
		ExpiresAt: s.ExpiresAt(l), IdleExpiresAt: s.IdleExpiresAt(l), IP: s.IP, UserAgent: s.UserAgent,
	}
}

type userView struct {
	ID          string              `json:"id" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Email       string              `json:"email" format:"email"`
	Name        string              `json:"name" doc:"Empty when not given"`
	Role        doorward.Role       `json:"role" enum:"OWNER,ADMIN,USER,VIEWER"`
	Status      doorward.UserStatus `json:"status" enum:"active,suspended"`
	TenantID    string              `json:"tenantId"`
	TenantName  string              `json:"tenantName"`
	Permissions []doorward.Action   `json:"permissions" doc:"What the role grants, sorted"`
	CreatedAt   time.Time           `json:"createdAt" doc:"When the person joined the tenant"`
	LastLoginAt *time.Time          `json:"lastLoginAt,omitempty" doc:"Absent before the first login to the tenant"`
}

func viewUser(u doorward.User) userView {
	return userView{
		ID: u.ID, Email: u.Email, Name: u.Name, Role: u.Role, Status: u.Status, TenantID: u.TenantID, TenantName: u.TenantName,
		Permissions: u.Role.Permissions(), CreatedAt: u.CreatedAt, LastLoginAt: u.LastLoginAt,
	}
}

type current struct {
	Session sessionView `json:"session"`
	User    userView    `json:"user"`
}

var docSession = front.Doc{
	ID: "session", Tag: "Sessions", Summary: "Show the session and who is signed in",
	Description: "Counts as a use of the session.",
}

func (a *api) session(ctx context.Context, c *front.Call, _ front.None) (current, error) {
	cred, err := a.app.Sessions.Describe(ctx, front.SessionTokens(c.R)[0])
	return current{viewSession(cred.Session, true, a.app.Sessions.Limits()), viewUser(cred.User)}, err
}

type sessionList struct {
	Items []sessionView `json:"items"`
}

var docSessions = front.Doc{
	ID: "listSessions", Tag: "Sessions", Summary: "List one's own sessions",
	Description: "Those in all own tenants, the newest first; `current` is the one of the request.",
}

func (a *api) sessions(ctx context.Context, c *front.Call, _ front.None) (sessionList, error) {
	all, err := a.app.Sessions.Own(ctx, c.Caller)
	out := sessionList{Items: make([]sessionView, 0, len(all))}
	for _, s := range all {
		out.Items = append(out.Items, viewSession(s, s.ID == c.Caller.Session.ID, a.app.Sessions.Limits()))
	}
	return out, err
}

var docEndSession = front.Doc{
	ID: "endSession", Tag: "Sessions", Summary: "End one of one's own sessions",
	Description: "Ending the session of the request clears the cookie.",
	Errors:      []doorward.Code{doorward.CodeNotFound},
}

func (a *api) endSession(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	id, err := c.ID("id", doorward.PrefixSession)
	if err != nil {
		return front.None{}, err
	}
	if err := a.app.Sessions.EndOwn(ctx, c.Caller, id); err != nil {
		return front.None{}, err
	}
	if id == c.Caller.Session.ID {
		c.ClearSession()
	}
	return front.None{}, nil
}

var docEndOtherSessions = front.Doc{
	ID: "endOtherSessions", Tag: "Sessions", Summary: "End all one's own sessions but this one",
	Description: "In every tenant.",
}

func (a *api) endOtherSessions(ctx context.Context, c *front.Call, _ front.None) (front.None, error) {
	return front.None{}, a.app.Sessions.EndOthers(ctx, c.Caller)
}
