package doorward

import "time"

// Session is the state on the server for the token in a session cookie. It belongs to exactly
// one tenant.
type Session struct {
	ID         string
	UserID     string
	TenantID   string
	CreatedAt  time.Time
	LastSeenAt time.Time
	IP         string
	UserAgent  string
	// NewBrowser reports whether the login was from a browser that the account didn't know, as a mail then says; the
	// first login of an account isn't, and no session that a connection vouches for.
	NewBrowser bool
	Assurance
	// Role and JoinedAt are those of the membership.
	Role     Role
	JoinedAt time.Time
	// Tenant has the settings of the session's tenant, which may tighten the limits.
	Tenant TenantSettings
	// SignOnUntil is when a session that a connection vouches for isn't accepted any more, unless the tenant's
	// demand for sign-on is confirmed: the mode is off again then. The zero Time: nothing is to be confirmed.
	SignOnUntil time.Time
}

// IsSignOnOver reports whether the mode of the tenant has returned to off by now, whether or not that has been
// written yet.
func (s Session) IsSignOnOver(now time.Time) bool {
	return !s.SignOnUntil.IsZero() && !now.Before(s.SignOnUntil)
}

// SessionLimits limit the duration and number of sessions.
type SessionLimits struct {
	Idle     time.Duration // since the last request
	Absolute time.Duration // since the login
	PerUser  int           // a further session ends the oldest one; 0: no limit
}

// ExpiresAt returns the absolute limit of the session under the limits of the installation and
// of its tenant, and of the provider that vouches for it. Without the second factor that the tenant
// demands, the session ends with the days of grace.
func (s Session) ExpiresAt(l SessionLimits) time.Time {
	end := s.CreatedAt.Add(s.Tenant.Tighten(l).Absolute)
	if until := s.ProviderUntil; !until.IsZero() && until.Before(end) {
		end = until
	}
	if due, demanded := s.Tenant.SecondFactor.DueFrom(s.Role, s.JoinedAt); demanded && !s.SatisfiesFactorDemand() && due.Before(end) {
		return due
	}
	return end
}

// SatisfiesFactorDemand reports whether the session satisfies a tenant's demand for a second factor: by
// a factor, a passkey or a remembered browser.
func (a Assurance) SatisfiesFactorDemand() bool { return a.AAL > 1 || a.Remembered }

// AuthAt returns when the user was last authenticated. At a connection's provider that may have been before the
// session.
func (s Session) AuthAt() time.Time {
	if s.Issuer == OwnIssuer && s.ProvedAt.Before(s.CreatedAt) {
		return s.CreatedAt
	}
	return s.ProvedAt
}

// IdleExpiresAt returns when the session ends unless it is used; never after ExpiresAt.
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

// MaxDevices is how many cookies of known browsers are checked in one request. A browser has
// several if accounts share it, or if other hosts of the domain have set some.
const MaxDevices = 4
