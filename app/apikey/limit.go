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

// usage has the state of each key. It outlives the entries of the key's secrets in the
// registry, which come and go.
type usage struct {
	mu  sync.Mutex
	all map[string]keyUsage
}

// keyUsage is kept after the last use until the limiter is idle: a new limiter would allow
// the requests of the same second again.
type keyUsage struct {
	state   weak.Pointer[keyState] // shared by both secrets, while an entry holds it
	limiter *gcra.Limiter
}

// stateOf returns the state of a key.
func (u *usage) stateOf(id string) *keyState {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := u.all[id]
	if state := known.state.Value(); state != nil {
		return state
	}
	if known.limiter == nil {
		known.limiter = new(gcra.Limiter)
	}
	if u.all == nil {
		u.all = map[string]keyUsage{}
	}
	fresh := &keyState{limiter: known.limiter}
	u.all[id] = keyUsage{weak.Make(fresh), known.limiter}
	runtime.AddCleanup(fresh, u.forget, id)
	return fresh
}

// forget removes the usage of a key that no entry holds, once its limiter is idle.
func (u *usage) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known, ok := u.all[id]; ok && known.isUnused() {
		delete(u.all, id)
	}
}

// sweep removes usages whose limiters were not idle when forget ran.
func (u *usage) sweep() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, known := range u.all {
		if known.isUnused() {
			delete(u.all, id)
		}
	}
}

// isUnused reports whether no entry holds the key and a new limiter would allow no more.
func (k keyUsage) isUnused() bool {
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
