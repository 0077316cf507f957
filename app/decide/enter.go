package decide

import "github.com/doorward/doorward"

// Credential says whose credentials a route accepts.
type Credential uint8

const (
	// OfMember: sessions of people and API keys, of a tenant that can be used.
	OfMember Credential = iota
	// OfPerson: sessions only.
	OfPerson
	// OfKey: API keys only.
	OfKey
	// OfOperator: operator keys, and the keys of services. A limited operator key, or a service key,
	// needs the permission for one of the route's actions; a service key only for those of the operator.
	OfOperator
	// OfService: keys of services with the permission that the route's action needs, whatever the tenant.
	OfService
)

// Route is what Enter has to know of a route, to decide whether it accepts the credential of a principal
// at all. On the action and its object, May decides.
type Route struct {
	Credential Credential
	// Actions are those of the route, for OfOperator and OfService.
	Actions []doorward.Action
	// WhileClosing reports whether sessions of a tenant that is being closed are accepted, too.
	WhileClosing bool
}

// Enter decides whether the route accepts the principal's credential.
func Enter(p *doorward.Principal, route Route) Decision {
	switch {
	case route.Credential == OfOperator:
		return enterAsOperator(p, route.Actions)
	case route.Credential == OfService:
		return firstAllowed(p, OfService, route.Actions)
	case route.Credential == OfPerson && (p.Kind == doorward.ByKey || p.Kind == doorward.ByService):
		return no(ReasonPerson)
	}
	d := enterTenant(p, route.WhileClosing)
	if d.Allowed && route.Credential == OfKey && p.Kind != doorward.ByKey {
		return no(ReasonKind)
	}
	return d
}

// enterTenant decides by the kind of the credential and the status of its tenant.
func enterTenant(p *doorward.Principal, whileClosing bool) Decision {
	switch {
	case p.Kind == doorward.Anonymous:
		return no(ReasonCredential)
	case p.Kind != doorward.ByUser && p.Kind != doorward.ByKey:
		return no(ReasonKind)
	case isTenantUnusable(p, whileClosing):
		return Decision{Reason: ReasonTenant, detail: string(p.TenantStatus)}
	}
	return yes(ReasonTenant)
}

func enterAsOperator(p *doorward.Principal, actions []doorward.Action) Decision {
	switch {
	case p.Kind == doorward.Operator && !p.IsLimited():
		return yes(ReasonOperator)
	case p.Kind == doorward.Operator, p.Kind == doorward.ByService:
		return firstAllowed(p, OfOperator, actions)
	case p.Kind == doorward.Anonymous:
		return no(ReasonCredential)
	}
	return no(ReasonOperator)
}

// firstAllowed returns the first decision on one of the actions that is yes, else the last.
func firstAllowed(p *doorward.Principal, credential Credential, actions []doorward.Action) Decision {
	d := mayEnterFor(p, credential, &doorward.Verb{})
	for _, action := range actions {
		verb, _ := doorward.Lookup(action)
		if d = mayEnterFor(p, credential, verb); d.Allowed {
			break
		}
	}
	return d
}

// mayEnterFor decides for one of the route's actions. It is no function value, which would move the
// principal of each check to the heap.
func mayEnterFor(p *doorward.Principal, credential Credential, verb *doorward.Verb) Decision {
	switch {
	case credential == OfService && p.Service.Has(verb.Service):
		return yes(ReasonService)
	case credential == OfService:
		return Decision{Reason: ReasonService, detail: string(verb.Service)}
	case p.Kind == doorward.Operator:
		return mayOperator(p, verb)
	}
	return mayServe(p, verb)
}

// SignIn decides whether the membership allows a session to be opened or to continue. In a closing
// tenant only an OWNER may sign in, to restore it.
func SignIn(u doorward.User) Decision {
	switch {
	case u.Status != doorward.UserActive:
		return no(ReasonMembership)
	case u.TenantStatus == doorward.TenantActive,
		u.TenantStatus == doorward.TenantClosing && u.Role == doorward.RoleOwner:
		return yes(ReasonMembership)
	}
	return Decision{Reason: ReasonTenant, detail: string(u.TenantStatus)} // frozen, or a status of a newer version
}
