package node

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// connect returns both ends of a connection. The first is an openConn, whose deadlines
// the sweep enforces.
func connect(t *testing.T, o *openConns) (*openConn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := o.add(conn.(*net.TCPConn), func() {})
	t.Cleanup(func() { c.Close() })
	return c, client
}

// instantAfter returns the instant that is the duration after the start of o.
func (o *openConns) instantAfter(after time.Duration) time.Time { return o.start.Add(after) }

func checkTimeout(t *testing.T, call string, err error) {
	t.Helper()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: %v, want a timeout", call, err)
	}
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRaceDeadlineTakesEffect: a read and a write that wait are ended by the sweep after
// the deadline, and not by an earlier one.
func TestRaceDeadlineTakesEffect(t *testing.T) {
	o := newOpenConns()
	c, _ := connect(t, o)
	requireNoError(t, c.SetDeadline(o.instantAfter(time.Minute)))
	reading, writing := make(chan error, 1), make(chan error, 1)
	go func() { _, err := c.Read(make([]byte, 1)); reading <- err }()
	go func() {
		for { // until the buffers are full
			if _, err := c.Write(make([]byte, 1<<16)); err != nil {
				writing <- err
				return
			}
		}
	}()
	o.sweep(time.Minute - 1)
	if c.read.armed.Load() || c.write.armed.Load() {
		t.Fatal("a deadline takes effect before its time")
	}
	o.sweep(time.Minute)
	checkTimeout(t, "reading", <-reading)
	checkTimeout(t, "writing", <-writing)
}

// TestDeadlineIsReplaced: after a timeout, a new deadline, or none, makes the connection
// usable again.
func TestDeadlineIsReplaced(t *testing.T) {
	o := newOpenConns()
	for name, next := range map[string]time.Time{"none": {}, "a later one": o.instantAfter(time.Hour)} {
		c, client := connect(t, o)
		requireNoError(t, c.SetReadDeadline(o.instantAfter(time.Minute)))
		o.sweep(time.Minute)
		_, err := c.Read(make([]byte, 1))
		checkTimeout(t, "reading", err)
		requireNoError(t, c.SetReadDeadline(next))
		o.sweep(30 * time.Minute)
		_, err = client.Write([]byte("x"))
		requireNoError(t, err)
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		o.lastSweep.Store(0) // else the next deadline, after a minute, would be near
	}
}

// TestNearDeadlinesNeedNoSweep: net/http interrupts reads by a deadline in the past,
// and answers wait for a slow body for a fraction of a second.
func TestNearDeadlinesNeedNoSweep(t *testing.T) {
	o := newOpenConns()
	c, _ := connect(t, o)
	for _, at := range []time.Time{time.Unix(1, 0), time.Now().Add(10 * time.Millisecond)} {
		requireNoError(t, c.SetReadDeadline(at))
		_, err := c.Read(make([]byte, 1))
		checkTimeout(t, "reading", err)
	}
}

// TestRaceDeadlineReplacedDuringSweep: a deadline that is replaced while the sweep enforces it
// doesn't time out the connection.
func TestRaceDeadlineReplacedDuringSweep(t *testing.T) {
	all := newOpenConns()
	var d deadline
	var own time.Time // the connection's deadline
	apply := func(t time.Time) error { own = t; return nil }
	var round atomic.Int64
	enforced := make(chan struct{})
	const rounds = 20_000
	go func() {
		for n := range int64(rounds) {
			for round.Load() <= n {
				runtime.Gosched()
			}
			d.enforce(int64(2*time.Minute), apply)
			enforced <- struct{}{}
		}
	}()
	for range rounds {
		requireNoError(t, d.set(all, all.instantAfter(time.Minute), apply))
		round.Add(1)
		requireNoError(t, d.set(all, all.instantAfter(time.Hour), apply))
		<-enforced
		if !own.IsZero() || d.armed.Load() {
			t.Fatalf("the connection has the deadline %v", own)
		}
	}
}

// TestClosedConnectionsAreForgotten: the sweep holds open connections only.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	o := newOpenConns()
	c, _ := connect(t, o)
	requireNoError(t, c.Close())
	if len(o.all) != 0 {
		t.Errorf("%d connections are held, want none", len(o.all))
	}
}

// BenchmarkDeadlines sets the deadlines of one request of a connection that stays open,
// as net/http does.
func BenchmarkDeadlines(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	tracked := newOpenConns().add(client.(*net.TCPConn), func() {})
	for name, c := range map[string]net.Conn{"net": client, "openConn": tracked} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				now := time.Now()
				_ = c.SetReadDeadline(now.Add(5 * time.Second))
				_ = c.SetReadDeadline(time.Time{})
				_ = c.SetWriteDeadline(now.Add(30 * time.Second))
				_ = c.SetReadDeadline(time.Unix(1, 0))
				_ = c.SetReadDeadline(time.Time{})
				_ = c.SetWriteDeadline(time.Time{})
				_ = c.SetReadDeadline(now.Add(2 * time.Minute))
			}
		})
	}
}
