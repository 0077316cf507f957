// Package session opens, checks and ends sessions.
//
// A session is a row; its token is known to the client alone. Ending a session
// deletes the row, so nothing that is still on its way can bring it back.
// Limits are computed at each check, never by a job.
//
// Checks are answered from memory (registry.go) for as long as the lease says
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
	"github.com/doorward/doorward/store/lease"
)

// Sessions is the feature. Make it with New.
type Sessions struct {
	door     *access.Door
	db       *store.DB
	lease    *lease.Lease
	limits   doorward.SessionLimits
	registry *registry
	asking   questions
	dirty    dirty
	busy     busy
}

// New returns the feature. At most inMemory sessions are kept in memory; the
// database is behind them. The memory follows the lease.
func New(door *access.Door, db *store.DB, l *lease.Lease, limits doorward.SessionLimits, inMemory int) *Sessions {
	s := &Sessions{door: door, db: db, lease: l, limits: limits, registry: newRegistry(inMemory)}
	l.Follow(s.apply, s.registry.reset)
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
	// Revocation is how the end of the sessions that it replaced was made to hold.
	Revocation doorward.Revocation
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

// MaxTokens is how many different tokens a caller can end at once. A browser holds
// one, or a few where hosts of one domain share the name of the cookie.
const MaxTokens = store.MaxTokens

// End ends the sessions of all tokens in one transaction: all of them or, with
// an error, none. Logging out twice is no mistake, but whoever does must not be
// answered before the first time has come to every node.
//
// Errors: too_many_cookies beyond MaxTokens, unavailable.
func (s *Sessions) End(ctx context.Context, by doorward.Caller, tokens []secret.Token) (doorward.Revocation, error) {
	if len(tokens) > MaxTokens {
		return doorward.Revocation{}, doorward.Fail(doorward.CodeTooManyCookies, "")
	}
	if len(tokens) == 0 {
		return doorward.Revocation{}, nil
	}
	hashes := hashesOf(tokens)
	found, err := s.db.Read().SessionsByTokens(ctx, hashes)
	ended := 0
	var held doorward.Revocation
	if err == nil && len(found) > 0 {
		held, ended, err = s.endFound(ctx, by, found)
	}
	if err != nil || ended == len(tokens) {
		return held, err
	}
	return s.door.ConfirmGone(ctx, func(tx *store.Tx) (bool, error) {
		left, err := tx.SessionsByTokens(ctx, hashes)
		return len(left) == 0, err
	})
}

func hashesOf(tokens []secret.Token) (hashes [][]byte) {
	for _, token := range tokens {
		hash := token.Hash()
		hashes = append(hashes, hash[:])
	}
	return hashes
}

// endFound ends sessions, each in the name of the person whose it is, and returns
// how many of them nobody else had ended.
func (s *Sessions) endFound(ctx context.Context, by doorward.Caller, found []store.Credential) (held doorward.Revocation, n int, err error) {
	first := found[0]
	held, err = s.door.Do(ctx, by.As(first.User), doorward.SessionEnd, object(first.Session), func(tx *access.Tx) error {
		ended, err := tx.DeleteSessions(ctx, found)
		if err != nil {
			return err
		}
		if n = len(ended); n == 0 {
			return errEnded
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
	if errors.Is(err, errEnded) {
		return held, 0, nil
	}
	return held, n, err
}

// errEnded keeps a second end out of the audit trail.
var errEnded = errors.New("session: ended already")

func object(s doorward.Session) doorward.Object {
	return doorward.Object{Type: "session", ID: s.ID, TenantID: s.TenantID}
}
