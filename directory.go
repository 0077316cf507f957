package doorward

import "time"

// SCIMDirectory is the protocol of a connection that is a directory alone: SCIM 2.0.
const SCIMDirectory ConnectionType = "scim"

// Outside says what a directory does with an address outside of the tenant's proved domains.
type Outside string

// The values of Outside.
const (
	OutsideInvite Outside = "invite"
	OutsideRefuse Outside = "refuse"
)

// SCIMSecretsMax is how many secrets of a connection's directory are alive at once.
const SCIMSecretsMax = 2

// SCIMSecret is a secret of a connection's directory, without the secret.
type SCIMSecret struct {
	ID, ConnectionID, Hint string
	CreatedAt              time.Time
	ExpiresAt, LastUsedAt  *time.Time
	BySetupLink            bool // a set-up link has made it, and no OWNER
}

// IsOver reports whether the secret has ended at now.
func (s SCIMSecret) IsOver(now time.Time) bool {
	return s.ExpiresAt != nil && !now.Before(*s.ExpiresAt)
}

// PrincipalOfDirectory returns the principal of a connection's directory by one of its secrets.
func PrincipalOfDirectory(s SCIMSecret, c Connection, tenant TenantStatus) Principal {
	isDraft := c.Status == ConnectionDraft
	return Principal{
		Kind: ByDirectory, ID: c.ID, ConnectionID: c.ID, TenantID: c.TenantID, TenantStatus: tenant,
		AuthAt: c.CreatedAt, IsDraft: isDraft, SeesNobody: isDraft && s.BySetupLink,
	}
}

// DirectoryUser is what a connection's directory says of a person: a membership, or an invitation on its way to one.
type DirectoryUser struct {
	ID, ConnectionID, TenantID string
	UserID                     string // the account; empty: not a member (yet)
	InvitationID               string // the last one to the address; empty: none, or the directory has revoked it
	UserName                   string // as the directory last wrote it
	Address                    string // its canonical form
	ExternalID                 string // empty: none
	Active                     bool   // as the directory last wrote it
	// Made reports whether the directory has made the membership, or its invitation.
	Made                 bool
	Attributes           string // JSON, as it is answered
	EmailKeys            []string
	CreatedAt, ChangedAt time.Time
}

// DirectoryEffectKind is what a write of a directory has done to somebody.
type DirectoryEffectKind string

// The kinds of effects.
const (
	DirectoryMade      DirectoryEffectKind = "made"
	DirectoryChanged   DirectoryEffectKind = "changed"
	DirectorySuspended DirectoryEffectKind = "suspended"
	DirectoryResumed   DirectoryEffectKind = "resumed"
	DirectoryRemoved   DirectoryEffectKind = "removed"
)
