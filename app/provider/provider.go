// Package provider is what Doorward is to the providers by which people of tenants sign in: it reads what they say of
// themselves, keeps the secrets and keys by which Doorward authenticates to them, and keeps the
// protocol of what happened. It makes and changes no connection: package connection does. It signs nobody in: package
// signon does, with what Ready returns.
//
//	ready, err := providers.Ready(ctx, conID, pending)  // what it takes to sign in
//	providers.Record(ctx, attempt)                      // how it has ended
//
// A provider that is out of reach changes nothing: what is known of it serves on. What is read of it, and each attempt,
// is in the protocol of its connection.
//
//	discovery.go    what providers say of themselves
//	ready.go        what it takes to sign in
//	saml.go         the same for SAML, of whose metadata package samlprovider knows more
//	readnow.go      readings for somebody who waits
//	unknown.go      readings because of responses by unknown certificates
//	asking.go       how long a request asks
//	waiting.go      how many of those wait, and of whom
//	readings.go     readings that several requests need at once
//	unread.go       readings that fail: when to try again, who is told
//	examine.go      what a provider answers now, for the operator
//	secret.go       client secrets, sealed and open
//	key.go          keys of private_key_jwt
//	attempt.go      the protocol, as it is shown; package attempt writes it
//	session.go      what is kept of their own sessions
//	notice.go       notices before secrets and certificates end
//	sweep.go        keys, retention
package provider

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/attempt"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/guard"
	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

const day = 24 * time.Hour

// Strays counts what anybody can send to a connection.
type Strays = attempt.Strays

// Settings configure the client.
type Settings struct {
	Allow       []netip.Prefix // internal addresses that providers may have
	Authorities *x509.CertPool // that sign the certificates of providers; nil: those of this machine
}

// Client is what Doorward is to the providers of connections. Make it with New. It is safe for use by several
// goroutines. It writes the
// protocols, too.
type Client struct {
	*attempt.Recorder
	writer *access.Writer
	db     *store.DB
	master *masterkey.Keys
	base   string
	rp     *oidcrp.Client
	// SAML is the client that speaks to providers of SAML.
	SAML *samlprovider.Client
	warn func(error) // of what must not fail a sign-in

	readings readings
	waiting  waiting // responses by unknown certificates
}

// New returns the client. base is the address of Doorward, without a slash at its end.
func New(writer *access.Writer, db *store.DB, master *masterkey.Keys, base string, s Settings, log *slog.Logger) *Client {
	guarded := guard.New(guard.Options{Allow: s.Allow, Authorities: s.Authorities}).HTTP()
	warn := lograte.Warnings(log, "sign-on")
	c := &Client{
		Recorder: attempt.New(writer, db, warn),
		writer:   writer, db: db, master: master, base: base,
		rp:   oidcrp.New(guarded, db.Now, oidcrp.WithRefused(guard.IsRefused)),
		SAML: samlprovider.New(writer, db, master, base, guarded),
		warn: warn,
	}
	master.OnLoss("connection_secrets", c.forgetSecrets)
	master.OnLoss("connection_keys", c.forgetKeys)
	master.OnLoss(samlprovider.Table, c.forgetSAMLKeys)
	return c
}

// Provider returns the client that speaks to providers. It has the cache of their keys.
func (c *Client) Provider() *oidcrp.Client { return c.rp }

// CallbackURL is where the provider sends people back to. It is registered there, exactly.
func (c *Client) CallbackURL(id string) string { return c.address(id, "callback") }

// StartURL is where a sign-in begins.
func (c *Client) StartURL(id string) string { return c.address(id, "start") }

// KeysURL is where the provider reads the keys of private_key_jwt.
func (c *Client) KeysURL(id string) string { return c.address(id, "jwks") }

// RevokeURL is where the provider revokes people (Global Token Revocation). It is the audience of its tokens.
func (c *Client) RevokeURL(id string) string { return c.address(id, "revoke") }

// LogoutURL is where the provider sends logout tokens (OpenID Connect Back-Channel Logout).
func (c *Client) LogoutURL(id string) string { return c.address(id, "backchannel-logout") }

func (c *Client) address(id, what string) string {
	return c.base + "/api/v2/auth/sso/" + id + "/" + what
}

// Find returns a connection of the caller's tenant, for a set-up link only its own. Errors: not_found.
func Find(ctx context.Context, read store.Reader, by doorward.Caller, id string) (doorward.Connection, error) {
	found, err := read.Connection(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && (found.TenantID != by.TenantID || !by.SeesConnection(id)) {
		return doorward.Connection{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return found, err
}

// Object returns the connection as the object of an action.
func Object(c doorward.Connection) doorward.Object {
	return doorward.Object{Type: "connection", ID: c.ID, TenantID: c.TenantID, ConnectionID: c.ID}
}
