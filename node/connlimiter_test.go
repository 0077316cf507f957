//go:build linux

package node_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
)

// Linux has all of 127.0.0.0/8 on the loopback interface, so that a test can be
// many clients.

// dialFrom connects from an address of this machine. A refusal may arrive during
// connecting; then the returned connection is closed.
func dialFrom(t *testing.T, from, to string) rawConn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", to)
	if errors.Is(err, syscall.ECONNRESET) {
		c, _ = net.Pipe()
		c.Close()
		return rawConn{c, bufio.NewReader(c)}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(waittest.Deadline()); err != nil {
		t.Fatal(err)
	}
	return rawConn{c, bufio.NewReader(c)}
}

// isServed reports whether a request on the connection is answered; otherwise it was
// closed without an answer.
func (l rawConn) isServed(t *testing.T) bool {
	t.Helper()
	_, _ = io.WriteString(l, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") // an error shows in reading
	res, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return true
}

// limitedConnections allows three connections to a client, and any number to the proxy.
func limitedConnections(admin string) doorwardtest.Option {
	return func(c *node.Config) {
		c.Listen, c.AdminListen, c.ConnectionsPerClient = "127.0.0.1:0", admin, 3
		c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}
	}
}

func TestRaceConnectionsPerClient(t *testing.T) {
	t.Parallel()
	admin := freeport.AddressOn("127.0.0.1")
	s := doorwardtest.Start(t, limitedConnections(admin))
	for name, address := range map[string]string{"main": s.Node.Address(), "admin": admin} {
		first := openAllowed(t, name, "127.0.0.2", address)
		if dialFrom(t, "127.0.0.2", address).isServed(t) {
			t.Errorf("%s: a fourth connection of a client is served", name)
		}
		openAllowed(t, name, "127.0.0.3", address)
		for range 10 {
			if !dialFrom(t, "127.0.0.9", address).isServed(t) {
				t.Fatalf("%s: a connection of the proxy is refused", name)
			}
		}
		first.Close()
		waittest.Until(t, "the slot of the closed connection at "+name, func() bool { return dialFrom(t, "127.0.0.2", address).isServed(t) })
	}
}

// openAllowed opens as many connections as a client may, and returns the first.
func openAllowed(t *testing.T, name, from, address string) (first rawConn) {
	t.Helper()
	for i := range 3 {
		l := dialFrom(t, from, address)
		if !l.isServed(t) {
			t.Fatalf("%s: connection %d of %s is refused", name, i+1, from)
		}
		if i == 0 {
			first = l
		}
	}
	return first
}

// Refused connections are counted in the metrics.
func TestRaceConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	s := doorwardtest.Start(t, func(c *node.Config) { c.Listen, c.ConnectionsPerClient = "127.0.0.1:0", 2 })
	for range 2 {
		if !dialFrom(t, "127.0.0.2", s.Node.Address()).isServed(t) {
			t.Fatal("one of two connections is refused")
		}
	}
	for range 5 {
		if dialFrom(t, "127.0.0.2", s.Node.Address()).isServed(t) {
			t.Fatal("a third connection is served")
		}
	}
	if open, refused := metricOf(t, s, "doorward_connections"), metricOf(t, s, "doorward_connections_refused_total"); open != 3 || refused != 5 {
		t.Errorf("%v connections are open and %v were refused, want 3 (the scrape's is one) and 5", open, refused)
	}
}

// A client is refused over TLS before the handshake, and other clients aren't delayed.
func TestConnectionsPerClientOverTLS(t *testing.T) {
	t.Parallel()
	s := startTLS(t, func(c *node.Config) { c.Listen, c.ConnectionsPerClient = "127.0.0.1:0", 1 })
	first := dialFrom(t, "127.0.0.2", s.Node.Address())
	second := dialFrom(t, "127.0.0.2", s.Node.Address())
	if _, err := second.in.ReadByte(); err == nil {
		t.Error("a second connection receives something")
	}
	if res, err := s.client(http2, !keepAlive).Get("https://localhost" + s.Node.Address()[len("127.0.0.1"):] + "/healthz"); err != nil {
		t.Errorf("another client: %v", err)
	} else {
		res.Body.Close()
	}
	first.Close()
}
