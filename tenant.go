package doorward

import (
	"cmp"
	"time"
)

// TenantStatus is the status of a tenant.
type TenantStatus string

// The statuses of a tenant.
const (
	TenantActive  TenantStatus = "active"
	TenantFrozen  TenantStatus = "frozen"  // by the operator
	TenantClosing TenantStatus = "closing" // closed and not frozen; its data is not destroyed yet
)

// Tenant is a customer organisation of the platform.
type Tenant struct {
	ID        string
	Name      string
	Status    TenantStatus
	CreatedAt time.Time
	Settings  TenantSettings
	Brand     Brand
	// ClosedAt is nil unless the tenant is closed. A closed tenant may be frozen, too.
	ClosedAt *time.Time
	// DestroyAt is when the tenant's data is destroyed; nil if it is not closed.
	DestroyAt *time.Time
	Quotas    Quotas
	Rules     *Rules // nil: those of the built-in model
}

// Version returns a hash of the fields that can be edited, for If-Match.
func (t Tenant) Version() string {
	parts := []any{t.Name, t.Status, t.Settings, t.Brand}
	for _, name := range QuotaNames {
		parts = append(parts, QuotaText(*t.Quotas.At(name)))
	}
	return version(parts...)
}

// TenantSettings are the limits that a tenant has tightened. Zero values mean those of the
// installation.
type TenantSettings struct {
	SessionIdle     time.Duration
	SessionAbsolute time.Duration
	InvitationDays  int      // the longest validity of an invitation
	AllowedDomains  []string // of addresses that may be invited, as A-labels; none: all
	SecondFactor    SecondFactor
	StepUp          time.Duration // the longest age of a proof for sensitive actions
	KeepEventsDays  int           // how long events of the trail are kept, MinKeepEventsDays or more; 0: as the installation says
}

// The bounds of TenantSettings.KeepEventsDays. Within the first nobody can delete what they have done, and an
// incident is often noticed only after weeks.
const (
	MinKeepEventsDays = 30
	MaxKeepEventsDays = 3650
)

// KeepEvents returns how long events of the trail are kept in an installation that keeps them for a time
// (0: for ever): the shorter one.
func (s TenantSettings) KeepEvents(installation time.Duration) time.Duration {
	if s.KeepEventsDays == 0 {
		return installation
	}
	own := time.Duration(s.KeepEventsDays) * 24 * time.Hour
	if installation == 0 {
		return own
	}
	return min(own, installation)
}

// Tighten returns the limits of sessions, tightened by the tenant's settings.
func (s TenantSettings) Tighten(l SessionLimits) SessionLimits {
	if s.SessionIdle > 0 {
		l.Idle = min(l.Idle, s.SessionIdle)
	}
	if s.SessionAbsolute > 0 {
		l.Absolute = min(l.Absolute, s.SessionAbsolute)
	}
	return l
}

// MaxProofAge returns the longest age of a proof for sensitive actions.
func (s TenantSettings) MaxProofAge() time.Duration {
	return cmp.Or(s.StepUp, DefaultStepUp)
}

// MaxInvitationDays returns the longest validity of an invitation.
func (s TenantSettings) MaxInvitationDays() int {
	if s.InvitationDays == 0 {
		return InvitationDaysMax
	}
	return s.InvitationDays
}
