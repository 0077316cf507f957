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
	"github.com/doorward/doorward/internal/progress"
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
	tenantBatch = 500
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
	act   doorward.Action
	by    doorward.Caller
	which Sessions
	after string // the tenants up to this one are done
	ended int64
}

// SignOut ends the sessions, also those that transactions under way are opening. The installation's trail has
// an event for each transaction, and the trail of each tenant one with the number of its sessions. It returns the
// number of ended sessions, with an error of those so far. Errors: not_found, for an unknown tenant.
func (i *Incidents) SignOut(ctx context.Context, by doorward.Caller, which Sessions) (int64, error) {
	return i.endSessions(ctx, by, doorward.IncidentSignOut, which)
}

// endSessions is SignOut as a part of an action.
func (i *Incidents) endSessions(ctx context.Context, by doorward.Caller, act doorward.Action, which Sessions) (int64, error) {
	s := &signOut{Incidents: i, act: act, by: by, which: which}
	if which.TenantID != "" {
		if err := i.checkTenant(ctx, which.TenantID); err != nil {
			return 0, err
		}
		progress.Step(ctx, endingSessions, 0, nil)
		err := s.endIn(ctx, which.TenantID)
		return s.ended, err
	}
	return s.everywhere(ctx)
}

const endingSessions = "ending sessions"

// everywhere ends the sessions of all tenants.
func (s *signOut) everywhere(ctx context.Context) (int64, error) {
	all, err := s.db.Read().CountTenants(ctx)
	progress.Step(ctx, endingSessions, int64(all), nil)
	for err == nil {
		var tenants []string
		if tenants, err = s.db.Read().TenantsAfter(ctx, s.after, tenantBatch); err != nil || len(tenants) == 0 {
			break
		}
		err = s.endIn(ctx, tenants...)
		s.after = tenants[len(tenants)-1]
	}
	return s.ended, err
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
		_, err := s.writer.Do(ctx, s.by, s.act, on, func(tx *access.Tx) (err error) {
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
		progress.Add(ctx, int64(done))
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
			err = tx.RecordAlso(ctx, s.act, tenantObject(id), s.changes(n)...)
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
