package node

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// pendingConns tracks the connections that wait for an answer.
type pendingConns struct {
	mu        sync.Mutex
	deadlines map[net.Conn]time.Time // how long to wait for them; zero: as long as it takes
}

// firstByteTimeout is how long a drain waits for the first request of a connection;
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

// count returns the number of connections that wait for an answer.
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

// waitUntilEmpty returns 0 once no connection waits, or after d how many still do.
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
