// Package login turns a proof of identity into a session.
//
// A sign-in has three steps: a proof (the password in WithPassword, a passkey in WithPasskey),
// the choice of a tenant, and complete or finish, which opens the session. A valid proof ends
// in an [Outcome]: a session; or a challenge for the second factor, which WithSecond answers
// (second.go); or, where the tenant demands a factor and the account has none, a challenge to
// set up the first one, which WithFirst or WithFirstPasskey completes. After a challenge only
// its answer clears the counters and makes the browser a known one; the password alone doesn't.
package login

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Login is the feature. Make it with New.
type Login struct {
	writer   *access.Writer
	db       *store.DB
	verifier *proof.Verifier
	sessions *session.Sessions
	factors  *factor.Factors
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, verifier *proof.Verifier, sessions *session.Sessions, factors *factor.Factors) *Login {
	return &Login{writer, db, verifier, sessions, factors}
}

// Outcome is the result of a valid proof: a SignedIn, a SecondNeeded or an EnrolmentNeeded.
// Callers handle each in a type switch.
type Outcome interface{ isOutcome() }

// SignedIn is a complete sign-in.
type SignedIn struct {
	session.Opened
	// Device, unless nil, is a token for the browser to keep for DeviceLife: it
	// identifies a browser that has signed in before.
	Device *secret.Token
	// CanSwitch reports whether the user can switch to another tenant; false after a switch.
	CanSwitch bool
	// Allowance is how many attempts the known browser has left; nil for other browsers.
	// See proof.Proof.Allowance.
	Allowance *doorward.Allowance
}

// SecondNeeded means that the password is correct and the account has a second factor, which
// the challenge asks for.
type SecondNeeded struct{ factor.NewChallenge }

// EnrolmentNeeded means that the password is correct and the account lacks a second factor,
// which the tenant demands. Setting one up with the challenge completes the sign-in.
type EnrolmentNeeded struct{ factor.NewChallenge }

func (SignedIn) isOutcome()        {}
func (SecondNeeded) isOutcome()    {}
func (EnrolmentNeeded) isOutcome() {}
