package doorward

import (
	"net/netip"
	"time"
)

// Policy is the compiled policies of a tenant, and of the operator in the platform's model.
// It is immutable.
type Policy interface {
	// For evaluates the policies as far as possible without a request; nil: none of them
	// concerns the principal. It reads who the principal is, not what it may do.
	For(p *Principal) PolicyOf
	// ForDeclared is For for a user that the model declares, with what a service states
	// about it; nil: the model declares no user with the id.
	ForDeclared(id string, stated map[string]any) PolicyOf
	// Declared returns the ids of the entities of a type that the model declares, sorted.
	Declared(kind string) []string
}

// PolicyOf is a Policy as it concerns one principal. It is immutable.
type PolicyOf interface {
	// DependsOnRequest reports whether the answers of Refusal and Permit for the action
	// may depend on the request.
	DependsOnRequest(action Action) bool
	// Refusal says which policy refuses the action, nil for none. A policy that reads what
	// is unknown of the request refuses.
	Refusal(action Action, r *Request) *PolicyRefusal
	// Permit says which policy of the operator permits an action of the platform, whatever
	// the role grants; nil for none. A Refusal still refuses.
	Permit(action Action, r *Request) *PolicyPermit
	// Refusals are the refusals of all policies that refuse the action, in the order of the
	// text.
	Refusals(action Action, r *Request) []PolicyRefusal
	// Observes reports whether there are policies that are only observed: what they would
	// refuse is recorded and not refused.
	Observes() bool
	// Observed is Refusal for the policies that are only observed.
	Observed(action Action, r *Request) *PolicyRefusal
}

// PolicyPermit names the policy of the operator that permits.
type PolicyPermit struct {
	PolicyID string // its @id
	Line     int    // of the model's policies, where it begins
}

// PolicyRefusal names the policy that refuses, or would.
type PolicyRefusal struct {
	PolicyID string // its @id
	Reason   string // its @reason; empty without one
	Line     int    // of the text, where it begins
	// ByOperator: it is a policy of the platform's model, not of the tenant.
	ByOperator bool
	Version    int64 // of the tenant's text; 0 of the operator's
	// Needs is what the policy reads and the request lacks, "resource" or a name of the
	// context; empty where nothing is lacking.
	Needs string
}

// Request is what belongs to a request, for policies. What is unknown has its zero value.
type Request struct {
	// At is when the decision is made. It says which version of a policy holds.
	At time.Time
	// Now is the time that policies see: At, unless a service asks about another time.
	Now time.Time
	IP  netip.Addr
	Stated
	Resource *Resource
	// Deferred: a service will ask again, with the resource. Until then a policy that reads it
	// doesn't refuse, and an operator's policy that might permit with it does permit.
	Deferred bool
	// Properties are nil unless a service states some.
	Properties *Properties
}

// Properties are what a service says of who acts, of the action and of the resource. Only
// the operator's policies read them.
type Properties struct{ Subject, Action, Resource map[string]any }

// Stated is what a trusted gateway says of the request that it asks about. What it does not
// say is empty.
type Stated struct {
	Method, Host, Path string
	// Unreadable are the names, as in the context of policies, of what it says in a way
	// that can't be read. Policies that read one refuse.
	Unreadable []string
}

// Resource is the object of an action of the platform, with the attributes that the model
// declares for its type.
type Resource struct {
	Type, ID   string
	Attributes map[string]any
}

// RequestAt is what the caller's request shows, for a decision at an instant.
func (c *Caller) RequestAt(now time.Time) *Request {
	ip, _ := netip.ParseAddr(c.IP) // invalid for a peer without an address
	return &Request{At: now, Now: now, IP: ip.Unmap().WithZone("")}
}

// WithPolicy returns the rules with a policy; nil for none.
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

// PrincipalOfDeclared returns the principal of a user that the model declares, with what a
// service states of it, and whether there is one. It is in no tenant, has no role, and may
// do what policies of the operator permit.
func PrincipalOfDeclared(r *Rules, id string, stated map[string]any) (Principal, bool) {
	p := Principal{Kind: ByUser, ID: id, Rules: r, Permissions: new(Permissions)}
	if r == nil || r.policy == nil {
		return p, false
	}
	p.Policy = r.policy.ForDeclared(id, stated)
	return p, p.Policy != nil
}

// policyOf is the policy of the rules as it concerns the principal; nil for none.
func (r *Rules) policyOf(p *Principal) PolicyOf {
	if r == nil || r.policy == nil {
		return nil
	}
	return r.policy.For(p)
}
