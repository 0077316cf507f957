// Package connection manages the providers by which people of a tenant sign in, and keeps what it takes to
// sign in by them: client secrets and keys, what providers say of themselves, tests, the protocol, and who
// is who (identities). It signs nobody in: package signon does, with what Ready returns.
//
// It guarantees that an active connection signs people in only by parameters that a test has passed with:
// each change has a new revision, which makes tests of what was before void, and on an active connection it
// waits until it is switched. When the end of a connection is answered, its sessions have ended on every
// node.
//
//	connection.go   reading
//	draft.go        the rules for what is typed
//	edit.go         creating and changing, and what waits for a switch
//	status.go       enabling, disabling, deleting
//	discovery.go    what providers say of themselves
//	ready.go        what it takes to sign in
//	examine.go      what a provider answers now, for the operator
//	secret.go       client secrets
//	key.go          keys of private_key_jwt
//	attempt.go      the protocol
//	test.go         tests
//	identity.go     identities
//	sweep.go        notices, keys, retention
package connection

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/netip"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/guard"
	"github.com/doorward/doorward/internal/lograte"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/store"
)

// Settings configure the feature.
type Settings struct {
	Allow       []netip.Prefix // internal addresses that providers may have
	Authorities *x509.CertPool // that sign the certificates of providers; nil: those of this machine
}

// Connections is the feature. Make it with New. It is safe for use by several goroutines.
type Connections struct {
	writer   *access.Writer
	db       *store.DB
	master   *masterkey.Keys
	life     store.SessionLifetime
	base     string
	provider *oidcrp.Client
	warn     func(error) // of what must not fail a sign-in
}

// New returns the feature. base is the address of Doorward, without a slash at its end.
func New(writer *access.Writer, db *store.DB, master *masterkey.Keys, life store.SessionLifetime, base string, s Settings, log *slog.Logger) *Connections {
	guarded := guard.New(guard.Options{Allow: s.Allow, Authorities: s.Authorities}).HTTP()
	return &Connections{
		writer: writer, db: db, master: master, life: life, base: base,
		provider: oidcrp.New(guarded, db.Now, oidcrp.WithRefused(guard.IsRefused)),
		warn:     lograte.Warnings(log, "sign-on"),
	}
}

// Provider returns the client that speaks to providers. It has the cache of their keys.
func (c *Connections) Provider() *oidcrp.Client { return c.provider }

// CallbackURL is where the provider sends people back to. It is registered there, exactly.
func (c *Connections) CallbackURL(id string) string { return c.address(id, "callback") }

// StartURL is where a sign-in begins.
func (c *Connections) StartURL(id string) string { return c.address(id, "start") }

// KeysURL is where the provider reads the keys of private_key_jwt.
func (c *Connections) KeysURL(id string) string { return c.address(id, "jwks") }

func (c *Connections) address(id, what string) string {
	return c.base + "/api/v2/auth/sso/" + id + "/" + what
}

// Shown is a connection as those who manage it see it.
type Shown struct {
	doorward.Connection
	Secrets []doorward.ConnectionSecret // the newest first
}

// List returns the connections of the caller's tenant, the oldest first. Errors: validation_failed for an
// unknown order.
func (c *Connections) List(ctx context.Context, by doorward.Caller, w doorward.Window) (page doorward.Page[Shown], err error) {
	read := c.db.Read()
	found, err := read.ConnectionPage(ctx, by.TenantID, w)
	if err != nil {
		return page, err
	}
	secrets, err := read.ConnectionSecretsOf(ctx, by.TenantID)
	page.Prev, page.Next, page.Total = found.Prev, found.Next, found.Total
	for _, one := range found.Items {
		page.Items = append(page.Items, shown(one, secrets))
	}
	return page, err
}

// Of returns the connections of a tenant, the oldest first, for commands and pages.
func (c *Connections) Of(ctx context.Context, tenantID string) ([]doorward.Connection, error) {
	return c.db.Read().ConnectionsOf(ctx, tenantID)
}

// Connection returns a connection of the caller's tenant. Errors: not_found.
func (c *Connections) Connection(ctx context.Context, by doorward.Caller, id string) (Shown, error) {
	return show(ctx, c.db.Read(), by, id)
}

func show(ctx context.Context, read store.Reader, by doorward.Caller, id string) (Shown, error) {
	found, err := find(ctx, read, by, id)
	if err != nil {
		return Shown{}, err
	}
	secrets, err := read.ConnectionSecrets(ctx, id)
	return shown(found, secrets), err
}

func shown(c doorward.Connection, secrets []store.SealedConnectionSecret) Shown {
	s := Shown{Connection: c}
	for _, one := range secrets {
		if one.ConnectionID == c.ID {
			s.Secrets = append(s.Secrets, one.ConnectionSecret)
		}
	}
	return s
}

// find returns a connection of the caller's tenant, for a set-up link only its own. Errors: not_found.
func find(ctx context.Context, read store.Reader, by doorward.Caller, id string) (doorward.Connection, error) {
	found, err := read.Connection(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && (found.TenantID != by.TenantID || !by.SeesConnection(id)) {
		return doorward.Connection{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return found, err
}

func object(c doorward.Connection) doorward.Object {
	return doorward.Object{Type: "connection", ID: c.ID, TenantID: c.TenantID, ConnectionID: c.ID}
}

// errDryRun rolls a dry run back.
var errDryRun = errors.New("connection: a dry run")

// perform does the operations, all or none, or rolls them back as a dry run.
func (c *Connections) perform(ctx context.Context, by doorward.Caller, isDryRun bool, operations ...access.Operation) (doorward.Revocation, error) {
	if isDryRun {
		last := &operations[len(operations)-1]
		write := last.Write
		last.Write = func(tx *access.Tx) error {
			if err := write(tx); err != nil {
				return err
			}
			return errDryRun
		}
	}
	revocation, err := c.writer.DoAll(ctx, by, operations...)
	if errors.Is(err, errDryRun) {
		return doorward.Revocation{}, nil
	}
	return revocation, err
}
