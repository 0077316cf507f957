package doorward

import "time"

// TenantStatus is the status of a tenant.
type TenantStatus string

// The statuses of a tenant.
const (
	TenantActive  TenantStatus = "active"
	TenantFrozen  TenantStatus = "frozen"  // by the operator
	TenantClosing TenantStatus = "closing" // by its OWNER, in the hold before destruction, and not frozen
)

// Tenant is a customer organisation of the platform.
type Tenant struct {
	ID        string
	Name      string
	Status    TenantStatus
	CreatedAt time.Time
	Settings  TenantSettings
	Brand     Brand
	// ClosedAt is set from the closing by an OWNER until it is restored; a frozen
	// tenant may be closed, too. DestroyAt is when its data is destroyed then; nil
	// while it is not closed, or was by the version before.
	ClosedAt  *time.Time
	DestroyAt *time.Time
}

// Version changes with everything that can be edited.
func (t Tenant) Version() string { return version(t.Name, t.Status, t.Settings, t.Brand) }

// TenantSettings are what a tenant has tightened. Zero values leave what the
// installation says.
type TenantSettings struct {
	SessionIdle     time.Duration
	SessionAbsolute time.Duration
	InvitationDays  int      // the most that an invitation may be valid for
	AllowedDomains  []string // of addresses that may be invited, as A-labels; none: all
}

// Tighten returns the limits with what the tenant has tightened.
func (s TenantSettings) Tighten(l SessionLimits) SessionLimits {
	if s.SessionIdle > 0 {
		l.Idle = min(l.Idle, s.SessionIdle)
	}
	if s.SessionAbsolute > 0 {
		l.Absolute = min(l.Absolute, s.SessionAbsolute)
	}
	return l
}

// MaxInvitationDays is the most that an invitation may be valid for.
func (s TenantSettings) MaxInvitationDays() int {
	if s.InvitationDays == 0 {
		return InvitationDaysMax
	}
	return s.InvitationDays
}
