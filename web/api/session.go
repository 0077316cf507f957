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

func viewSession(s doorward.Session, l doorward.SessionLimits) sessionView {
	return sessionView{
		ID: s.ID, Current: true, TenantID: s.TenantID, CreatedAt: s.CreatedAt, LastSeenAt: s.LastSeenAt,
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

func (a *api) session(_ context.Context, c *front.Call, _ front.None) (current, error) {
	return current{viewSession(c.Caller.Session, a.app.Sessions.Limits()), viewUser(c.Caller.User)}, nil
}
