package node

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// queue knows the connections on which an answer is owed.
type queue struct {
	mu      sync.Mutex
	waiting map[net.Conn]time.Time // until when: zero for as long as it takes
}

// speechless is how long a new connection is waited for to say something;
// browsers open some that they never use.
const speechless = time.Second

// note is for http.Server.ConnState.
func (q *queue) note(c net.Conn, state http.ConnState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch state {
	case http.StateNew:
		q.waiting[c] = time.Now().Add(speechless)
	case http.StateActive:
		q.waiting[c] = time.Time{}
	default:
		delete(q.waiting, c)
	}
}

// owed counts the connections that wait for an answer at the instant.
func (q *queue) owed(now time.Time) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, until := range q.waiting {
		if until.IsZero() || now.Before(until) {
			n++
		}
	}
	return n
}

// empty returns when nobody waits any more, or after d with how many still do.
func (q *queue) empty(d time.Duration) int {
	end := time.Now().Add(d)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		if n := q.owed(now); n == 0 || now.After(end) {
			return n
		}
		<-tick.C
	}
}
