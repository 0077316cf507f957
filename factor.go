package doorward

import (
	"slices"
	"time"
)

// FactorKind is the kind of a factor.
type FactorKind string

// The kinds of factors.
const (
	TOTP    FactorKind = "totp"    // time-based codes of an authenticator app (RFC 6238)
	Passkey FactorKind = "passkey" // WebAuthn
)

// PrefixFactor begins the ids of factors.
const PrefixFactor = "mfa_"

// Factor is an authenticator app or a passkey. It belongs to an account and not to a
// tenant.
type Factor struct {
	ID          string
	UserID      string
	Kind        FactorKind
	Name        string
	CreatedAt   time.Time
	ConfirmedAt *time.Time // nil while it is being enrolled
	LastUsedAt  *time.Time
	Synced      bool // a passkey that is synced between devices
	// DisabledAt is nil unless it was disabled: a passkey that seems copied, what was set up around a
	// change of the address that was undone, and what was lost. It still counts as a factor of the account.
	DisabledAt *time.Time
	IsLost     bool // it was disabled because its secret was lost with the master key; only in the owner's list
}

// Usable reports whether the factor can be used for a proof.
func (f Factor) Usable() bool { return f.ConfirmedAt != nil && f.DisabledAt == nil }

// The methods by which a person answers a challenge.
const (
	ByPassword = "password"
	ByCode     = "totp" // a code of an authenticator app
	ByPasskey  = "passkey"
	ByRecovery = "recovery" // a recovery code
	BySSO      = "sso"      // a sign-in at the provider of the session's connection
)

// Limits of factors.
const (
	MaxFactors     = 20 // of one account
	RecoveryCodes  = 10 // made at a time
	ChallengeLife  = 5 * time.Minute
	ChallengeTries = 5
	// FactorResetLife is how long the code of a mail lets a person set factors up again.
	FactorResetLife = 24 * time.Hour
	// FactorWordLife is how long a tenant's word holds that a person's factors may be removed.
	FactorWordLife = 7 * 24 * time.Hour
	// FactorMailsPerHour is how many mails about that a tenant can have sent to a person.
	FactorMailsPerHour = 3
)

// FactorWord is a tenant's word that the second factors of a member may be removed.
type FactorWord struct {
	TenantID, UserID string
	AskedAt          time.Time
}

// FactorReset says whose word counts for removing the factors of an account: that of each active tenant in
// which the person is an active member. A frozen tenant has no word, and can't block.
type FactorReset struct{ Given, Missing []User }

// JudgeFactorReset sorts the account's memberships by whether their tenants have given their words.
func JudgeFactorReset(memberships []User, words []FactorWord) (r FactorReset) {
	for _, m := range memberships {
		switch {
		case m.Status != UserActive || m.TenantStatus != TenantActive:
		case slices.ContainsFunc(words, func(w FactorWord) bool { return w.TenantID == m.TenantID }):
			r.Given = append(r.Given, m)
		default:
			r.Missing = append(r.Missing, m)
		}
	}
	return r
}

// IsComplete reports whether no word is missing.
func (r FactorReset) IsComplete() bool { return len(r.Given) > 0 && len(r.Missing) == 0 }
