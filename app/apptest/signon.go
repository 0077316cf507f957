package apptest

import (
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
	"github.com/doorward/doorward/store"
)

// Connection gives the person's tenant an active connection, which no provider is behind, and the verified
// domains. It returns its id.
func (f *Fixture) Connection(p Person, domains ...string) string {
	f.Helper()
	c := doorward.Connection{
		ID: doorward.NewID(doorward.PrefixConnection), TenantID: p.User.TenantID, Type: doorward.OpenIDConnect, Name: "Okta",
		Product: doorward.Okta, JIT: doorward.JITOff, JITRole: doorward.RoleUser, Status: doorward.ConnectionActive,
	}
	f.write(func(tx *store.Tx) error {
		c.CreatedAt = tx.Now
		err := tx.InsertConnection(f.Context(), c)
		for _, name := range domains {
			err = errors.Join(err, f.prove(tx, c, name))
		}
		return err
	})
	return c.ID
}

// prove makes the domain one that is proved for the connection.
func (f *Fixture) prove(tx *store.Tx, c doorward.Connection, name string) error {
	id := doorward.NewID(doorward.PrefixDomain)
	_, err := tx.InsertDomain(f.Context(), doorward.Domain{ID: id, TenantID: c.TenantID, Name: name, Token: id, CreatedAt: tx.Now})
	return errors.Join(err, tx.VerifyDomain(f.Context(), id, tx.Now.Add(time.Hour)), tx.SetDomainConnection(f.Context(), id, c.ID))
}

// SSOMode sets what the person's tenant demands of sign-on, as if it had been confirmed.
func (f *Fixture) SSOMode(p Person, mode doorward.SSOMode, guests string) {
	f.Helper()
	f.write(func(tx *store.Tx) error {
		return tx.SetSSOPolicy(f.Context(), doorward.SSOPolicy{
			TenantID: p.User.TenantID, Mode: mode, GuestsRefused: guests == doorward.GuestsRefused, Revision: 1, ChangedAt: time.UnixMicro(0), BeforeMode: doorward.SSOOff,
		})
	})
}

// SignOn is Connection and SSOMode, with guests refused.
func (f *Fixture) SignOn(p Person, mode doorward.SSOMode) (connectionID string) {
	f.Helper()
	f.SSOMode(p, mode, doorward.GuestsRefused)
	return f.Connection(p)
}

// Identity joins the person to an identity of the connection, used last at the present.
func (f *Fixture) Identity(p Person, connectionID string) {
	f.Helper()
	f.write(func(tx *store.Tx) error {
		id := doorward.NewID(doorward.PrefixIdentity)
		return ErrorOf(tx.InsertIdentity(f.Context(), doorward.Identity{
			ID: id, ConnectionID: connectionID, TenantID: p.User.TenantID, Issuer: "https://idp.example", Subject: id,
			UserID: p.User.ID, CreatedAt: tx.Now, LastUsedAt: tx.Now,
		}))
	})
}

func (f *Fixture) write(fn func(*store.Tx) error) {
	f.Helper()
	f.NoError(f.Node(0).Access.Upkeep(f.Context(), fn))
}

// IssuerOf returns the connection of the person's tenant that was made last. If the tenant has none, one is made
// that signs people in.
func (f *Fixture) IssuerOf(p Person) doorward.Issuer {
	f.Helper()
	read := f.DB.Read()
	all, err := read.ConnectionsOf(f.Context(), p.User.TenantID)
	f.NoError(err)
	if n := len(all); n > 0 {
		return doorward.Issuer(all[n-1].ID)
	}
	policy, err := read.SSOPolicy(f.Context(), p.User.TenantID, f.DB.Now())
	f.NoError(err)
	if policy.Revision == 0 {
		f.SSOMode(p, doorward.SSOOptional, doorward.GuestsAllowed)
	}
	return doorward.Issuer(f.Connection(p))
}

// EnterBy signs the person in to their tenant by the word of IssuerOf, and what of the account itself was
// proved beside it.
func (f *Fixture) EnterBy(i int, p Person, own ...string) (login.Outcome, error) {
	f.Helper()
	proved := proof.Proof{
		Account: f.Account(p), Issuer: f.IssuerOf(p), TenantID: p.User.TenantID,
		Methods: []string{doorward.MethodFederated}, ProviderAMR: []string{"pwd", "sms"}, OwnMethods: own, BegunAt: f.DB.Now(),
	}
	return f.Node(i).Login.Enter(f.Context(), Anonymous(i), proved, p.User.TenantID)
}

// ByConnection returns the person with another session, that a connection of their tenant vouches for.
func (f *Fixture) ByConnection(p Person, own ...string) Person {
	f.Helper()
	in, err := SignedIn(f.EnterBy(0, p, own...))
	f.NoError(err)
	return PersonOf(in)
}

// Managed makes a new person a member whose account the tenant manages, with a session of ByConnection.
func (f *Fixture) Managed(by Person, role doorward.Role) Person {
	f.Helper()
	p := f.Join(by, role)
	_, err := f.Node(0).Sessions.EndOwn(f.Context(), p.Caller, p.Caller.SessionID)
	f.NoError(err)
	f.Exec(`UPDATE users SET password_hash = '', managed_by = $1 WHERE id = $2`, by.User.TenantID, p.User.ID)
	return f.ByConnection(p)
}
