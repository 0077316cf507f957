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

// Identity is what a check knows of the caller.
type Identity struct {
	SessionID string
	UserID    string
	TenantID  string
	Email     string
	Role      doorward.Role
}

// Check returns who is behind a token and notes the use. It does no I/O for a
// session in memory while the lease holds, and asks the database otherwise. A
// session that is over, for whatever reason, is unauthenticated; that it can't
// be told is unavailable.
func (s *Sessions) Check(ctx context.Context, token secret.Token) (Identity, error) {
	hash := token.Hash()
	if id, ok := s.remembered(hash); ok {
		return id, nil
	}
	return s.load(ctx, hash)
}

// Remembered is Check as far as memory goes: false says nothing but that Check
// is to be asked. It doesn't allocate.
func (s *Sessions) Remembered(token secret.Token) (Identity, bool) {
	return s.remembered(token.Hash())
}

// remembered asks whether memory is fresh before it looks there. The other way
// round a node that wakes from a pause could find an ended session, hear of its
// end, renew the lease, and let it pass.
func (s *Sessions) remembered(hash secret.Hash) (Identity, bool) {
	if !s.watch.Fresh() {
		return Identity{}, false
	}
	e := s.registry.get(hash)
	now := s.db.Now().UnixMicro()
	if e == nil || !s.inTime(e.created, e.seen.Load(), now) {
		return Identity{}, false
	}
	s.touch(hash, e, now)
	s.busy.note(now)
	return e.identity, true
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

// inTime judges the two limits, exact to the microsecond.
func (s *Sessions) inTime(created, seen, now int64) bool {
	return now < created+s.limits.Absolute.Microseconds() && now < seen+s.limits.Idle.Microseconds()
}

// load asks the database and keeps what it says.
func (s *Sessions) load(ctx context.Context, hash secret.Hash) (Identity, error) {
	over := doorward.Fail(doorward.CodeUnauthenticated, "")
	cred, err := s.read(ctx, hash)
	if err != nil {
		return Identity{}, err
	}
	if !s.usable(cred) {
		return Identity{}, over
	}
	if s.mayBeSeenElsewhere(cred.Session) {
		if cred, err = s.askOthers(ctx, hash); err != nil {
			return Identity{}, err
		}
	}
	now := s.db.Now().UnixMicro()
	if !s.inTime(cred.Session.CreatedAt.UnixMicro(), cred.Session.LastSeenAt.UnixMicro(), now) {
		return Identity{}, errors.Join(s.endIdle(ctx, hash, cred.Session), over)
	}
	if e := s.registry.get(hash); e != nil {
		s.touch(hash, e, now)
	}
	return newEntry(cred, 0).identity, nil
}

// read loads the session by rule 5 of the lease, the last use being the later
// of what the database and this node's memory know.
func (s *Sessions) read(ctx context.Context, hash secret.Hash) (store.Credential, error) {
	mark := s.registry.mark()
	cred, err := s.db.Read().SessionByToken(ctx, hash[:])
	if errors.Is(err, store.ErrNone) {
		return cred, doorward.Fail(doorward.CodeUnauthenticated, "")
	}
	if err != nil {
		return cred, err
	}
	if e := s.registry.remembered(hash); e != nil {
		if seen := micros(e.seen.Load()); seen.After(cred.Session.LastSeenAt) {
			cred.Session.LastSeenAt = seen
		}
	}
	if s.usable(cred) {
		s.registry.put(hash, cred, mark)
	}
	return cred, nil
}

func (s *Sessions) usable(c store.Credential) bool {
	return c.User.Status == doorward.UserActive && c.User.TenantStatus == doorward.TenantActive
}

// mayBeSeenElsewhere reports whether the session looks idle from here, while
// another node may have seen it used and not have written it down yet.
func (s *Sessions) mayBeSeenElsewhere(session doorward.Session) bool {
	idleSince := session.LastSeenAt.Add(s.limits.Idle)
	now := s.db.Now()
	return !now.Before(idleSince) && now.Before(idleSince.Add(flushLag)) && now.Before(session.ExpiresAt(s.limits))
}

// askOthers has every node write down what it knows of the session's use, and
// reads it again. So a session in use on one node is never told on another
// that it has idled out.
func (s *Sessions) askOthers(ctx context.Context, hash secret.Hash) (store.Credential, error) {
	err := s.door.Upkeep(ctx, func(tx *store.Tx) error {
		tx.AskFlush(hash[:])
		return nil
	})
	if err != nil {
		return store.Credential{}, err
	}
	return s.read(ctx, hash)
}

// endIdle ends a session that has idled out for certain, so that the question
// is settled once. A use that was written down meanwhile saves it.
func (s *Sessions) endIdle(ctx context.Context, hash secret.Hash, session doorward.Session) error {
	return s.door.Upkeep(ctx, func(tx *store.Tx) error {
		return tx.DeleteIdleSession(ctx, hash[:], session.LastSeenAt)
	})
}

// Describe returns the session of a token with everything that is stored of
// it. Errors are those of Check.
func (s *Sessions) Describe(ctx context.Context, token secret.Token) (store.Credential, error) {
	return s.read(ctx, token.Hash())
}
