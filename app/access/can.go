package access

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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
	// ReasonKey: the API key lacks what its role would grant.
	ReasonKey Reason = "key"
	// ReasonPerson: only the session of a person is accepted here.
	ReasonPerson Reason = "person"
	// ReasonOperator: the action belongs to the operator of the installation.
	ReasonOperator Reason = "operator"
	// ReasonProof: the feature has verified a proof, such as a password.
	ReasonProof Reason = "proof"
	// ReasonService: what a service key may do.
	ReasonService Reason = "service"
	// ReasonLimits: the operator key is limited to other things.
	ReasonLimits Reason = "limits"
	// ReasonPolicy: a policy of the tenant or of the operator refuses it, or one of the
	// operator permits it.
	ReasonPolicy Reason = "policy"
	// ReasonStepUp: the user's identity was not proved recently, or not by a second factor.
	ReasonStepUp Reason = "step-up"
	// ReasonUnknown: there is no such permission to ask for.
	ReasonUnknown Reason = "unknown"
)

// Decision is yes or no, and why. The zero Decision is no.
type Decision struct {
	Allowed bool
	Reason  Reason

	own doorward.Role // of the principal
	// obstacle is a permission, a role that is too high, or a tenant's status.
	obstacle string
	given    bool            // the obstacle is the role to be granted, not one that is held
	lacked   bool            // it has a permission that the principal's role lacks
	of       doorward.Action // permission through which the object would be changed
	policy   *doorward.PolicyRefusal
	permit   *doorward.PolicyPermit
	proof    *doorward.ProofNeeded
	stepUp   bool // the model demands a recent proof for the action
}

// Policy is the policy that refuses; nil for other reasons.
func (d Decision) Policy() *doorward.PolicyRefusal { return d.policy }

// Permit is the policy of the operator that permits what the role does not grant; nil for
// other reasons.
func (d Decision) Permit() *doorward.PolicyPermit { return d.permit }

func yes(r Reason) Decision { return Decision{Allowed: true, Reason: r} }

func no(r Reason) Decision { return Decision{Reason: r} }

// Can says whether the principal may perform the action on the object. It is the
// only decision, for gateways, guards, writes and pages. It doesn't allocate.
//
// It trusts the principal as passed in. Do decides again inside the transaction,
// with the principal read again; only that second decision permits a write.
//
// It knows nothing of a request, so a policy that reads something of it refuses. Where
// there is a request, ask CanAt.
func Can(p *doorward.Principal, action doorward.Action, on doorward.Object) Decision {
	return can(p, action, &on, nil)
}

// CanAt is Can for a request of the caller, at an instant.
func CanAt(by *doorward.Caller, now time.Time, action doorward.Action, on doorward.Object) Decision {
	return can(&by.Principal, action, &on, requestOf(by, now))
}

// CanInTenantAt is CanAt for the caller's tenant as such: what a page asks that shows or
// hides a link.
func CanInTenantAt(by *doorward.Caller, now time.Time, action doorward.Action) Decision {
	return can(&by.Principal, action, &ownTenant, requestOf(by, now))
}

// requestOf is nil where no policy could read it.
func requestOf(by *doorward.Caller, now time.Time) *doorward.Request {
	if by.Policy == nil {
		return nil
	}
	return by.RequestAt(now)
}

// CanCheck decides for a service that asks about the principal in its tenant: it can ask
// for permissions only.
func CanCheck(p *doorward.Principal, action doorward.Action) Decision {
	return CanCheckAt(p, action, nil)
}

// CanCheckAt is CanCheck for the request that a service asks about. It may be nil where
// Asks is false.
func CanCheckAt(p *doorward.Principal, action doorward.Action, r *doorward.Request) Decision {
	verb, known := p.Rules.Model().Lookup(action)
	if !known || !verb.IsPermission() {
		return no(ReasonUnknown)
	}
	d := can(p, action, &ownTenant, r)
	d.stepUp = verb.StepUp
	return d
}

// CanAsk is CanCheckAt for all actions that roles grant, those that no service can ask for
// too.
func CanAsk(p *doorward.Principal, action doorward.Action, r *doorward.Request) Decision {
	return can(p, action, &ownTenant, r)
}

// Grants reports whether the principal's role grants the action, whatever else refuses it.
func Grants(p *doorward.Principal, action doorward.Action) bool {
	verb, known := p.Rules.Model().Lookup(action)
	g := p.Rules.Grant(p.Role)
	return known && g != nil && g.Permissions.Allow(verb)
}

// OfRole is what a role makes of an action of its tenant, before any policy.
type OfRole struct{ Granted, Exempt bool }

// CanOfRole says whether a role grants an action, and whether no policy can refuse it to
// users with the role.
func CanOfRole(rules *doorward.Rules, role doorward.Role, action doorward.Action) OfRole {
	p := doorward.Principal{Kind: doorward.ByUser, Rules: rules, Role: role, TenantStatus: doorward.TenantActive}
	verb, known := rules.Model().Lookup(action)
	return OfRole{Granted: Grants(&p, action), Exempt: known && isExempt(&p, verb)}
}

// Asks reports whether the decision on the action may depend on the request.
func Asks(p *doorward.Principal, action doorward.Action) bool {
	return p.Policy != nil && p.Policy.DependsOnRequest(action)
}

// ownTenant stands for the principal's own tenant.
var ownTenant doorward.Object

func can(p *doorward.Principal, action doorward.Action, on *doorward.Object, r *doorward.Request) Decision {
	verb, ok := p.Rules.Model().Lookup(action)
	switch {
	case !ok:
		return Decision{} // a mistake of ours
	case verb.By == doorward.ByProof:
		return yes(ReasonProof)
	case verb.By == doorward.ByRole && (p.Kind == doorward.ByUser || p.Kind == doorward.ByKey):
		return canMember(p, verb, on, r)
	case verb.By == doorward.ByRole && p.Kind == doorward.ByService:
		return canService(p, verb, on)
	case verb.By == doorward.ByOperator && p.Kind == doorward.ByService:
		return canAcross(p, action, on)
	case p.Kind == doorward.Operator:
		return canOperator(p, action)
	case p.Kind == doorward.System:
		return yes(ReasonOperator)
	case verb.By == doorward.ByOperator && p.Kind != doorward.Anonymous:
		return no(ReasonOperator)
	}
	return no(ReasonCredential)
}

func canMember(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object, r *doorward.Request) Decision {
	switch {
	case on != &ownTenant && on.TenantID != p.TenantID:
		return no(ReasonForeign)
	case !p.Permissions.Allow(verb):
		return canByPermit(p, verb, r)
	}
	if on != &ownTenant {
		if d := canActOn(p, verb, on); !d.Allowed {
			return d
		}
	}
	if isShut(p, verb.WhileClosing) {
		return Decision{Reason: ReasonTenant, obstacle: string(p.TenantStatus)}
	}
	if p.Policy != nil && !isExempt(p, verb) {
		return underPolicy(p, verb, r)
	}
	return yes(ReasonRole)
}

// canByPermit decides where the role does not grant the action. Policies of the operator
// permit members, and users of the model, actions of the platform. What a key may do is in
// its list, and a suspended member may do nothing.
func canByPermit(p *doorward.Principal, verb *doorward.Verb, r *doorward.Request) Decision {
	if p.Policy == nil || !verb.Platform || p.Kind != doorward.ByUser || p.Permissions == nil {
		return lacks(p, verb)
	}
	permit := p.Policy.Permit(verb.Action, cmp.Or(r, noRequest))
	if permit == nil {
		return lacks(p, verb)
	}
	if isShut(p, verb.WhileClosing) {
		return Decision{Reason: ReasonTenant, obstacle: string(p.TenantStatus)}
	}
	if d := underPolicy(p, verb, r); !d.Allowed {
		return d
	}
	return Decision{Allowed: true, Reason: ReasonPolicy, permit: permit}
}

// noRequest stands for a request that is not known.
var noRequest = &doorward.Request{}

// underPolicy asks for the action, and for the permission that allows it.
func underPolicy(p *doorward.Principal, verb *doorward.Verb, r *doorward.Request) Decision {
	r = cmp.Or(r, noRequest)
	refusal := p.Policy.Refusal(verb.Through, r)
	if refusal == nil && verb.Action != verb.Through {
		refusal = p.Policy.Refusal(verb.Action, r)
	}
	if refusal != nil {
		return Decision{Reason: ReasonPolicy, policy: refusal}
	}
	return yes(ReasonRole)
}

// isExempt reports whether no policy can refuse the action, so that nobody is locked out
// for good, and sessions can always be ended.
func isExempt(p *doorward.Principal, verb *doorward.Verb) bool {
	switch verb.Through {
	case doorward.PolicyRead, doorward.PolicyManage:
		return p.Kind == doorward.ByUser && p.Role == doorward.RoleOwner
	}
	return verb.Action == doorward.UserSignOut || verb.Action == doorward.TenantRestore ||
		verb.WhileClosing && p.TenantStatus == doorward.TenantClosing // restoring begins with the guard of a route
}

// canActOn compares the principal with the object's role: with the one that the action
// gives, and with the one that the object holds.
func canActOn(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	given := on.Grant
	if on.Granted != "" {
		given = p.Rules.Grant(on.Granted)
	}
	if given != nil {
		if d := canGive(p, given); !d.Allowed {
			return d
		}
	}
	d := Decision{Allowed: true, Reason: ReasonRole}
	if on.Held == "" {
		return d
	}
	held := p.Rules.Rank(on.Held)
	switch verb.Through {
	case doorward.UserManage: // below OWNER on lower ranks only
		d.Allowed = p.Rank == doorward.RoleOwner || p.Rank.Outranks(held)
	case doorward.APIKeyManage, doorward.RoleManage:
		d.Allowed = !held.Outranks(p.Rank)
	}
	if !d.Allowed {
		d.Reason, d.own, d.obstacle, d.of = ReasonRank, p.Role, string(on.Held), verb.Through
	}
	return d
}

// canGive says whether the principal may give a role: one of its rank at most, with
// nothing that its own role lacks.
func canGive(p *doorward.Principal, given *doorward.Grant) Decision {
	if given.Rank.Outranks(p.Rank) {
		return Decision{Reason: ReasonRank, own: p.Role, obstacle: string(given.Role), given: true}
	}
	if own := p.Rules.Grant(p.Role); own == nil || !given.Permissions.Within(own.Permissions) {
		return Decision{Reason: ReasonRank, own: p.Role, obstacle: string(given.Role), given: true, lacked: true}
	}
	return yes(ReasonRole)
}

// canService decides for a service inside a tenant, where it has the rank of an ADMIN.
func canService(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	switch {
	case on != &ownTenant && on.TenantID != p.TenantID:
		return no(ReasonForeign)
	case p.TenantID == "":
		return canOnInstallation(p, verb)
	case !p.Permissions.Allow(verb):
		return Decision{Reason: ReasonService, obstacle: string(verb.Through)}
	}
	return canMember(p, verb, on, nil) // policies are about users and API keys
}

// canOnInstallation decides for a service outside of tenants, on what belongs to the
// installation. A key that is limited to some tenants has nothing there.
func canOnInstallation(p *doorward.Principal, verb *doorward.Verb) Decision {
	if verb.Through != doorward.WebhookManage || !p.Service.Has(verb.Through) || !p.Service.Covers("") {
		return Decision{Reason: ReasonService, obstacle: string(verb.Through)}
	}
	return yes(ReasonService)
}

// neededAcross has what a service needs for acts of the operator; it may do no others.
var neededAcross = map[doorward.Action]doorward.Action{
	doorward.TenantCreate: doorward.ServiceTenantCreate,
	doorward.TenantFreeze: doorward.ServiceTenantStatus,
	doorward.TenantThaw:   doorward.ServiceTenantStatus,
}

// canAcross decides for a service about an action of the operator, by the permission that
// it needs. A key that is limited to some tenants can't create one.
func canAcross(p *doorward.Principal, act doorward.Action, on *doorward.Object) Decision {
	need := neededAcross[act]
	switch {
	case need == "":
		return no(ReasonOperator)
	case !p.Service.Has(need) || need == doorward.ServiceTenantCreate && !p.Service.Covers(on.TenantID):
		return Decision{Reason: ReasonService, obstacle: string(need)}
	case !p.Service.Covers(on.TenantID):
		return no(ReasonForeign)
	}
	return yes(ReasonService)
}

// CanServe says whether the principal may use what is open to the operator and to
// services with the permission; with none to the operator only.
func CanServe(p *doorward.Principal, need doorward.Action) Decision {
	switch {
	case p.Kind != doorward.ByService || need == "":
		return CanOperate(p)
	case !p.Service.Has(need):
		return Decision{Reason: ReasonService, obstacle: string(need)}
	}
	return yes(ReasonService)
}

func lacks(p *doorward.Principal, verb *doorward.Verb) Decision {
	d := Decision{Reason: ReasonRole, own: p.Role, obstacle: string(verb.Through)}
	if g := p.Rules.Grant(p.Role); p.Kind == doorward.ByKey && g != nil && g.Permissions.Allow(verb) {
		d.Reason = ReasonKey
	}
	return d
}

// isShut reports whether the tenant keeps the principal out. There are no sessions in a
// frozen tenant; keys stay, and are refused.
func isShut(p *doorward.Principal, openWhileClosing bool) bool {
	if p.Kind != doorward.ByUser {
		return p.TenantStatus != doorward.TenantActive
	}
	return p.TenantStatus == doorward.TenantClosing && !openWhileClosing
}

// CanEnterInPerson is CanEnter for what only a person with a session may use.
func CanEnterInPerson(p *doorward.Principal, openWhileClosing bool) Decision {
	if p.Kind == doorward.ByKey || p.Kind == doorward.ByService {
		return no(ReasonPerson)
	}
	return CanEnter(p, openWhileClosing)
}

// CanEnterByKey is CanEnter for what only an API key may use.
func CanEnterByKey(p *doorward.Principal) Decision {
	d := CanEnter(p, false)
	if d.Allowed && p.Kind != doorward.ByKey {
		return no(ReasonKind)
	}
	return d
}

// KeyCause is why an API key is not valid, for the trail; callers don't see it.
type KeyCause string

// The causes.
const (
	KeyUnknown  KeyCause = "unknown"
	KeyRevoked  KeyCause = "revoked"
	KeyExpired  KeyCause = "expired"
	KeyRotated  KeyCause = "rotated" // the secret, by a newer one
	KeyDisabled KeyCause = "disabled"
	KeyOwner    KeyCause = "owner" // is no active member
)

// RefusesKey says why a secret of an API key is not valid at now; empty: it is.
// secretEndsAt is nil for the key's current secret.
func RefusesKey(k *doorward.APIKey, secretEndsAt *time.Time, now time.Time) KeyCause {
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

// CanEnter says whether the principal may use what is open to members of a tenant.
// In a closing tenant that is limited to what has openWhileClosing.
func CanEnter(p *doorward.Principal, openWhileClosing bool) Decision {
	switch {
	case p.Kind == doorward.Anonymous:
		return no(ReasonCredential)
	case p.Kind != doorward.ByUser && p.Kind != doorward.ByKey:
		return no(ReasonKind)
	case isShut(p, openWhileClosing):
		return Decision{Reason: ReasonTenant, obstacle: string(p.TenantStatus)}
	}
	return yes(ReasonTenant)
}

// canOperator decides for the operator, whose key may be limited.
func canOperator(p *doorward.Principal, action doorward.Action) Decision {
	need := doorward.OperatorPermission(action)
	if p.IsLimited() && !slices.Contains(p.Limits, need) {
		return Decision{Reason: ReasonLimits, obstacle: string(need)}
	}
	return yes(ReasonOperator)
}

// CanOperateWith is CanOperate for a route that operator keys with one of the permissions
// may use; a limited key may use no route that names none.
func CanOperateWith(p *doorward.Principal, any ...doorward.Action) Decision {
	d := CanOperate(p)
	if !d.Allowed || !p.IsLimited() {
		return d
	}
	d = Decision{Reason: ReasonLimits}
	for _, permission := range any {
		if d = canOperator(p, permission); d.Allowed {
			break
		}
	}
	return d
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
		if d.own == "" {
			return doorward.Fail(doorward.CodeForbidden, "No policy of the platform permits %s.", d.obstacle)
		}
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
		return doorward.Fail(doorward.CodeForbidden, "This kind of credential is not accepted here. Inside a tenant that is a session, or where it applies an API key.")
	case ReasonKey:
		return doorward.Fail(doorward.CodeForbidden, "The API key does not have the permission %s.", d.obstacle)
	case ReasonService:
		return doorward.Fail(doorward.CodeForbidden, "The service key does not have the permission %s.", d.obstacle)
	case ReasonLimits:
		return doorward.Fail(doorward.CodeForbidden, "The operator key does not have the permission %s.", cmp.Or(d.obstacle, "to use this endpoint"))
	case ReasonPolicy:
		return d.byPolicy()
	case ReasonStepUp:
		return d.needsProof()
	case ReasonPerson:
		return doorward.Fail(doorward.CodeNotForKeys, "")
	case ReasonUnknown:
		return doorward.Fail(doorward.CodeUnknownAction, "")
	case ReasonOperator:
		return doorward.Fail(doorward.CodeForbidden, "This needs an operator key, sent as \"Authorization: Bearer dwo_…\".")
	}
	return &doorward.Error{Code: doorward.CodeInternal, Err: fmt.Errorf("access: refused for the reason %q", d.Reason)}
}

func (d Decision) byPolicy() *doorward.Error {
	of := "tenant"
	if d.policy.ByOperator {
		of = "platform"
	}
	detail := cmp.Or(d.policy.Reason, fmt.Sprintf("The policy %q of the %s refuses it.", d.policy.PolicyID, of))
	if d.policy.Needs != "" {
		detail += fmt.Sprintf(" The policy reads %s, which the request lacks.", d.policy.Needs)
	}
	e := doorward.Fail(doorward.CodeDeniedByPolicy, "%s", detail)
	e.Policy = d.policy
	return e
}

func (d Decision) tooHigh() *doorward.Error {
	switch {
	case d.given && d.obstacle == "":
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't make a role with permissions that it lacks.", d.own)
	case d.lacked:
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't give the role %s, which has permissions that it lacks.", d.own, d.obstacle)
	case d.given:
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't give the higher role %s.", d.own, d.obstacle)
	case d.of == doorward.APIKeyManage:
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't change an API key with the higher role %s.", d.own, d.obstacle)
	case d.of == doorward.RoleManage:
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't change the higher role %s.", d.own, d.obstacle)
	}
	return doorward.Fail(doorward.CodeForbidden, "The role %s may not change someone who is %s.", d.own, d.obstacle)
}

func (d Decision) notOpen() *doorward.Error {
	if d.obstacle == string(doorward.TenantClosing) {
		return doorward.Fail(doorward.CodeTenantClosing, "")
	}
	return doorward.Fail(doorward.CodeTenantFrozen, "")
}
