// Package session opens, checks and ends sessions.
//
// A session is a row; only the client knows its token. Ending a session deletes
// the row, so no delayed write can restore it. Limits are computed at each check,
// never by a job.
//
// Checks are answered from memory (package registry) while the lease guarantees that no
// revocation can have been missed, and from the database otherwise. The last use
// of a session is kept in memory and written at most once a minute (flush.go).
package session

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/registry"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
)

// Sessions is the feature. Make it with New.
type Sessions struct {
	writer   *access.Writer
	db       *store.DB
	lease    *lease.Lease
	limits   doorward.SessionLimits
	registry *registry.Registry
	queries  registry.QueryLimiter
	busy     busy
}

// New returns the feature. At most inMemory sessions are kept in memory. The
// memory follows the changes that the lease delivers.
func New(writer *access.Writer, db *store.DB, l *lease.Lease, limits doorward.SessionLimits, inMemory int) *Sessions {
	s := &Sessions{writer: writer, db: db, lease: l, limits: limits, registry: registry.New(inMemory)}
	l.Follow(s.apply, s.registry.Reset)
	return s
}

// Limits returns the configured limits.
func (s *Sessions) Limits() doorward.SessionLimits { return s.limits }

// InMemory returns the number of sessions in memory.
func (s *Sessions) InMemory() int { return s.registry.Len() }

// Opened is a new session; Token is the only copy of its secret.
type Opened struct {
	Token   secret.Token
	Session doorward.Session
	User    doorward.User
	// Revocation says how the end of the replaced sessions was confirmed.
	Revocation doorward.Revocation

	mark uint64 // of the memory, when the session was drafted
}

// apply applies changes of this and other nodes to the memory. All are applied;
// the error means that a requested flush failed.
func (s *Sessions) apply(ctx context.Context, changes []store.Change) error {
	var errs []error
	for _, c := range changes {
		if c.Kind == store.ChangeFlush {
			errs = append(errs, s.flushRequested(ctx, c.Subject))
			continue
		}
		s.registry.Forget(c)
	}
	return errors.Join(errs...)
}

// End ends the sessions of all tokens in one transaction, all or none. It also succeeds for a
// session that has already ended, once that has reached every node.
//
// Errors: unavailable.
func (s *Sessions) End(ctx context.Context, by doorward.Caller, tokens []secret.Token) (doorward.Revocation, error) {
	if len(tokens) == 0 {
		return doorward.Revocation{}, nil
	}
	hashes := hashesOf(tokens)
	found, err := s.db.Read().SessionsByTokens(ctx, hashes)
	ended := 0
	var revocation doorward.Revocation
	if err == nil && len(found) > 0 {
		revocation, ended, err = s.endFound(ctx, by, found)
	}
	if err != nil || ended == len(tokens) {
		return revocation, err
	}
	return s.writer.ConfirmGone(ctx, func(tx *store.Tx) (bool, error) {
		remaining, err := tx.SessionsByTokens(ctx, hashes)
		return len(remaining) == 0, err
	})
}

func hashesOf(tokens []secret.Token) (hashes [][]byte) {
	for _, token := range tokens {
		hash := token.Hash()
		hashes = append(hashes, hash[:])
	}
	return hashes
}

// endFound ends sessions, each in the name of its user, and returns how many of them had not
// already been ended by another call.
func (s *Sessions) endFound(ctx context.Context, by doorward.Caller, found []store.Credential) (revocation doorward.Revocation, n int, err error) {
	first := found[0]
	revocation, err = s.writer.Do(ctx, by.As(first.User), doorward.SessionEnd, object(first.Session), func(tx *access.Tx) error {
		ended, err := tx.DeleteSessions(ctx, found)
		if err != nil {
			return err
		}
		if n = len(ended); n == 0 {
			return errAllEnded
		}
		if !ended[first.Session.ID] {
			tx.SkipEvent()
		}
		for _, other := range found[1:] {
			if ended[other.Session.ID] {
				err = errors.Join(err, tx.RecordAlsoBy(ctx, by.As(other.User), doorward.SessionEnd, object(other.Session)))
			}
		}
		return err
	})
	if errors.Is(err, errAllEnded) {
		return revocation, 0, nil
	}
	return revocation, n, err
}

// errAllEnded rolls the transaction back if another call has already ended all sessions.
var errAllEnded = errors.New("session: ended already")

func object(s doorward.Session) doorward.Object {
	return doorward.Object{Type: "session", ID: s.ID, TenantID: s.TenantID}
}
