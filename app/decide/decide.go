// Package decide says who may do what. It is pure: it reads no store, and decides by the principal
// that it gets.
//
// May is the only function that says whether a principal may do an action to an object, now: for
// gateways, guards of routes, writes, pages and their templates. Enter decides, before that, whether a
// route accepts the credential at all, SignIn whether a membership can have sessions, and Proved
// whether a proof of identity is recent enough where more is demanded than the action's row says.
package decide

import (
	"cmp"
	"slices"

	"github.com/doorward/doorward"
)

// Question is what May decides: whether a principal may do an action to an object, now.
type Question struct {
	Action doorward.Action
	// On is the object. For none in particular it is the principal's own tenant (Principal.Tenant);
	// the zero Object is in no tenant, so members are refused it with ReasonForeign.
	On doorward.Object
	// Request is what policies read. Nil: unknown, and a policy that reads a part of it refuses.
	Request *doorward.Request
	// Proof tells the instant at which a proof of identity is judged, if the action demands one. Nil:
	// none is demanded, as for tables, and for pages that show what somebody could do.
	Proof doorward.Clock
	// ForService: a service asks. It can ask about permissions only; for other actions the reason is
	// ReasonUnknown.
	ForService bool
	// Implied: the principal may do another action, which amounts to this one. Policies alone decide.
	Implied bool
}

// May decides whether the principal may do what the question asks. It doesn't allocate.
//
// It trusts the principal as passed in. access.Writer.Do reads the principal and decides again inside
// the transaction; only that second decision permits a write.
func May(p *doorward.Principal, q *Question) Decision {
	verb, known := p.Rules.Model().Lookup(q.Action)
	switch {
	case q.ForService && !verb.IsPermission():
		return Decision{Reason: ReasonUnknown, model: p.Rules.Model()}
	case !known:
		return Decision{} // a bug: no such action
	case q.Implied:
		return mayByPolicies(p, verb, q.Request)
	}
	if q.Proof == nil || verb.Proof == doorward.NoProof && !p.HasNoOwnSession {
		return may(p, verb, q)
	}
	return may(p, verb, q).withProof(p, verb, q.Proof)
}

// may decides for every kind of principal, without a proof of identity.
func may(p *doorward.Principal, verb *doorward.Verb, q *Question) Decision {
	switch {
	case p.Kind == doorward.BySetupLink:
		return mayBySetupLink(p, verb, q)
	case p.Kind == doorward.ByDirectory:
		return mayByDirectory(p, verb, q)
	case verb.By == doorward.ByProof:
		return mayProved(p, verb, &q.On)
	case verb.By == doorward.ByRole && (p.Kind == doorward.ByUser || p.Kind == doorward.ByKey):
		return mayMember(p, verb, q)
	case verb.By == doorward.ByRole && p.Kind == doorward.ByService:
		return mayServiceInTenant(p, verb, q)
	case verb.By != doorward.ByRole && p.Kind == doorward.ByService:
		return mayServiceAsOperator(p, verb, &q.On)
	case p.Kind == doorward.Operator:
		return mayOperator(p, verb)
	case p.Kind == doorward.System:
		return yes(ReasonOperator)
	case verb.By != doorward.ByRole && p.Kind != doorward.Anonymous:
		return no(ReasonOperator)
	}
	return no(ReasonCredential)
}

// mayProved decides on an action that a proof in the request allows.
func mayProved(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	if p.Issuer != doorward.OwnIssuer {
		return mayByConnection(p, verb, on)
	}
	return yes(ReasonProof)
}

// mayMember decides for a user or an API key on an object of their tenant, and for a service inside
// a tenant.
func mayMember(p *doorward.Principal, verb *doorward.Verb, q *Question) Decision {
	switch {
	case q.On.TenantID != p.TenantID:
		return no(ReasonForeign)
	case verb.ForPeople() && p.Kind != doorward.ByUser:
		return no(ReasonPerson)
	case !p.Permissions.Allow(verb):
		return mayByPermit(p, verb, q.Request)
	}
	if q.On.Held != "" || q.On.Granted != "" || q.On.Grant != nil {
		if d := mayActOn(p, verb, &q.On); !d.Allowed {
			return d
		}
	}
	if isTenantUnusable(p, verb.AllowedWhileClosing) {
		return Decision{Reason: ReasonTenant, detail: string(p.TenantStatus)}
	}
	if p.Policy == nil { // the way of most checks: without another call
		return yes(ReasonRole)
	}
	return mayByPolicies(p, verb, q.Request)
}

// mayByPermit decides if the role does not grant the action. Policies of the operator can permit
// actions of the platform to members, and to users that the model declares, but never to keys or
// suspended members.
func mayByPermit(p *doorward.Principal, verb *doorward.Verb, r *doorward.Request) Decision {
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
	d := applyPolicies(p, verb, r)
	d.permit = permit
	if d.Allowed {
		d.Reason = ReasonPolicy
	}
	return d
}

// noRequest stands for an unknown request.
var noRequest = &doorward.Request{}

// mayByPolicies decides by the policies alone, if there are some that concern the action.
func mayByPolicies(p *doorward.Principal, verb *doorward.Verb, r *doorward.Request) Decision {
	if p.Policy == nil || IsExempt(p, verb) {
		return yes(ReasonRole)
	}
	return applyPolicies(p, verb, r)
}

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

// IsExempt reports whether policies can't refuse the action to the principal: by its row, or because
// it is one that a closing tenant still allows.
func IsExempt(p *doorward.Principal, verb *doorward.Verb) bool {
	switch verb.Exempt {
	case doorward.ExemptForAll:
		return true
	case doorward.ExemptForOwners:
		return p.Kind == doorward.ByUser && p.Role == doorward.RoleOwner
	}
	return verb.AllowedWhileClosing && p.TenantStatus == doorward.TenantClosing
}

// mayActOn compares the principal's role with the role that the action gives, and with the role
// that the object has.
func mayActOn(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	given := on.Grant
	if on.Granted != "" {
		given = p.Rules.Grant(on.Granted)
	}
	if given != nil {
		if d := mayGive(p, verb, given); !d.Allowed {
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
		d.Reason, d.role, d.detail, d.verb = ReasonRank, p.Role, string(on.Held), verb
	}
	return d
}

// mayGive decides whether the principal may give a role. The role's rank must not be higher than
// the principal's, and the principal's own role must have all of its permissions. A key gives no role that
// could do more than any key: with the new member's password it would be a person. To revoke an
// invitation gives nothing, so a key needs only the rank.
func mayGive(p *doorward.Principal, verb *doorward.Verb, given *doorward.Grant) Decision {
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

// mayServiceInTenant decides for a service inside a tenant, where it has the rank of an ADMIN,
// or outside of tenants.
func mayServiceInTenant(p *doorward.Principal, verb *doorward.Verb, q *Question) Decision {
	switch {
	case q.On.TenantID != p.TenantID:
		return no(ReasonForeign)
	case p.TenantID == "":
		return mayOnInstallation(p, verb)
	case !p.Permissions.Allow(verb):
		return Decision{Reason: ReasonService, detail: string(verb.Permission)}
	}
	return mayMember(p, verb, q)
}

// mayOnInstallation decides for a service on objects of the installation. A key that is limited
// to some tenants may do nothing there.
func mayOnInstallation(p *doorward.Principal, verb *doorward.Verb) Decision {
	if verb.Permission != doorward.WebhookManage || !p.Service.Has(verb.Permission) || !p.Service.Covers("") {
		return Decision{Reason: ReasonService, detail: string(verb.Permission)}
	}
	return yes(ReasonService)
}

// mayServiceAsOperator decides for a service on one of the operator's actions on tenants. A key
// that is limited to some tenants can't create a tenant.
func mayServiceAsOperator(p *doorward.Principal, verb *doorward.Verb, on *doorward.Object) Decision {
	d := mayServe(p, verb)
	switch {
	case !d.Allowed, p.Service.Covers(on.TenantID):
		return d
	case verb.Action == doorward.TenantCreate:
		return Decision{Reason: ReasonService, detail: string(verb.Service)}
	}
	return no(ReasonForeign)
}

// mayServe decides by the permissions of a service key alone.
func mayServe(p *doorward.Principal, verb *doorward.Verb) Decision {
	switch {
	case verb.By == doorward.ByRole || verb.Service == "":
		return no(ReasonOperator)
	case !p.Service.Has(verb.Service):
		return Decision{Reason: ReasonService, detail: string(verb.Service)}
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

// mayOperator decides for the operator, whose key may be limited. An operator's page has single actions, where a key
// has permissions: one that may freeze may not thaw.
func mayOperator(p *doorward.Principal, verb *doorward.Verb) Decision {
	if p.IsPage {
		if !slices.Contains(p.Limits, verb.Action) {
			return Decision{Reason: ReasonPage, detail: string(verb.Action)}
		}
		return yes(ReasonOperator)
	}
	if p.IsLimited() && (verb.Operator == "" || !slices.Contains(p.Limits, verb.Operator)) {
		return Decision{Reason: ReasonLimits, detail: string(cmp.Or(verb.Operator, verb.Action))}
	}
	return yes(ReasonOperator)
}
