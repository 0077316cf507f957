package apptest

import "github.com/doorward/doorward"

// Connection gives the person's tenant an active connection, which no provider is behind, and the verified
// domains. It returns its id.
func (f *Fixture) Connection(p Person, domains ...string) string {
	f.Helper()
	id := doorward.NewID(doorward.PrefixConnection)
	f.Exec(`INSERT INTO connections (id, tenant_id, type, name, product, status, created_at, jit, jit_role) VALUES ($1, $2, 'oidc', 'Okta', 'okta', 'active', 0, 'off', 'USER')`, id, p.User.TenantID)
	for _, domain := range domains {
		made := doorward.NewID(doorward.PrefixDomain)
		f.Exec(`INSERT INTO domains (id, tenant_id, domain, connection_id, status, token, created_at) VALUES ($1, $2, $3, $4, 'verified', $1, 0)`, made, p.User.TenantID, domain, id)
	}
	return id
}

// Identity joins the person to an identity of the connection, used last at the present.
func (f *Fixture) Identity(p Person, connectionID string) {
	f.Helper()
	id := doorward.NewID(doorward.PrefixIdentity)
	f.Exec(`INSERT INTO identities (id, connection_id, tenant_id, issuer, subject, user_id, created_at, last_used_at) VALUES ($1, $2, $3, 'https://idp.example', $1, $4, $5, $5)`,
		id, connectionID, p.User.TenantID, p.User.ID, f.DB.Now().UnixMicro())
}

// SSOMode sets what the person's tenant demands of sign-on, as if it had been confirmed.
func (f *Fixture) SSOMode(p Person, mode doorward.SSOMode, guests string) {
	f.Helper()
	f.Exec(`DELETE FROM sso_policies WHERE tenant_id = $1`, p.User.TenantID)
	f.Exec(`INSERT INTO sso_policies (tenant_id, mode, guests, revision, changed_at) VALUES ($1, $2, $3, 1, 0)`, p.User.TenantID, string(mode), guests)
}
