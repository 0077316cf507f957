// Package registry keeps credentials (sessions and API keys) in memory, so that checks need no
// I/O while the lease is valid. Each feature has a Registry of its own, which follows the changes
// of all nodes.
//
//	mark := r.Mark()
//	row, err := …                        // read from the database
//	r.Put(hash, registry.NewEntry(principal, login, limits, lastUse, mark))
//
//	if e := r.Get(hash); e != nil {
//		if principal, _, inTime := e.Check(now); inTime {
//			r.Use(hash, e, now)
//			return principal
//		}
//	}
//
// The last use of a credential is kept in memory and written in batches (uses.go).
package registry

import (
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// Registry maps the hash of a credential to its entry. Make it with New.
//
// Entries don't expire. Each has a mark, the number of changes applied before its row was
// read, and is valid until a later change concerns the credential or its subjects. So a
// row that was being read while its revocation arrived is never valid (docs/lease.md, rule 5).
type Registry struct {
	shards  [shards]shard
	applied atomic.Uint64 // changes applied since the start
	revoked revoked
	max     int // entries per shard
	uses    uses
}

// shards is a power of two, large enough that two cores rarely contend for one.
const shards = 256

type shard struct {
	mu      sync.RWMutex
	entries map[secret.Hash]*Entry
	_       [32]byte // keeps neighbours off the same cache line
}

// Entry is one credential in memory: its principal, its limits, and its subjects. It
// holds nothing specific to a kind of credential, since there may be a million
// sessions: an entry takes 64 bytes, its text and its slot in the map.
type Entry struct {
	text    string    // id of the session, empty for a key; id of the user or key; e-mail address
	user    uint16    // offset of the id of the user or key in text
	email   uint16    // offset of the e-mail address
	subject [2]uint16 // slots in revoked of the user or owner, and of the tenant
	shared  unique.Handle[shared]
	start   int64        // start of the absolute limit, Unix microseconds
	seen    atomic.Int64 // last use, Unix microseconds
	flushed atomic.Int64 // last use that is in the database or in uses
	mark    uint64       // changes applied before it was read
}

// shared is the part of an entry that is the same for all principals with one role in one
// tenant, which is in memory once. A key has its own.
type shared struct {
	kind          doorward.PrincipalKind
	tenantID      string
	tenantStatus  doorward.TenantStatus
	rules         *doorward.Rules
	role, rank    doorward.Role
	permissions   *doorward.Permissions
	policy        doorward.PrincipalPolicies // specific to one principal; nil without policies
	owner         string                     // of a key; empty for a session
	proof         proof
	demandsFactor bool          // of the tenant: a second factor
	proofAge      time.Duration // see doorward.Principal.MaxProofAge
	absolute      int64         // absolute limit, microseconds
	idle          int64         // idle limit, microseconds
	extra         any           // a pointer to what is specific to one key; nil for a session
}

// proof is how a session's user was authenticated. Sessions that have had no step-up since the
// login mostly share one value.
type proof struct {
	issuer                         doorward.Issuer
	aal                            int
	hasFactor, hasCode, hasPasskey bool
	last                           time.Duration // from the login to the last proof
	factor                         time.Duration // from the login to the last proof with a second factor; negative: none
	hasPassword, isManaged         bool
	password                       time.Duration // from the login to the last proof of the password, see doorward.Assurance; negative: none
}

func proofOf(p doorward.Principal, login time.Time) proof {
	return proof{
		p.Issuer, p.AAL, p.HasFactor, p.HasCode, p.HasPasskey, p.AuthAt.Sub(login), sinceLogin(p.FactorAt, login),
		p.HasPassword, p.IsManaged, sinceLogin(p.PasswordAt, login),
	}
}

// sinceLogin returns the time from the login to an instant; negative for the zero Time.
func sinceLogin(at, login time.Time) time.Duration {
	if at.IsZero() {
		return -1
	}
	return at.Sub(login)
}

// revoked holds, for each subject, the number of changes applied when the last one
// concerned it. Subjects are hashed to 65,536 slots; a collision only causes
// entries to be read again.
type revoked struct {
	all   atomic.Uint64 // at the last change that concerned everything
	slots [1 << 16]atomic.Uint64
}

// New returns an empty registry of maxEntries at most.
func New(maxEntries int) *Registry {
	r := &Registry{max: max(1, maxEntries/shards)}
	for i := range r.shards {
		r.shards[i].entries = map[secret.Hash]*Entry{}
	}
	return r
}

var slotSeed = maphash.MakeSeed()

// slot returns the slot of a user or tenant in revoked. Ids begin with their kind, so a user
// and a tenant never have the same id.
func slot(id string) uint16 { return uint16(maphash.String(slotSeed, id)) }

// slotOf returns the slot of a credential, whose hash is random already.
func slotOf(h secret.Hash) uint16 { return binary.LittleEndian.Uint16(h[8:]) }

func (r *Registry) shard(h secret.Hash) *shard {
	return &r.shards[binary.LittleEndian.Uint64(h[:])%shards]
}

// Get returns the entry of a token hash if it is present and valid.
func (r *Registry) Get(h secret.Hash) *Entry {
	e := r.Known(h)
	if e == nil || !r.isValid(h, e) {
		return nil
	}
	return e
}

func (r *Registry) isValid(h secret.Hash, e *Entry) bool {
	return r.revoked.all.Load() <= e.mark &&
		r.revoked.slots[slotOf(h)].Load() <= e.mark &&
		r.revoked.slots[e.subject[0]].Load() <= e.mark &&
		r.revoked.slots[e.subject[1]].Load() <= e.mark
}

// Known returns the entry, even if it is no longer valid: its last use counts all the same.
func (r *Registry) Known(h secret.Hash) *Entry {
	s := r.shard(h)
	s.mu.RLock()
	e := s.entries[h]
	s.mu.RUnlock()
	return e
}

// Mark returns the mark for a new entry. Call it before the credential is read from the
// database.
func (r *Registry) Mark() uint64 { return r.applied.Load() }

// Put stores an entry that was read after its mark was taken. It keeps the later
// uses of an older entry.
func (r *Registry) Put(h secret.Hash, e *Entry) {
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

// NewEntry makes the entry of a user's principal, with the time of its login. Its subjects
// are the user and the tenant: a change of one of them invalidates it.
func NewEntry(p doorward.Principal, login time.Time, limits doorward.SessionLimits, seen time.Time, mark uint64) *Entry {
	s := sharedOf(p, limits)
	s.proof = proofOf(p, login)
	return newEntry(p, p.ID, login.UnixMicro(), s, seen, mark)
}

// NewKeyEntry makes the entry of an API key's principal, valid until an instant. Its subjects
// are the owner and the tenant. Extra is a pointer to other data of the key that a check needs.
func NewKeyEntry(p doorward.Principal, until, seen time.Time, extra any, mark uint64) *Entry {
	s := sharedOf(p, doorward.SessionLimits{})
	s.owner, s.extra = p.OwnerID, extra
	// No idle limit: half of the maximum, so that adding it to a time doesn't overflow.
	s.absolute, s.idle = until.Sub(p.AuthAt).Microseconds(), math.MaxInt64/2
	return newEntry(p, p.OwnerID, p.AuthAt.UnixMicro(), s, seen, mark)
}

func sharedOf(p doorward.Principal, limits doorward.SessionLimits) shared {
	return shared{
		kind: p.Kind, tenantID: p.TenantID, tenantStatus: p.TenantStatus, rules: p.Rules, role: p.Role, rank: p.ActsAs, permissions: p.Permissions, policy: p.Policy,
		demandsFactor: p.DemandsFactor, proofAge: p.MaxProofAge,
		absolute: limits.Absolute.Microseconds(), idle: limits.Idle.Microseconds(),
	}
}

func newEntry(p doorward.Principal, user string, start int64, s shared, seen time.Time, mark uint64) *Entry {
	e := &Entry{
		text: p.SessionID + p.ID + p.Email, user: uint16(len(p.SessionID)), email: uint16(len(p.SessionID) + len(p.ID)),
		subject: [2]uint16{slot(user), slot(p.TenantID)}, start: start, mark: mark, shared: unique.Make(s),
	}
	e.seen.Store(seen.UnixMicro())
	e.flushed.Store(seen.UnixMicro())
	return e
}

// Check returns the principal and the extra of the entry, and whether it is within its
// limits at now, exact to the microsecond. It doesn't allocate.
func (e *Entry) Check(now int64) (p doorward.Principal, extra any, inTime bool) {
	s := e.shared.Value()
	if now >= e.start+s.absolute || now >= e.seen.Load()+s.idle {
		return doorward.Principal{}, nil, false
	}
	return e.principal(&s), s.extra, true
}

// Extra returns what was passed to NewKeyEntry; nil for a session.
func (e *Entry) Extra() any { return e.shared.Value().extra }

func (e *Entry) principal(s *shared) doorward.Principal {
	p := doorward.Principal{
		Kind: s.kind, ID: e.text[e.user:e.email], Email: e.text[e.email:], TenantID: s.tenantID, TenantStatus: s.tenantStatus,
		OwnerID: s.owner, Rules: s.rules, Role: s.role, ActsAs: s.rank, Permissions: s.permissions, Policy: s.policy, SessionID: e.text[:e.user],
		Issuer: s.proof.issuer, AuthAt: micros(e.start + s.proof.last.Microseconds()), AAL: s.proof.aal, HasFactor: s.proof.hasFactor, HasCode: s.proof.hasCode, HasPasskey: s.proof.hasPasskey, DemandsFactor: s.demandsFactor, MaxProofAge: s.proofAge,
		HasPassword: s.proof.hasPassword, IsManaged: s.proof.isManaged,
	}
	if s.proof.factor >= 0 && s.kind == doorward.ByUser {
		p.FactorAt = micros(e.start + s.proof.factor.Microseconds())
	}
	if s.proof.password >= 0 && s.kind == doorward.ByUser {
		p.PasswordAt = micros(e.start + s.proof.password.Microseconds())
	}
	return p
}

// evictOne removes an entry whose last use is in the database or in uses, if there is one.
// Its next check reads the database. The order of a Go map is random enough.
func (s *shard) evictOne() {
	for h, e := range s.entries {
		if e.seen.Load() <= e.flushed.Load() {
			delete(s.entries, h)
			return
		}
	}
}

// Forget applies a change: it invalidates the entries that the change concerns and that were
// read before. The change is committed, so a read that takes its Mark afterwards sees it. A
// change of a kind that this version doesn't know invalidates all entries.
func (r *Registry) Forget(c store.Change) {
	n := r.applied.Add(1)
	switch c.Kind {
	case store.ChangeUser, store.ChangeTenant:
		raise(&r.revoked.slots[slot(c.Subject)], n)
	case store.ChangeSession:
		if h, ok := ParseSubject(c.Subject); ok {
			raise(&r.revoked.slots[slotOf(h)], n)
			r.drop(h)
		}
	case store.ChangeFlush, store.ChangeSigning, store.ChangeMaintenance: // concern no credential
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

func (r *Registry) drop(h secret.Hash) {
	s := r.shard(h)
	s.mu.Lock()
	delete(s.entries, h)
	s.mu.Unlock()
}

// Reset invalidates all entries.
func (r *Registry) Reset() { raise(&r.revoked.all, r.applied.Add(1)) }

// Len returns the number of entries.
func (r *Registry) Len() int {
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
func (r *Registry) each(fn func(secret.Hash, *Entry) (remove bool)) {
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

// ParseSubject reads the subject of a change of a session or key.
func ParseSubject(subject string) (secret.Hash, bool) {
	raw, err := hex.DecodeString(subject)
	if err != nil || len(raw) != len(secret.Hash{}) {
		return secret.Hash{}, false
	}
	return secret.Hash(raw), true
}

// micros converts an entry's time.
func micros(us int64) time.Time { return doorward.Instant(time.UnixMicro(us)) }
