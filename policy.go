package doorward

import (
	"net/netip"
	"time"
)

// Policy is what a tenant's policies say, compiled. It is immutable.
type Policy interface {
	// For evaluates the policies as far as that goes without a request; nil: none of them
	// can refuse the principal anything. It reads who the principal is, not what it may do.
	For(p *Principal) PolicyOf
}

// PolicyOf is a Policy as it concerns one principal. It is immutable.
type PolicyOf interface {
	// DependsOnRequest reports whether the answer of Refusal for the action may depend
	// on the request.
	DependsOnRequest(action Action) bool
	// Refusal says which policy refuses the action, nil for none. A policy that reads what
	// is unknown of the request refuses.
	Refusal(action Action, r *Request) *PolicyRefusal
	// Refusals are the refusals of all policies that refuse the action, in the order of the
	// text.
	Refusals(action Action, r *Request) []PolicyRefusal
	// Observes reports whether there are policies that refuse nothing yet.
	Observes() bool
	// Observed is Refusal for the policies that refuse nothing yet: what the first of them
	// would refuse.
	Observed(action Action, r *Request) *PolicyRefusal
}

// PolicyRefusal names the policy that refuses.
type PolicyRefusal struct {
	PolicyID string // its @id
	Reason   string // its @reason; empty without one
	Line     int    // of the text, where it begins
	Version  int64  // of the text
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
	// Deferred: a service asks again, with the resource, so that a policy that needs one
	// does not refuse yet.
	Deferred bool
}

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

// policyOf is the policy of the rules as it concerns the principal; nil for none.
func (r *Rules) policyOf(p *Principal) PolicyOf {
	if r == nil || r.policy == nil {
		return nil
	}
	return r.policy.For(p)
}
