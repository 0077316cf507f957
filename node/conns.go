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
// that aren't soon (see deadline), and knows which connections wait for an answer.
type openConns struct {
	start time.Time    // origin of the times here
	swept atomic.Int64 // when the sweep last ran: cheaper than reading the clock

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
	of          *openConns
	read, write deadline
	pending     atomic.Int64 // until when it waits for an answer, since start; see connState
	firstBy     int64        // until when a drain waits for its first request, since start; 0 after its first idle state
	released    func()       // called once, by the first Close
}

// add returns the connection as one of the open ones. released is called once, when
// it is closed.
func (o *openConns) add(conn *net.TCPConn, released func()) *openConn {
	c := &openConn{TCPConn: conn, of: o, released: sync.OnceFunc(released)}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[c] = struct{}{}
	return c
}

// Close closes the connection.
func (c *openConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.all, c)
	c.of.mu.Unlock()
	c.released()
	return c.TCPConn.Close()
}

// SetReadDeadline is as for any net.Conn, but a deadline that isn't soon takes effect up
// to sweepDeadlinesEvery late.
func (c *openConn) SetReadDeadline(t time.Time) error {
	return c.read.set(c.of, t, c.TCPConn.SetReadDeadline)
}

// SetWriteDeadline is as SetReadDeadline.
func (c *openConn) SetWriteDeadline(t time.Time) error {
	return c.write.set(c.of, t, c.TCPConn.SetWriteDeadline)
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

// sweep makes the deadlines before now take effect.
func (o *openConns) sweep(now time.Duration) {
	o.swept.Store(int64(now))
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		c.read.enforce(int64(now), c.TCPConn.SetReadDeadline)
		c.write.enforce(int64(now), c.TCPConn.SetWriteDeadline)
	}
}

// Values of openConn.pending besides an instant.
const (
	waitsForNothing = 0
	waitsForAnswer  = 1<<63 - 1
)

// firstByteTimeout is how long a drain waits for the first request of a connection;
// browsers open some that they never use.
const firstByteTimeout = time.Second

// connState is the http.Server's ConnState. It notes until when a connection waits for an
// answer.
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
		c.firstBy = int64(time.Since(o.start) + firstByteTimeout)
		c.pending.Store(c.firstBy)
	case http.StateActive:
		c.pending.Store(waitsForAnswer)
	default:
		until := int64(waitsForNothing)
		if state == http.StateIdle && c.firstBy > 0 && isHTTP2(tlsConn) {
			until = c.firstBy
		}
		c.firstBy = 0
		c.pending.Store(until)
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
		if int64(now) < c.pending.Load() {
			n++
		}
	}
	return n
}

// waitUntilNone returns 0 once the count is 0, or after d the last count.
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
