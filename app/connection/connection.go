// Package connection manages the providers by which people of a tenant sign in, and who is who there (identities).
// What it takes to sign in by them is in package provider, their client secrets are in clientsecret; package signon signs
// people in.
//
// It guarantees that an active connection signs people in only by parameters that a test has passed with:
// each change has a new revision, which makes tests of what was before void, and on an active connection it
// waits until it is switched. When the end of a connection is answered, its sessions have ended on every
// node.
//
//	connection.go   reading
//	draft.go        the rules for what is typed
//	saml.go         the same for SAML
//	edit.go         creating and changing, and what waits for a switch
//	status.go       enabling, disabling, deleting
//	identity.go     identities
//	sweep.go        roles that are due
package connection

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/samlprovider"
	"github.com/doorward/doorward/internal/samlsp/metadata"
	"github.com/doorward/doorward/store"
)

// Connections is the feature. Make it with New. It is safe for use by several goroutines. It has all that the client
// of its providers has.
type Connections struct {
	*provider.Client
	writer *access.Writer
	db     *store.DB
	life   store.SessionLifetime
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB, providers *provider.Client, life store.SessionLifetime) *Connections {
	return &Connections{Client: providers, writer: writer, db: db, life: life}
}

// Shown is a connection as those who manage it see it.
type Shown struct {
	doorward.Connection
	Secrets []doorward.ConnectionSecret // the newest first
	SCIM    []doorward.SCIMSecret       // of its directory, the newest first
	// Of type saml: what is kept of the provider, and of the one that is pending, without the certificates that were taken
	// away by hand.
	Provider, PendingProvider metadata.Provider
	LastRunAt                 *time.Time // when its directory last changed something; nil: not for 30 days
	UnreadSince               time.Time  // since when what the provider says of itself can't be read; zero: the last reading has succeeded
}

// UsableSecrets counts the client secrets that aren't lost.
func (s Shown) UsableSecrets() (n int) {
	for _, secret := range s.Secrets {
		if !secret.IsLost {
			n++
		}
	}
	return n
}

// IsUnread reports whether people sign in by a provider that can't be read for provider.UnreadNoticed. OWNERs get a
// mail then.
func (s Shown) IsUnread(now time.Time) bool {
	return s.Status == doorward.ConnectionActive && !s.UnreadSince.IsZero() && now.Sub(s.UnreadSince) >= provider.UnreadNoticed
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
	if err != nil {
		return page, err
	}
	scim, err := read.SCIMSecretsOf(ctx, by.TenantID)
	if err != nil {
		return page, err
	}
	runs, err := read.LastDirectoryWrites(ctx, by.TenantID)
	if err != nil {
		return page, err
	}
	failing, err := read.ReadingsFailing(ctx, by.TenantID)
	page.Prev, page.Next, page.Total = found.Prev, found.Next, found.Total
	for _, one := range found.Items {
		page.Items = append(page.Items, shown(one, secrets, scim, runs, failing))
		if err == nil {
			err = page.Items[len(page.Items)-1].addProviders(ctx, read)
		}
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

// Usage returns how often people were signed in by the connection, or refused, since an instant, by outcome and hour, the oldest
// first. Errors: not_found.
func (c *Connections) Usage(ctx context.Context, by doorward.Caller, id string, since time.Time) ([]doorward.UsageCount, error) {
	if _, err := find(ctx, c.db.Read(), by, id); err != nil {
		return nil, err
	}
	return c.db.Read().Usage(ctx, id, since)
}

// UsageOfAll is Usage for all connections of the caller's tenant.
func (c *Connections) UsageOfAll(ctx context.Context, by doorward.Caller, since time.Time) ([]doorward.UsageCount, error) {
	return c.db.Read().UsageOfConnections(ctx, by.TenantID, since)
}

func show(ctx context.Context, read store.Reader, by doorward.Caller, id string) (Shown, error) {
	found, err := find(ctx, read, by, id)
	if err != nil {
		return Shown{}, err
	}
	secrets, err := read.ConnectionSecrets(ctx, id)
	if err != nil {
		return Shown{}, err
	}
	scim, err := read.SCIMSecrets(ctx, id)
	if err != nil {
		return Shown{}, err
	}
	runs, err := read.LastDirectoryWrites(ctx, found.TenantID)
	if err != nil {
		return Shown{}, err
	}
	failing, err := read.ReadingsFailing(ctx, found.TenantID)
	s := shown(found, secrets, scim, runs, failing)
	if err == nil {
		err = s.addProviders(ctx, read)
	}
	return s, err
}

// addProviders adds what is kept of providers of SAML. A tenant has few connections.
func (s *Shown) addProviders(ctx context.Context, read store.Reader) (err error) {
	if s.Type != doorward.SAML {
		return nil
	}
	s.Provider, err = samlprovider.Kept(ctx, read, s.ID, inForce, s.InForce)
	if err == nil && s.Pending != nil {
		s.PendingProvider, err = samlprovider.Kept(ctx, read, s.ID, pending, *s.Pending)
	}
	return err
}

func shown(c doorward.Connection, secrets []store.SealedConnectionSecret, scim []doorward.SCIMSecret, lastRuns, failing map[string]time.Time) Shown {
	s := Shown{Connection: c, UnreadSince: failing[c.ID]}
	if at, found := lastRuns[c.ID]; found {
		s.LastRunAt = &at
	}
	for _, one := range secrets {
		if one.ConnectionID == c.ID {
			s.Secrets = append(s.Secrets, one.ConnectionSecret)
		}
	}
	for _, one := range scim {
		if one.ConnectionID == c.ID {
			s.SCIM = append(s.SCIM, one)
		}
	}
	return s
}

func find(ctx context.Context, read store.Reader, by doorward.Caller, id string) (doorward.Connection, error) {
	return provider.Find(ctx, read, by, id)
}

func object(c doorward.Connection) doorward.Object { return provider.Object(c) }

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
