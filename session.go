package doorward

import "time"

// Session is the server-side state of a token in the session cookie. It is in exactly
// one tenant.
type Session struct {
	ID         string
	UserID     string
	TenantID   string
	CreatedAt  time.Time
	LastSeenAt time.Time
	IP         string
	UserAgent  string
	Assurance
	// Role and JoinedAt are those of the membership.
	Role     Role
	JoinedAt time.Time
	// Tenant has the settings of the session's tenant, which may tighten the limits.
	Tenant TenantSettings
}

// SessionLimits limit the duration and number of sessions.
type SessionLimits struct {
	Idle     time.Duration // since the last request
	Absolute time.Duration // since the login
	PerUser  int           // beyond it the oldest ends; 0 is no limit
}

// ExpiresAt is the absolute limit of the session, under the limits of the
// installation and of its tenant. Without the second factor that the tenant demands it
// ends with the days of grace.
func (s Session) ExpiresAt(l SessionLimits) time.Time {
	end := s.CreatedAt.Add(s.Tenant.Tighten(l).Absolute)
	if by, demanded := s.Tenant.SecondFactor.From(s.Role, s.JoinedAt); demanded && !s.Satisfies() && by.Before(end) {
		return by
	}
	return end
}

// Satisfies reports whether the session satisfies a demand for a second factor.
func (a Assurance) Satisfies() bool { return a.AAL > 1 || a.Remembered }

// AuthAt is when the user was last authenticated.
func (s Session) AuthAt() time.Time {
	if s.ProvedAt.Before(s.CreatedAt) {
		return s.CreatedAt
	}
	return s.ProvedAt
}

// IdleExpiresAt is when the session ends unless it is used; never after ExpiresAt.
func (s Session) IdleExpiresAt(l SessionLimits) time.Time {
	idle, end := s.LastSeenAt.Add(s.Tenant.Tighten(l).Idle), s.ExpiresAt(l)
	if idle.After(end) {
		return end
	}
	return idle
}

// DeviceLife is how long a browser that has signed in is known: the maximum age of
// cookies in browsers (RFC 6265bis, section 5.5).
const DeviceLife = 400 * 24 * time.Hour

// MaxDevices is how many cookies of known browsers are checked in one request:
// those of accounts on a shared computer, and any set by neighbouring hosts.
const MaxDevices = 4
