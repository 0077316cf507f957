package session

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// registry is the memory of sessions: token hash to session. It answers checks
// without I/O, for as long as the watch says that it may, and has the database
// behind it for everything it doesn't hold.
//
// It is no cache with a time to live: entries leave when a change says so. A
// session's change removes its entry; a change of a user or tenant marks the
// shared part dead, so that each session on it is loaded anew at its next use,
// however many there are.
type registry struct {
	shards [shards]shard
	users  sync.Map // user id → *holders
	lapses lapses
	max    int // entries per shard
}

// shards is a power of two, many enough that two cores seldom meet in one.
const shards = 256

type shard struct {
	mu       sync.RWMutex
	sessions map[secret.Hash]*entry
	_        [32]byte // keeps neighbours off the same cache line
}

// entry is one session in memory. Beside the id it holds 40 bytes; user,
// tenant, role and address are shared by all sessions of the membership.
type entry struct {
	id      string
	member  *member
	created int64        // Unix microseconds
	seen    atomic.Int64 // last use, Unix microseconds
	flushed atomic.Int64 // last use that the database knows of
}

// member is what a check answers of a user in a tenant. It never changes: it is
// replaced.
type member struct {
	user doorward.User
	dead atomic.Bool
}

// holders are the members of one user, to be found by a change.
type holders struct {
	mu      sync.Mutex
	members []*member
	gone    bool // taken out of the registry: whoever still has it looks again
}

func newRegistry(maxEntries int) *registry {
	r := &registry{max: max(1, maxEntries/shards)}
	for i := range r.shards {
		r.shards[i].sessions = map[secret.Hash]*entry{}
	}
	return r
}

// shard chooses by bits that no caller can choose: a hash of random bits.
func (r *registry) shard(h secret.Hash) *shard {
	return &r.shards[binary.LittleEndian.Uint64(h[:8])%shards]
}

// get returns the entry of a token hash, if it is there and its membership is
// as it was.
func (r *registry) get(h secret.Hash) *entry {
	s := r.shard(h)
	s.mu.RLock()
	e := s.sessions[h]
	s.mu.RUnlock()
	if e == nil || e.member.dead.Load() {
		return nil
	}
	return e
}

// remembered is get without the question whether the membership still holds:
// what is known of the session's last use stays true.
func (r *registry) remembered(h secret.Hash) *entry {
	s := r.shard(h)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sessions[h]
}

// mark is taken before a session is read from the database, for put.
func (r *registry) mark() uint64 { return r.lapses.count.Load() }

// put keeps what was read after the mark was taken, unless something has been
// forgotten since that may concern it: a value loaded while its revocation
// arrives must not outlive it.
func (r *registry) put(h secret.Hash, c store.Credential, mark uint64) {
	e := &entry{id: c.Session.ID, created: c.Session.CreatedAt.UnixMicro()}
	e.seen.Store(c.Session.LastSeenAt.UnixMicro())
	e.flushed.Store(c.Session.LastSeenAt.UnixMicro())
	e.member = r.memberOf(c.User)
	s := r.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.lapses.since(mark, h, c.User) {
		return
	}
	if old := s.sessions[h]; old != nil {
		e.seen.Store(max(e.seen.Load(), old.seen.Load()))
		e.flushed.Store(max(e.flushed.Load(), old.flushed.Load()))
	}
	if len(s.sessions) >= r.max {
		s.evictOne()
	}
	s.sessions[h] = e
}

// evictOne makes room by forgetting some session whose last use is written
// down; the next check of it asks the database. The order of a Go map is random
// enough.
func (s *shard) evictOne() {
	for h, e := range s.sessions {
		if e.seen.Load() <= e.flushed.Load() {
			delete(s.sessions, h)
			return
		}
	}
}

// memberOf returns the shared part of the user's sessions in the tenant.
func (r *registry) memberOf(u doorward.User) *member {
	u.LastLoginAt = nil // differs by session, and no check answers it
	for {
		v, ok := r.users.Load(u.ID)
		if !ok {
			v, _ = r.users.LoadOrStore(u.ID, &holders{})
		}
		if m := v.(*holders).of(u); m != nil {
			return m
		}
	}
}

// of returns the member for u, or nil when the holders are gone.
func (hs *holders) of(u doorward.User) *member {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.gone {
		return nil
	}
	for _, m := range hs.members {
		if m.user == u {
			return m
		}
	}
	m := &member{user: u}
	hs.members = append(hs.members, m)
	return m
}

// prune lets go of members that no session in use is on. They are killed, not
// just dropped: a session that is being put on one right now must not stay
// where no change finds it.
func (r *registry) prune(used map[*member]bool) {
	r.users.Range(func(id, v any) bool {
		hs := v.(*holders)
		hs.drop(func(m *member) bool { return !used[m] })
		hs.mu.Lock()
		defer hs.mu.Unlock()
		if len(hs.members) == 0 {
			hs.gone = true
			r.users.Delete(id)
		}
		return true
	})
}

// forget applies a change. The lapse is noted first: a put that has not seen
// it is found by what follows, one that comes later sees it.
func (r *registry) forget(c store.Change) {
	r.lapses.note(c)
	switch c.Kind {
	case store.ChangeSession:
		r.forgetSession(c.Subject)
	case store.ChangeUser:
		r.forgetUser(c.Subject)
	case store.ChangeTenant:
		r.users.Range(func(_, v any) bool {
			v.(*holders).drop(func(m *member) bool { return m.user.TenantID == c.Subject })
			return true
		})
	case store.ChangeFlush:
	}
}

func (r *registry) forgetSession(subject string) {
	h, ok := parseSubject(subject)
	if !ok {
		return
	}
	s := r.shard(h)
	s.mu.Lock()
	delete(s.sessions, h)
	s.mu.Unlock()
}

func (r *registry) forgetUser(id string) {
	if v, ok := r.users.Load(id); ok {
		v.(*holders).drop(func(*member) bool { return true })
	}
}

// drop kills the members that match.
func (hs *holders) drop(match func(*member) bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	kept := hs.members[:0]
	for _, m := range hs.members {
		if match(m) {
			m.dead.Store(true)
			continue
		}
		kept = append(kept, m)
	}
	clear(hs.members[len(kept):])
	hs.members = kept
}

// reset forgets everything.
func (r *registry) reset() {
	r.lapses.noteAll()
	r.users.Range(func(id, v any) bool {
		v.(*holders).drop(func(*member) bool { return true })
		return true
	})
}

// len counts the entries.
func (r *registry) len() int {
	n := 0
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.RLock()
		n += len(s.sessions)
		s.mu.RUnlock()
	}
	return n
}

// each calls fn for every entry, shard by shard, and deletes those for which it
// says so.
func (r *registry) each(fn func(secret.Hash, *entry) (remove bool)) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for h, e := range s.sessions {
			if fn(h, e) {
				delete(s.sessions, h)
			}
		}
		s.mu.Unlock()
	}
}

// lapses remembers the newest changes that were applied, so that a value read
// before one of them is not kept after it.
type lapses struct {
	count atomic.Uint64
	mu    sync.Mutex
	ring  [lapsesKept]uint64 // hash of what was forgotten; 0 is everything
}

// lapsesKept bounds how many changes may arrive during one read from the
// database before its value isn't kept for that reason alone.
const lapsesKept = 512

var lapseSeed = maphash.MakeSeed()

func lapseKey(kind store.ChangeKind, subject string) uint64 {
	var h maphash.Hash
	h.SetSeed(lapseSeed)
	_, _ = h.WriteString(string(kind))
	_, _ = h.WriteString(subject)
	return h.Sum64() | 1
}

func (l *lapses) note(c store.Change) { l.add(lapseKey(c.Kind, c.Subject)) }

func (l *lapses) noteAll() { l.add(0) }

func (l *lapses) add(key uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring[l.count.Load()%lapsesKept] = key
	l.count.Add(1)
}

// since reports whether anything was forgotten since the mark that concerns
// the session, its user or tenant, or too much to tell.
func (l *lapses) since(mark uint64, h secret.Hash, u doorward.User) bool {
	if l.count.Load() == mark {
		return false
	}
	session := lapseKey(store.ChangeSession, store.SessionSubject(h[:]))
	user, tenant := lapseKey(store.ChangeUser, u.ID), lapseKey(store.ChangeTenant, u.TenantID)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.count.Load()
	if n-mark > lapsesKept {
		return true
	}
	for i := mark; i < n; i++ {
		if k := l.ring[i%lapsesKept]; k == 0 || k == session || k == user || k == tenant {
			return true
		}
	}
	return false
}

// micros is an instant of an entry.
func micros(us int64) time.Time { return time.UnixMicro(us).UTC() }
