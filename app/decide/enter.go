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
		return enterAsService(p, route.Actions)
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
	decide := mayOperator
	switch {
	case p.Kind == doorward.Operator && !p.IsLimited():
		return yes(ReasonOperator)
	case p.Kind == doorward.Operator:
	case p.Kind == doorward.ByService:
		decide = mayServe
	case p.Kind == doorward.Anonymous:
		return no(ReasonCredential)
	default:
		return no(ReasonOperator)
	}
	return firstAllowed(p, actions, decide)
}

func enterAsService(p *doorward.Principal, actions []doorward.Action) Decision {
	return firstAllowed(p, actions, func(p *doorward.Principal, verb *doorward.Verb) Decision {
		if !p.Service.Has(verb.Service) {
			return Decision{Reason: ReasonService, detail: string(verb.Service)}
		}
		return yes(ReasonService)
	})
}

// firstAllowed returns the first decision on one of the actions that is yes, else the last.
func firstAllowed(p *doorward.Principal, actions []doorward.Action, decide func(*doorward.Principal, *doorward.Verb) Decision) Decision {
	d := decide(p, &doorward.Verb{})
	for _, action := range actions {
		verb, _ := doorward.Lookup(action)
		if d = decide(p, verb); d.Allowed {
			break
		}
	}
	return d
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
