package signon

import (
	"sync"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
)

// Limits of a minute and client address.
const (
	maxStarts = 600
	// maxRefused is how many callbacks with a cookie of ours end refused, and how many come without one. They are
	// counted apart: else somebody could keep the others of an office out by callbacks without a cookie.
	maxRefused  = 60
	limitWindow = time.Minute
	// maxNetworks bounds the memory of a node. Beyond it the counts begin again.
	maxNetworks = 100_000
)

// starts counts sign-ins that begin, in the memory of a node: beginning writes nothing to the database, so
// each node grants the limit. The zero value has counted nothing.
type starts struct {
	mu     sync.Mutex
	since  time.Time
	counts map[string]int
}

// take counts a start of the client. Errors: too_many_attempts.
func (s *starts) take(by doorward.Caller, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if age := now.Sub(s.since); age < 0 || age >= limitWindow || len(s.counts) > maxNetworks {
		s.since, s.counts = now, map[string]int{}
	}
	networks := doorward.NetworkLimits(by.IP, maxStarts)
	for _, n := range networks {
		if s.counts[n.Network] >= n.Limit {
			return access.TooManyAttempts(s.since.Add(limitWindow).Sub(now))
		}
	}
	for _, n := range networks {
		s.counts[n.Network]++
	}
	return nil
}

// refusals are the counters of callbacks with a cookie of ours that end refused, over all nodes.
func refusals(by doorward.Caller) []access.Counter {
	return access.ClientCounters("signon", by, maxRefused, limitWindow)
}

// strayCounters are those of callbacks without one.
func strayCounters(by doorward.Caller) []access.Counter {
	return access.ClientCounters("stray", by, maxRefused, limitWindow)
}
