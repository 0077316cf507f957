package node

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// pendingConns knows the connections on which an answer is owed.
type pendingConns struct {
	mu      sync.Mutex
	deadlines map[net.Conn]time.Time // until when: zero for as long as it takes
}

// firstByteTimeout is how long a new connection is waited for to say something;
// browsers open some that they never use.
const firstByteTimeout = time.Second

// note is for http.Server.ConnState.
func (q *pendingConns) note(c net.Conn, state http.ConnState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch state {
	case http.StateNew:
		q.deadlines[c] = time.Now().Add(firstByteTimeout)
	case http.StateActive:
		q.deadlines[c] = time.Time{}
	default:
		delete(q.deadlines, c)
	}
}

// count counts the connections that wait for an answer at the instant.
func (q *pendingConns) count(now time.Time) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, until := range q.deadlines {
		if until.IsZero() || now.Before(until) {
			n++
		}
	}
	return n
}

// waitUntilEmpty returns when nobody waits any more, or after d with how many still do.
func (q *pendingConns) waitUntilEmpty(d time.Duration) int {
	end := time.Now().Add(d)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		if n := q.count(now); n == 0 || now.After(end) {
			return n
		}
		<-tick.C
	}
}
