package doorward

import (
	"slices"
	"strings"
	"time"
)

// Issuer is who vouches for a proof of identity.
type Issuer string

// OwnIssuer is Doorward itself, by a password or a passkey. Any other issuer is a tenant's connection, by
// its id ("con_…"): what it vouches for is good in that tenant only, and never for the account.
const OwnIssuer Issuer = ""

// Assurance says how the user of a session was authenticated, and who vouches for that.
type Assurance struct {
	Issuer Issuer
	AAL    int      // assurance level: 2 with a second factor or a passkey, else 1 (NIST SP 800-63B-4)
	AMR    []string // methods (RFC 8176)
	// ProviderAMR is what the provider of a connection said of its own methods; nobody else has checked it.
	ProviderAMR []string
	// ProviderSession is a hash of the provider's own session (its claim sid), by which it ends this one; empty: it
	// named none. It is written, and not read again with the session.
	ProviderSession string
	// ProviderUntil is when the session has to end by the provider's word (SessionNotOnOrAfter of SAML); the zero Time: it
	// doesn't say. A step-up never makes it later.
	ProviderUntil time.Time
	// ProvedAt is the last proof of any kind by what vouches for the session, Doorward itself or a connection: at a
	// connection's provider, when that says it was, which may be before the session; now if it doesn't say.
	ProvedAt time.Time
	FactorAt time.Time // last proof by a second factor or a passkey of the account; the zero Time for none
	// PasswordAt is the last proof of the account's own password in a session that a connection vouches
	// for; the zero Time for none. It says nothing in the connection's name: see decide.ProvedOwn.
	PasswordAt time.Time
	// Remembered reports whether a remembered browser took the place of the second factor.
	Remembered bool
}

// Methods of authentication, as in the claim amr of tokens (RFC 8176).
const (
	MethodPassword = "pwd"
	MethodCode     = "otp"  // a time-based code or a recovery code
	MethodDevice   = "hwk"  // a passkey that stays in its device
	MethodSynced   = "swk"  // a passkey that is synced between devices
	MethodPresent  = "user" // the person touched the authenticator
	MethodSeveral  = "mfa"  // more than one factor
	// MethodFederated is a sign-in by a connection; "fed" isn't in RFC 8176, which has no name for it.
	MethodFederated = "fed"
)

// WithProof returns the assurance after another proof, by a second factor or a passkey, that counts as one
// of what vouches for the session.
func (a Assurance) WithProof(now time.Time, methods ...string) Assurance {
	a.ProvedAt = now
	return a.WithFactor(now, methods...)
}

// WithFactor returns the assurance after a proof by a second factor or a passkey of the account.
func (a Assurance) WithFactor(now time.Time, methods ...string) Assurance {
	a.AAL, a.FactorAt = 2, now
	for _, m := range append(methods, MethodSeveral) {
		if !slices.Contains(a.AMR, m) {
			a.AMR = append(slices.Clone(a.AMR), m)
		}
	}
	return a
}

// LacksFactor reports whether the account has a second factor that this proof of identity didn't
// include. It is the one place that says so: to sign in, to join another tenant, or to refuse a reset of
// the factors. Whether a remembered browser stands in for the factor is for the tenant to say.
func (a Assurance) LacksFactor(hasFactor bool) bool { return hasFactor && a.AAL < 2 }

// SecondFactor is a tenant's demand that its members have a second factor.
type SecondFactor struct {
	Since        time.Time // when the demand began; the zero Time where second factors are optional
	Roles        []Role    // that the demand covers; none: all
	GraceDays    int       // 0 to 30
	RememberDays int       // in which a remembered browser needs no factor, 0 to 30
}

// Limits of the settings, and the default of StepUp.
const (
	MaxGraceDays    = 30
	MaxRememberDays = 30
	MaxStepUp       = time.Hour
	DefaultStepUp   = 10 * time.Minute
)

// Covers reports whether a second factor is demanded of the role.
func (f SecondFactor) Covers(r Role) bool {
	return !f.Since.IsZero() && (len(f.Roles) == 0 || slices.Contains(f.Roles, r))
}

// RoleNames returns Roles as a text, separated by spaces; empty for all.
func (f SecondFactor) RoleNames() string {
	names := make([]string, len(f.Roles))
	for i, r := range f.Roles {
		names[i] = string(r)
	}
	return strings.Join(names, " ")
}

// Remembers reports whether a browser in which a factor was proved at an instant can still sign
// in without one.
func (f SecondFactor) Remembers(proved, now time.Time) bool {
	return !proved.IsZero() && now.Before(proved.AddDate(0, 0, f.RememberDays))
}

// DueFrom returns the instant from which a member with the role needs a second factor, and
// whether the demand covers the role. The days of grace begin with the demand or the
// membership, whichever is later.
func (f SecondFactor) DueFrom(r Role, joined time.Time) (time.Time, bool) {
	if !f.Covers(r) {
		return time.Time{}, false
	}
	if joined.Before(f.Since) {
		joined = f.Since
	}
	return joined.Add(time.Duration(f.GraceDays) * 24 * time.Hour), true
}
