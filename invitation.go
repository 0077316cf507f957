package doorward

import "time"

// InvitationState is the state of an invitation. All but PENDING are final.
type InvitationState string

// The states of an invitation.
const (
	InvitationPending  InvitationState = "PENDING"
	InvitationAccepted InvitationState = "ACCEPTED"
	InvitationRevoked  InvitationState = "REVOKED"
	InvitationExpired  InvitationState = "EXPIRED"
)

// Delivery is the state of an invitation's mail.
type Delivery string

// The states of a mail.
const (
	DeliveryQueued Delivery = "queued"
	DeliverySent   Delivery = "sent"
	DeliveryFailed Delivery = "failed"
)

// Invitation offers an address a membership with a role.
type Invitation struct {
	ID        string
	TenantID  string
	Email     string
	Role      Role
	Name      string
	Locale    string
	State     InvitationState // as stored; use StateAt
	InvitedBy string          // a user id; empty for the operator and for services
	// ServiceKeyID is the service key that sent it; empty for others.
	ServiceKeyID string
	CreatedAt    time.Time
	ExpiresAt    time.Time
	AcceptedAt   *time.Time
	RevokedAt    *time.Time
	Delivery     Delivery
	Days         int // of validity, from the last mail on
}

// StateAt returns the state at an instant. A pending invitation past its time has expired; the
// stored state doesn't change.
func (i Invitation) StateAt(now time.Time) InvitationState {
	if i.State == InvitationPending && !now.Before(i.ExpiresAt) {
		return InvitationExpired
	}
	return i.State
}

// The validity of an invitation, in days.
const (
	InvitationDaysDefault = 7
	InvitationDaysMax     = 30
)
