package apikey

import (
	"errors"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/gcra"
)

// keyStates has the state of each key that was used on this node: its last address and its limiter.
// The limiter outlives the entries of the key's secrets in the registry, which may be evicted and
// read again.
type keyStates struct {
	mu   sync.Mutex
	all  map[string]stateEntry
	used []*keyState // with uses to be written, each once
}

// stateEntry stays in keyStates until the limiter is idle: a new limiter would allow the requests
// of the same second again.
type stateEntry struct {
	state   weak.Pointer[keyState] // non-nil while an entry of the registry refers to it
	limiter *gcra.Limiter
}

// stateOf returns the state of a key. It makes one if there is none.
func (s *keyStates) stateOf(id string) *keyState {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.all[id]
	if state := known.state.Value(); state != nil {
		return state
	}
	if known.limiter == nil {
		known.limiter = new(gcra.Limiter)
	}
	if s.all == nil {
		s.all = map[string]stateEntry{}
	}
	fresh := &keyState{id: id, limiter: known.limiter}
	s.all[id] = stateEntry{weak.Make(fresh), known.limiter}
	runtime.AddCleanup(fresh, s.forget, id)
	return fresh
}

// forget removes the state of a key if it is unused. It runs when the last reference from the
// registry is gone.
func (s *keyStates) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.all[id]; ok && known.isUnused() {
		delete(s.all, id)
	}
}

// sweep removes states whose limiters were not idle when forget ran.
func (s *keyStates) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, known := range s.all {
		if known.isUnused() {
			delete(s.all, id)
		}
	}
}

// isUnused reports whether no entry of the registry refers to the state, and the limiter is idle, so
// that a new one would not allow more.
func (k stateEntry) isUnused() bool {
	return k.state.Value() == nil && k.limiter.Idle(time.Since(limitersStart))
}

// limitersStart is the origin of the limiters' times.
var limitersStart = time.Now()

var errNoShare = errors.New("apikey: this node doesn't know its share of the key's limit: it has just joined, or has lost its lease")

// takeRequest counts a request in this node's share of the key's limit, so that all nodes together
// stay within the limit. It doesn't allocate for a request within the limit. Errors: rate_limited;
// unavailable while the share is unknown.
func (k *Keys) takeRequest(l *keyLimits) error {
	if l.perSecond == 0 {
		return nil
	}
	share, known := k.lease.Share(l.perSecond)
	if !known {
		return doorward.Unavailable(errNoShare)
	}
	wait := l.state.limiter.Take(time.Since(limitersStart), share)
	if wait == 0 {
		return nil
	}
	return &doorward.Error{
		Code: doorward.CodeRateLimited, RetryAfter: max(wait, time.Second),
		Allowance: &doorward.Allowance{Name: "key", Quota: l.perSecond, Window: time.Second, Reset: wait},
	}
}
