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

// registry is the memory of credentials: the hash of one to its entry. It answers
// checks without I/O, for as long as the lease says that it may, and has the database
// behind it for everything it doesn't hold.
//
// It is no cache with a time to live: what it holds stays true until a change
// says otherwise. Each entry remembers how many changes had been applied before
// it was read from the database, and is good while nothing that was applied
// later concerns the credential or its subjects. That one comparison is both how
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
	mu      sync.RWMutex
	entries map[secret.Hash]*entry
	_       [32]byte // keeps neighbours off the same cache line
}

// entry is one credential in memory: who it is of, when it ends, and what concerns it.
// It knows no kind of credential. What only some have belongs into a structure beside
// the registry, since there are a million sessions: one takes 64 bytes, its text and
// its place in the map.
type entry struct {
	text    string // ids of session and user, and the address, in one allocation
	user    uint16 // where the user's id begins in it
	email   uint16 // and the address
	subject [2]uint16
	grant   unique.Handle[grant]
	since   int64        // beginning of the absolute limit, Unix microseconds
	seen    atomic.Int64 // last use, Unix microseconds
	flushed atomic.Int64 // last use that is written, or about to be: see dirty
	mark    uint64       // changes applied before it was read
}

// grant is what many principals have in common: all of one role in one tenant.
type grant struct {
	kind         doorward.PrincipalKind
	tenantID     string
	tenantStatus doorward.TenantStatus
	role, rank   doorward.Role
	permissions  *doorward.Permissions
	absolute     int64 // life from since, microseconds
	idle         int64 // how long it may go unused, microseconds
}

// lapsed notes for each subject how many changes had been applied when one
// concerned it, in as many places as a uint16 has values. Subjects that share a
// place end each other's entries, which are then read again.
type lapsed struct {
	all atomic.Uint64 // when everything was forgotten
	at  [1 << 16]atomic.Uint64
}

func newRegistry(maxEntries int) *registry {
	r := &registry{max: max(1, maxEntries/shards)}
	for i := range r.shards {
		r.shards[i].entries = map[secret.Hash]*entry{}
	}
	return r
}

var placeSeed = maphash.MakeSeed()

// place is where lapsed notes a user or tenant. Ids carry their kind.
func place(id string) uint16 { return uint16(maphash.String(placeSeed, id)) }

// placeOf is where it notes a credential. Its hash is random already.
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
		r.lapsed.at[e.subject[0]].Load() <= e.mark &&
		r.lapsed.at[e.subject[1]].Load() <= e.mark
}

// remembered returns the entry good or not: what is known of the last use
// stays true.
func (r *registry) remembered(h secret.Hash) *entry {
	s := r.shard(h)
	s.mu.RLock()
	e := s.entries[h]
	s.mu.RUnlock()
	return e
}

// mark is taken before a credential is read from the database, for put.
func (r *registry) mark() uint64 { return r.applied.Load() }

// put keeps an entry, made of what was read after its mark was taken.
func (r *registry) put(h secret.Hash, e *entry) {
	s := r.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.entries[h]; old != nil {
		e.seen.Store(max(e.seen.Load(), old.seen.Load()))
		e.flushed.Store(max(e.flushed.Load(), old.flushed.Load()))
	} else if len(s.entries) >= r.max {
		s.evictOne()
	}
	s.entries[h] = e
}

// entryOf is the entry of a session, under the limits of the installation.
func entryOf(c store.Credential, l doorward.SessionLimits, mark uint64) *entry {
	return newEntry(doorward.PrincipalOf(c.User, c.Session), c.Session.Tenant.Tighten(l), c.Session.LastSeenAt, mark)
}

// newEntry keeps a principal, whose subjects are its user and its tenant.
func newEntry(p doorward.Principal, life doorward.SessionLimits, seen time.Time, mark uint64) *entry {
	e := &entry{
		text: p.SessionID + p.ID + p.Email, user: uint16(len(p.SessionID)), email: uint16(len(p.SessionID) + len(p.ID)),
		subject: [2]uint16{place(p.ID), place(p.TenantID)}, since: p.AuthAt.UnixMicro(), mark: mark,
		grant: unique.Make(grant{
			kind: p.Kind, tenantID: p.TenantID, tenantStatus: p.TenantStatus, role: p.Role, rank: p.Rank, permissions: p.Permissions,
			absolute: life.Absolute.Microseconds(), idle: life.Idle.Microseconds(),
		}),
	}
	e.seen.Store(seen.UnixMicro())
	e.flushed.Store(seen.UnixMicro())
	return e
}

// principal is the one that newEntry was given. It doesn't allocate.
func (e *entry) principal(g *grant) doorward.Principal {
	return doorward.Principal{
		Kind: g.kind, ID: e.text[e.user:e.email], Email: e.text[e.email:], TenantID: g.tenantID, TenantStatus: g.tenantStatus,
		Role: g.role, Rank: g.rank, Permissions: g.permissions, SessionID: e.text[:e.user], AuthAt: micros(e.since),
	}
}

// inTime judges the two limits, exact to the microsecond.
func (e *entry) inTime(g *grant, now int64) bool {
	return now < e.since+g.absolute && now < e.seen.Load()+g.idle
}

// evictOne makes room by forgetting some entry whose last use is written
// down; the next check of it asks the database. The order of a Go map is random
// enough.
func (s *shard) evictOne() {
	for h, e := range s.entries {
		if e.seen.Load() <= e.flushed.Load() {
			delete(s.entries, h)
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
	delete(s.entries, h)
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
		n += len(s.entries)
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
		for h, e := range s.entries {
			if fn(h, e) {
				delete(s.entries, h)
			}
		}
		s.mu.Unlock()
	}
}

// micros is an instant of an entry.
func micros(us int64) time.Time { return doorward.Instant(time.UnixMicro(us)) }
