package doorward

import "time"

// SetupLink lets a customer's own IT set a connection up, in one browser. It acts under the authority of its
// maker, as far as the verbs with Verb.SetupLink go.
type SetupLink struct {
	ID, TenantID, ConnectionID string
	MakerID                    string // a user
	CreatedAt, EndsAt          time.Time
	BegunAt                    *time.Time // when a browser has begun, to which it is bound since; nil: none has

	// MakerEmail and TenantName are as they are now, to be shown.
	MakerEmail, TenantName string
}

// Limits of set-up links.
const (
	SetupLinkDays    = 7 // unless its maker says otherwise
	SetupLinkDaysMax = 7
)

// PrincipalOfSetupLink returns the principal of a set-up link, whose maker is the member. It may do nothing
// unless the maker is an active one. Policies see the maker.
func PrincipalOfSetupLink(l SetupLink, maker User) Principal {
	asMaker := PrincipalOf(maker, Session{})
	return Principal{
		Kind: BySetupLink, ID: l.ID, OwnerID: l.MakerID, TenantID: l.TenantID, TenantStatus: asMaker.TenantStatus, ConnectionID: l.ConnectionID,
		Rules: asMaker.Rules, Role: asMaker.Role, ActsAs: asMaker.ActsAs, Permissions: asMaker.Permissions, Policy: asMaker.Policy,
	}
}
