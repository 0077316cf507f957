// Package login turns a proof of identity into a session.
//
// A sign-in has three steps: a proof (the password, in WithPassword), the choice of a
// tenant, and complete, which opens the session. A valid proof ends in an [Outcome],
// which callers switch on. There is one proof today and one outcome. A second factor
// belongs at the beginning of complete: nothing is settled before, so an incomplete
// sign-in clears no counter and makes no browser a known one.
package login

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/credential"
	"github.com/doorward/doorward/app/session"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Login is the feature. Make it with New.
type Login struct {
	db       *store.DB
	verifier *credential.Verifier
	sessions *session.Sessions
}

// New returns the feature.
func New(db *store.DB, verifier *credential.Verifier, sessions *session.Sessions) *Login {
	return &Login{db, verifier, sessions}
}

// Outcome is the result of a valid proof: today always SignedIn. The set is closed,
// and a caller handles each type in a type switch of its own.
type Outcome interface{ isOutcome() }

// SignedIn is a complete sign-in.
type SignedIn struct {
	session.Opened
	// Device, unless nil, is a token for the browser to keep for DeviceLife: it
	// identifies a browser that has signed in before.
	Device *secret.Token
	// Choice reports whether the user can switch to other tenants.
	Choice bool
	// Allowance is how many attempts the known browser has left; nil for other browsers.
	// See credential.Proof.Allowance.
	Allowance *doorward.Allowance
}

func (SignedIn) isOutcome() {}

// invalid is the one answer for every cause that lies with the caller.
func invalid() *doorward.Error { return doorward.Fail(doorward.CodeInvalidCredentials, "") }
