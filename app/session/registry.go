package session

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// registry is the memory of sessions: token hash to session. It answers checks
// without I/O, for as long as the lease says that it may, and has the database
// behind it for everything it doesn't hold.
//
// It is no cache with a time to live: what it holds stays true until a change
// says otherwise. Each entry remembers how many changes had been applied before
// it was read from the database, and is good while nothing that was applied
// later concerns its session, user or tenant. That one comparison is both how
// an end is noticed and rule 5 of the lease: a value that was on its way from
// the database while its revocation arrived is never good.
type registry struct {
	shards  [shards]shard
	applied atomic.Uint64 // changes applied so far
	lapsed  lapsed
	max     int // entries per shard
}

// shards is a power of two, many enough that two cores seldom meet in one.
const shards = 256

type shard struct {
	mu       sync.RWMutex
	sessions map[secret.Hash]*entry
	_        [32]byte // keeps neighbours off the same cache line
}

// entry is one session in memory: some 150 bytes, the text that it shares with
// no other session, and its place in the map.
type entry struct {
	identity Identity
	end      int64        // by the absolute limit, Unix microseconds
	idle     int64        // how long it may go unused, microseconds
	seen     atomic.Int64 // last use, Unix microseconds
	flushed  atomic.Int64 // last use that is written, or about to be: see dirty
	mark     uint64       // changes applied before it was read
	user     uint16       // where lapsed notes its user
	tenant   uint16       // and its tenant
}

// lapsed notes for each subject how many changes had been applied when one
// concerned it, in as many places as a uint16 has values. Subjects that share a
// place end each other's entries, which are then read anew.
type lapsed struct {
	all atomic.Uint64 // when everything was forgotten
	at  [1 << 16]atomic.Uint64
}

func newRegistry(maxEntries int) *registry {
	r := &registry{max: max(1, maxEntries/shards)}
	for i := range r.shards {
		r.shards[i].sessions = map[secret.Hash]*entry{}
	}
	return r
}

var placeSeed = maphash.MakeSeed()

// place is where lapsed notes a user or tenant. Ids carry their kind.
func place(id string) uint16 { return uint16(maphash.String(placeSeed, id)) }

// placeOf is where it notes a session. Its hash is random already.
func placeOf(h secret.Hash) uint16 { return binary.LittleEndian.Uint16(h[8:]) }

func (r *registry) shard(h secret.Hash) *shard {
	return &r.shards[binary.LittleEndian.Uint64(h[:])%shards]
}

// get returns the entry of a token hash if it is there and still good.
func (r *registry) get(h secret.Hash) *entry {
	e := r.remembered(h)
	if e == nil || !r.good(h, e) {
		return nil
	}
	return e
}

func (r *registry) good(h secret.Hash, e *entry) bool {
	return r.lapsed.all.Load() <= e.mark &&
		r.lapsed.at[placeOf(h)].Load() <= e.mark &&
		r.lapsed.at[e.user].Load() <= e.mark &&
		r.lapsed.at[e.tenant].Load() <= e.mark
}

// remembered returns the entry good or not: what is known of the session's last
// use stays true.
func (r *registry) remembered(h secret.Hash) *entry {
	s := r.shard(h)
	s.mu.RLock()
	e := s.sessions[h]
	s.mu.RUnlock()
	return e
}

// mark is taken before a session is read from the database, for put.
func (r *registry) mark() uint64 { return r.applied.Load() }

// put keeps an entry, made of what was read after its mark was taken.
func (r *registry) put(h secret.Hash, e *entry) {
	s := r.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.sessions[h]; old != nil {
		e.seen.Store(max(e.seen.Load(), old.seen.Load()))
		e.flushed.Store(max(e.flushed.Load(), old.flushed.Load()))
	} else if len(s.sessions) >= r.max {
		s.evictOne()
	}
	s.sessions[h] = e
}

func newEntry(c store.Credential, l doorward.SessionLimits, mark uint64) *entry {
	e := &entry{
		identity: identityOf(c), mark: mark, user: place(c.User.ID), tenant: place(c.User.TenantID),
		end: c.Session.ExpiresAt(l).UnixMicro(), idle: c.Session.Tenant.Tighten(l).Idle.Microseconds(),
	}
	e.seen.Store(c.Session.LastSeenAt.UnixMicro())
	e.flushed.Store(c.Session.LastSeenAt.UnixMicro())
	return e
}

// identityOf shares what many sessions have in common.
func identityOf(c store.Credential) Identity {
	return Identity{
		SessionID: c.Session.ID, UserID: c.User.ID, Email: c.User.Email,
		TenantID: unique.Make(c.User.TenantID).Value(), Role: unique.Make(c.User.Role).Value(),
		Closing: c.User.TenantStatus == doorward.TenantClosing,
	}
}

// inTime judges the two limits, exact to the microsecond.
func (e *entry) inTime(now int64) bool { return now < e.end && now < e.seen.Load()+e.idle }

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

// forget applies a change. An entry that was read before is not good from here
// on, wherever it is; a mark that is taken from here on belongs to a reading
// that sees the change, since it is committed.
func (r *registry) forget(c store.Change) {
	n := r.applied.Add(1)
	switch c.Kind {
	case store.ChangeUser, store.ChangeTenant:
		raise(&r.lapsed.at[place(c.Subject)], n)
	case store.ChangeSession:
		if h, ok := parseSubject(c.Subject); ok {
			raise(&r.lapsed.at[placeOf(h)], n)
			r.drop(h)
		}
	case store.ChangeFlush: // ends nothing
	default: // ChangeAll, or what a newer version has to say
		raise(&r.lapsed.all, n)
	}
}

// raise stores n unless a later number is there.
func raise(at *atomic.Uint64, n uint64) {
	for old := at.Load(); old < n; old = at.Load() {
		if at.CompareAndSwap(old, n) {
			return
		}
	}
}

func (r *registry) drop(h secret.Hash) {
	s := r.shard(h)
	s.mu.Lock()
	delete(s.sessions, h)
	s.mu.Unlock()
}

// reset makes nothing good that was read before.
func (r *registry) reset() { raise(&r.lapsed.all, r.applied.Add(1)) }

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

// micros is an instant of an entry.
func micros(us int64) time.Time { return doorward.Instant(time.UnixMicro(us)) }
