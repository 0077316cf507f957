// Package session opens, checks and ends sessions.
//
// A session is a row; its token is known to the client alone. Ending a session
// deletes the row, so nothing that is still on its way can bring it back.
// Limits are computed from the row at each check, never by a job.
package session

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Sessions is the feature. Make it with New.
type Sessions struct {
	door   *access.Door
	db     *store.DB
	limits doorward.SessionLimits
}

// New returns the feature.
func New(door *access.Door, db *store.DB, limits doorward.SessionLimits) *Sessions {
	return &Sessions{door, db, limits}
}

// Limits are the configured limits.
func (s *Sessions) Limits() doorward.SessionLimits { return s.limits }

// Opened is a new session; Token is the only copy of its secret.
type Opened struct {
	Token   secret.Token
	Session doorward.Session
	User    doorward.User
}

// touchEvery is how exactly the last use is noted. Idle limits are promised to
// the second.
const touchEvery = time.Second

// Check returns the caller behind a token, made of by, and notes the use. A
// session that is over, for whatever reason, is unauthenticated.
func (s *Sessions) Check(ctx context.Context, by doorward.Caller, token secret.Token) (doorward.Caller, error) {
	hash := token.Hash()
	cred, err := s.db.Read().SessionByToken(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err != nil {
		return by, err
	}
	now := s.db.Now()
	if !s.alive(cred, now) {
		return by, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err := s.touch(ctx, &cred.Session, now); err != nil {
		return by, err
	}
	by = by.As(cred.User)
	by.Session = cred.Session
	return by, nil
}

func (s *Sessions) alive(c store.Credential, now time.Time) bool {
	return c.User.Status == doorward.UserActive &&
		c.User.TenantStatus == doorward.TenantActive &&
		now.Before(c.Session.IdleExpiresAt(s.limits))
}

func (s *Sessions) touch(ctx context.Context, session *doorward.Session, now time.Time) error {
	if now.Sub(session.LastSeenAt) < touchEvery {
		return nil
	}
	session.LastSeenAt = now
	return s.door.Upkeep(ctx, func(tx *store.Tx) error { return tx.TouchSession(ctx, session.ID, now) })
}

// End ends the sessions of all tokens, each in a transaction of its own, so
// that after an error some may have ended. A token without a session is passed
// over: logging out twice is no mistake.
func (s *Sessions) End(ctx context.Context, by doorward.Caller, tokens []secret.Token) error {
	for _, token := range tokens {
		if err := s.end(ctx, by, token); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sessions) end(ctx context.Context, by doorward.Caller, token secret.Token) error {
	hash := token.Hash()
	cred, err := s.db.Read().SessionByToken(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.door.Do(ctx, by.As(cred.User), doorward.SessionEnd, object(cred.Session), func(tx *access.Tx) error {
		ended, err := tx.DeleteSession(ctx, cred.Session.ID)
		if err == nil && !ended {
			err = errEnded
		}
		return err
	})
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// errEnded keeps a second end out of the audit trail.
var errEnded = errors.New("session: ended already")

func object(s doorward.Session) doorward.Object {
	return doorward.Object{Type: "session", ID: s.ID, TenantID: s.TenantID}
}

// Sweep deletes the rows of sessions that are over. Nothing depends on it but
// the size of the table.
func (s *Sessions) Sweep(ctx context.Context) error {
	return s.door.Upkeep(ctx, func(tx *store.Tx) error {
		_, err := tx.DeleteOverdueSessions(ctx, tx.Now.Add(-s.limits.Absolute), tx.Now.Add(-s.limits.Idle))
		return err
	})
}
