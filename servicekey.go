package doorward

import (
	"slices"
	"time"
)

// ServiceKey is the credential of one of the platform's own services. It acts across
// tenants, and inside one with the rank of an ADMIN.
type ServiceKey struct {
	ID        string
	Name      string
	May       []Action // its permissions, from ServicePermissions, sorted
	Tenants   []string // ids of the tenants it is limited to; none: all
	CreatedAt time.Time
	// Disabled: by a restore from a backup, since the key may have been revoked after the backup.
	// The operator enables it again.
	Disabled bool
}

// Has reports whether the key has the permission. A nil key has none.
func (k *ServiceKey) Has(a Action) bool { return k != nil && slices.Contains(k.May, a) }

// Covers reports whether the key may be used in the tenant. A nil key, which stands for another
// kind of caller, covers all. With "" it reports whether the key isn't limited to tenants.
func (k *ServiceKey) Covers(tenantID string) bool {
	return k == nil || len(k.Tenants) == 0 || slices.Contains(k.Tenants, tenantID)
}

// PrincipalOfService returns the principal of a service key outside of tenants.
func PrincipalOfService(k ServiceKey) Principal {
	return Principal{Kind: ByService, ID: k.ID, Service: &k, AuthAt: k.CreatedAt}
}

// InTenant returns the principal of a service key inside a tenant: an ADMIN with the permissions
// of the key only.
func (p Principal) InTenant(t Tenant) Principal {
	p.TenantID, p.TenantStatus, p.Rules = t.ID, t.Status, t.Rules
	p.setGrant(t.Rules.Grant(RoleAdmin))
	p.Permissions = t.Rules.Model().set(p.Service.May...)
	return p
}
