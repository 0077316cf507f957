package faultproxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/faultproxy"
	"github.com/doorward/doorward/internal/waittest"
)

// startEcho starts a server that answers each line with itself, and a proxy to it. ended
// receives a value when the server sees a connection end.
func startEcho(t *testing.T) (p *faultproxy.Proxy, ended <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ends := make(chan error, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, err := io.Copy(c, c); ends <- err }()
		}
	}()
	if p, err = faultproxy.New(l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, ends
}

type client struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *faultproxy.Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) expect(want string) {
	c.t.Helper()
	c.SetReadDeadline(waittest.Deadline())
	if got, err := c.lines.ReadString('\n'); got != want+"\n" || err != nil {
		c.t.Errorf("got %q %v, want %q", got, err, want)
	}
}

// silence is how long nothing must arrive. On a slow machine a fault may go unnoticed, but none
// is reported where there is none.
const silence = 100 * time.Millisecond

func (c *client) expectNothing() {
	c.t.Helper()
	end := time.Now().Add(silence)
	c.SetReadDeadline(end)
	if got, err := c.lines.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("got %q %v, want silence", got, err)
	}
}

func (c *client) expectClosed() {
	c.t.Helper()
	c.SetReadDeadline(waittest.Deadline())
	if got, err := c.lines.ReadString('\n'); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		c.t.Errorf("got %q %v, want the connection closed", got, err)
	}
}

func TestHealDeliversWhatHoldBlocked(t *testing.T) {
	p, _ := startEcho(t)
	old := dial(t, p)
	old.send("before")
	old.expect("before")
	p.Hold()
	old.send("during")
	old.expectNothing()
	fresh := dial(t, p)
	fresh.send("hello")
	fresh.expectNothing()
	p.Heal()
	old.expect("during")
	fresh.expect("hello")
}

func TestDropLosesOpenConnections(t *testing.T) {
	p, _ := startEcho(t)
	old := dial(t, p)
	old.send("before")
	old.expect("before")
	p.Drop()
	old.send("during")
	fresh := dial(t, p)
	fresh.send("hello")
	fresh.expectNothing()
	p.Heal()
	fresh.expect("hello")
	old.send("after")
	old.expectNothing()
}

func TestServerSeesTheEndOnlyAfterHeal(t *testing.T) {
	for name, block := range map[string]func(*faultproxy.Proxy){"hold": (*faultproxy.Proxy).Hold, "drop": (*faultproxy.Proxy).Drop} {
		t.Run(name, func(t *testing.T) {
			p, ended := startEcho(t)
			c := dial(t, p)
			c.send("before")
			c.expect("before")
			block(p)
			c.Close()
			select {
			case err := <-ended:
				t.Fatalf("the server saw the end while nothing passed: %v", err)
			case <-time.After(silence):
			}
			p.Heal()
			waittest.For(t, "the server to see the end", ended)
		})
	}
}

func TestBreakResetsUntilHeal(t *testing.T) {
	p, _ := startEcho(t)
	old := dial(t, p)
	old.send("before")
	old.expect("before")
	p.Break()
	old.expectClosed()
	if fresh, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come before or after
		(&client{t, fresh, bufio.NewReader(fresh)}).expectClosed()
		fresh.Close()
	}
	p.Heal()
	fresh := dial(t, p)
	fresh.send("after")
	fresh.expect("after")
}

func TestDelay(t *testing.T) {
	const longest = 50 * time.Millisecond
	p, _ := startEcho(t)
	c := dial(t, p)
	p.Delay(longest)
	slowest := time.Duration(0)
	for range 25 { // each takes less than half of it with a probability of 1/2
		began := time.Now()
		c.send("hello")
		c.expect("hello")
		slowest = max(slowest, time.Since(began))
	}
	if slowest < longest/2 {
		t.Errorf("nothing took more than half of %v", longest)
	}
}

func TestCloseEndsHeldConnections(t *testing.T) {
	p, _ := startEcho(t)
	c := dial(t, p)
	c.send("before")
	c.expect("before")
	p.Hold()
	c.send("during")
	p.Close()
	c.expectClosed()
}
