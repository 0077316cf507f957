package doorward

import "time"

// TenantStatus is the status of a tenant.
type TenantStatus string

// The statuses of a tenant.
const (
	TenantActive  TenantStatus = "active"
	TenantFrozen  TenantStatus = "frozen"  // by the operator
	TenantClosing TenantStatus = "closing" // by its OWNER, in the hold before destruction
)

// Tenant is a customer organisation of the platform.
type Tenant struct {
	ID        string
	Name      string
	Status    TenantStatus
	CreatedAt time.Time
}
