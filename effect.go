package doorward

import (
	"net/netip"
	"slices"
)

// Effects are what the statements of one transaction have changed of who may do what, whatever the
// action is called. Each statement that writes a role, a membership, an offer of one, a setting or an
// API key notes the state before and after; access judges them before the commit.
type Effects struct {
	Roles    []RoleEffect
	Settings []SettingsEffect
	Keys     []KeyEffect
	// KeysTransferred reports that API keys have got another owner.
	KeysTransferred bool
	// WaysBack are the tenants in which an OWNER has lost the role, or a factor. MayEndWaysBack reports
	// that the action is never refused for that.
	WaysBack       []string
	MayEndWaysBack bool
	// SignOn are the tenants whose connections or domains sign in fewer people than before; HomesLost are
	// those in which a connection that has domains is no longer active.
	SignOn, HomesLost []string
}

// RoleEffect is a change of what somebody is in a tenant, or would be by an offer; empty: nothing.
type RoleEffect struct{ Before, After Role }

// SettingsEffect is a change of a tenant's settings.
type SettingsEffect struct{ Before, After TenantSettings }

// KeyEffect is a change of an API key; Before is the zero APIKey for a new one.
type KeyEffect struct{ Before, After APIKey }

// Raise reports whether somebody has, or is offered, a rank of ADMIN or above who had not before, by
// the rules of their tenant. API keys that change hands count, too: they act with a rank.
func (e *Effects) Raise(rules *Rules) bool {
	isHigh := func(r Role) bool { return r != "" && !RoleAdmin.Outranks(rules.Rank(r)) }
	return e.KeysTransferred || slices.ContainsFunc(e.Roles, func(c RoleEffect) bool { return isHigh(c.After) && !isHigh(c.Before) })
}

// GiveOwner reports whether somebody has, or is offered, the rank of OWNER who had not before.
func (e *Effects) GiveOwner(rules *Rules) bool {
	isOwner := func(r Role) bool { return r != "" && rules.Rank(r) == RoleOwner }
	return slices.ContainsFunc(e.Roles, func(c RoleEffect) bool { return isOwner(c.After) && !isOwner(c.Before) })
}

// Loosen reports whether a demand or a limit of a tenant has been loosened.
func (e *Effects) Loosen() bool {
	return slices.ContainsFunc(e.Settings, func(c SettingsEffect) bool { return c.Before.loosens(c.After) })
}

// Widen reports whether an API key can do more than before, lives longer, or answers from more places.
func (e *Effects) Widen() bool {
	return slices.ContainsFunc(e.Keys, func(c KeyEffect) bool { return c.Before.widens(c.After) })
}

// loosens reports whether the next settings demand or limit less in any point.
func (s TenantSettings) loosens(next TenantSettings) bool {
	before, after := Tenant{Settings: s}, Tenant{Settings: next}
	return slices.ContainsFunc(Settings(noLimits, 0), func(n Setting) bool { return n.Unit != "" && n.isLooser(before, after) }) ||
		len(s.AllowedDomains) > 0 && (len(next.AllowedDomains) == 0 || !isSubset(next.AllowedDomains, s.AllowedDomains)) ||
		!s.SecondFactor.Since.IsZero() && (next.SecondFactor.Since.IsZero() || !next.SecondFactor.CoversAll(s.SecondFactor))
}

// noLimits are longer than any limit that a tenant can have.
var noLimits = SessionLimits{Idle: 1 << 62, Absolute: 1 << 62}

func isSubset[T comparable](all, of []T) bool {
	return !slices.ContainsFunc(all, func(v T) bool { return !slices.Contains(of, v) })
}

// CoversAll reports whether the demand covers all roles that the other one covers.
func (f SecondFactor) CoversAll(other SecondFactor) bool {
	return len(f.Roles) == 0 || len(other.Roles) > 0 && isSubset(other.Roles, f.Roles)
}

// widens reports whether the edited key can do more: with more permissions, faster, for longer, from
// more addresses, for another owner, or active again. A new key always can.
func (k APIKey) widens(edited APIKey) bool {
	isOutside := func(p netip.Prefix) bool {
		return !slices.ContainsFunc(k.AllowedIPs, func(in netip.Prefix) bool { return in.Bits() <= p.Bits() && in.Contains(p.Addr()) })
	}
	return !isSubset(edited.Permissions, k.Permissions) ||
		len(k.AllowedIPs) > 0 && (len(edited.AllowedIPs) == 0 || slices.ContainsFunc(edited.AllowedIPs, isOutside)) ||
		k.PerSecond > 0 && (edited.PerSecond == 0 || edited.PerSecond > k.PerSecond) ||
		edited.ExpiresAt.After(k.ExpiresAt) || edited.OwnerID != k.OwnerID ||
		k.Status != APIKeyActive && edited.Status == APIKeyActive
}
