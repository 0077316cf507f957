package apptest

import (
	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/login"
	"github.com/doorward/doorward/app/proof"
)

// Connection is the connection that vouches for the sessions of ByConnection.
const Connection doorward.Issuer = "con_own"

// EnterBy signs the person in to their tenant by the word of a connection, and what of the account itself was
// proved beside it.
func (f *Fixture) EnterBy(i int, p Person, own ...string) (login.Outcome, error) {
	f.Helper()
	proved := proof.Proof{
		Account: f.Account(p), Issuer: f.issuerOf(p.User.TenantID), TenantID: p.User.TenantID,
		Methods: []string{doorward.MethodFederated}, ProviderAMR: []string{"pwd", "sms"}, OwnMethods: own,
	}
	return f.Node(i).Login.Enter(f.Context(), Anonymous(i), proved, p.User.TenantID)
}

// issuerOf returns the connection of the tenant that was made last. If the tenant has none, that is Connection,
// which moves there and signs people in.
func (f *Fixture) issuerOf(tenantID string) doorward.Issuer {
	f.Helper()
	id := Connection
	err := f.SQL().QueryRowContext(f.Context(), `SELECT id FROM connections WHERE tenant_id = $1 ORDER BY created_at DESC, id LIMIT 1`, tenantID).Scan(&id)
	if err == nil {
		return id
	}
	f.Exec(`INSERT INTO connections (id, tenant_id, type, name, product, status, created_at, jit, jit_role) VALUES ($1, $2, 'oidc', 'Okta', 'okta', 'active', 0, 'off', 'USER')
ON CONFLICT (id) DO UPDATE SET tenant_id = excluded.tenant_id`, string(id), tenantID)
	f.Exec(`INSERT INTO sso_policies (tenant_id, mode, guests, revision, changed_at) VALUES ($1, 'optional', 'allowed', 1, 0) ON CONFLICT (tenant_id) DO NOTHING`, tenantID)
	return id
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

// SignOn sets the mode of the tenant's sign-on, and adds a connection that signs people in.
func (f *Fixture) SignOn(tenantID string, mode doorward.SSOMode) (connectionID string) {
	f.Helper()
	connectionID = doorward.NewID(doorward.PrefixConnection)
	f.Exec(`INSERT INTO connections (id, tenant_id, type, name, product, status, created_at, jit, jit_role) VALUES ($1, $2, 'oidc', 'Okta', 'okta', 'active', 0, 'off', 'USER')`, connectionID, tenantID)
	f.Exec(`DELETE FROM sso_policies WHERE tenant_id = $1`, tenantID)
	f.Exec(`INSERT INTO sso_policies (tenant_id, mode, guests, revision, changed_at) VALUES ($1, $2, 'refused', 1, 0)`, tenantID, mode)
	return connectionID
}
