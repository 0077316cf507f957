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

// registry maps the hash of a credential to its entry. It answers checks without
// I/O while the lease is valid; the database has everything it doesn't hold.
//
// Entries have no time to live: an entry stays valid until a change concerns it.
// Each has a mark, the number of changes applied before it was read from the
// database, and is valid while no later change concerns the credential or its
// subjects. The same comparison enforces rule 5 of the lease: a row that was being
// read while its revocation arrived is never valid.
type registry struct {
	shards  [shards]shard
	applied atomic.Uint64 // changes applied since the start
	revoked revoked
	max     int // entries per shard
}

// shards is a power of two, large enough that two cores rarely contend for one.
const shards = 256

type shard struct {
	mu      sync.RWMutex
	entries map[secret.Hash]*entry
	_       [32]byte // keeps neighbours off the same cache line
}

// entry is one credential in memory: its principal, its life, and its subjects. It
// holds nothing specific to a kind of credential, since there may be a million
// sessions: an entry takes 64 bytes, its text and its slot in the map.
type entry struct {
	text    string // ids of session and user, and the e-mail address, in one allocation
	user    uint16 // offset of the user's id in text
	email   uint16 // offset of the e-mail address
	subject [2]uint16
	grant   unique.Handle[grant]
	since   int64        // start of the absolute limit, Unix microseconds
	seen    atomic.Int64 // last use, Unix microseconds
	flushed atomic.Int64 // last use that is in the database or in dirty
	mark    uint64       // changes applied before it was read
}

// grant is what principals share that have one role in one tenant.
type grant struct {
	kind         doorward.PrincipalKind
	tenantID     string
	tenantStatus doorward.TenantStatus
	role, rank   doorward.Role
	permissions  *doorward.Permissions
	absolute     int64 // absolute limit, microseconds
	idle         int64 // idle limit, microseconds
}

// revoked holds, for each subject, the number of changes applied when the last one
// concerned it. Subjects are hashed to 65,536 slots; a collision only causes
// entries to be read again.
type revoked struct {
	all atomic.Uint64 // at the last change that concerned everything
	at  [1 << 16]atomic.Uint64
}

func newRegistry(maxEntries int) *registry {
	r := &registry{max: max(1, maxEntries/shards)}
	for i := range r.shards {
		r.shards[i].entries = map[secret.Hash]*entry{}
	}
	return r
}

var slotSeed = maphash.MakeSeed()

// slot is the slot of a user or tenant in revoked. Ids begin with their kind.
func slot(id string) uint16 { return uint16(maphash.String(slotSeed, id)) }

// slotOf is the slot of a credential, whose hash is random already.
func slotOf(h secret.Hash) uint16 { return binary.LittleEndian.Uint16(h[8:]) }

func (r *registry) shard(h secret.Hash) *shard {
	return &r.shards[binary.LittleEndian.Uint64(h[:])%shards]
}

// get returns the entry of a token hash if it is present and valid.
func (r *registry) get(h secret.Hash) *entry {
	e := r.remembered(h)
	if e == nil || !r.valid(h, e) {
		return nil
	}
	return e
}

func (r *registry) valid(h secret.Hash, e *entry) bool {
	return r.revoked.all.Load() <= e.mark &&
		r.revoked.at[slotOf(h)].Load() <= e.mark &&
		r.revoked.at[e.subject[0]].Load() <= e.mark &&
		r.revoked.at[e.subject[1]].Load() <= e.mark
}

// remembered returns the entry, valid or not: its last use is true either way.
func (r *registry) remembered(h secret.Hash) *entry {
	s := r.shard(h)
	s.mu.RLock()
	e := s.entries[h]
	s.mu.RUnlock()
	return e
}

// mark must be called before a credential is read from the database, for put.
func (r *registry) mark() uint64 { return r.applied.Load() }

// put stores an entry that was read after its mark was taken. It keeps the later
// uses of an older entry.
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

// entryOf makes the entry of a session, under the limits of the installation.
func entryOf(c store.Credential, l doorward.SessionLimits, mark uint64) *entry {
	return newEntry(doorward.PrincipalOf(c.User, c.Session), c.Session.Tenant.Tighten(l), c.Session.LastSeenAt, mark)
}

// newEntry makes the entry of a principal, whose subjects are its user and its
// tenant.
func newEntry(p doorward.Principal, life doorward.SessionLimits, seen time.Time, mark uint64) *entry {
	e := &entry{
		text: p.SessionID + p.ID + p.Email, user: uint16(len(p.SessionID)), email: uint16(len(p.SessionID) + len(p.ID)),
		subject: [2]uint16{slot(p.ID), slot(p.TenantID)}, since: p.AuthAt.UnixMicro(), mark: mark,
		grant: unique.Make(grant{
			kind: p.Kind, tenantID: p.TenantID, tenantStatus: p.TenantStatus, role: p.Role, rank: p.Rank, permissions: p.Permissions,
			absolute: life.Absolute.Microseconds(), idle: life.Idle.Microseconds(),
		}),
	}
	e.seen.Store(seen.UnixMicro())
	e.flushed.Store(seen.UnixMicro())
	return e
}

// principal returns the principal passed to newEntry. It doesn't allocate.
func (e *entry) principal(g *grant) doorward.Principal {
	return doorward.Principal{
		Kind: g.kind, ID: e.text[e.user:e.email], Email: e.text[e.email:], TenantID: g.tenantID, TenantStatus: g.tenantStatus,
		Role: g.role, Rank: g.rank, Permissions: g.permissions, SessionID: e.text[:e.user], AuthAt: micros(e.since),
	}
}

// inTime reports whether the entry is within both limits, exact to the microsecond.
func (e *entry) inTime(g *grant, now int64) bool {
	return now < e.since+g.absolute && now < e.seen.Load()+g.idle
}

// evictOne removes some entry whose last use is in the database; the next check of
// it reads the database. The order of a Go map is random enough.
func (s *shard) evictOne() {
	for h, e := range s.entries {
		if e.seen.Load() <= e.flushed.Load() {
			delete(s.entries, h)
			return
		}
	}
}

// forget applies a change: it invalidates the entries that were read before. A
// mark taken from now on belongs to a read that sees the change, since it is
// committed.
func (r *registry) forget(c store.Change) {
	n := r.applied.Add(1)
	switch c.Kind {
	case store.ChangeUser, store.ChangeTenant:
		raise(&r.revoked.at[slot(c.Subject)], n)
	case store.ChangeSession:
		if h, ok := parseSubject(c.Subject); ok {
			raise(&r.revoked.at[slotOf(h)], n)
			r.drop(h)
		}
	case store.ChangeFlush, store.ChangeSigning: // end nothing
	default: // ChangeAll, or a kind of a newer version
		raise(&r.revoked.all, n)
	}
}

// raise stores n unless the value is greater already.
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

// reset invalidates all entries.
func (r *registry) reset() { raise(&r.revoked.all, r.applied.Add(1)) }

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
// returns true.
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

// micros converts an entry's time.
func micros(us int64) time.Time { return doorward.Instant(time.UnixMicro(us)) }
