package node

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// openConns holds the open connections of one listening address. It enforces the deadlines
// that aren't near (see deadline), and knows which connections wait for an answer.
type openConns struct {
	start     time.Time    // origin of the times here
	lastSweep atomic.Int64 // when the sweep last ran: cheaper than reading the clock

	mu  sync.Mutex
	all map[*openConn]struct{}
}

func newOpenConns() *openConns {
	return &openConns{start: time.Now(), all: map[*openConn]struct{}{}}
}

// openConn is one of openConns until it is closed. It embeds *net.TCPConn because
// net/http needs its CloseWrite: without that, an answer sent before the whole request
// was read could be lost.
type openConn struct {
	*net.TCPConn
	owner       *openConns
	read, write deadline
	// Two instants, as times since owner.start.
	pendingUntil    atomic.Int64 // a drain waits for an answer on the connection until then; see connState
	firstRequestEnd int64        // a drain waits for the first request until then; 0 once the connection was idle
	onClose         func()       // called once, by the first Close
}

// add wraps the connection and adds it to the open ones. onClose is called once, when
// it is closed.
func (o *openConns) add(conn *net.TCPConn, onClose func()) *openConn {
	c := &openConn{TCPConn: conn, owner: o, onClose: sync.OnceFunc(onClose)}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[c] = struct{}{}
	return c
}

// Close closes the connection.
func (c *openConn) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.all, c)
	c.owner.mu.Unlock()
	c.onClose()
	return c.TCPConn.Close()
}

// SetReadDeadline sets the deadline for reads. One that isn't near takes effect up to
// sweepDeadlinesEvery late.
func (c *openConn) SetReadDeadline(t time.Time) error {
	return c.read.set(c.owner, t, c.TCPConn.SetReadDeadline)
}

// SetWriteDeadline sets the deadline for writes, as SetReadDeadline does for reads.
func (c *openConn) SetWriteDeadline(t time.Time) error {
	return c.write.set(c.owner, t, c.TCPConn.SetWriteDeadline)
}

// SetDeadline sets both deadlines.
func (c *openConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// run enforces deadlines until ctx ends.
func (o *openConns) run(ctx context.Context) {
	tick := time.NewTicker(sweepDeadlinesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.sweep(time.Since(o.start))
		}
	}
}

// sweep enforces the deadlines that have passed at now, a time since start.
func (o *openConns) sweep(now time.Duration) {
	o.lastSweep.Store(int64(now))
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		c.read.enforce(int64(now), c.TCPConn.SetReadDeadline)
		c.write.enforce(int64(now), c.TCPConn.SetWriteDeadline)
	}
}

// Values of openConn.pendingUntil besides an instant.
const (
	waitsForNothing = 0
	waitsForAnswer  = 1<<63 - 1
)

// firstByteTimeout is how long a drain waits for the first request of a connection;
// browsers open some that they never use.
const firstByteTimeout = time.Second

// connState is the http.Server's ConnState. It keeps pendingUntil up to date.
func (o *openConns) connState(conn net.Conn, state http.ConnState) {
	tlsConn, _ := conn.(*tls.Conn)
	if tlsConn != nil {
		conn = tlsConn.NetConn()
	}
	c, ok := conn.(*openConn)
	if !ok {
		return
	}
	switch state {
	case http.StateNew:
		c.firstRequestEnd = int64(time.Since(o.start) + firstByteTimeout)
		c.pendingUntil.Store(c.firstRequestEnd)
	case http.StateActive:
		c.pendingUntil.Store(waitsForAnswer)
	default:
		until := int64(waitsForNothing)
		if state == http.StateIdle && c.firstRequestEnd > 0 && isHTTP2(tlsConn) {
			until = c.firstRequestEnd
		}
		c.firstRequestEnd = 0
		c.pendingUntil.Store(until)
	}
}

// isHTTP2 reports whether the connection, nil for one without TLS, speaks HTTP/2. Such a
// connection becomes active and idle once before its first request.
func isHTTP2(conn *tls.Conn) bool {
	return conn != nil && conn.ConnectionState().NegotiatedProtocol == "h2"
}

// countPending returns the number of connections that wait for an answer.
func (o *openConns) countPending() (n int) {
	now := time.Since(o.start)
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		if int64(now) < c.pendingUntil.Load() {
			n++
		}
	}
	return n
}

// waitUntilNone polls count until it is 0, for d at most, and returns the last count.
func waitUntilNone(d time.Duration, count func() int) int {
	end := time.Now().Add(d)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if n := count(); n == 0 || time.Now().After(end) {
			return n
		}
		<-tick.C
	}
}
