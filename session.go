package doorward

import "time"

// Session is server-side state behind the identifier that a client carries in
// the cookie JSESSIONID. It is in exactly one tenant.
type Session struct {
	ID         string
	UserID     string
	TenantID   string
	CreatedAt  time.Time
	LastSeenAt time.Time
	IP         string
	UserAgent  string
	// Tenant is what its tenant has tightened.
	Tenant TenantSettings
}

// SessionLimits bound the life and number of sessions.
type SessionLimits struct {
	Idle     time.Duration // since the last request
	Absolute time.Duration // since the login
	PerUser  int           // beyond it the oldest ends; 0 is no limit
}

// ExpiresAt is when the session ends whatever its use, under the limits of the
// installation and what its tenant has tightened.
func (s Session) ExpiresAt(l SessionLimits) time.Time {
	return s.CreatedAt.Add(s.Tenant.Tighten(l).Absolute)
}

// IdleExpiresAt is when the session ends if it isn't used; never after
// ExpiresAt.
func (s Session) IdleExpiresAt(l SessionLimits) time.Time {
	idle, end := s.LastSeenAt.Add(s.Tenant.Tighten(l).Idle), s.ExpiresAt(l)
	if idle.After(end) {
		return end
	}
	return idle
}

// DeviceLife is how long a browser that has signed in is known: the longest
// that browsers keep a cookie (RFC 6265bis, section 5.5).
const DeviceLife = 400 * 24 * time.Hour

// MaxDevices is how many cookies of known browsers one request may have: its own,
// those of other accounts on a shared computer, and what neighbouring hosts set.
const MaxDevices = 4
