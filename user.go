package doorward

import (
	"slices"
	"time"
)

// Role is the name of what a membership may do: one of the four, or a custom role of the
// tenant, see Rules.
type Role string

// The four roles, from the least to the most powerful.
const (
	RoleViewer Role = "VIEWER" // reads
	RoleUser   Role = "USER"   // sends messages, views reports
	RoleAdmin  Role = "ADMIN"  // manages users and settings, no billing
	RoleOwner  Role = "OWNER"  // everything, including billing and destruction
)

// Roles lists the four roles by rank, the lowest first.
var Roles = []Role{RoleViewer, RoleUser, RoleAdmin, RoleOwner}

// RolesHelp is the message for an unknown role.
const RolesHelp = "The roles are OWNER, ADMIN, USER and VIEWER, in capitals."

// IsBuiltIn reports whether r is one of the four roles.
func (r Role) IsBuiltIn() bool { return r.rank() >= 0 }

// Outranks reports whether r is higher than other. What is none of the four roles is
// lower than all of them.
func (r Role) Outranks(other Role) bool { return r.rank() > other.rank() }

// rank is -1 for what is none of the four roles.
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

// Account is a person of the installation: one canonical address, one password.
// Permissions come from memberships.
type Account struct {
	ID    string
	Email string
	// PasswordHash is a PHC string, empty without a password; never sent anywhere.
	PasswordHash string
	CreatedAt    time.Time
	Locale       string // of mails to the person (BCP 47); empty: none was chosen
	// Generation is increased when the credentials are replaced, and when all other sessions
	// are ended. Browsers known under an earlier generation are no longer known.
	Generation int64
	Factors    int // second factors and passkeys that are confirmed, also those that were disabled as copies
}

// User is an account as a member of one tenant: name, role and status belong
// to the membership, and so do the two times.
type User struct {
	ID           string
	Email        string
	Name         string
	Role         Role
	Status       UserStatus
	TenantID     string
	TenantName   string
	TenantStatus TenantStatus
	Rules        *Rules // of the tenant; nil: those of the built-in model
	CreatedAt    time.Time
	LastLoginAt  *time.Time
	Factors      int // of the account: second factors and passkeys that are confirmed, also those that were disabled as copies
	Passkeys     int // of these factors

	DisabledPasskeys int // of these passkeys: disabled as copies
}

// Permissions returns the sorted permissions that the user's role grants. Decisions are
// made by access.Can only.
func (u User) Permissions() []Action {
	if g := u.Rules.Grant(u.Role); g != nil {
		return slices.Clone(g.Actions)
	}
	return nil
}

// Version changes with everything of the membership that can be edited.
func (u User) Version() string { return version(u.ID, u.Name, u.Role, u.Status) }

// Ended counts what an administrative action has ended, or would end, except what
// had already expired.
type Ended struct {
	Sessions    int64
	APIKeys     int64
	Invitations int64
	// APIKeysTransferred have another owner instead.
	APIKeysTransferred int64
	// Revocation is the confirmation on all nodes; zero in a preview of what would end.
	Revocation Revocation
}

// Revocation says how the end of sessions, or a change of permissions, was
// confirmed on every node. The zero value means that nothing had to be confirmed.
type Revocation struct {
	Nodes int
	Took  time.Duration
}
