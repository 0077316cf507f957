package apptest

import (
	"os"
	"path/filepath"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/factor"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/internal/totp"
	"github.com/doorward/doorward/store"
)

// keyFile returns the file of the nodes' master key. UseMasterKey makes it.
func keyFile(dir string) masterkey.File {
	return masterkey.File{Path: filepath.Join(dir, "master.key"), Optional: true}
}

// UseMasterKey gives the installation a master key.
func (f *Fixture) UseMasterKey() {
	f.Helper()
	for _, n := range f.Nodes {
		f.NoError(n.MasterKey.Load(f.Context()))
	}
}

// Authenticator is an authenticator app.
type Authenticator struct {
	ID       string // of the factor
	Seed     []byte
	Recovery []string
	last     int64 // the time step of the last code; see Code
}

// Code returns a code that wasn't returned before: that of the present time step, else that of the
// step after the last code. At most two codes are sure to be valid at a time, those of the present
// and the next step.
func (a *Authenticator) Code(now time.Time) string {
	a.last = max(a.last+1, totp.Step(now))
	return totp.Code(a.Seed, a.last)
}

// Enrol sets up an authenticator app for the person, whose session gets a new token by that.
func (f *Fixture) Enrol(p *Person) *Authenticator {
	f.Helper()
	f.UseMasterKey()
	e, err := f.Node(0).Factors.Enrol(f.Context(), p.Caller, "")
	f.NoError(err)
	a := &Authenticator{ID: e.ID, Seed: e.Seed}
	done, err := f.Node(0).Factors.Confirm(f.Context(), p.Caller, e.ID, a.Code(f.DB.Now()))
	f.NoError(err)
	a.Recovery, p.Token = done.RecoveryCodes, done.Raised.Token
	return a
}

// Challenge signs in with the password and returns the challenge for the second factor.
func (f *Fixture) Challenge(by doorward.Caller, p Person) factor.NewChallenge {
	f.Helper()
	o, err := f.Node(0).Login.WithPassword(f.Context(), by, p.User.Email, FirstPassword, p.User.TenantID)
	f.NoError(err)
	switch o := o.(type) {
	case login.SecondNeeded:
		return o.NewChallenge
	case login.EnrolmentNeeded:
		return o.NewChallenge
	}
	f.Fatalf("the login with the password ends with %T", o)
	return factor.NewChallenge{}
}

// SignInWith is SignIn for a person with an authenticator app.
func (f *Fixture) SignInWith(p Person, a *Authenticator) Person {
	f.Helper()
	challenge := f.Challenge(Anonymous(0), p)
	r, err := SignedIn(f.Node(0).Login.WithSecond(f.Context(), Anonymous(0), challenge.Token.Reveal(), factor.Answer{Code: a.Code(f.DB.Now())}, false))
	f.NoError(err)
	return PersonOf(r)
}

// EditTenant changes the settings of the person's tenant.
func (f *Fixture) EditTenant(p Person, edit func(*doorward.TenantSettings)) {
	f.Helper()
	f.NoError(f.Node(0).Access.Upkeep(f.Context(), func(tx *store.Tx) error {
		tenant, err := tx.Tenant(f.Context(), p.User.TenantID)
		if err != nil {
			return err
		}
		edit(&tenant.Settings)
		return tx.EditTenant(f.Context(), tenant)
	}))
}

// PutMasterKey puts another key into the nodes' file, as an operator does, and lets the nodes read it.
func (f *Fixture) PutMasterKey(key seal.Key) {
	f.Helper()
	f.NoError(os.WriteFile(keyFile(f.keyFolder).Path, []byte(key.Reveal()), 0o600))
	for _, n := range f.Nodes {
		_, err := n.MasterKey.Refresh(f.Context())
		f.NoError(err)
	}
}

// LoseMasterKey removes the file of the nodes' key.
func (f *Fixture) LoseMasterKey() {
	f.Helper()
	f.NoError(os.Remove(keyFile(f.keyFolder).Path))
}
