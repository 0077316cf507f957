// Package faultproxy is a TCP proxy that fails on request, to be put between a
// program and the server that it depends on.
//
//	p, err := faultproxy.New("127.0.0.1:5432")
//	… the program connects to p.Addr() …
//	p.Hold()
//	p.Heal()
//
// There are several kinds of faults, because programs that survive one may fail
// with another:
//
//   - [Proxy.Hold]: nothing passes, nothing is lost, as with a short network outage: TCP retransmits, and every connection continues.
//   - [Proxy.Drop]: nothing passes, and open connections stay open and silent forever, as with a NAT that has dropped them or a machine without power: there is never an error.
//   - [Proxy.Break]: connections are reset, new ones as soon as they are made, as after a process has died on a running machine.
//   - [Proxy.Delay]: everything passes late, and connections may overtake each other.
//
// A connection made while nothing passes is accepted but gets no data.
package faultproxy

import (
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Proxy forwards connections to one address. Its methods may be called from several
// goroutines.
type Proxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // signals that one of the next fields has changed
	blocked bool       // nothing passes
	broken  bool       // connections are reset
	closed  bool
	delay   time.Duration // the longest
	links   map[*link]bool
}

// link is one connection on its way through.
type link struct {
	client, server net.Conn // server is nil until the target is dialled
	lost           bool     // all data is dropped
}

// New listens on a free loopback port. It connects to the target, host:port, only when
// a client connects.
func New(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, links: map[*link]bool{}}
	p.changed = sync.NewCond(&p.mu)
	p.work.Go(p.accept)
	return p, nil
}

// Addr returns the proxy's address, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Hold blocks all data until Heal.
func (p *Proxy) Hold() {
	p.set(func() { p.blocked = true })
}

// Drop loses everything on the existing connections, now and after Heal, without
// closing them. New ones get no data until Heal.
func (p *Proxy) Drop() {
	p.set(func() {
		p.blocked = true
		for l := range p.links {
			l.lost = true
		}
	})
}

// Break resets all connections, and new ones at once, until Heal.
func (p *Proxy) Break() {
	p.set(func() {
		p.broken = true
		p.reset()
	})
}

// Delay delays each piece of data, in either direction, for a random time until
// Heal: usually short, but one time in ten longer than half of longest.
func (p *Proxy) Delay(longest time.Duration) {
	p.set(func() { p.delay = longest })
}

// Heal ends every fault. Connections that Drop has silenced stay silent.
func (p *Proxy) Heal() {
	p.set(func() { p.blocked, p.broken, p.delay = false, false, 0 })
}

// Close resets all connections and returns when all goroutines of the proxy have
// ended.
func (p *Proxy) Close() {
	p.listener.Close()
	p.set(func() {
		p.closed, p.blocked = true, false
		p.reset()
	})
	p.work.Wait()
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// reset ends all links; their readers get the error.
func (p *Proxy) reset() {
	for l := range p.links {
		l.close()
	}
}

func (l *link) close() {
	for _, c := range []net.Conn{l.client, l.server} {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0) // RST, not FIN
			tcp.Close()
		}
	}
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(&link{client: c}) })
	}
}

// serve connects to the target only when data can pass: while it can't, a SYN wouldn't
// arrive either.
func (p *Proxy) serve(l *link) {
	p.set(func() { p.links[l] = true })
	defer p.set(func() {
		delete(p.links, l)
		l.close()
	})
	if _, ok := p.pass(l); !ok {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	p.set(func() { l.server = server })
	if _, ok := p.pass(l); !ok { // broken or closed while it was dialled
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { p.pump(l, l.server, l.client) })
	pumps.Go(func() { p.pump(l, l.client, l.server) })
	pumps.Wait()
}

// pump carries one direction. The end of a connection is delayed like data: while nothing
// passes, a server doesn't see that a client has gone.
func (p *Proxy) pump(l *link, to, from net.Conn) {
	defer l.close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		lost, ok := p.pass(l)
		if err != nil || !ok {
			return
		}
		if lost {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// pass waits until data may pass. It reports whether the data is dropped; ok is false if the
// link has to end.
func (p *Proxy) pass(l *link) (lost, ok bool) {
	p.mu.Lock()
	longest := p.delay
	p.mu.Unlock()
	if longest > 0 {
		time.Sleep(time.Duration(float64(longest) * math.Pow(rand.Float64(), 6)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.blocked && !p.broken && !p.closed {
		p.changed.Wait()
	}
	return l.lost, !p.broken && !p.closed
}
