package front

import (
	"time"

	"github.com/doorward/doorward"
)

// Session is a session as answers show it.
type Session struct {
	ID            string    `json:"id" example:"ses_2kq7m5x3yh4n6rj7wd2c5tpae7"`
	Current       bool      `json:"current" doc:"Whether this is the session of the request"`
	TenantID      string    `json:"tenantId"`
	CreatedAt     time.Time `json:"createdAt"`
	LastSeenAt    time.Time `json:"lastSeenAt"`
	ExpiresAt     time.Time `json:"expiresAt" doc:"When the session ends even if it is used"`
	IdleExpiresAt time.Time `json:"idleExpiresAt" doc:"When the session ends if it isn't used"`
	IP            string    `json:"ip"`
	UserAgent     string    `json:"userAgent"`
}

// ViewSession returns the session as it is shown.
func ViewSession(s doorward.Session, current bool, l doorward.SessionLimits) Session {
	return Session{
		ID: s.ID, Current: current, TenantID: s.TenantID, CreatedAt: s.CreatedAt, LastSeenAt: s.LastSeenAt,
		ExpiresAt: s.ExpiresAt(l), IdleExpiresAt: s.IdleExpiresAt(l), IP: s.IP, UserAgent: s.UserAgent,
	}
}

// Ended counts what an operation has ended, as answers show it.
type Ended struct {
	Sessions    int64 `json:"sessions"`
	APIKeys     int64 `json:"apiKeys" doc:"0: there are no keys of a tenant yet"`
	Invitations int64 `json:"invitations"`
}

// ViewEnded returns the counts as they are shown.
func ViewEnded(e doorward.Ended) Ended {
	return Ended{Sessions: e.Sessions, Invitations: e.Invitations}
}

// User is a user as answers show it.
type User struct {
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

// ViewUser returns the user as it is shown.
func ViewUser(u doorward.User) User {
	return User{
		ID: u.ID, Email: u.Email, Name: u.Name, Role: u.Role, Status: u.Status, TenantID: u.TenantID, TenantName: u.TenantName,
		Permissions: u.Role.Permissions(), CreatedAt: u.CreatedAt, LastLoginAt: u.LastLoginAt,
	}
}
