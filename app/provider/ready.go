package provider

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// Ready is what it takes to sign in by a connection of type oidc.
type Ready struct {
	Connection doorward.Connection
	Parameters doorward.ConnectionParameters // in force, or pending
	Discovery  oidcrp.Discovery
	// Config has the callback, the secrets, the newest first, the key that signs now, and the domains that
	// are proved for the connection.
	Config oidcrp.Config
	// SecretIDs are the ids of Config.Secrets, for SecretUsed.
	SecretIDs []string
}

// Ready returns what it takes to sign in by what is in force, or to test what is pending, whatever the
// connection's status. Errors: not_found; validation_failed with required for what the connection doesn't
// have yet; provider_unavailable if nothing is known of the provider and it can't be reached;
// master_key_missing.
func (c *Client) Ready(ctx context.Context, conID string, isPending bool) (r Ready, err error) {
	r.Connection, r.Parameters, err = c.parameters(ctx, conID, isPending)
	if err == nil && r.Connection.Type != doorward.OpenIDConnect {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return r, err
	}
	if err := r.configure(ctx, c); err != nil {
		return r, err
	}
	domains, err := c.db.Read().VerifiedDomainsOf(ctx, conID)
	if err != nil {
		return r, err
	}
	for _, d := range domains {
		r.Config.HostedDomains = append(r.Config.HostedDomains, d.Name)
	}
	r.Discovery, err = c.discovered(ctx, conID, isPending)
	if errors.Is(err, store.ErrNone) { // switched or deleted since
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	return r, err
}

// parameters returns a connection with what is in force or pending. Errors: not_found.
func (c *Client) parameters(ctx context.Context, conID string, isPending bool) (con doorward.Connection, p doorward.ConnectionParameters, err error) {
	con, err = c.db.Read().Connection(ctx, conID)
	if errors.Is(err, store.ErrNone) || err == nil && isPending && con.Pending == nil {
		return con, p, doorward.Fail(doorward.CodeNotFound, "")
	}
	if err == nil && isPending {
		return con, *con.Pending, nil
	}
	return con, con.InForce, err
}

// configure fills the Config. Errors: validation_failed with required for what is missing.
func (r *Ready) configure(ctx context.Context, c *Client) (err error) {
	p, con := r.Parameters, r.Connection
	r.Config = oidcrp.Config{
		Issuer: p.Issuer, ClientID: p.ClientID, Auth: oidcrp.Auth(p.ClientAuth),
		AudienceIsTokenEndpoint: wantsTokenEndpoint(con.Product), RedirectURI: c.CallbackURL(con.ID),
		EmailClaim: p.EmailFrom, GroupsClaim: con.GroupsFrom, AskGroups: wantsGroupsScope(con.Product),
		Entra: con.Product == doorward.Entra, Google: con.Product == doorward.Google,
	}
	switch {
	case p.Issuer == "":
		return doorward.Invalid("/issuer", "required", "Enter the issuer first, as the provider writes it.")
	case p.ClientID == "":
		return doorward.Invalid("/clientId", "required", "Enter the client id first, as the provider shows it.")
	case p.ClientAuth == doorward.PrivateKeyJWT:
		r.Config.Key, err = c.signingKey(ctx, con.ID)
		return err
	}
	if r.SecretIDs, r.Config.Secrets, err = c.openSecrets(ctx, con.ID); err == nil && len(r.Config.Secrets) == 0 {
		err = doorward.Invalid("/secrets", "required", "Add a client secret first, as the provider shows it.")
	}
	return err
}

// wantsGroupsScope reports whether the product sends groups only if the scope "groups" is asked for: Okta's org
// authorization server (developer.okta.com, "Add a groups claim for the org authorization server"), and OneLogin.
// Keycloak announces scopes that it refuses to clients they aren't assigned to.
func wantsGroupsScope(p doorward.Product) bool { return p == doorward.Okta || p == doorward.OneLogin }

// wantsTokenEndpoint reports whether the product wants the token endpoint as the audience of client
// assertions. The others take the issuer, as draft-ietf-oauth-rfc7523bis asks for.
func wantsTokenEndpoint(p doorward.Product) bool {
	switch p {
	case doorward.Okta, doorward.Entra, doorward.OneLogin:
		return true
	}
	return false
}

// SecretUsed records that the provider has accepted one of r's secrets, by its index in Config.Secrets; -1: it has
// accepted a key. It never fails a sign-in.
func (c *Client) SecretUsed(ctx context.Context, r Ready, index int) {
	if index < 0 || index >= len(r.SecretIDs) {
		return
	}
	c.Leave(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.TouchConnectionSecret(ctx, r.SecretIDs[index], secretUseEvery)
	})
}
