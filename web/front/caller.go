package front

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apikey"
	"github.com/doorward/doorward/app/decide"
	"github.com/doorward/doorward/internal/secret"
)

// Guard decides who may call a route. Make it with Public, Optional, SignedIn,
// SignedInOrKey, KeyOnly, Operated or Allowed. What an action allows, such as a call while the tenant is
// closing, is in its row of doorward.Verb.
type Guard struct {
	name   string
	action doorward.Action
	// operated are the actions of an operator's route.
	operated []doorward.Action
	// acrossTenants is the permission that a service key needs to use a tenant's route for all tenants;
	// empty: the request has to name a tenant.
	acrossTenants doorward.Action
	// openWhileClosing: the route, which has no action, also serves the OWNERs of a tenant that is
	// being closed.
	openWhileClosing bool
	// openToInstallation: the operator, and services that name no tenant, use the route for what
	// belongs to the installation.
	openToInstallation bool
	// ofOperator is the permission that a limited operator key needs to use a tenant's route for all tenants;
	// empty: the route doesn't take operator keys, unless it is openToInstallation.
	ofOperator doorward.Action
	// sessionsOnly: the route, which has no action, refuses credentials other than sessions.
	sessionsOnly bool
	// needsProof: the route is a case of its action that demands a recent proof; others don't.
	needsProof bool
}

// The names of guards that need no action.
const (
	public       = "public"
	optional     = "optional"
	signedIn     = "session"
	keyOnly      = "key"
	sessionOrKey = "session or key"
	operator     = "operator"
	directory    = "directory"
)

// Public routes ignore credentials.
func Public() Guard { return Guard{name: public} }

// Optional routes use a session if there is a valid one, and ignore other credentials unless
// ForPeople refuses them. A request fails if its credential can't be checked, and with a key that
// is over a limit or not allowed from its address.
func Optional() Guard { return Guard{name: optional} }

// ForPeople refuses API keys and other keys with not_for_keys.
func (g Guard) ForPeople() Guard {
	g.sessionsOnly = true
	return g
}

// PeopleOnly reports whether the route refuses keys because it is about the person.
func (g Guard) PeopleOnly() bool {
	return g.sessionsOnly || g.Name() == signedIn || g.verb().ForPeople()
}

// SignedIn routes need a session, whatever its role. They are about the person: API keys
// are refused.
func SignedIn() Guard { return Guard{name: signedIn} }

// SignedInOrKey routes need a session or an API key, whatever its permissions.
func SignedInOrKey() Guard { return Guard{name: sessionOrKey} }

// KeyOnly routes need an API key.
func KeyOnly() Guard { return Guard{name: keyOnly} }

// DirectoryOnly routes need the secret of a connection's directory, whatever cookies there are.
func DirectoryOnly() Guard { return Guard{name: directory} }

// Operated routes need an operator key. A limited one, or the key of a service, needs the permission
// for one of the actions; a service key only those of actions that are the operator's alone.
func Operated(actions ...doorward.Action) Guard { return Guard{name: operator, operated: actions} }

// OrAcrossTenants also admits service keys with the permission that name no tenant: the route is
// then about all tenants that the key covers, and Caller.TenantID is empty.
func (g Guard) OrAcrossTenants(need doorward.Action) Guard {
	g.acrossTenants = need
	return g
}

// AcrossTenants is the permission of OrAcrossTenants; empty: the route has none.
func (g Guard) AcrossTenants() doorward.Action { return g.acrossTenants }

// verb is the row of the route's action; the zero Verb without one.
func (g Guard) verb() *doorward.Verb {
	v, _ := doorward.Lookup(g.action)
	return v
}

// Service is the permission that a service key needs for the route; empty: none may
// use it.
func (g Guard) Service() doorward.Action {
	for _, action := range g.operated {
		if v, _ := doorward.Lookup(action); v.By != doorward.ByRole && v.Service != "" {
			return v.Service
		}
	}
	if g.PeopleOnly() || g.action == "" {
		return ""
	}
	permission, _ := doorward.Lookup(g.verb().Permission)
	return permission.Service
}

// InTenant reports whether a service key may use the route to act inside a tenant, which
// the request names.
func (g Guard) InTenant() bool { return g.name != operator && g.Service() != "" }

// Allowed routes need a session, or an API key, that is permitted the action. Name the narrowest one:
// policies refuse and exempt it by its own name, and a proof that it demands is asked for before the
// body is read.
func Allowed(action doorward.Action) Guard { return Guard{name: signedIn, action: action} }

// AfterProof demands a recent proof of identity before the body is read, on a route whose action
// doesn't demand one in every case. Those that do need no AfterProof.
func (g Guard) AfterProof() Guard {
	g.needsProof = true
	return g
}

// OrInstallation opens the route to operator keys, and to service keys that name no tenant:
// for what belongs to the installation instead of a tenant.
func (g Guard) OrInstallation() Guard {
	g.openToInstallation = true
	return g
}

// OrOperator opens the route to operator keys, limited ones with the permission: it is then about all tenants and
// the installation, and Caller.TenantID is empty.
func (g Guard) OrOperator(need doorward.Action) Guard {
	g.ofOperator = need
	return g
}

// OfOperator is the permission of OrOperator; empty: the route has none.
func (g Guard) OfOperator() doorward.Action { return g.ofOperator }

// TakesOperatorKeys reports whether OrInstallation or OrOperator has opened the route.
func (g Guard) TakesOperatorKeys() bool { return g.openToInstallation || g.ofOperator != "" }

// OfInstallation reports whether OrInstallation has opened the route.
func (g Guard) OfInstallation() bool { return g.openToInstallation }

// WhileClosing also admits the OWNERs of a tenant that is being closed.
func (g Guard) WhileClosing() Guard {
	g.openWhileClosing = true
	return g
}

// RefusesWhileClosing reports whether sessions of a tenant that is being closed get
// tenant_closing.
func (g Guard) RefusesWhileClosing() bool {
	return !g.isOpenWhileClosing() && g.name != public && g.name != operator
}

func (g Guard) isOpenWhileClosing() bool {
	return g.openWhileClosing || g.action != "" && g.verb().AllowedWhileClosing
}

// TakesKeys reports whether API keys with the permission may call the route.
func (g Guard) TakesKeys() bool {
	return g.action != "" && !g.PeopleOnly() || g.name == keyOnly || g.name == sessionOrKey
}

// CanBeDeniedByPolicy reports whether policies can refuse the guard's action.
func (g Guard) CanBeDeniedByPolicy() bool {
	return g.action != "" && g.verb().Exempt != doorward.ExemptForAll
}

// Name is "public", "optional", "session", "key", "session or key", "operator" or the permission that is needed.
func (g Guard) Name() string {
	if g.action != "" {
		return string(g.verb().Permission)
	}
	return g.name
}

// Admit returns the caller if the guard lets it in. Errors: those of Site.Caller; forbidden,
// not_for_keys, tenant_frozen, tenant_closing; those of access.Require for the action;
// step_up_required with AfterProof; for a service key those of admitService.
func (g Guard) Admit(ctx context.Context, s *Site, r *http.Request) (doorward.Caller, error) {
	if g.name == directory {
		return s.directory(ctx, r)
	}
	by, err := g.identify(ctx, s, r)
	if err != nil {
		return by, err
	}
	if by.Kind == doorward.ByService && !g.PeopleOnly() {
		return g.admitService(ctx, s, by, r)
	}
	if d := g.decideEntry(&by.Principal); !d.Allowed {
		return by, s.refuseEntry(ctx, by, r, g.refusal(d))
	}
	if g.action == "" {
		return by, nil
	}
	action := g.action
	if by.Kind == doorward.Operator && g.ofOperator != "" {
		action = g.ofOperator
	}
	err = s.App.Access.Require(ctx, by, action, by.Tenant())
	if err == nil && g.needsProof {
		err = s.App.Access.NeedProof(by)
	}
	by.Decided = g.action
	return by, err
}

// identify returns the caller, as far as the route needs it.
func (g Guard) identify(ctx context.Context, s *Site, r *http.Request) (doorward.Caller, error) {
	if g.name == public {
		return s.anonymous(r), nil
	}
	by, err := s.Caller(ctx, r)
	if g.name != optional {
		return by, err
	}
	if doorward.HasCode(err, doorward.CodeUnauthenticated) || err == nil && by.Kind != doorward.ByUser && !g.sessionsOnly {
		return s.anonymous(r), nil
	}
	return by, err
}

// decideEntry decides by the kind of the credential and the status of the tenant whether the
// caller may use the route. The action isn't decided yet.
func (g Guard) decideEntry(p *doorward.Principal) decide.Decision {
	route := decide.Route{WhileClosing: g.isOpenWhileClosing()}
	switch {
	case g.name == operator, g.openToInstallation && p.Kind == doorward.Operator:
		route.Credential, route.Actions = decide.OfOperator, append(slices.Clone(g.operated), g.verb().Permission)
	case g.ofOperator != "" && p.Kind == doorward.Operator:
		route.Credential, route.Actions = decide.OfOperator, []doorward.Action{g.ofOperator}
	case g.name == optional && p.Kind == doorward.Anonymous, g.name == public:
		return decide.Decision{Allowed: true} // the route needs no credential
	case g.name == keyOnly:
		route = decide.Route{Credential: decide.OfKey} // not in a closing tenant
	case !g.TakesKeys():
		route.Credential = decide.OfPerson
	}
	return decide.Enter(p, route)
}

// refusal is the error for a caller whom the guard doesn't let in.
func (g Guard) refusal(d decide.Decision) *doorward.Error {
	e := d.Refusal()
	if d.Reason == decide.ReasonOperator && g.name == operator && g.Service() != "" {
		e.Detail = fmt.Sprintf(`This needs an operator key, or a service key with the permission %s, sent as "Authorization: Bearer <key>".`, g.Service())
	}
	return e
}

// refuseEntry records that a known caller was refused before the endpoint ran, and returns the
// reason.
func (s *Site) refuseEntry(ctx context.Context, by doorward.Caller, r *http.Request, reason *doorward.Error) error {
	on := doorward.Object{Type: "endpoint", ID: r.Method + " " + r.Pattern, TenantID: by.TenantID}
	return s.App.Access.Refuse(ctx, by, doorward.RequestRefuse, on, reason)
}

// anonymous returns an anonymous caller with what the request itself shows.
func (s *Site) anonymous(r *http.Request) doorward.Caller {
	return doorward.Caller{
		Principal: doorward.Principal{Kind: doorward.Anonymous}, IP: s.clientIP(r), UserAgent: userAgent(r),
		RequestID: infoOf(r).id, Devices: s.devices(r), ViewOnly: infoOf(r).viewOnly,
	}
}

// Caller identifies the caller by the only credential of the request. Errors: unauthenticated,
// unavailable; for keys also too_many_attempts, ip_not_allowed, rate_limited.
func (s *Site) Caller(ctx context.Context, r *http.Request) (doorward.Caller, error) {
	const isUse = true
	return s.caller(ctx, r, isUse)
}

// directory identifies a connection's directory by its secret. Errors: those of directory.Directories.Check.
func (s *Site) directory(ctx context.Context, r *http.Request) (doorward.Caller, error) {
	bearer, _ := bearerOf(r.Header)
	return s.App.Directories.Check(ctx, s.anonymous(r), bearer)
}

// CallerUnused is Caller, but doesn't count as a use of a session.
func (s *Site) CallerUnused(ctx context.Context, r *http.Request) (doorward.Caller, error) {
	const isUse = false
	return s.caller(ctx, r, isUse)
}

func (s *Site) caller(ctx context.Context, r *http.Request, isUse bool) (doorward.Caller, error) {
	by := s.anonymous(r)
	sessions := s.SessionTokens(r)
	bearer, hasBearer := bearerOf(r.Header)
	switch {
	case len(sessions) == 1 && !hasBearer:
		return s.withSession(ctx, by, sessions[0], isUse)
	case len(sessions) == 0 && hasBearer:
		return s.withBearer(ctx, by, r, bearer, isUse)
	case len(sessions) > 1:
		return by, doorward.Fail(doorward.CodeUnauthenticated, "The request has several different session cookies. Send one.")
	case hasBearer:
		return by, doorward.Fail(doorward.CodeUnauthenticated, "The request has a session cookie and a bearer credential. Send one of them.")
	}
	return by, s.withoutCredential(r)
}

// withoutCredential is the refusal of a request without a credential. It explains a session cookie in
// quotes, which isn't one.
func (s *Site) withoutCredential(r *http.Request) error {
	for _, c := range r.CookiesNamed(s.Cookie) {
		if _, err := secret.Parse(c.Value); err == nil && c.Quoted {
			return doorward.Fail(doorward.CodeUnauthenticated, "The value of the cookie %s is in quotes. Send it without.", s.Cookie)
		}
	}
	return doorward.Fail(doorward.CodeUnauthenticated, "")
}

func (s *Site) withSession(ctx context.Context, by doorward.Caller, token secret.Token, isUse bool) (doorward.Caller, error) {
	var p doorward.Principal
	var err error
	if isUse {
		p, err = s.App.Sessions.Check(ctx, token)
	} else {
		p, err = s.App.Sessions.CheckUnused(ctx, token)
	}
	if err == nil {
		by.Principal = p
	}
	return by, err
}

// withBearer distinguishes session tokens from keys by their length, since a token may
// begin like a key. Pages take no session or API key this way.
func (s *Site) withBearer(ctx context.Context, by doorward.Caller, r *http.Request, bearer string, isUse bool) (doorward.Caller, error) {
	if !infoOf(r).page {
		if token, err := secret.Parse(bearer); err == nil {
			return s.withSession(ctx, by, token, isUse)
		}
		if strings.HasPrefix(bearer, apikey.Prefix) {
			return s.App.APIKeys.Check(ctx, by, bearer)
		}
	}
	return s.App.Keys.Check(ctx, by, bearer)
}

// credential returns the secret of the request's only credential. Call it only after
// Caller has accepted it.
func (s *Site) credential(r *http.Request) string {
	if tokens := s.SessionTokens(r); len(tokens) == 1 {
		return tokens[0].Reveal()
	}
	bearer, _ := bearerOf(r.Header)
	return bearer
}

// devices returns the hashes of the different device cookies of a request, in their
// order, at most doorward.MaxDevices.
func (s *Site) devices(r *http.Request) (all [][]byte) {
	seen := map[string]bool{}
	for _, c := range r.CookiesNamed(s.cookieName(DeviceCookie)) {
		token, err := secret.Parse(c.Value)
		if err != nil || seen[c.Value] {
			continue
		}
		seen[c.Value] = true
		hash := token.Hash()
		if all = append(all, hash[:]); len(all) == doorward.MaxDevices {
			break
		}
	}
	return all
}

// maxUserAgent is how many bytes of a User-Agent header are kept.
const maxUserAgent = 256

// userAgent returns the header as text that one line shows, on a page and at a terminal: without control characters, of
// which Go's server takes those beyond ASCII, and without those that switch the direction of text.
func userAgent(r *http.Request) string {
	ua := r.UserAgent()
	if len(ua) > maxUserAgent {
		ua = ua[:maxUserAgent]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(ua, ""))
}
