package doorward

import (
	"net/netip"
	"time"
)

// Policy is the compiled policies of a tenant, and of the operator in the platform's model.
// It is immutable.
type Policy interface {
	// For evaluates the policies for the principal as far as possible without a request. It
	// returns nil if none of them concerns the principal. It doesn't read p.Permissions.
	For(p *Principal) PrincipalPolicies
	// ForDeclared is like For, for a user that the model declares, with the attributes that a
	// service states for it. It returns nil if the model declares no user with the id.
	ForDeclared(id string, stated map[string]any) PrincipalPolicies
	// Declared returns the ids of the entities of a type that the model declares, sorted.
	Declared(kind string) []string
}

// PrincipalPolicies are the policies that concern one principal. They are immutable.
type PrincipalPolicies interface {
	// DependsOnRequest reports whether the results of Refusal and Permit for the action may
	// depend on the request.
	DependsOnRequest(action Action) bool
	// Refusal returns the policy that refuses the action, nil for none. A policy refuses if it
	// reads a part of the request that is unknown.
	Refusal(action Action, r *Request) *PolicyRefusal
	// Permit returns the policy of the operator that permits an action of the platform although
	// the role doesn't grant it; nil for none. A Refusal takes precedence.
	Permit(action Action, r *Request) *PolicyPermit
	// Refusals returns all policies that refuse the action, in the order of the text.
	Refusals(action Action, r *Request) []PolicyRefusal
	// Observes reports whether there are policies in mode observe, whose refusals are recorded
	// and have no effect.
	Observes() bool
	// ObservedRefusal is Refusal for the policies in mode observe.
	ObservedRefusal(action Action, r *Request) *PolicyRefusal
}

// PolicyPermit names the policy of the operator that permits an action.
type PolicyPermit struct {
	PolicyID string // its @id
	Line     int    // where the policy begins in the text of the model's policies
}

// PolicyRefusal names the policy that refuses an action, or would in mode observe.
type PolicyRefusal struct {
	PolicyID string // its @id
	Reason   string // its @reason; empty without one
	Line     int    // where the policy begins in the text
	// ByOperator reports whether it is a policy of the platform's model, not of the tenant.
	ByOperator bool
	Version    int64 // of the tenant's text; 0 for a policy of the operator
	// Needs names what the policy reads and the request lacks: "resource", a member of the context or
	// an attribute of the resource with its type; empty if nothing is missing.
	Needs string
}

// Request has the properties of a request that policies can read. Unknown ones have their zero
// values.
type Request struct {
	// At is when the decision is made. It determines which version of a policy is in force.
	At time.Time
	// Now is the time that policies see: At, unless a service asks about another time.
	Now time.Time
	IP  netip.Addr
	StatedRequest
	Resource *Resource
	// Deferred reports whether the service will ask again with the resource. Until then a
	// policy that reads the resource doesn't refuse, and a policy of the operator that might
	// permit the action for some resource permits it.
	Deferred bool
	// Properties are nil unless a service states some.
	Properties *Properties
}

// Properties are attributes that a service states for the subject, the action and the resource.
// Only the operator's policies read them.
type Properties struct{ Subject, Action, Resource map[string]any }

// StatedRequest has what a trusted gateway states about the request that it asks about. Fields
// that it doesn't state are empty.
type StatedRequest struct {
	Method, Host, Path string
	// Unreadable names the fields whose statements can't be parsed, as the context of policies
	// names them. A policy that reads one of them refuses.
	Unreadable []string
}

// Resource is the object of an action of the platform, with the attributes that the model
// declares for its type.
type Resource struct {
	Type, ID   string
	Attributes map[string]any
}

// RequestAt returns what is known of the caller's request, for a decision at an instant.
func (c *Caller) RequestAt(now time.Time) *Request {
	ip, _ := netip.ParseAddr(c.IP) // invalid for a peer without an address
	return &Request{At: now, Now: now, IP: ip.Unmap().WithZone("")}
}

// WithPolicy returns the rules with the policy, which may be nil.
func (r *Rules) WithPolicy(p Policy) *Rules {
	with := *r
	with.policy = p
	return &with
}

// Declared returns the ids of the entities of a type that the model declares, sorted.
func (r *Rules) Declared(kind string) []string {
	if r == nil || r.policy == nil {
		return nil
	}
	return r.policy.Declared(kind)
}

// PrincipalOfDeclared returns the principal of a user that the model declares, with the
// attributes that a service states for it, and whether there is one. The principal is in no
// tenant, has no role, and may do only what policies of the operator permit.
func PrincipalOfDeclared(r *Rules, id string, stated map[string]any) (Principal, bool) {
	p := Principal{Kind: ByUser, ID: id, Rules: r, Permissions: new(Permissions)}
	if r == nil || r.policy == nil {
		return p, false
	}
	p.Policy = r.policy.ForDeclared(id, stated)
	return p, p.Policy != nil
}

// policyOf returns the policies that concern the principal; nil for none.
func (r *Rules) policyOf(p *Principal) PrincipalPolicies {
	if r == nil || r.policy == nil {
		return nil
	}
	return r.policy.For(p)
}
