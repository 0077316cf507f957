package access

import (
	"cmp"
	"slices"
	"time"

	"github.com/doorward/doorward"
)

// Can decides whether the principal may perform the action on the object. Can and its variants
// below make every decision, for gateways, guards, writes and pages. Can doesn't allocate.
//
// It trusts the principal as passed in. Do reads the principal and decides again inside the
// transaction; only that second decision permits a write.
//
// It has no request, so a policy that reads a part of the request refuses. If there is a request,
// call CanAt.
func Can(p *doorward.Principal, action doorward.Action, on doorward.Object) Decision {
	return can(p, action, &on, nil)
}

// CanAt is Can with a request of the caller, at an instant.
func CanAt(by *doorward.Caller, now time.Time, action doorward.Action, on doorward.Object) Decision {
	return can(&by.Principal, action, &on, requestOf(by, now))
}

// CanInTenantAt is CanAt for the caller's own tenant and no object in it. Pages call it to show or
// hide a link.
func CanInTenantAt(by *doorward.Caller, now time.Time, action doorward.Action) Decision {
	return can(&by.Principal, action, &ownTenant, requestOf(by, now))
}

// requestOf returns the request for policies, or nil if there is no policy that could read it.
func requestOf(by *doorward.Caller, now time.Time) *doorward.Request {
	if by.Policy == nil {
		return nil
	}
	return by.RequestAt(now)
}

// CanCheck decides whether the principal may perform the action in its tenant, for a service that
// asks without a request. A service can ask about permissions only, so the reason for other
// actions is ReasonUnknown.
func CanCheck(p *doorward.Principal, action doorward.Action) Decision {
	return CanCheckAt(p, action, nil)
}

// CanCheckAt is CanCheck with the request that a service asks about. r may be nil if
// DependsOnRequest is false.
func CanCheckAt(p *doorward.Principal, action doorward.Action, r *doorward.Request) Decision {
	verb, known := p.Rules.Model().Lookup(action)
	if !known || !verb.IsPermission() {
		return no(ReasonUnknown)
	}
	d := can(p, action, &ownTenant, r)
	d.stepUp = verb.Proof == doorward.ProofAlways
	return d
}

// CanExplain is CanCheckAt for the explanation of a decision. It accepts all actions that roles
// grant, not only permissions.
func CanExplain(p *doorward.Principal, action doorward.Action, r *doorward.Request) Decision {
	return can(p, action, &ownTenant, r)
}

// Grants reports whether the principal's role grants the action, even if something else refuses it.
func Grants(p *doorward.Principal, action doorward.Action) bool {
	verb, known := p.Rules.Model().Lookup(action)
	g := p.Rules.Grant(p.Role)
	return known && g != nil && g.Permissions.Allow(verb)
}

// RoleDecision is what a role alone says about an action of its tenant, before any policy.
type RoleDecision struct{ Granted, Exempt bool }

// CanRole returns whether a role grants an action, and whether policies can't refuse it to users
// with the role (Exempt).
func CanRole(rules *doorward.Rules, role doorward.Role, action doorward.Action) RoleDecision {
	p := doorward.Principal{Kind: doorward.ByUser, Rules: rules, Role: role, TenantStatus: doorward.TenantActive}
	verb, known := rules.Model().Lookup(action)
	return RoleDecision{Granted: Grants(&p, action), Exempt: known && isExempt(&p, verb)}
}

// DependsOnRequest reports whether a policy reads the request to decide on the action.
func DependsOnRequest(p *doorward.Principal, action doorward.Action) bool {
	return p.Policy != nil && p.Policy.DependsOnRequest(action)
}

// ownTenant stands for the principal's own tenant, and no object in it. It is recognised by
// its address: pass &ownTenant, not a copy.
var ownTenant doorward.Object

// can decides for every kind of principal. r is nil if there is no request.
func can(p *doorward.Principal, action doorward.Action, on *doorward.Object, r *doorward.Request) Decision {
	verb, ok := p.Rules.Model().Lookup(action)
	switch {
	case !ok:
		return Decision{} // a bug: no such action
	case verb.By == doorward.ByProof:
		return canProved(p, verb)
	case verb.By == doorward.ByRole && (p.Kind == doorward.ByUser || p.Kind == doorward.ByKey):
		return canMember(p, verb, on, r)
	case verb.By == doorward.ByRole && p.Kind == doorward.ByService:
		return canServiceInTenant(p, verb, on)
	case verb.By != doorward.ByRole && p.Kind == doorward.ByService:
		return canServiceAsOperator(p, verb, on)
	case p.Kind == doorward.Operator:
		return canOperator(p, verb)
	case p.Kind == doorward.System:
		return yes(ReasonOperator)
	case verb.By != doorward.ByRole && p.Kind != doorward.Anonymous:
		return no(ReasonOperator)
	}
	return no(ReasonCredential)
}

// canProved decides on an action that a proof in the request allows. What belongs to the account takes a
// session that Doorward itself vouches for.
func canProved(p *doorward.Principal, verb *doorward.Verb) Decision {
	if verb.Scope == doorward.OfAccount && p.Issuer != doorward.OwnIssuer {
		return no(ReasonIssuer)
	}
	return yes(ReasonProof)
}

// CanActIn decides whether the session may act in another tenant than its own, for its user: switch to
// it, leave it, or join it.
func CanActIn(p *doorward.Principal, tenantID string) Decision {
	if p.Issuer != doorward.OwnIssuer && tenantID != p.TenantID {
		return no(ReasonIssuer)
	}
	return yes(ReasonProof)
}

// canMember decides for a user or an API key on an object of their tenant, and for a service inside
// a tenant.
func canMember(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object, r *doorward.Request) Decision {
	switch {
	case on != &ownTenant && on.TenantID != p.TenantID:
		return no(ReasonForeign)
	case verb.ForPeople() && p.Kind != doorward.ByUser:
		return no(ReasonPerson)
	case !p.Permissions.Allow(verb):
		return canByPermit(p, verb, r)
	}
	if on != &ownTenant {
		if d := canActOn(p, verb, on); !d.Allowed {
			return d
		}
	}
	if isTenantUnusable(p, verb.AllowedWhileClosing) {
		return Decision{Reason: ReasonTenant, detail: string(p.TenantStatus)}
	}
	if p.Policy != nil && !isExempt(p, verb) {
		return applyPolicies(p, verb, r)
	}
	return yes(ReasonRole)
}

// canByPermit decides if the role does not grant the action. Policies of the operator can permit
// actions of the platform to members, and to users that the model declares, but never to keys or
// suspended members.
func canByPermit(p *doorward.Principal, verb *doorward.Verb, r *doorward.Request) Decision {
	if p.Policy == nil || !verb.Platform || p.Kind != doorward.ByUser || p.Permissions == nil {
		return refuseMissing(p, verb)
	}
	permit := p.Policy.Permit(verb.Action, cmp.Or(r, noRequest))
	if permit == nil {
		return refuseMissing(p, verb)
	}
	if isTenantUnusable(p, verb.AllowedWhileClosing) {
		return Decision{Reason: ReasonTenant, detail: string(p.TenantStatus)}
	}
	if d := applyPolicies(p, verb, r); !d.Allowed {
		return d
	}
	return Decision{Allowed: true, Reason: ReasonPolicy, permit: permit}
}

// noRequest stands for an unknown request.
var noRequest = &doorward.Request{}

// applyPolicies decides by the policies, for the action and for the permission that allows it.
func applyPolicies(p *doorward.Principal, verb *doorward.Verb, r *doorward.Request) Decision {
	r = cmp.Or(r, noRequest)
	refusal := p.Policy.Refusal(verb.Permission, r)
	if refusal == nil && verb.Action != verb.Permission {
		refusal = p.Policy.Refusal(verb.Action, r)
	}
	if refusal != nil {
		return Decision{Reason: ReasonPolicy, policy: refusal}
	}
	return yes(ReasonRole)
}

// CheckPolicy returns the refusal if a policy forbids the caller an action that another one amounts
// to, such as user.role where a role of members is replaced. Only policies count: the caller needs
// the permission for the other action alone. Errors: denied_by_policy.
func CheckPolicy(by *doorward.Caller, now time.Time, action doorward.Action) error {
	verb, known := by.Rules.Model().Lookup(action)
	if !known || by.Policy == nil || isExempt(&by.Principal, verb) {
		return nil
	}
	return applyPolicies(&by.Principal, verb, requestOf(by, now)).Err()
}

// isExempt reports whether policies can't refuse the action to the principal: by its row, or because
// it is one that a closing tenant still allows.
func isExempt(p *doorward.Principal, verb *doorward.Verb) bool {
	switch verb.Exempt {
	case doorward.ExemptForAll:
		return true
	case doorward.ExemptForOwners:
		return p.Kind == doorward.ByUser && p.Role == doorward.RoleOwner
	}
	return verb.AllowedWhileClosing && p.TenantStatus == doorward.TenantClosing
}

// canActOn compares the principal's role with the role that the action gives, and with the role
// that the object has.
func canActOn(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	given := on.Grant
	if on.Granted != "" {
		given = p.Rules.Grant(on.Granted)
	}
	if given != nil {
		if d := canGive(p, verb, given); !d.Allowed {
			return d
		}
	}
	d := Decision{Allowed: true, Reason: ReasonRole}
	if on.Held == "" {
		return d
	}
	rank := p.Rules.Rank(on.Held)
	switch verb.Permission {
	case doorward.UserManage: // an OWNER on every rank, others on lower ranks than their own
		d.Allowed = p.ActsAs == doorward.RoleOwner || p.ActsAs.Outranks(rank)
	case doorward.APIKeyManage, doorward.RoleManage: // not on higher ranks
		d.Allowed = !rank.Outranks(p.ActsAs)
	}
	if !d.Allowed {
		d.Reason, d.role, d.detail, d.permission = ReasonRank, p.Role, string(on.Held), verb.Permission
	}
	return d
}

// canGive decides whether the principal may give a role. The role's rank must not be higher than
// the principal's, and the principal's own role must have all of its permissions. A key gives no role that
// could do more than any key: with the new member's password it would be a person. To revoke an
// invitation gives nothing, so a key needs only the rank.
func canGive(p *doorward.Principal, verb *doorward.Verb, given *doorward.Grant) Decision {
	if p.Kind == doorward.ByKey && verb.Action != doorward.InvitationRevoke && given.HasMoreThanKeys() {
		return Decision{Reason: ReasonKeyGives, detail: string(given.Role)}
	}
	if given.Rank.Outranks(p.ActsAs) {
		return Decision{Reason: ReasonRank, role: p.Role, detail: string(given.Role), given: true}
	}
	if own := p.Rules.Grant(p.Role); own == nil || !given.Permissions.IsSubsetOf(own.Permissions) {
		return Decision{Reason: ReasonRank, role: p.Role, detail: string(given.Role), given: true, lacked: true}
	}
	return yes(ReasonRole)
}

// canServiceInTenant decides for a service inside a tenant, where it has the rank of an ADMIN,
// or outside of tenants.
func canServiceInTenant(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	switch {
	case on != &ownTenant && on.TenantID != p.TenantID:
		return no(ReasonForeign)
	case p.TenantID == "":
		return canOnInstallation(p, verb)
	case !p.Permissions.Allow(verb):
		return Decision{Reason: ReasonService, detail: string(verb.Permission)}
	}
	return canMember(p, verb, on, nil) // policies are about users and API keys
}

// canOnInstallation decides for a service on objects of the installation. A key that is limited
// to some tenants may do nothing there.
func canOnInstallation(p *doorward.Principal, verb *doorward.Verb) Decision {
	if verb.Permission != doorward.WebhookManage || !p.Service.Has(verb.Permission) || !p.Service.Covers("") {
		return Decision{Reason: ReasonService, detail: string(verb.Permission)}
	}
	return yes(ReasonService)
}

// canServiceAsOperator decides for a service on one of the operator's actions on tenants. A key
// that is limited to some tenants can't create a tenant.
func canServiceAsOperator(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	d := canServe(p, verb)
	switch {
	case !d.Allowed, p.Service.Covers(on.TenantID):
		return d
	case verb.Action == doorward.TenantCreate:
		return Decision{Reason: ReasonService, detail: string(verb.Service)}
	}
	return no(ReasonForeign)
}

// canServe decides by the permissions of a service key alone.
func canServe(p *doorward.Principal, verb *doorward.Verb) Decision {
	switch {
	case verb.By == doorward.ByRole || verb.Service == "":
		return no(ReasonOperator)
	case !p.Service.Has(verb.Service):
		return Decision{Reason: ReasonService, detail: string(verb.Service)}
	}
	return yes(ReasonService)
}

// CanServe decides whether a service may use a route of tenants that needs the permission.
func CanServe(p *doorward.Principal, need doorward.Action) Decision {
	if !p.Service.Has(need) {
		return Decision{Reason: ReasonService, detail: string(need)}
	}
	return yes(ReasonService)
}

// refuseMissing refuses because the role lacks the permission, or because only the API key does.
func refuseMissing(p *doorward.Principal, verb *doorward.Verb) Decision {
	d := Decision{Reason: ReasonRole, role: p.Role, detail: string(verb.Permission)}
	if g := p.Rules.Grant(p.Role); p.Kind == doorward.ByKey && g != nil && g.Permissions.Allow(verb) {
		d.Reason = ReasonKey
	}
	return d
}

// isTenantUnusable reports whether the status of the tenant refuses the principal. A frozen tenant
// has no sessions, so only its keys have to be refused.
func isTenantUnusable(p *doorward.Principal, openWhileClosing bool) bool {
	if p.Kind != doorward.ByUser {
		return p.TenantStatus != doorward.TenantActive
	}
	return p.TenantStatus == doorward.TenantClosing && !openWhileClosing
}

// CanEnterInPerson is CanEnter for a route that only a person with a session may use.
func CanEnterInPerson(p *doorward.Principal, openWhileClosing bool) Decision {
	if p.Kind == doorward.ByKey || p.Kind == doorward.ByService {
		return no(ReasonPerson)
	}
	return CanEnter(p, openWhileClosing)
}

// CanEnterByKey is CanEnter for a route that only an API key may use.
func CanEnterByKey(p *doorward.Principal) Decision {
	d := CanEnter(p, false) // not in a closing tenant
	if d.Allowed && p.Kind != doorward.ByKey {
		return no(ReasonKind)
	}
	return d
}

// KeyCause is why an API key is not valid. It is recorded in the trail; callers don't see it.
type KeyCause string

// The causes of an invalid key.
const (
	KeyUnknown  KeyCause = "unknown"
	KeyRevoked  KeyCause = "revoked"
	KeyExpired  KeyCause = "expired"
	KeyRotated  KeyCause = "rotated" // a newer secret has replaced this one
	KeyDisabled KeyCause = "disabled"
	KeyOwner    KeyCause = "owner" // the owner is not an active member
)

// KeyRefusal returns why a secret of an API key is not valid at now; empty if it is valid.
// secretEndsAt is nil for the key's current secret.
func KeyRefusal(k *doorward.APIKey, secretEndsAt *time.Time, now time.Time) KeyCause {
	switch status := k.StatusAt(now); {
	case status == doorward.APIKeyExpired:
		return KeyExpired
	case status == doorward.APIKeyDisabled:
		return KeyDisabled
	case status != doorward.APIKeyActive:
		return KeyRevoked // or a status of a newer version
	case secretEndsAt != nil && !now.Before(*secretEndsAt):
		return KeyRotated
	case k.OwnerRole == "":
		return KeyOwner
	}
	return ""
}

// CanEnter decides whether the principal may use a route for members of a tenant. In a closing
// tenant only routes with openWhileClosing may be used.
func CanEnter(p *doorward.Principal, openWhileClosing bool) Decision {
	switch {
	case p.Kind == doorward.Anonymous:
		return no(ReasonCredential)
	case p.Kind != doorward.ByUser && p.Kind != doorward.ByKey:
		return no(ReasonKind)
	case isTenantUnusable(p, openWhileClosing):
		return Decision{Reason: ReasonTenant, detail: string(p.TenantStatus)}
	}
	return yes(ReasonTenant)
}

// canOperator decides for the operator, whose key may be limited.
func canOperator(p *doorward.Principal, verb *doorward.Verb) Decision {
	if p.IsLimited() && (verb.Operator == "" || !slices.Contains(p.Limits, verb.Operator)) {
		return Decision{Reason: ReasonLimits, detail: string(cmp.Or(verb.Operator, verb.Action))}
	}
	return yes(ReasonOperator)
}

// CanOperate decides whether the principal may use a route for the operator that is about these
// actions: a limited operator key, or the key of a service, needs the permission for one of them.
func CanOperate(p *doorward.Principal, actions ...doorward.Action) Decision {
	decide := canOperator
	switch {
	case p.Kind == doorward.Operator && !p.IsLimited():
		return yes(ReasonOperator)
	case p.Kind == doorward.Operator:
	case p.Kind == doorward.ByService:
		decide = canServe
	case p.Kind == doorward.Anonymous:
		return no(ReasonCredential)
	default:
		return no(ReasonOperator)
	}
	d := decide(p, &doorward.Verb{})
	for _, action := range actions {
		verb, _ := doorward.Lookup(action)
		if d = decide(p, verb); d.Allowed {
			break
		}
	}
	return d
}

// CanSignIn decides whether the membership allows a session to be opened or to continue. In a
// closing tenant only an OWNER may sign in, to restore it.
func CanSignIn(u doorward.User) Decision {
	switch {
	case u.Status != doorward.UserActive:
		return no(ReasonMembership)
	case u.TenantStatus == doorward.TenantActive,
		u.TenantStatus == doorward.TenantClosing && u.Role == doorward.RoleOwner:
		return yes(ReasonMembership)
	}
	return Decision{Reason: ReasonTenant, detail: string(u.TenantStatus)} // frozen, or a status of a newer version
}
