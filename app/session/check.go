package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/registry"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Check returns the principal of a token and records the use. It does no I/O for a
// session in memory while the lease is valid, and asks the database otherwise.
// Errors: unauthenticated for a session that has ended or expired, unavailable if
// that can't be determined.
func (s *Sessions) Check(ctx context.Context, token secret.Token) (doorward.Principal, error) {
	hash := token.Hash()
	if p, ok := s.remembered(hash, used); ok {
		return p, nil
	}
	return s.load(ctx, hash)
}

// CheckUnused is Check without recording a use, for a caller that asks by itself, such as a service that
// holds a connection: the session goes on idling. Errors: those of Check.
func (s *Sessions) CheckUnused(ctx context.Context, token secret.Token) (doorward.Principal, error) {
	hash := token.Hash()
	if p, ok := s.remembered(hash, unused); ok {
		return p, nil
	}
	cred, err := s.peek(ctx, hash)
	if err != nil {
		return doorward.Principal{}, err
	}
	return doorward.PrincipalOf(cred.User, cred.Session), nil
}

// Whether a check is a use of the session.
const used, unused = true, false

// CheckText is Check for text that may not be a token.
func (s *Sessions) CheckText(ctx context.Context, text string) (doorward.Principal, error) {
	token, err := secret.Parse(text)
	if err != nil {
		return doorward.Principal{}, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	return s.Check(ctx, token)
}

// Remembered does what Check does, from memory alone and without allocation. If it returns
// false, Check must be called.
func (s *Sessions) Remembered(token secret.Token) (doorward.Principal, bool) {
	return s.remembered(token.Hash(), used)
}

// remembered tests the lease before it reads the entry. In the other order a node
// that wakes from a pause could read an ended session, learn of its end, renew the
// lease, and accept the session.
func (s *Sessions) remembered(hash secret.Hash, isUse bool) (doorward.Principal, bool) {
	if !s.lease.Valid() || s.db.Clock().Wrong() {
		return doorward.Principal{}, false
	}
	e := s.registry.Get(hash)
	now := s.db.Now().UnixMicro()
	if e == nil {
		return doorward.Principal{}, false
	}
	p, _, inTime := e.Check(now)
	if !inTime {
		return doorward.Principal{}, false
	}
	if isUse {
		s.registry.Use(hash, e, now)
	}
	s.busy.note(now)
	return p, true
}

// busy holds the time of the last check from memory.
type busy struct{ last atomic.Int64 }

const (
	// busyGrain limits writes to memory that all cores share.
	busyGrain = time.Millisecond
	// busyFor is how long after a check more checks are expected.
	busyFor = 20 * time.Millisecond
)

func (b *busy) note(now int64) {
	if now-b.last.Load() > busyGrain.Microseconds() {
		b.last.Store(now)
	}
}

// Busy reports whether checks are running from memory, so that deferrable work can leave them
// a core.
func (s *Sessions) Busy() bool {
	return s.db.Now().UnixMicro()-s.busy.last.Load() < busyFor.Microseconds()
}

// inTime reports whether the session is within both limits, and the mode of its tenant isn't off again.
func (s *Sessions) inTime(session doorward.Session, now time.Time) bool {
	return !session.IsSignOnOver(now) && now.Before(session.ExpiresAt(s.limits)) && now.Before(session.IdleExpiresAt(s.limits))
}

// Peek returns the session of a token as Check would find it, without recording a use. Like
// Check, it deletes a session that has idled out. Errors are those of Check.
func (s *Sessions) Peek(ctx context.Context, token secret.Token) (store.Credential, error) {
	return s.peek(ctx, token.Hash())
}

func (s *Sessions) peek(ctx context.Context, hash secret.Hash) (store.Credential, error) {
	cred, err := s.read(ctx, hash)
	if err == nil && s.looksIdle(cred.Session) {
		cred, err = s.resolveIdle(ctx, hash, s.idle(cred.Session))
	}
	if err == nil && (!isUsable(cred) || !s.inTime(cred.Session, s.db.Now())) {
		err = doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	return cred, err
}

// load reads the session from the database, puts it in memory and records the use. Errors:
// unauthenticated, unavailable.
func (s *Sessions) load(ctx context.Context, hash secret.Hash) (doorward.Principal, error) {
	cred, err := s.peek(ctx, hash)
	if err != nil {
		return doorward.Principal{}, err
	}
	now := s.db.Now().UnixMicro()
	if e := s.registry.Get(hash); e != nil {
		s.registry.Use(hash, e, now)
	} else { // the entry has since been evicted or invalidated; the use counts all the same
		s.registry.UseUnknown(hash, now)
	}
	return doorward.PrincipalOf(cred.User, cred.Session), nil
}

// read loads the session, and puts it in memory, as rule 5 of docs/lease.md demands. If this node
// knows a later use than the database, LastSeenAt is that one. It doesn't check the limits.
func (s *Sessions) read(ctx context.Context, hash secret.Hash) (store.Credential, error) {
	var cred store.Credential
	if err := s.db.Clock().Err(); err != nil {
		return cred, err // expiry can't be determined, and a valid session must never get a 401
	}
	mark := s.registry.Mark()
	err := s.queries.Do(func() (err error) {
		cred, err = s.db.Read().SessionByToken(ctx, hash[:])
		return err
	})
	if errors.Is(err, store.ErrNone) {
		return cred, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err != nil {
		return cred, err
	}
	if seen := micros(s.registry.LastUse(hash)); seen.After(cred.Session.LastSeenAt) {
		cred.Session.LastSeenAt = seen
	}
	if isUsable(cred) {
		s.registry.Put(hash, entryOf(cred, s.limits, mark))
	}
	return cred, nil
}

// entryOf makes the entry of a session, under the limits of the installation.
func entryOf(c store.Credential, l doorward.SessionLimits, mark uint64) *registry.Entry {
	limits := c.Session.Tenant.Tighten(l)
	// The days of grace without a second factor may be over before the absolute limit.
	limits.Absolute = c.Session.ExpiresAt(l).Sub(c.Session.CreatedAt)
	if until := c.Session.SignOnUntil; !until.IsZero() {
		limits.Absolute = min(limits.Absolute, until.Sub(c.Session.CreatedAt))
	}
	return registry.NewEntry(doorward.PrincipalOf(c.User, c.Session), c.Session.CreatedAt, limits, c.Session.LastSeenAt, mark)
}

func isUsable(c store.Credential) bool { return CheckUsable(c.User) == nil }

// looksIdle reports whether the session has idled out, as far as this node knows, before its
// absolute limit.
func (s *Sessions) looksIdle(session doorward.Session) bool {
	now := s.db.Now()
	return !now.Before(session.LastSeenAt.Add(s.idle(session))) && now.Before(session.ExpiresAt(s.limits))
}

// idle returns how long the session may be unused.
func (s *Sessions) idle(session doorward.Session) time.Duration {
	return session.Tenant.Tighten(s.limits).Idle
}

// resolveIdle makes every node write its last use of the session, then ends the
// session if no node has seen it in time, and reads it again. So a session in use
// on one node never gets a 401 on another. While a node doesn't answer, the error
// is unavailable.
func (s *Sessions) resolveIdle(ctx context.Context, hash secret.Hash, idle time.Duration) (store.Credential, error) {
	ask := func(tx *store.Tx) error { tx.RequestFlush(hash[:]); return nil }
	if err := s.writer.Upkeep(ctx, ask); err != nil {
		return store.Credential{}, err
	}
	end := func(tx *store.Tx) error { return tx.DeleteIdleSession(ctx, hash[:], tx.Now.Add(-idle)) }
	if err := s.writer.Upkeep(ctx, end); err != nil {
		return store.Credential{}, err
	}
	return s.read(ctx, hash)
}

// Describe returns the session of a token that Check has just accepted, with all its columns:
// it doesn't check limits or membership. Errors: unauthenticated if the session has ended,
// unavailable.
func (s *Sessions) Describe(ctx context.Context, token secret.Token) (store.Credential, error) {
	return s.read(ctx, token.Hash())
}
