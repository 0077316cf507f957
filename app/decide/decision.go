package decide

import (
	"cmp"
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
	// ReasonTenant: the status of the tenant allows it, or does not.
	ReasonTenant Reason = "tenant"
	// ReasonMembership: the membership is active, or is not.
	ReasonMembership Reason = "membership"
	// ReasonCredential: the caller has no credential.
	ReasonCredential Reason = "credential"
	// ReasonKind: this kind of credential is not accepted here.
	ReasonKind Reason = "kind"
	// ReasonKey: the role grants it, but the API key doesn't have the permission.
	ReasonKey Reason = "key"
	// ReasonKeyGives: the role that the action gives has a permission that no API key can have.
	ReasonKeyGives Reason = "key_gives"
	// ReasonPerson: only the session of a person is accepted here.
	ReasonPerson Reason = "person"
	// ReasonOperator: the action belongs to the operator of the installation.
	ReasonOperator Reason = "operator"
	// ReasonProof: the feature has verified a proof, such as a password.
	ReasonProof Reason = "proof"
	// ReasonService: the service key has the permission, or does not.
	ReasonService Reason = "service"
	// ReasonLimits: the operator key is limited to other permissions or endpoints.
	ReasonLimits Reason = "limits"
	// ReasonPolicy: a policy of the tenant or of the operator refuses it, or one of the
	// operator permits it.
	ReasonPolicy Reason = "policy"
	// ReasonStepUp: the user's identity was not proved recently, or not by a second factor.
	ReasonStepUp Reason = "step-up"
	// ReasonIssuer: what vouches for the session doesn't speak for the account.
	ReasonIssuer Reason = "issuer"
	// ReasonManaged: the account is one that a tenant manages.
	ReasonManaged Reason = "managed"
	// ReasonLink: a set-up link may not do this.
	ReasonLink Reason = "link"
	// ReasonPage: the link of the operator's page doesn't have the action.
	ReasonPage Reason = "page"
	// ReasonUnknown: the action doesn't exist, or is no permission that a service can ask for.
	ReasonUnknown Reason = "unknown"
)

// Decision is yes or no, and why. The zero Decision is no.
type Decision struct {
	Allowed bool
	Reason  Reason
	// DemandsProof reports whether the action demands a recent proof of the principal's identity, and
	// the question asked to judge it.
	DemandsProof bool

	// For the text of a refusal:
	role doorward.Role // of the principal
	// detail is for ReasonTenant the tenant's status, for ReasonRank the role that is too high,
	// for ReasonRole, ReasonKey, ReasonService and ReasonLimits the permission that is needed, for
	// ReasonPage the action.
	detail string
	given  bool           // ReasonRank: detail is the role that the action gives, not the object's role
	lacked bool           // ReasonRank: the role in detail has a permission that the principal's role lacks
	verb   *doorward.Verb // ReasonRank, ReasonStepUp: that of the action
	policy *doorward.PolicyRefusal
	permit *doorward.PolicyPermit
	model  *doorward.Model // ReasonUnknown: the model that lacks the action
	proof  *doorward.ProofNeeded
}

// Policy returns the policy that refuses; nil for other reasons.
func (d Decision) Policy() *doorward.PolicyRefusal { return d.policy }

// Permit returns the policy of the operator that permits an action that the role doesn't grant; nil for
// other actions. Another policy may refuse it all the same.
func (d Decision) Permit() *doorward.PolicyPermit { return d.permit }

// IsGranted reports whether role, rank, key and the status of the tenant allow the action, whatever
// policies say of it.
func (d Decision) IsGranted() bool {
	return d.Allowed && d.Reason == ReasonRole || d.policy != nil && d.permit == nil
}

func yes(r Reason) Decision { return Decision{Allowed: true, Reason: r} }

func no(r Reason) Decision { return Decision{Reason: r} }

// Err returns nil if the decision is yes, else Refusal.
func (d Decision) Err() error {
	if d.Allowed {
		return nil
	}
	return d.Refusal()
}

// Why returns the cause of a refusal as a sentence for callers that ask about somebody else,
// as AuthZEN and explain do.
func (d Decision) Why() string {
	switch d.Reason { // the codes' own texts are for the person who asks
	case ReasonMembership:
		return "The membership is suspended."
	case ReasonStepUp:
		return "The role allows this, but the person proved who they are too long ago, or not with a second factor that they have."
	}
	e := d.Refusal()
	return cmp.Or(e.Detail, e.Code.Problem().Help)
}

// Refusal returns the error for the caller. For an object of another tenant it is not_found, so that
// the caller doesn't learn that the object exists.
func (d Decision) Refusal() *doorward.Error {
	switch d.Reason {
	case ReasonRole:
		if d.role == "" { // a user that the model declares: in no tenant, and without a role
			return doorward.Fail(doorward.CodeForbidden, "No policy of the platform permits %s.", d.detail)
		}
		return doorward.Fail(doorward.CodeForbidden, "The role %s does not grant %s.", d.role, d.detail)
	case ReasonRank:
		return d.rankError()
	case ReasonForeign:
		return doorward.Fail(doorward.CodeNotFound, "")
	case ReasonTenant:
		return d.tenantError()
	case ReasonMembership:
		return doorward.Fail(doorward.CodeMembershipSuspended, "")
	case ReasonCredential:
		return doorward.Fail(doorward.CodeUnauthenticated, "")
	case ReasonKind:
		return doorward.Fail(doorward.CodeForbidden, "This kind of credential is not accepted here. Send the session of a member, or an API key where the endpoint accepts one.")
	case ReasonKey:
		return doorward.Fail(doorward.CodeForbidden, "The API key does not have the permission %s.", d.detail)
	case ReasonKeyGives:
		return doorward.Fail(doorward.CodeForbidden, "An API key can't give the role %s, which has permissions that no key can have. Sign in and use a session.", d.detail)
	case ReasonService:
		return doorward.Fail(doorward.CodeForbidden, "The service key does not have the permission %s.", d.detail)
	case ReasonLimits:
		return doorward.Fail(doorward.CodeForbidden, "The operator key does not have the permission %s.", cmp.Or(d.detail, "to use this endpoint"))
	case ReasonPolicy:
		return d.policyError()
	case ReasonStepUp:
		e := doorward.Fail(doorward.CodeStepUpRequired, "")
		e.Proof = d.proof
		return e
	case ReasonPerson:
		return doorward.Fail(doorward.CodeNotForKeys, "")
	case ReasonIssuer:
		return doorward.Fail(doorward.CodeSignInRequired, "")
	case ReasonManaged:
		return doorward.Fail(doorward.CodeManagedAccount, "")
	case ReasonLink:
		return doorward.Fail(doorward.CodeForbidden, "A set-up link can't do this. Ask the person who sent it.")
	case ReasonPage:
		return doorward.Fail(doorward.CodeForbidden, "The link of this page doesn't let it do %s. \"doorward audit link --act\" makes one that does.", d.detail)
	case ReasonUnknown:
		return doorward.Fail(doorward.CodeUnknownAction, "%s", d.model.ActionsHelp())
	case ReasonOperator:
		return doorward.Fail(doorward.CodeForbidden, "This needs an operator key, sent as \"Authorization: Bearer dwo_…\".")
	}
	return &doorward.Error{Code: doorward.CodeInternal, Err: fmt.Errorf("decide: refused for the reason %q", d.Reason)}
}

func (d Decision) policyError() *doorward.Error {
	owner := "tenant"
	if d.policy.ByOperator {
		owner = "platform"
	}
	detail := cmp.Or(d.policy.Reason, fmt.Sprintf("The policy %q of the %s refuses it.", d.policy.PolicyID, owner))
	if d.policy.Needs != "" {
		detail += fmt.Sprintf(" The policy reads %s, which the request lacks.", d.policy.Needs)
	}
	e := doorward.Fail(doorward.CodeDeniedByPolicy, "%s", detail)
	e.Policy = d.policy
	return e
}

func (d Decision) rankError() *doorward.Error {
	switch {
	case d.given && d.detail == "": // a role that is being made or changed, see Object.Grant
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't make a role with permissions that it lacks.", d.role)
	case d.lacked:
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't give the role %s, which has permissions that it lacks.", d.role, d.detail)
	case d.given:
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't give the higher role %s.", d.role, d.detail)
	case d.verb.Permission == doorward.APIKeyManage:
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't change an API key with the higher role %s.", d.role, d.detail)
	case d.verb.Permission == doorward.RoleManage:
		return doorward.Fail(doorward.CodeForbidden, "The role %s can't change the higher role %s.", d.role, d.detail)
	}
	return doorward.Fail(doorward.CodeForbidden, "The role %s may not change someone who is %s.", d.role, d.detail)
}

func (d Decision) tenantError() *doorward.Error {
	if d.detail == string(doorward.TenantClosing) {
		return doorward.Fail(doorward.CodeTenantClosing, "")
	}
	return doorward.Fail(doorward.CodeTenantFrozen, "")
}
