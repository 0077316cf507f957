package doorward

import "time"

// PrincipalKind is the kind of a caller's credential.
type PrincipalKind string

// The kinds of principals; also the actor types of audit events.
const (
	Anonymous PrincipalKind = "anonymous"
	ByUser    PrincipalKind = "user"
	ByKey     PrincipalKind = "key"     // an API key of a tenant
	ByService PrincipalKind = "service" // a key of one of the platform's own services
	Operator  PrincipalKind = "operator"
	// ByConnection is a provider of a tenant, for what a sign-in by it does to people.
	ByConnection PrincipalKind = "connection"
	// ByDirectory is the directory of a connection, which writes people by SCIM.
	ByDirectory PrincipalKind = "directory"
	// BySetupLink is a link by which a customer's own IT sets one connection up.
	BySetupLink PrincipalKind = "setup_link"
	System      PrincipalKind = "system" // Doorward itself
)

// Principal is an authenticated caller. It is loaded once per credential and passed
// unchanged to every decision (decide.May). Caller adds the properties of one request. The
// zero Principal may do nothing.
type Principal struct {
	Kind PrincipalKind
	// ID is the id of the user or the key; empty for anonymous callers, for the operator at the
	// command line and for Doorward itself.
	ID    string
	Email string // of a user
	// OwnerID is the user under whose authority a key or a set-up link acts.
	OwnerID string
	// ConnectionID is the one connection that a set-up link, or a directory, is for; empty for others.
	ConnectionID string
	// IsDraft reports whether the connection of a directory isn't enabled yet: it reads, and writes nothing.
	IsDraft bool
	// SeesNobody reports whether a draft's directory is answered as if the tenant had nobody: a set-up link has made the secret.
	SeesNobody bool
	// Service is the key of a service; nil for other callers.
	Service *ServiceKey
	// Limits are the permissions of a limited operator key; none: the key may do everything.
	Limits []Action
	// IsPage reports whether the principal is an operator's page, as ID has it. It may do the actions in Limits
	// and no other, also if there are none.
	IsPage bool

	TenantID     string // empty outside of tenants
	TenantStatus TenantStatus

	// Rules are those of its tenant; nil: those of the built-in model.
	Rules *Rules
	Role  Role
	// ActsAs is the rank with which the principal acts on others: the highest built-in role
	// whose permissions its role includes. Empty if it lacks a permission of VIEWER.
	ActsAs Role
	// Permissions are what it may do; nil: nothing, as for a suspended member.
	Permissions *Permissions

	// Policy has the policies that concern the principal; nil for none.
	Policy PrincipalPolicies

	SessionID string    // empty without a session
	Issuer    Issuer    // who vouches for the session
	AuthAt    time.Time // when the user last authenticated
	AAL       int       // of the session, see Assurance; 0 without one
	FactorAt  time.Time // of the session, see Assurance; the zero Time for none
	HasFactor bool      // the user has a second factor or a passkey, or had one that was disabled
	// HasCode and HasPasskey report whether the user has an authenticator app, or a passkey,
	// that can be used. If only disabled factors remain, both are false and a recovery code is
	// needed.
	HasCode, HasPasskey bool
	// DemandsFactor reports whether the tenant demands a second factor of the role.
	DemandsFactor bool
	MaxProofAge   time.Duration // for sensitive actions

	// The following are about the account of a session that a connection vouches for.

	PasswordAt  time.Time // of the session, see Assurance; the zero Time for none
	HasPassword bool      // the account has a password
	IsManaged   bool      // the session's tenant manages the account, see Account.ManagedBy
	// HasNoOwnSession reports that no active tenant opens a session by the password. Package access reads
	// that where it matters; false: a tenant does, or nobody has looked.
	HasNoOwnSession bool
}

// PrincipalOf returns the principal of a member of a tenant, or of an account
// outside of tenants, with a session; the zero Session for none.
func PrincipalOf(u User, s Session) Principal {
	p := Principal{
		Kind: ByUser, ID: u.ID, Email: u.Email, TenantID: u.TenantID, TenantStatus: u.TenantStatus,
		Rules: u.Rules, Role: u.Role, SessionID: s.ID, Issuer: s.Issuer, AuthAt: s.AuthAt(), AAL: s.AAL, FactorAt: s.FactorAt,
		HasFactor: u.Factors > 0, HasCode: u.Factors > u.Passkeys+u.DisabledApps, HasPasskey: u.Passkeys > u.DisabledPasskeys,
		DemandsFactor: s.Tenant.SecondFactor.Covers(u.Role), MaxProofAge: s.Tenant.MaxProofAge(),
		PasswordAt: s.PasswordAt, HasPassword: u.HasPassword, IsManaged: u.ManagedBy != "" && u.ManagedBy == u.TenantID,
	}
	if u.Status == UserActive {
		p.setGrant(u.Rules.Grant(u.Role))
		p.Policy = u.Rules.policyOf(&p)
	}
	return p
}

// PrincipalOfRole returns the principal of somebody with the role in an active tenant, whom no policy
// concerns: for what the role alone grants.
func PrincipalOfRole(rules *Rules, role Role) Principal {
	p := Principal{Kind: ByUser, TenantStatus: TenantActive, Rules: rules, Role: role}
	p.setGrant(rules.Grant(role))
	return p
}

// setGrant gives the principal what a role grants. It does nothing for nil.
func (p *Principal) setGrant(g *Grant) {
	if g != nil {
		p.Role, p.ActsAs, p.Permissions = g.Role, g.ActsAs, g.Permissions
	}
}

// UserID returns the user under whose authority the principal acts: the user itself, the
// owner of an API key, or the maker of a set-up link; empty for others.
func (p *Principal) UserID() string {
	if p.Kind == ByUser {
		return p.ID
	}
	return p.OwnerID
}

// Sees reports whether the principal's session shows what its person is and has in a tenant. One that a
// connection vouches for shows that of its own tenant alone.
func (p *Principal) Sees(tenantID string) bool {
	return p.Issuer == OwnIssuer || p.TenantID == tenantID
}

// SeesConnection reports whether the principal may be shown the connection of its tenant with the id, and what
// belongs to it: a set-up link is for one.
func (p *Principal) SeesConnection(id string) bool {
	return p.Kind != BySetupLink || p.ConnectionID == id
}

// Tenant returns the principal's tenant as the object of an action.
func (p *Principal) Tenant() Object {
	return Object{Type: "tenant", ID: p.TenantID, TenantID: p.TenantID}
}

// DependsOnRequest reports whether a policy that concerns the principal reads the request to decide on
// the action.
func (p *Principal) DependsOnRequest(action Action) bool {
	return p.Policy != nil && p.Policy.DependsOnRequest(action)
}
