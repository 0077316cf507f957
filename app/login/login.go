// Package login turns a proof of who someone is into a session.
//
// The first proof is a password. Others (a second factor, single sign-on) will
// stand beside it as steps of their own between the proof and the opening of
// the session.
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

// Result is a successful login.
type Result struct {
	session.Opened
	// Device, when it is not nil, is to be kept by the browser for DeviceLife:
	// it shows later that this browser has signed in before.
	Device *secret.Token
	// Allowance is what is left of the one that the password counted in; see
	// credential.Proof.Allowance.
	Allowance *doorward.Allowance
}

// invalid is the one answer for every cause that lies with the caller.
func invalid() *doorward.Error { return doorward.Fail(doorward.CodeInvalidCredentials, "") }
