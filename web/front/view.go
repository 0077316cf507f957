package front

import (
	"time"

	"github.com/doorward/doorward"
)

// Session is a session as answers show it.
type Session struct {
	ID            string    `json:"id" example:"ses_2kq7m5x3yh4n6rj7wd2c5tpae7"`
	Current       bool      `json:"current" doc:"Whether this is the session of the request"`
	TenantID      string    `json:"tenantId"`
	CreatedAt     time.Time `json:"createdAt"`
	LastSeenAt    time.Time `json:"lastSeenAt"`
	ExpiresAt     time.Time `json:"expiresAt" doc:"When the session ends even if it is used"`
	IdleExpiresAt time.Time `json:"idleExpiresAt" doc:"When the session ends if it isn't used"`
	IP            string    `json:"ip" doc:"Where the session was opened; empty after 90 days"`
	UserAgent     string    `json:"userAgent"`
	AAL           int       `json:"aal" enum:"1,2" doc:"Assurance level (NIST SP 800-63B): 2 after a second factor or a passkey"`
	AMR           []string  `json:"amr" doc:"Methods of the login (RFC 8176)" example:"pwd"`
	AuthAt        time.Time `json:"authAt" doc:"When the person last proved who they are: at the login, or at a step-up since"`
	ConnectionID  string    `json:"connectionId,omitempty" doc:"The tenant's own sign-on that vouches for the session; absent for Doorward itself"`
	ProviderAMR   []string  `json:"providerAmr,omitempty" doc:"What the provider of that sign-on said of its methods (its claim amr); nobody else has checked it. Absent if it said nothing"`
}

// ViewSession returns the session as it is shown.
func ViewSession(s doorward.Session, current bool, l doorward.SessionLimits) Session {
	return Session{
		ID: s.ID, Current: current, TenantID: s.TenantID, CreatedAt: s.CreatedAt, LastSeenAt: s.LastSeenAt,
		ExpiresAt: s.ExpiresAt(l), IdleExpiresAt: s.IdleExpiresAt(l), IP: s.IP, UserAgent: s.UserAgent,
		AAL: s.AAL, AMR: s.AMR, AuthAt: s.AuthAt(), ConnectionID: string(s.Issuer), ProviderAMR: s.ProviderAMR,
	}
}

// ViewCurrentSession is ViewSession for the session of the request.
func ViewCurrentSession(s doorward.Session, l doorward.SessionLimits) Session {
	return ViewSession(s, true, l)
}

// Ended counts what an operation has ended, as answers show it.
type Ended struct {
	Sessions           int64 `json:"sessions"`
	APIKeys            int64 `json:"apiKeys"`
	Invitations        int64 `json:"invitations"`
	APIKeysTransferred int64 `json:"apiKeysTransferred,omitempty" doc:"Absent if none. They have another owner now, and must be rotated within 7 days"`

	Webhooks []MadeWebhook `json:"webhooks,omitempty" doc:"Where somebody is suspended or removed: the webhooks that the person has made, or given their URL, and that go on. Absent if none"`
}

// MadeWebhook is a webhook that goes on, as answers show it.
type MadeWebhook struct {
	ID  string `json:"id" example:"whk_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	URL string `json:"url,omitempty" example:"https://hooks.example.com/doorward" doc:"For callers with the permission webhook.manage"`
}

// ViewEnded returns the counts as they are shown.
func ViewEnded(e doorward.Ended) Ended {
	v := Ended{Sessions: e.Sessions, APIKeys: e.APIKeys, Invitations: e.Invitations, APIKeysTransferred: e.APIKeysTransferred}
	for _, w := range e.Webhooks {
		v.Webhooks = append(v.Webhooks, MadeWebhook(w))
	}
	return v
}

// User is a user as answers show it.
type User struct {
	ID          string              `json:"id" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k"`
	Email       string              `json:"email" format:"email"`
	Name        string              `json:"name" doc:"Empty when not given"`
	Role        doorward.Role       `json:"role" example:"USER"`
	Status      doorward.UserStatus `json:"status" enum:"active,suspended"`
	SuspendedBy []string            `json:"suspendedBy,omitempty" example:"[\"administrator\"]" doc:"Why the person is suspended: administrator, and the ids of the connections whose directories have switched the person off. All must be gone; absent for active people"`
	TenantID    string              `json:"tenantId"`
	TenantName  string              `json:"tenantName"`
	Permissions []doorward.Action   `json:"permissions" doc:"What the role grants, sorted"`
	CreatedAt   time.Time           `json:"createdAt" doc:"When the person joined the tenant"`
	LastLoginAt *time.Time          `json:"lastLoginAt,omitempty" doc:"Absent before the first login to the tenant"`
	MFAReset    *MFAReset           `json:"mfaReset,omitempty" doc:"While the tenant's word for a reset of the second factors holds; only where people are administered"`
}

// MFAReset is the tenant's word that somebody's second factors may be removed.
type MFAReset struct {
	AskedAt time.Time `json:"askedAt" doc:"It holds for 7 days from then"`
}

// ViewMFAReset returns the tenant's word about the user as it is shown; nil for none.
func ViewMFAReset(u doorward.User) *MFAReset {
	if u.ResetAskedAt == nil {
		return nil
	}
	return &MFAReset{*u.ResetAskedAt}
}

// ViewUser returns the user as it is shown.
func ViewUser(u doorward.User) User {
	return User{
		ID: u.ID, Email: u.Email, Name: u.Name, Role: u.Role, Status: u.Status, SuspendedBy: u.Suspensions(), TenantID: u.TenantID, TenantName: u.TenantName,
		Permissions: u.Permissions(), CreatedAt: u.CreatedAt, LastLoginAt: u.LastLoginAt, MFAReset: ViewMFAReset(u),
	}
}

// APIKey is an API key as answers show it.
type APIKey struct {
	ID                   string                `json:"id" example:"key_7wd2c5tpae7kq2m5x3yh4n6rj7"`
	TenantID             string                `json:"tenantId" example:"tnt_3yh4n6rj7wd2c5tpae7kq2m5x" doc:"Id of the tenant that it belongs to"`
	Name                 string                `json:"name" example:"Export of the shop"`
	Status               doorward.APIKeyStatus `json:"status" enum:"active,disabled,expired,revoked"`
	Role                 doorward.Role         `json:"role" example:"USER" doc:"What the key may do at most, and whose objects it may act on"`
	EffectiveRole        doorward.Role         `json:"effectiveRole,omitempty" example:"USER" doc:"Its role while the owner has all of that, else the owner's; absent while the owner is no active member"`
	Permissions          []doorward.Action     `json:"permissions" example:"[\"message.send\"]" doc:"What it was given, sorted"`
	EffectivePermissions []doorward.Action     `json:"effectivePermissions" example:"[\"message.send\"]" doc:"What it may do now: those that its role and the owner's role grant, sorted"`
	OwnerID              string                `json:"ownerId" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"Id of the user under whose authority it acts"`
	CreatedBy            string                `json:"createdBy" example:"usr_5tqm7x3yh4n6rj7wd2c5tpae7k" doc:"Id of the user or key"`
	CreatedAt            time.Time             `json:"createdAt"`
	ExpiresAt            time.Time             `json:"expiresAt"`
	AllowedIPs           []string              `json:"allowedIps" example:"[\"192.0.2.0/24\"]" doc:"Addresses and networks that it may be used from; empty: all"`
	PerSecond            int                   `json:"perSecond,omitempty" doc:"Requests a second, over all nodes; absent: no limit"`
	Hint                 string                `json:"hint" example:"dwk_Ab3f…9xQ2" doc:"First and last characters of the newest secret"`
	LastUsedAt           *time.Time            `json:"lastUsedAt,omitempty" doc:"Absent if it was never used"`
	LastUsedIP           string                `json:"lastUsedIp,omitempty" doc:"Absent 90 days after the last use, too"`
	Previous             *PreviousSecret       `json:"previous,omitempty" doc:"The secret that a rotation has replaced, while it is still valid"`
	RotateBy             *time.Time            `json:"rotateBy,omitempty" doc:"The key ends then unless it is rotated before, because its owner has changed"`
}

// PreviousSecret is the secret that a rotation has replaced, as answers show it.
type PreviousSecret struct {
	EndsAt     time.Time  `json:"endsAt"`
	LastUsedAt *time.Time `json:"lastUsedAt,omitempty" doc:"Absent if it was never used"`
}

// ViewAPIKey returns the key as it is shown at now.
func ViewAPIKey(k doorward.APIKey, now time.Time) APIKey {
	v := APIKey{
		ID: k.ID, TenantID: k.TenantID, Name: k.Name, Status: k.StatusAt(now), Role: k.Role, EffectiveRole: k.EffectiveRole(), Permissions: k.Permissions, EffectivePermissions: k.EffectivePermissions(),
		OwnerID: k.OwnerID, CreatedBy: k.CreatedBy, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, AllowedIPs: make([]string, 0, len(k.AllowedIPs)),
		PerSecond: k.PerSecond, Hint: k.Hint, LastUsedAt: k.LastUsedAt, LastUsedIP: k.LastUsedIP, RotateBy: k.RotateBy,
	}
	for _, p := range k.AllowedIPs {
		v.AllowedIPs = append(v.AllowedIPs, doorward.AddressText(p))
	}
	if p := k.PreviousAt(now); p != nil {
		v.Previous = &PreviousSecret{EndsAt: p.EndsAt, LastUsedAt: p.LastUsedAt}
	}
	return v
}
