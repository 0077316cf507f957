package doorward

import (
	"net/netip"
	"slices"
	"time"
)

// APIKeyStatus is the status of an API key.
type APIKeyStatus string

// The statuses of an API key. Expired and revoked are final.
const (
	APIKeyActive   APIKeyStatus = "active"
	APIKeyDisabled APIKeyStatus = "disabled"
	APIKeyExpired  APIKeyStatus = "expired"
	APIKeyRevoked  APIKeyStatus = "revoked"
)

// APIKey is the credential of a server that belongs to a tenant. It acts under the
// authority of its owner, a member.
type APIKey struct {
	ID       string
	TenantID string
	Name     string
	Status   APIKeyStatus // as stored; use StatusAt
	// Role limits what the key may do. A permission has an effect only if Role and the owner's
	// role grant it.
	Role        Role
	Permissions []Action // sorted
	OwnerID     string
	OwnerRole   Role   // the current one; empty without an active membership
	CreatedBy   string // id of the user or key
	CreatedAt   time.Time
	ExpiresAt   time.Time
	RotateBy    *time.Time     // the key ends then unless it is rotated before
	AllowedIPs  []netip.Prefix // of clients; none: all
	PerSecond   int            // requests; 0: no limit
	Hint        string         // first and last characters of the newest secret
	LastUsedAt  *time.Time
	LastUsedIP  string          // of the last use whose address was known
	Previous    *PreviousSecret // valid beside the newest; nil without one
	Rules       *Rules          // of the tenant; nil: those of the built-in model
}

// PreviousSecret is the secret that a rotation has replaced, during its grace.
type PreviousSecret struct {
	EndsAt     time.Time
	LastUsedAt *time.Time
}

// Admits reports whether the key may be used from the address. A text that isn't an address
// matches none of AllowedIPs.
func (k *APIKey) Admits(ip string) bool {
	addr, _ := netip.ParseAddr(ip)
	addr = addr.Unmap().WithZone("")
	return len(k.AllowedIPs) == 0 || slices.ContainsFunc(k.AllowedIPs, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// AddressText formats an element of AllowedIPs: an address, or a network in CIDR notation.
func AddressText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// EndsAt returns when the key ends: the earlier of ExpiresAt and RotateBy.
func (k *APIKey) EndsAt() time.Time {
	if k.RotateBy != nil && k.RotateBy.Before(k.ExpiresAt) {
		return *k.RotateBy
	}
	return k.ExpiresAt
}

// StatusAt returns the status at an instant. A key past its end has expired, even if the stored
// status doesn't say so yet.
func (k *APIKey) StatusAt(now time.Time) APIKeyStatus {
	if k.Status != APIKeyRevoked && !now.Before(k.EndsAt()) {
		return APIKeyExpired
	}
	return k.Status
}

// HasEnded reports whether the key has expired or was revoked, which is final.
func (k *APIKey) HasEnded(now time.Time) bool {
	s := k.StatusAt(now)
	return s == APIKeyExpired || s == APIKeyRevoked
}

// PreviousAt returns the previous secret, or nil if it has ended at the instant. It ends with
// the key at the latest.
func (k *APIKey) PreviousAt(now time.Time) *PreviousSecret {
	if k.Previous == nil || !now.Before(k.Previous.EndsAt) || k.HasEnded(now) {
		return nil
	}
	previous := *k.Previous
	if end := k.EndsAt(); end.Before(previous.EndsAt) {
		previous.EndsAt = end
	}
	return &previous
}

// EffectiveRole returns the lower of the key's role and the owner's: the one whose permissions the other
// has. If neither has all of the other's, it is the one that acts with the lower rank, and of equal
// ones the key's. It is empty if the owner isn't an active member.
func (k *APIKey) EffectiveRole() Role {
	if g, _ := k.effectiveGrant(); g != nil {
		return g.Role
	}
	return ""
}

// effectiveGrant returns the grant of EffectiveRole, and the rank with which the key acts: the lower of
// both, so that a key never acts with a rank that it, or its owner, lacks.
func (k *APIKey) effectiveGrant() (lower *Grant, actsAs Role) {
	role, owner := k.Rules.Grant(k.Role), k.Rules.Grant(k.OwnerRole)
	switch {
	case owner == nil:
		return nil, ""
	case role == nil: // it was deleted
		return owner, ""
	}
	if actsAs = role.ActsAs; actsAs.Outranks(owner.ActsAs) {
		actsAs = owner.ActsAs
	}
	switch {
	case role.Permissions.IsSubsetOf(owner.Permissions):
		return role, actsAs
	case owner.Permissions.IsSubsetOf(role.Permissions), role.ActsAs.Outranks(owner.ActsAs):
		return owner, actsAs
	}
	return role, actsAs
}

// EffectivePermissions returns the key's permissions that its role and the owner's role both
// grant now, and that the model lets keys have, sorted.
func (k *APIKey) EffectivePermissions() []Action {
	effective, actions, model := k.effective(), []Action{}, k.Rules.Model()
	for _, a := range k.Permissions {
		if model.IsPermission(a) && model.set(a).IsSubsetOf(effective) {
			actions = append(actions, a)
		}
	}
	return actions
}

// effective returns EffectivePermissions as a set.
func (k *APIKey) effective() *Permissions {
	role, owner := k.Rules.Grant(k.Role), k.Rules.Grant(k.OwnerRole)
	if role == nil || owner == nil {
		return new(Permissions)
	}
	return k.Rules.Model().setForKeys(k.Permissions).intersect(role.Permissions).intersect(owner.Permissions)
}

// Version returns a hash of the fields that can be edited, for If-Match.
func (k *APIKey) Version() string {
	return version(k.ID, k.Name, k.Status, k.Permissions, k.OwnerID, k.ExpiresAt.UnixMicro(), k.AllowedIPs, k.PerSecond)
}

// Limits of API keys.
const (
	APIKeyDaysMax        = 365 // default of the setting key-max-days, the longest validity
	APIKeyGraceHours     = 24  // default time in which the secret before a rotation stays valid
	APIKeyGraceHoursMax  = 168
	APIKeyPermissionsMax = 100
	APIKeyAddressesMax   = 50
	APIKeyPerSecondMax   = 10_000
	APIKeysMax           = 100 // of a tenant, without those that have ended
)

// PrincipalOfKey returns the principal of an API key in a tenant with the status. The
// principal may do nothing unless the owner is an active member.
func PrincipalOfKey(k APIKey, tenant TenantStatus) Principal {
	p := Principal{Kind: ByKey, ID: k.ID, OwnerID: k.OwnerID, TenantID: k.TenantID, TenantStatus: tenant, Rules: k.Rules, AuthAt: k.CreatedAt}
	effective, actsAs := k.effectiveGrant()
	p.setGrant(effective)
	p.ActsAs, p.Permissions = actsAs, k.effective()
	p.Policy = k.Rules.policyOf(&p)
	return p
}
