// Package incident is for the day on which something was stolen: it ends the sessions, or the passwords,
// of a person, of a tenant, or of everybody.
//
// It works while servers run. Each call is many transactions, each of which is short, so that others wait for
// none of them long. When a call returns, no node accepts what it has ended. A call that was interrupted
// is run again: what it has done stays done.
package incident

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Incidents is the feature. Make it with New.
type Incidents struct {
	writer   *access.Writer
	db       *store.DB
	lifetime store.SessionLifetime
}

// New returns the feature. lifetime determines which sessions have expired; these are left out of counts.
func New(writer *access.Writer, db *store.DB, lifetime store.SessionLifetime) *Incidents {
	return &Incidents{writer, db, lifetime}
}

const (
	// tenantBatch is how many tenants one transaction locks.
	tenantBatch = 50
	// sessionBatch is how many sessions one transaction deletes.
	sessionBatch = 2000
)

// Sessions says which sessions SignOut ends; the zero value: all.
type Sessions struct {
	TenantID string    // empty: of all tenants
	Since    time.Time // opened then or later; zero: whenever they were opened
}

// signOut is a call of SignOut.
type signOut struct {
	*Incidents
	by       doorward.Caller
	which    Sessions
	after    string // the tenants up to this one are done
	ended    int64
	progress func(ended int64)
}

// SignOut ends the sessions, also those that transactions under way are opening. The installation's trail has
// an event for each transaction, and the trail of each tenant one with the number of its sessions. It calls
// progress after each transaction with the number of ended sessions so far, and returns it. Errors:
// not_found, for an unknown tenant.
func (i *Incidents) SignOut(ctx context.Context, by doorward.Caller, which Sessions, progress func(ended int64)) (int64, error) {
	s := &signOut{Incidents: i, by: by, which: which, progress: progress}
	if which.TenantID != "" {
		if err := i.checkTenant(ctx, which.TenantID); err != nil {
			return 0, err
		}
		return s.ended, s.endIn(ctx, which.TenantID)
	}
	for {
		tenants, err := i.db.Read().TenantsAfter(ctx, s.after, tenantBatch)
		if err != nil || len(tenants) == 0 {
			return s.ended, err
		}
		if err := s.endIn(ctx, tenants...); err != nil {
			return s.ended, err
		}
		s.after = tenants[len(tenants)-1]
	}
}

// checkTenant returns not_found unless there is such a tenant.
func (i *Incidents) checkTenant(ctx context.Context, id string) error {
	_, err := i.db.Read().Tenant(ctx, id)
	if errors.Is(err, store.ErrNone) {
		err = doorward.Fail(doorward.CodeNotFound, "No tenant has the id %s. \"doorward tenant list\" shows all.", id)
	}
	return err
}

// endIn ends the sessions in the tenants, in as many transactions as that takes.
func (s *signOut) endIn(ctx context.Context, tenants ...string) error {
	on := doorward.Object{Type: "installation"}
	if s.which.TenantID != "" {
		on = doorward.Object{Type: "tenant", ID: s.which.TenantID}
	}
	for len(tenants) > 0 {
		var live int64
		var done int
		_, err := s.writer.Do(ctx, s.by, doorward.IncidentSignOut, on, func(tx *access.Tx) (err error) {
			live, done, err = s.endBatch(ctx, tx, tenants)
			if err == nil {
				s.record(tx, live)
			}
			return err
		})
		if err != nil {
			return err
		}
		tenants = tenants[done:]
		s.ended += live
		s.progress(s.ended)
	}
	return nil
}

// endBatch ends up to sessionBatch sessions since a time, or all, and returns how many had not expired and of how
// many tenants, from the first on, none is left.
func (s *signOut) endBatch(ctx context.Context, tx *access.Tx, tenants []string) (live int64, done int, err error) {
	left := sessionBatch
	for _, id := range tenants {
		deleted, n, err := s.endTenant(ctx, tx, id, left)
		if err == nil && n > 0 {
			err = tx.RecordAlso(ctx, doorward.IncidentSignOut, tenantObject(id), s.changes(n)...)
		}
		if err != nil {
			return 0, 0, err
		}
		live += n
		if left -= int(deleted); left == 0 {
			break
		}
		done++
	}
	return live, done, nil
}

// endTenant ends the sessions in a tenant: all by one row, or up to limit of those since the time. It returns
// how many rows it has deleted, and how many sessions had not expired.
func (s *signOut) endTenant(ctx context.Context, tx *access.Tx, id string, limit int) (deleted, live int64, err error) {
	if !s.which.Since.IsZero() {
		return tx.DeleteSessionsSince(ctx, s.lifetime, id, s.which.Since, limit)
	}
	if live, err = tx.CountTenantSessions(ctx, s.lifetime, id, tx.Now); err != nil {
		return 0, 0, err
	}
	return 0, live, tx.EndTenantSessions(ctx, id, "")
}

// record adds to the event of the installation what a transaction has done.
func (s *signOut) record(tx *access.Tx, live int64) {
	for _, c := range s.changes(live) {
		tx.Changed(c.Field, c.From, c.To)
	}
}

// changes returns the fields of an event: how many sessions were ended, and since when.
func (s *signOut) changes(live int64) []doorward.Change {
	changes := []doorward.Change{{Field: "sessionsEnded", To: strconv.FormatInt(live, 10)}}
	if !s.which.Since.IsZero() {
		changes = append(changes, doorward.Change{Field: "openedSince", To: s.which.Since.UTC().Format(time.RFC3339)})
	}
	return changes
}

func tenantObject(id string) doorward.Object {
	return doorward.Object{Type: "tenant", ID: id, TenantID: id}
}
