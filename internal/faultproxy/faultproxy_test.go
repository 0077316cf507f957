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
)

// echo starts a server that answers each line with itself, and a proxy to it.
// hung receives when the server sees a connection end.
func echo(t *testing.T) (p *faultproxy.Proxy, hung <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ended := make(chan error, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, err := io.Copy(c, c); ended <- err }()
		}
	}()
	if p, err = faultproxy.New(l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, ended
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

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) hear(want string) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := c.lines.ReadString('\n'); got != want+"\n" || err != nil {
		c.t.Errorf("heard %q %v, want %q", got, err, want)
	}
}

func (c *client) hearNothing() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if got, err := c.lines.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("heard %q %v, want silence", got, err)
	}
}

func (c *client) hearReset() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if got, err := c.lines.ReadString('\n'); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		c.t.Errorf("heard %q %v, want a reset", got, err)
	}
}

func TestHoldKeepsBackAndHealDelivers(t *testing.T) {
	p, _ := echo(t)
	old := dial(t, p)
	old.say("before")
	old.hear("before")
	p.Hold()
	old.say("meanwhile")
	old.hearNothing()
	young := dial(t, p)
	young.say("hello")
	young.hearNothing()
	p.Heal()
	old.hear("meanwhile")
	young.hear("hello")
}

func TestDropIsForEverForConnectionsThatWereOpen(t *testing.T) {
	p, _ := echo(t)
	old := dial(t, p)
	old.say("before")
	old.hear("before")
	p.Drop()
	old.say("meanwhile")
	young := dial(t, p)
	young.say("hello")
	young.hearNothing()
	p.Heal()
	young.hear("hello")
	old.say("after")
	old.hearNothing()
}

func TestServerHearsOfTheEndOnlyAfterTheCut(t *testing.T) {
	for name, cut := range map[string]func(*faultproxy.Proxy){"hold": (*faultproxy.Proxy).Hold, "drop": (*faultproxy.Proxy).Drop} {
		t.Run(name, func(t *testing.T) {
			p, ended := echo(t)
			c := dial(t, p)
			c.say("before")
			c.hear("before")
			cut(p)
			c.Close()
			select {
			case err := <-ended:
				t.Fatalf("the server saw the end through the cut: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			p.Heal()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatal("the server never saw the end")
			}
		})
	}
}

func TestBreakResetsUntilHeal(t *testing.T) {
	p, _ := echo(t)
	old := dial(t, p)
	old.say("before")
	old.hear("before")
	p.Break()
	old.hearReset()
	if young, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come before or after
		(&client{t, young, bufio.NewReader(young)}).hearReset()
		young.Close()
	}
	p.Heal()
	young := dial(t, p)
	young.say("after")
	young.hear("after")
}

func TestDelay(t *testing.T) {
	const most = 50 * time.Millisecond
	p, _ := echo(t)
	c := dial(t, p)
	p.Delay(most)
	for range 1000 {
		began := time.Now()
		c.say("hello")
		c.hear("hello")
		if time.Since(began) > most/2 {
			return
		}
	}
	t.Errorf("nothing took more than half of %v", most)
}

func TestCloseEndsWhatIsHeld(t *testing.T) {
	p, _ := echo(t)
	c := dial(t, p)
	c.say("before")
	c.hear("before")
	p.Hold()
	c.say("meanwhile")
	p.Close()
	c.hearReset()
}
