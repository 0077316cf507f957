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

// keyStates has the state of each key. A state outlives the entries of the key's secrets in the
// registry, which come and go.
type keyStates struct {
	mu  sync.Mutex
	all map[string]keptState
}

// keptState is kept after the last use until the limiter is idle: a new limiter would allow
// the requests of the same second again.
type keptState struct {
	state   weak.Pointer[keyState] // shared by both secrets, while an entry of the registry holds it
	limiter *gcra.Limiter
}

// stateOf returns the state of a key.
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
		s.all = map[string]keptState{}
	}
	fresh := &keyState{limiter: known.limiter}
	s.all[id] = keptState{weak.Make(fresh), known.limiter}
	runtime.AddCleanup(fresh, s.forget, id)
	return fresh
}

// forget removes the state of a key if no entry of the registry holds it and its limiter is
// idle.
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

// isUnused reports whether no entry of the registry holds the state, and a new limiter would
// allow no more.
func (k keptState) isUnused() bool {
	return k.state.Value() == nil && k.limiter.Idle(time.Since(limitersStart))
}

// limitersStart is the origin of the limiters' times.
var limitersStart = time.Now()

var errNoShare = errors.New("apikey: this node doesn't know its share of the key's limit: it has just joined, or has lost its lease")

// takeRequest counts a request with the key in this node's share of its limit, so that all nodes
// together stay within it. It doesn't allocate for a request within the limit. Errors:
// rate_limited; unavailable while the share is unknown.
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
