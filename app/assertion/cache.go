package assertion

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/doorward/doorward"
)

// cachedToken is a token in memory, with the properties that it was signed for.
type cachedToken struct {
	Token
	credential string // id of the session or the key
	audience   int    // index in Assertions.audiences
	tenant     string
	role       doorward.Role
	authAt     int64 // Unix seconds
	reuseUntil int64 // Unix microseconds
}

// isCurrent reports whether the token may be returned again: it was signed within the last 10 s
// (reuse), the clock was not set back since, and the properties of the principal are the same.
func (t *cachedToken) isCurrent(p *doorward.Principal, now int64) bool {
	return now < t.reuseUntil && now >= t.reuseUntil-reuse.Microseconds() && t.role == p.Role && t.tenant == p.TenantID && t.authAt == p.AuthAt.Unix()
}

// cache is a set-associative cache of tokens with four ways, which is read without a lock. A new
// token in a full set replaces the oldest one. No job removes old tokens, since the memory is
// bounded and tokens expire after 30 s.
type cache struct {
	sets  [][ways]atomic.Pointer[cachedToken]
	locks [256]sync.Mutex // by the hash of the credential, so that only one of its callers signs
}

const (
	ways = 4
	// The number of sets is a power of two. Each takes 32 bytes.
	minSets = 1 << 8
	maxSets = 1 << 18
)

// newCache returns a cache with a place for each session in memory, up to a million.
func newCache(inMemory int) *cache {
	n := minSets
	for n < maxSets && n*ways < inMemory {
		n *= 2
	}
	return &cache{sets: make([][ways]atomic.Pointer[cachedToken], n)}
}

var seed = maphash.MakeSeed()

func (c *cache) setOf(credential string) *[ways]atomic.Pointer[cachedToken] {
	return &c.sets[maphash.String(seed, credential)&uint64(len(c.sets)-1)]
}

// get returns the token, which may be too old, or nil.
func (c *cache) get(credential string, audience int) *cachedToken {
	set := c.setOf(credential)
	for i := range set {
		if t := set[i].Load(); t != nil && t.audience == audience && t.credential == credential {
			return t
		}
	}
	return nil
}

// lock serializes the signing for a credential.
func (c *cache) lock(credential string) (unlock func()) {
	l := &c.locks[maphash.String(seed, credential)%uint64(len(c.locks))]
	l.Lock()
	return l.Unlock
}

// put replaces the earlier token of the credential and audience. If there is none, it uses an empty
// place, or the place of the oldest token.
func (c *cache) put(t *cachedToken) {
	set := c.setOf(t.credential)
	to, earliest := 0, int64(1<<63-1)
	for i := range set {
		until := int64(0) // an empty place
		if old := set[i].Load(); old != nil {
			if old.audience == t.audience && old.credential == t.credential {
				to = i
				break
			}
			until = old.reuseUntil
		}
		if until < earliest {
			to, earliest = i, until
		}
	}
	set[to].Store(t)
}

// clear forgets all tokens.
func (c *cache) clear() {
	for i := range c.sets {
		for j := range c.sets[i] {
			c.sets[i][j].Store(nil)
		}
	}
}
