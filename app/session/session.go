// Package session opens, checks and ends sessions.
//
// A session is a row; its token is known to the client alone. Ending a session
// deletes the row, so nothing that is still on its way can bring it back.
// Limits are computed at each check, never by a job.
//
// Checks are answered from memory (registry.go) for as long as store.Watch says
// that nothing can have been revoked unheard, and by the database otherwise.
// The last use of a session is noted in memory and written down at most once a
// minute (flush.go).
package session

import (
	"context"
	"errors"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Sessions is the feature. Make it with New.
type Sessions struct {
	door     *access.Door
	db       *store.DB
	watch    *store.Watch
	limits   doorward.SessionLimits
	registry *registry
	asking   questions
	dirty    dirty
	busy     busy
}

// New returns the feature. At most inMemory sessions are kept in memory; the
// database is behind them. The memory follows the watch.
func New(door *access.Door, db *store.DB, watch *store.Watch, limits doorward.SessionLimits, inMemory int) *Sessions {
	s := &Sessions{door: door, db: db, watch: watch, limits: limits, registry: newRegistry(inMemory)}
	watch.Follow(s.apply, s.registry.reset)
	return s
}

// Limits are the configured limits.
func (s *Sessions) Limits() doorward.SessionLimits { return s.limits }

// InMemory counts the sessions in memory.
func (s *Sessions) InMemory() int { return s.registry.len() }

// Opened is a new session; Token is the only copy of its secret.
type Opened struct {
	Token   secret.Token
	Session doorward.Session
	User    doorward.User
}

// apply is told what has changed, here or on another node. The error is that a
// question could not be answered; everything else is done all the same.
func (s *Sessions) apply(ctx context.Context, changes []store.Change) error {
	var errs []error
	for _, c := range changes {
		if c.Kind == store.ChangeFlush {
			errs = append(errs, s.flushAsked(ctx, c.Subject))
			continue
		}
		s.registry.forget(c)
	}
	return errors.Join(errs...)
}

// End ends the sessions of all tokens, each in a transaction of its own, so
// that after an error some may have ended. Logging out twice is no mistake, but
// whoever does must not be answered before the first time has come to every
// node.
func (s *Sessions) End(ctx context.Context, by doorward.Caller, tokens []secret.Token) error {
	for _, token := range tokens {
		err := s.end(ctx, by, token)
		if errors.Is(err, errEnded) {
			err = s.door.Gone(ctx, by, func(tx *store.Tx) (bool, error) { return unknown(ctx, tx, token) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unknown reports whether the database has no session of the token.
func unknown(ctx context.Context, tx *store.Tx, token secret.Token) (bool, error) {
	hash := token.Hash()
	_, err := tx.SessionByToken(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return true, nil
	}
	return false, err
}

// end is errEnded when there is no such session any more.
func (s *Sessions) end(ctx context.Context, by doorward.Caller, token secret.Token) error {
	hash := token.Hash()
	cred, err := s.db.Read().SessionByToken(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return errEnded
	}
	if err != nil {
		return err
	}
	return s.door.Do(ctx, by.As(cred.User), doorward.SessionEnd, object(cred.Session), func(tx *access.Tx) error {
		ended, err := tx.DeleteSession(ctx, cred.Session.ID)
		if err == nil && !ended {
			err = errEnded
		}
		return err
	})
}

// errEnded keeps a second end out of the audit trail.
var errEnded = errors.New("session: ended already")

func object(s doorward.Session) doorward.Object {
	return doorward.Object{Type: "session", ID: s.ID, TenantID: s.TenantID}
}
