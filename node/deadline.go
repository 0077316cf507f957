package node

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// net/http sets up to seven deadlines for one request on a connection that stays open,
// and nearly all are minutes or seconds away and soon replaced. Each costs a timer of
// the runtime. So a connection only notes a deadline that isn't soon, and deadlines
// finds those that have passed.

const (
	// sweepDeadlinesEvery is how late a deadline that was only noted may take effect.
	sweepDeadlinesEvery = 500 * time.Millisecond
	// soon is below what the sweep is precise enough for: such a deadline is set at once.
	soon = 4 * sweepDeadlinesEvery
)

// deadlines enforces the noted deadlines of the connections of one listener.
type deadlines struct {
	start time.Time    // origin of the times here
	swept atomic.Int64 // when the sweep last ran: cheaper than reading the clock

	mu    sync.Mutex
	conns map[*deadlineConn]struct{}
}

func newDeadlines() *deadlines {
	return &deadlines{start: time.Now(), conns: map[*deadlineConn]struct{}{}}
}

// run sweeps until ctx ends.
func (d *deadlines) run(ctx context.Context) {
	tick := time.NewTicker(sweepDeadlinesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.sweep(time.Since(d.start))
		}
	}
}

// sweep makes the deadlines before now take effect.
func (d *deadlines) sweep(now time.Duration) {
	d.swept.Store(int64(now))
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		c.read.enforce(int64(now), c.TCPConn.SetReadDeadline)
		c.write.enforce(int64(now), c.TCPConn.SetWriteDeadline)
	}
}

// deadlineConn is a connection whose deadlines are enforced by deadlines.
type deadlineConn struct {
	*net.TCPConn
	all         *deadlines
	read, write deadline
}

// over returns the connection with noted deadlines. It must be closed.
func (d *deadlines) over(conn *net.TCPConn) *deadlineConn {
	c := &deadlineConn{TCPConn: conn, all: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns[c] = struct{}{}
	return c
}

// Close closes the connection.
func (c *deadlineConn) Close() error {
	c.all.mu.Lock()
	delete(c.all.conns, c)
	c.all.mu.Unlock()
	return c.TCPConn.Close()
}

// SetReadDeadline is as for any net.Conn, but a deadline that isn't soon takes effect up
// to sweepDeadlinesEvery late.
func (c *deadlineConn) SetReadDeadline(t time.Time) error {
	return c.read.set(c.all, t, c.TCPConn.SetReadDeadline)
}

// SetWriteDeadline is as SetReadDeadline.
func (c *deadlineConn) SetWriteDeadline(t time.Time) error {
	return c.write.set(c.all, t, c.TCPConn.SetWriteDeadline)
}

// SetDeadline sets both deadlines.
func (c *deadlineConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// deadline is one deadline of a connection. Setting it stores at and then loads armed;
// the sweep stores armed and then loads at. So at least one of the two sees the other,
// and takes mu.
type deadline struct {
	at    atomic.Int64 // since deadlines.start; 0: none
	armed atomic.Bool  // the connection itself has a deadline
	mu    sync.Mutex   // held while the connection's own deadline changes
}

func (d *deadline) set(all *deadlines, t time.Time, apply func(time.Time) error) error {
	at := int64(0)
	if !t.IsZero() {
		at = max(1, int64(t.Sub(all.start)))
	}
	isSoon := at != 0 && at-all.swept.Load() < int64(soon)
	d.at.Store(at)
	if !isSoon && !d.armed.Load() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !isSoon {
		t = time.Time{}
	}
	d.armed.Store(isSoon)
	return apply(t)
}

// enforce makes the deadline take effect if it has passed.
func (d *deadline) enforce(now int64, apply func(time.Time) error) {
	if !d.passed(now) || d.armed.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed.Store(true)
	if d.passed(now) {
		_ = apply(time.Unix(1, 0)) // it fails only for a closed connection
		return
	}
	d.armed.Store(false) // replaced in between
}

func (d *deadline) passed(now int64) bool {
	at := d.at.Load()
	return at != 0 && at <= now
}
