package doorward

import (
	"slices"
	"time"
)

// Role is the name of a role: one of the four built-in ones, or a custom role of the tenant, see
// Rules.
type Role string

// The built-in roles, from the least to the most powerful. Messages, reports and billing are those
// of the platform that uses Doorward.
const (
	RoleViewer Role = "VIEWER" // reads
	RoleUser   Role = "USER"   // sends messages, views reports
	RoleAdmin  Role = "ADMIN"  // manages users and settings, no billing
	RoleOwner  Role = "OWNER"  // everything, including billing and destruction
)

// Roles lists the built-in roles by rank, the lowest first.
var Roles = []Role{RoleViewer, RoleUser, RoleAdmin, RoleOwner}

// RolesHelp is the message for an unknown role.
const RolesHelp = "The roles are OWNER, ADMIN, USER and VIEWER, in capitals."

// IsBuiltIn reports whether r is a built-in role.
func (r Role) IsBuiltIn() bool { return r.rank() >= 0 }

// Outranks reports whether r is higher than other. A role that isn't built in is lower than all
// built-in ones.
func (r Role) Outranks(other Role) bool { return r.rank() > other.rank() }

// rank returns the index of r in Roles, or -1 for a role that isn't built in.
func (r Role) rank() int {
	switch r {
	case RoleViewer:
		return 0
	case RoleUser:
		return 1
	case RoleAdmin:
		return 2
	case RoleOwner:
		return 3
	}
	return -1
}

// UserStatus is the status of a membership.
type UserStatus string

// The statuses of a membership.
const (
	UserActive    UserStatus = "active"
	UserSuspended UserStatus = "suspended"
)

// ByAdministrator is the reason of a suspension by somebody who manages people, by the operator, or by a change of
// the address. Other reasons are ids of connections, whose directories have switched the person off.
const ByAdministrator = "administrator"

// Account is a person of the installation: one canonical address, one password.
// Permissions come from memberships.
type Account struct {
	ID    string
	Email string
	// PasswordHash is a PHC string, empty without a password. It is never sent anywhere.
	PasswordHash string
	CreatedAt    time.Time
	Locale       string // of mails to the person (BCP 47); empty: none was chosen
	// Generation is increased when the credentials are replaced, and when all other sessions
	// are ended. That ends what began under an earlier generation: known browsers, challenges, and
	// changes of the address that aren't confirmed yet.
	Generation int64
	Factors    int // confirmed second factors and passkeys, also disabled ones
	// ManagedBy is the tenant whose connection or directory has made the account; empty for others. It ends
	// with the first password.
	ManagedBy string
}

// User is an account as a member of one tenant. Name, role, status, CreatedAt and LastLoginAt
// belong to the membership.
type User struct {
	ID           string
	Email        string
	Name         string
	Role         Role
	Status       UserStatus
	SuspendedBy  []string // as stored; Suspensions says what holds
	TenantID     string
	TenantName   string
	TenantStatus TenantStatus
	Rules        *Rules // of the tenant; nil: those of the built-in model
	CreatedAt    time.Time
	LastLoginAt  *time.Time
	ResetAskedAt *time.Time // when the tenant gave its word for removing the factors, while that holds; only read for lists and pages of people
	Factors      int        // confirmed second factors and passkeys of the account, also disabled ones
	Passkeys     int        // among these factors

	DisabledPasskeys int // among these passkeys, see Factor.DisabledAt
	DisabledApps     int // among the other factors

	HasPassword bool   // of the account
	ManagedBy   string // see Account.ManagedBy
	// ManagedUntil is the tenant that managed the account until its first password: while a connection signs
	// people in there, only a sign-in by a connection opens a session; it makes ManagedUntil empty.
	ManagedUntil string
}

// UnusableFactors returns how many of the factors can't be used any more.
func (u User) UnusableFactors() int { return u.DisabledPasskeys + u.DisabledApps }

// Permissions returns the sorted permissions that the user's role grants. Decisions are
// made by decide.May only.
func (u User) Permissions() []Action {
	if g := u.Rules.Grant(u.Role); g != nil {
		return slices.Clone(g.Actions)
	}
	return nil
}

// IsActive reports whether it is an active membership of an active tenant.
func (u User) IsActive() bool { return u.Status == UserActive && u.TenantStatus == TenantActive }

// Suspensions returns why the membership is suspended, sorted: ByAdministrator, and the ids of connections; nil for an
// active one. A node of an earlier version writes the status alone: reasons are then those of before it was lifted, or
// an administrator's.
func (u User) Suspensions() []string {
	switch {
	case u.Status != UserSuspended:
		return nil
	case len(u.SuspendedBy) == 0:
		return []string{ByAdministrator}
	}
	return slices.Sorted(slices.Values(u.SuspendedBy))
}

// Version returns a hash of the fields of the membership that can be edited, for If-Match.
func (u User) Version() string {
	if by := u.Suspensions(); len(by) > 1 || len(by) == 1 && by[0] != ByAdministrator {
		return version(u.ID, u.Name, u.Role, u.Status, by)
	}
	return version(u.ID, u.Name, u.Role, u.Status)
}

// Ended counts the sessions, API keys and invitations that an administrative action has ended,
// or would end. It leaves out those that had already expired.
type Ended struct {
	Sessions    int64
	APIKeys     int64
	Invitations int64
	// APIKeysTransferred counts the keys that got another owner instead of ending.
	APIKeysTransferred int64
	// Webhooks are those that a person who was suspended or removed has made, and that go on.
	Webhooks []MadeWebhook
	// Revocation is the confirmation on all nodes; zero in a preview.
	Revocation Revocation
}

// Revocation says how the nodes confirmed the end of sessions, or a change of permissions. The
// zero value means that nothing had to be confirmed.
type Revocation struct {
	Nodes int           // that confirmed it
	Took  time.Duration // until all had
}
