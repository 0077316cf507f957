package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Check returns who is behind a token and notes the use. It does no I/O for a
// session in memory while the lease holds, and asks the database otherwise. A
// session that is over, for whatever reason, is unauthenticated; that it can't
// be told is unavailable.
func (s *Sessions) Check(ctx context.Context, token secret.Token) (doorward.Principal, error) {
	hash := token.Hash()
	if id, ok := s.remembered(hash); ok {
		return id, nil
	}
	return s.load(ctx, hash)
}

// Remembered is Check as far as memory goes: false says nothing but that Check
// is to be asked. It doesn't allocate.
func (s *Sessions) Remembered(token secret.Token) (doorward.Principal, bool) {
	return s.remembered(token.Hash())
}

// remembered asks whether memory is fresh before it looks there. The other way
// round a node that wakes from a pause could find an ended session, hear of its
// end, renew the lease, and let it pass.
func (s *Sessions) remembered(hash secret.Hash) (doorward.Principal, bool) {
	if !s.lease.Valid() || s.db.Clock().Wrong() {
		return doorward.Principal{}, false
	}
	e := s.registry.get(hash)
	now := s.db.Now().UnixMicro()
	if e == nil {
		return doorward.Principal{}, false
	}
	g := e.grant.Value()
	if !e.inTime(&g, now) {
		return doorward.Principal{}, false
	}
	s.touch(hash, e, now)
	s.busy.note(now)
	return e.principal(&g), true
}

// busy remembers that checks are being asked for.
type busy struct{ last atomic.Int64 }

const (
	// busyGrain keeps cores from writing to the same memory at every check.
	busyGrain = time.Millisecond
	// busyFor is how long after a check another one is expected.
	busyFor = 20 * time.Millisecond
)

func (b *busy) note(now int64) {
	if now-b.last.Load() > busyGrain.Microseconds() {
		b.last.Store(now)
	}
}

// Busy reports whether checks are running, so that work which can wait leaves
// them a core.
func (s *Sessions) Busy() bool {
	return s.db.Now().UnixMicro()-s.busy.last.Load() < busyFor.Microseconds()
}

// inTime judges the two limits.
func (s *Sessions) inTime(session doorward.Session, now time.Time) bool {
	return now.Before(session.ExpiresAt(s.limits)) && now.Before(session.IdleExpiresAt(s.limits))
}

// load asks the database and keeps what it says.
func (s *Sessions) load(ctx context.Context, hash secret.Hash) (doorward.Principal, error) {
	cred, err := s.read(ctx, hash)
	if err == nil && s.looksIdle(cred.Session) {
		cred, err = s.judgeIdle(ctx, hash, s.idle(cred.Session))
	}
	if err != nil {
		return doorward.Principal{}, err
	}
	if !usable(cred) || !s.inTime(cred.Session, s.db.Now()) {
		return doorward.Principal{}, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	now := s.db.Now().UnixMicro()
	if e := s.registry.get(hash); e != nil {
		s.touch(hash, e, now)
	} else { // not kept, or gone again: the use counts all the same
		s.dirty.add(hash, now)
	}
	return doorward.PrincipalOf(cred.User, cred.Session), nil
}

// read loads the session by rule 5 of the lease, the last use being the later
// of what the database and this node's memory know.
func (s *Sessions) read(ctx context.Context, hash secret.Hash) (store.Credential, error) {
	var cred store.Credential
	if err := s.db.Clock().Err(); err != nil {
		return cred, err // what is over can't be told, and a valid session is never told 401
	}
	mark := s.registry.mark()
	err := s.asking.ask(func() (err error) {
		cred, err = s.db.Read().SessionByToken(ctx, hash[:])
		return err
	})
	if errors.Is(err, store.ErrNone) {
		return cred, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err != nil {
		return cred, err
	}
	if seen := micros(s.lastUse(hash)); seen.After(cred.Session.LastSeenAt) {
		cred.Session.LastSeenAt = seen
	}
	if usable(cred) {
		s.registry.put(hash, entryOf(cred, s.limits, mark))
	}
	return cred, nil
}

func usable(c store.Credential) bool { return Usable(c.User) == nil }

// looksIdle reports whether the session has idled out as far as is known here.
func (s *Sessions) looksIdle(session doorward.Session) bool {
	now := s.db.Now()
	return !now.Before(session.LastSeenAt.Add(s.idle(session))) && now.Before(session.ExpiresAt(s.limits))
}

// idle is how long the session may go unused.
func (s *Sessions) idle(session doorward.Session) time.Duration {
	return session.Tenant.Tighten(s.limits).Idle
}

// judgeIdle has every node write down when it saw the session used, ends it if
// nobody did in time, so that the question is settled once, and returns what is
// there then. So a session in use on one node is never told on another that it
// is over. While a node is silent, it is unavailable whether the session is.
func (s *Sessions) judgeIdle(ctx context.Context, hash secret.Hash, idle time.Duration) (store.Credential, error) {
	ask := func(tx *store.Tx) error { tx.AskFlush(hash[:]); return nil }
	if err := s.door.Upkeep(ctx, ask); err != nil {
		return store.Credential{}, err
	}
	end := func(tx *store.Tx) error { return tx.DeleteIdleSession(ctx, hash[:], tx.Now.Add(-idle)) }
	if err := s.door.Upkeep(ctx, end); err != nil {
		return store.Credential{}, err
	}
	return s.read(ctx, hash)
}

// Describe returns the session of a token with everything that is stored of
// it. Errors are those of Check.
func (s *Sessions) Describe(ctx context.Context, token secret.Token) (store.Credential, error) {
	return s.read(ctx, token.Hash())
}
