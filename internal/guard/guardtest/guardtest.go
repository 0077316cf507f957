// Package guardtest is a name server for tests of requests to addresses that customers have
// typed.
package guardtest

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Public is a public address. No test connects to it.
const Public = "93.184.215.14"

// NameServer answers every question for an IPv4 address with the next of its addresses; the
// last one repeats. Without addresses it answers that the name doesn't exist.
type NameServer struct {
	Addrs []string
	asked atomic.Int64
}

// Asked returns how many questions there were for an IPv4 address.
func (n *NameServer) Asked() int64 { return n.asked.Load() }

// Resolver starts the server, until the test ends, and returns a resolver that asks it.
func (n *NameServer) Resolver(t testing.TB) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go n.serve(conn)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// Unreachable returns a resolver whose server can't be reached.
func Unreachable() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
	}}
}

func (n *NameServer) serve(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		size, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:size]) != nil {
			continue
		}
		m.Response, m.RecursionAvailable = true, true
		m.Additionals = nil
		switch q := m.Questions[0]; {
		case len(n.Addrs) == 0:
			m.RCode = dnsmessage.RCodeNameError
		case q.Type == dnsmessage.TypeA:
			at := min(int(n.asked.Add(1)), len(n.Addrs)) - 1
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(n.Addrs[at]).As4()},
			}}
		}
		out, _ := m.Pack()
		_, _ = conn.WriteTo(out, from)
	}
}
