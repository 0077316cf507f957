package doorward

import (
	"strconv"
	"time"
)

// Minutes in which a provisional demand for sign-on can be confirmed.
const (
	SSOConfirmMinutes    = 30 // the default
	SSOConfirmMinutesMin = 5
	SSOConfirmMinutesMax = 60
)

// At returns the policy that is in force at an instant. A change that should have been confirmed by then
// has returned to what was before, whether or not that has been written yet.
func (p SSOPolicy) At(now time.Time) SSOPolicy {
	if p.ConfirmBy == nil || now.Before(*p.ConfirmBy) {
		return p
	}
	return SSOPolicy{
		TenantID: p.TenantID, Mode: p.BeforeMode, GuestsRefused: p.BeforeGuestsRefused, Revision: p.Revision + 1, ChangedAt: *p.ConfirmBy,
	}
}

// Settled returns the mode and the guests that hold unless the policy is confirmed: those before a
// provisional change, else its own.
func (p SSOPolicy) Settled() (mode SSOMode, guestsRefused bool) {
	if p.ConfirmBy != nil {
		return p.BeforeMode, p.BeforeGuestsRefused
	}
	return p.Mode, p.GuestsRefused
}

// Version returns the version for ETag and If-Match. It changes with each change, confirmation and return.
func (p SSOPolicy) Version() string { return strconv.FormatInt(p.Revision, 10) }

// SignsIn reports whether connections of the tenant sign anybody in.
func (p SSOPolicy) SignsIn() bool { return p.Mode != SSOOff }

// Guests returns the text of GuestsRefused.
func (p SSOPolicy) Guests() string {
	if p.GuestsRefused {
		return GuestsRefused
	}
	return GuestsAllowed
}

// What a demand for sign-on says of members whom it doesn't cover.
const (
	GuestsAllowed = "allowed"
	GuestsRefused = "refused"
)

// SSOMember is what a tenant's demand for sign-on reads of an active member.
type SSOMember struct {
	UserID, Email string
	Role          Role
	// Domain is the state of the tenant's domain in which the address lies, or has lain before it was changed;
	// empty: there is none.
	Domain DomainStatus
	// HomeID is the active connection of that domain, IdentityID the active connection by which the member
	// has signed in last; empty: none.
	HomeID, IdentityID string
	// IdentityUsedAt is when they have signed in by it; the zero Time for never.
	IdentityUsedAt time.Time
	// HasWayBack reports whether an OWNER can sign in by what the account has: a password and a factor, or
	// a passkey.
	HasWayBack bool
}

// IsCovered reports whether the demand covers the member; others are guests.
func (m SSOMember) IsCovered() bool { return m.Domain != "" || m.IdentityID != "" }

// ConnectionID returns the connection by which the member signs in; empty: none of those that are known to
// be the member's.
func (m SSOMember) ConnectionID() string {
	if m.IdentityID != "" {
		return m.IdentityID
	}
	return m.HomeID
}

// SSOBasis is what a demand for sign-on needs.
type SSOBasis struct {
	Connections int // active ones
	// Proved and Held are the tenant's domains whose connection is active: those that are proved now, and
	// these with the lapsed ones.
	Proved, Held int
	WaysBack     int // active OWNERs with a way back
}

// SSOHome is the connection by which people with an address in a domain sign in.
type SSOHome struct {
	ConnectionID   string
	ConnectionName string
	Policy         SSOPolicy // of its tenant
}
