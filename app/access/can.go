package access

import (
	"fmt"

	"github.com/doorward/doorward"
)

// Reason is why a decision was made.
type Reason string

// The reasons.
const (
	// ReasonRole: the role grants it, or does not.
	ReasonRole Reason = "role"
	// ReasonRank: the role that the object holds, or would be given, is too high.
	ReasonRank Reason = "rank"
	// ReasonForeign: the object is in another tenant.
	ReasonForeign Reason = "foreign"
	// ReasonTenant: the tenant is frozen or closing.
	ReasonTenant Reason = "tenant"
	// ReasonMembership: there is no active membership.
	ReasonMembership Reason = "membership"
	// ReasonCredential: the caller has no credential.
	ReasonCredential Reason = "credential"
	// ReasonKind: this kind of credential is not accepted here.
	ReasonKind Reason = "kind"
	// ReasonOperator: the action belongs to the operator of the installation.
	ReasonOperator Reason = "operator"
	// ReasonProof: the feature has verified a proof, such as a password.
	ReasonProof Reason = "proof"
	// ReasonUnknown: there is no such action.
	ReasonUnknown Reason = "unknown"
)

// Decision is yes or no, and why. The zero Decision is no.
type Decision struct {
	Allowed bool
	Reason  Reason

	own doorward.Role // of the principal
	// obstacle is a permission, a role that is too high, or a tenant's status.
	obstacle string
	given    bool // the obstacle is the role to be granted, not one that is held
	ofKey    bool // the obstacle is the role of an API key
}

func yes(r Reason) Decision { return Decision{Allowed: true, Reason: r} }

func no(r Reason) Decision { return Decision{Reason: r} }

// Can says whether the principal may perform the action on the object. It is the
// only decision, for gateways, guards, writes and pages. It doesn't allocate.
//
// It trusts the principal as passed in. Do decides again inside the transaction,
// with the principal read again; only that second decision permits a write.
func Can(p *doorward.Principal, action doorward.Action, on doorward.Object) Decision {
	return can(p, action, &on)
}

// CanInTenant is Can for the principal's tenant as such: what an access check asks,
// and a page that shows or hides a link.
func CanInTenant(p *doorward.Principal, action doorward.Action) Decision {
	return can(p, action, &ownTenant)
}

// ownTenant stands for the principal's own tenant.
var ownTenant doorward.Object

func can(p *doorward.Principal, action doorward.Action, on *doorward.Object) Decision {
	verb, ok := doorward.Lookup(action)
	switch {
	case !ok:
		return Decision{Reason: ReasonUnknown, obstacle: string(action)}
	case verb.By == doorward.ByProof:
		return yes(ReasonProof)
	case verb.By == doorward.ByRole && p.Kind == doorward.ByUser:
		return canMember(p, verb, on)
	case p.Kind == doorward.Operator || p.Kind == doorward.System:
		return yes(ReasonOperator)
	case verb.By == doorward.ByOperator && p.Kind != doorward.Anonymous:
		return no(ReasonOperator)
	}
	return no(ReasonCredential)
}

func canMember(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	switch {
	case on != &ownTenant && on.TenantID != p.TenantID:
		return no(ReasonForeign)
	case !p.Permissions.Allow(verb):
		return Decision{Reason: ReasonRole, own: p.Role, obstacle: string(verb.Through)}
	case on.Granted != "" && on.Granted.Outranks(p.Rank):
		return Decision{Reason: ReasonRank, own: p.Role, obstacle: string(on.Granted), given: true}
	case verb.Through == doorward.UserManage && on.Held.Outranks(doorward.RoleUser) && p.Rank != doorward.RoleOwner:
		return Decision{Reason: ReasonRank, own: p.Role, obstacle: string(on.Held)}
	case verb.Through == doorward.APIKeyManage && on.Held.Outranks(p.Rank):
		return Decision{Reason: ReasonRank, own: p.Role, obstacle: string(on.Held), ofKey: true}
	case p.TenantStatus == doorward.TenantClosing && !verb.WhileClosing:
		return Decision{Reason: ReasonTenant, obstacle: string(p.TenantStatus)}
	}
	return yes(ReasonRole)
}

// CanEnter says whether the principal may use what is open to members of a tenant.
// In a closing tenant that is limited to what has openWhileClosing.
func CanEnter(p *doorward.Principal, openWhileClosing bool) Decision {
	switch {
	case p.Kind == doorward.Anonymous:
		return no(ReasonCredential)
	case p.Kind != doorward.ByUser:
		return no(ReasonKind)
	case p.TenantStatus == doorward.TenantClosing && !openWhileClosing:
		return Decision{Reason: ReasonTenant, obstacle: string(p.TenantStatus)}
	}
	return yes(ReasonTenant)
}

// CanOperate says whether the principal may use what is open to the operator.
func CanOperate(p *doorward.Principal) Decision {
	switch p.Kind {
	case doorward.Operator:
		return yes(ReasonOperator)
	case doorward.Anonymous:
		return no(ReasonCredential)
	}
	return no(ReasonOperator)
}

// CanSignIn says whether a session may be opened, or continue, in the membership.
// In a closing tenant only an OWNER may, to restore it.
func CanSignIn(u doorward.User) Decision {
	switch {
	case u.Status != doorward.UserActive:
		return no(ReasonMembership)
	case u.TenantStatus == doorward.TenantActive,
		u.TenantStatus == doorward.TenantClosing && u.Role == doorward.RoleOwner:
		return yes(ReasonMembership)
	}
	return Decision{Reason: ReasonTenant, obstacle: string(u.TenantStatus)} // frozen, or a status of a newer version
}

// Err returns nil for yes, else Refusal.
func (d Decision) Err() error {
	if d.Allowed {
		return nil
	}
	return d.Refusal()
}

// Refusal is the error for the caller: not_found for an object of another tenant,
// so that nothing shows that it exists.
func (d Decision) Refusal() *doorward.Error {
	switch d.Reason {
	case ReasonRole:
		return doorward.Fail(doorward.CodeForbidden, "The role %s does not grant %s.", d.own, d.obstacle)
	case ReasonRank:
		return d.tooHigh()
	case ReasonForeign:
		return doorward.Fail(doorward.CodeNotFound, "")
	case ReasonTenant:
		return d.notOpen()
	case ReasonMembership:
		return doorward.Fail(doorward.CodeMembershipSuspended, "")
	case ReasonCredential:
		return doorward.Fail(doorward.CodeUnauthenticated, "")
	case ReasonKind:
		return doorward.Fail(doorward.CodeForbidden, "An operator key does not work inside a tenant. Use a session.")
	case ReasonOperator:
		return doorward.Fail(doorward.CodeForbidden, "This needs an operator key, sent as \"Authorization: Bearer dwo_…\".")
	}
	return &doorward.Error{Code: doorward.CodeInternal, Err: fmt.Errorf("access: no such action: %q", d.obstacle)}
}

func (d Decision) tooHigh() *doorward.Error {
	if d.given {
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't give the higher role %s.", d.own, d.obstacle)
	}
	if d.ofKey {
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't change an API key with the higher role %s.", d.own, d.obstacle)
	}
	return doorward.Fail(doorward.CodeForbidden, "Only an OWNER may change someone who is %s.", d.obstacle)
}

func (d Decision) notOpen() *doorward.Error {
	if d.obstacle == string(doorward.TenantClosing) {
		return doorward.Fail(doorward.CodeTenantClosing, "")
	}
	return doorward.Fail(doorward.CodeTenantFrozen, "")
}
