package doorward

import "time"

// Session is the server-side state of a token in the cookie JSESSIONID. It is in
// exactly one tenant.
type Session struct {
	ID         string
	UserID     string
	TenantID   string
	CreatedAt  time.Time
	LastSeenAt time.Time
	IP         string
	UserAgent  string
	// Tenant has the limits that its tenant has tightened.
	Tenant TenantSettings
}

// SessionLimits limit the duration and number of sessions.
type SessionLimits struct {
	Idle     time.Duration // since the last request
	Absolute time.Duration // since the login
	PerUser  int           // beyond it the oldest ends; 0 is no limit
}

// ExpiresAt is the absolute limit of the session, under the limits of the
// installation and of its tenant.
func (s Session) ExpiresAt(l SessionLimits) time.Time {
	return s.CreatedAt.Add(s.Tenant.Tighten(l).Absolute)
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
