// Package domain keeps the DNS domains of tenants. A tenant proves a domain by a TXT record; one tenant of an
// installation holds it, and its connection signs in people with addresses there.
//
//	domain.go   reading, adding, changing, deleting
//	name.go     which names are accepted
//	lookup.go   asking the name servers
//	verify.go   the proof, and taking over from an earlier holder
//	watch.go    the daily look, lapse and recovery
//	operator.go what the operator does
//
// What DNS says is read outside of transactions. What can't be read changes nothing: only an answer that there
// is no such record lets a domain lapse.
package domain

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Domains is the feature. Make it with New.
type Domains struct {
	writer   *access.Writer
	db       *store.DB
	resolver *net.Resolver
	log      *slog.Logger
}

// New returns the feature. dnsServer is the name server to ask, HOST:PORT; empty: those of the system.
func New(writer *access.Writer, db *store.DB, dnsServer string, log *slog.Logger) *Domains {
	return &Domains{writer, db, newResolver(dnsServer), log}
}

// List returns the domains of the caller's tenant, the newest first. Errors: validation_failed.
func (d *Domains) List(ctx context.Context, by doorward.Caller, window doorward.Window) (doorward.Page[doorward.Domain], error) {
	return d.db.Read().DomainPage(ctx, by.TenantID, window)
}

// OfConnection returns the domains whose people sign in by a connection of the caller's tenant, pending ones too,
// the oldest first; none for a connection that the caller doesn't see.
func (d *Domains) OfConnection(ctx context.Context, by doorward.Caller, conID string) ([]doorward.Domain, error) {
	all, err := d.db.Read().Domains(ctx, by.TenantID)
	return slices.DeleteFunc(all, func(one doorward.Domain) bool {
		return conID == "" || one.ConnectionID != conID || !by.SeesConnection(conID)
	}), err
}

// Get returns a domain of the caller's tenant, for a set-up link only one of its connection. Errors: not_found.
func (d *Domains) Get(ctx context.Context, by doorward.Caller, id string) (doorward.Domain, error) {
	return find(ctx, d.db.Read(), by.TenantID, by, id)
}

// find returns a domain of the tenant that the caller sees, see Get. Errors: not_found.
func find(ctx context.Context, read store.Reader, tenantID string, by doorward.Caller, id string) (doorward.Domain, error) {
	found, err := read.Domain(ctx, id)
	if errors.Is(err, store.ErrNone) || err == nil && (found.TenantID != tenantID || !by.SeesConnection(found.ConnectionID)) {
		return doorward.Domain{}, doorward.Fail(doorward.CodeNotFound, "")
	}
	return found, err
}

func object(d doorward.Domain) doorward.Object {
	return doorward.Object{Type: "domain", ID: d.ID, TenantID: d.TenantID, ConnectionID: d.ConnectionID}
}

// change runs write on a domain of the tenant, read again under the tenant's lock. Errors: not_found, those of
// write.
func (d *Domains) change(ctx context.Context, by doorward.Caller, act doorward.Action, of doorward.Domain, write func(*access.Tx, doorward.Domain) error) error {
	_, err := d.writer.Do(ctx, by, act, object(of), func(tx *access.Tx) error {
		current, err := find(ctx, tx.Reader, of.TenantID, by, of.ID)
		if err != nil {
			return err
		}
		return write(tx, current)
	})
	return err
}

// Add adds a pending domain, whose record the tenant then publishes. Nothing depends on what other tenants
// have. Errors: validation_failed, too_many_domains, domain_exists.
func (d *Domains) Add(ctx context.Context, by doorward.Caller, name string) (doorward.Domain, error) {
	name, fault := checkName(name)
	made := doorward.Domain{ID: doorward.NewID(doorward.PrefixDomain), TenantID: by.TenantID, Name: name, Status: doorward.DomainPending, Token: newToken()}
	_, err := d.writer.Do(ctx, by, doorward.DomainCreate, object(made), func(tx *access.Tx) error {
		if fault != nil {
			return fault
		}
		n, err := tx.CountDomains(ctx, made.TenantID)
		if err == nil && n >= doorward.DomainsMax {
			err = doorward.Fail(doorward.CodeTooManyDomains, "")
		}
		if err != nil {
			return err
		}
		made.CreatedAt = tx.Now
		tx.Changed(doorward.FieldDomain, "", made.Name)
		isNew, err := tx.InsertDomain(ctx, made)
		switch {
		case err != nil:
			return err
		case !isNew:
			return doorward.Fail(doorward.CodeDomainExists, "")
		}
		return tx.KeepAnswer(ctx, made)
	})
	return made, err
}

// newToken returns the token of a record. It has 130 random bits, and no token is made twice.
func newToken() string { return strings.ToLower(rand.Text()) }

// SetConnection sets the connection of the tenant by which the domain's people sign in; empty: none. versions,
// unless empty, are those that the change is based on. Errors: not_found, precondition_failed,
// validation_failed, domain_in_use if the domain has another connection.
func (d *Domains) SetConnection(ctx context.Context, by doorward.Caller, id, connectionID string, versions []string) (after doorward.Domain, err error) {
	found, err := d.Get(ctx, by, id)
	if err != nil {
		return after, err
	}
	err = d.change(ctx, by, doorward.DomainUpdate, found, func(tx *access.Tx, was doorward.Domain) error {
		if err := doorward.CheckVersion(was.Version(), versions); err != nil {
			return err
		}
		after = was
		after.ConnectionID = connectionID
		if was.ConnectionID == connectionID {
			tx.SkipEvent()
			return nil
		}
		tx.Changed(doorward.FieldDomain, "", was.Name)
		if connectionID == "" {
			return leaveConnection(ctx, tx, was)
		}
		return joinConnection(ctx, tx, was, connectionID)
	})
	return after, err
}

// joinConnection gives a domain to a connection of its tenant. Errors: validation_failed, domain_in_use.
func joinConnection(ctx context.Context, tx *access.Tx, was doorward.Domain, connectionID string) error {
	isOwn, err := tx.ConnectionIn(ctx, was.TenantID, connectionID)
	switch {
	case err != nil:
		return err
	case !isOwn:
		return doorward.Invalid("/connectionId", "invalid", "Name a connection of the tenant by its id, or none with an empty text.")
	case was.ConnectionID != "":
		return doorward.Fail(doorward.CodeDomainInUse, "")
	}
	tx.Changed(doorward.FieldConnection, "", connectionID)
	return tx.SetDomainConnection(ctx, was.ID, connectionID)
}

// leaveConnection takes a domain away from its connection, if it has one: because somebody says so, or with the
// domain itself. It is the one place where a tenant takes a domain from a connection.
func leaveConnection(ctx context.Context, tx *access.Tx, was doorward.Domain) error {
	if was.ConnectionID == "" {
		return nil
	}
	tx.Changed(doorward.FieldConnection, was.ConnectionID, "")
	return tx.SetDomainConnection(ctx, was.ID, "")
}

// Delete deletes a domain of the caller's tenant, which then holds it no longer. If versions are given, it must
// have one of them. Errors: not_found, precondition_failed.
func (d *Domains) Delete(ctx context.Context, by doorward.Caller, id string, versions ...string) error {
	found, err := d.Get(ctx, by, id)
	if err != nil {
		return err
	}
	return d.change(ctx, by, doorward.DomainDelete, found, func(tx *access.Tx, was doorward.Domain) error {
		if err := doorward.CheckVersion(was.Version(), versions); err != nil {
			return err
		}
		tx.Changed(doorward.FieldDomain, was.Name, "")
		if err := leaveConnection(ctx, tx, was); err != nil {
			return err
		}
		return tx.DeleteDomain(ctx, id)
	})
}
