package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// listener is one address with its limits and its handler.
type listener struct {
	net.Listener
	limiter      *connLimiter
	handler      http.Handler
	acceptErrors *acceptLog
}

// ListenError says that the address of a setting can't be listened on.
type ListenError struct {
	Setting, Address string
	Err              error
}

// Error names the address and the system's reason.
func (e *ListenError) Error() string { return fmt.Sprintf("node: listen on %s: %v", e.Address, e.Err) }

// Unwrap returns the system's reason, such as EADDRINUSE.
func (e *ListenError) Unwrap() error { return e.Err }

// listen turns off Multipath TCP, which Go uses by default: Linux takes no socket filter there,
// and refuseNew needs one. The error is a *ListenError.
func listen(setting, addr string) (*listener, error) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	l, err := plain.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, &ListenError{setting, addr, err}
	}
	return &listener{Listener: l}, nil
}

// writeBuffer is the kernel's send buffer of a connection, in bytes; Linux takes twice
// as much memory. By default it grew to 3.8 MiB for a client that reads nothing, outside
// any limit of the process. A client with a round trip of 100 ms still gets 1.3 MB/s.
const writeBuffer = 128 << 10

// Accept returns the next connection. One over the limit of its client is reset: an
// answer would have to wait for a request, and over TLS for a handshake.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.acceptErrors.logError(err)
			return nil, err
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return conn, nil
		}
		if counted := l.limiter.admit(tcp); counted != nil {
			_ = tcp.SetWriteBuffer(writeBuffer) // else the kernel's own choice
			return counted, nil
		}
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

// address returns the requested address with the actual port, and the unspecified
// address if no host was given.
func (l *listener) address(requested string) string {
	host, _, err := net.SplitHostPort(requested)
	if err != nil || host == "" {
		return l.Addr().String()
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port)
}

// Run serves until ctx ends, then drains: requests in flight, and those that still
// arrive, are answered before the connections close. It closes the node. The error is
// nil after a clean end.
func (n *Node) Run(ctx context.Context) error {
	upkeep, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.App.Lease.Begin(upkeep) // so that nobody is answered before there is a lease
	var work sync.WaitGroup
	work.Go(func() { n.App.Run(n.tracer.NewContext(upkeep)) })
	servers := n.servers()
	failed := make(chan error, len(servers))
	if n.cfg.TLS != nil {
		go n.cfg.TLS.Run(upkeep) // not waited for: an order for a certificate takes minutes
	}
	for _, s := range servers {
		work.Go(func() { s.listener.limiter.conns.run(upkeep) })
		go func() { failed <- <-s.failed }()
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		n.drain(servers)
	}
	stop()
	work.Wait()
	return errors.Join(err, n.Close())
}

// server is a listener being served.
type server struct {
	http     *http.Server
	listener *listener
	done     chan struct{} // closed when nothing is accepted any more
	failed   chan error    // gets the reason
}

// servers starts the server of the main address, and returns it and that of the admin address.
func (n *Node) servers() []server {
	main := n.serverOn(n.main)
	if n.cfg.TLS != nil {
		main.http.TLSConfig = n.cfg.TLS.Config()
	}
	main.start()
	if n.admin == nil {
		return []server{main}
	}
	return []server{main, *n.admin}
}

func (n *Node) serverOn(l *listener) server {
	s := server{http: newServer(l.handler), listener: l, done: make(chan struct{}), failed: make(chan error, 1)}
	s.http.ConnState = l.limiter.conns.connState
	// net/http logs errors of clients, mostly failed handshakes: a network scan would
	// fill the log.
	s.http.ErrorLog = slog.NewLogLogger(n.cfg.Log.Handler(), slog.LevelDebug)
	return s
}

// start serves until the listener is closed.
func (s server) start() {
	go func() { s.failed <- s.serve() }()
}

// serve offers HTTP/2 where there is TLS.
func (s server) serve() error {
	defer close(s.done)
	if s.http.TLSConfig == nil {
		return s.http.Serve(s.listener)
	}
	return s.http.ServeTLS(s.listener, "", "")
}

// newServer bounds what a slow or hostile client can hold. web/front bounds the times for the
// body and the answer of each request; connLimiter bounds the connections.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h,
		// OPTIONS * is answered like any other path that does not exist.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            5 * time.Second,
		IdleTimeout:                  2 * time.Minute,
		WriteTimeout:                 30 * time.Second,
		MaxHeaderBytes:               32 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, // the least that RFC 9113, section 6.5.2, advises
			// The size of a frame, and of data that is received but not read yet.
			// The defaults are 1 MiB each, and no body is longer than 64 KiB.
			MaxReadFrameSize:              16 << 10, // the least, by the same section
			MaxReceiveBufferPerConnection: 256 << 10,
			MaxReceiveBufferPerStream:     64 << 10,
		},
	}
}

const (
	// drainTimeout bounds the wait for answers. No request takes more than 12 s, and only one that waits for
	// a server outside more than 3 s.
	drainTimeout = 12 * time.Second
	// handshakeGrace is for TCP handshakes in progress: a round trip.
	handshakeGrace = 100 * time.Millisecond
	// pollEvery is how often a drain counts the connections that it waits for.
	pollEvery = 5 * time.Millisecond
)

// drain announces the end, accepts connections that still arrive, answers all requests
// and closes. http.Server.Shutdown would drop requests that it reads after the call.
func (n *Node) drain(servers []server) {
	n.cfg.Log.Info("draining")
	n.draining.Store(true)
	time.Sleep(n.cfg.Announce)
	for _, s := range servers { // the admin address last: /readyz reports the drain
		if n.cfg.Announce > 0 && s.listener.refuseNew() == nil { // without an announcement, as in dev, end at once
			time.Sleep(handshakeGrace)
			waitUntilNone(drainTimeout, s.listener.unaccepted) // a busy machine may accept late
		}
		_ = s.listener.Close() // Serve returns; its connections stay
		<-s.done               // so that all of them are counted
		if unanswered := waitUntilNone(drainTimeout, s.listener.limiter.conns.countPending); unanswered > 0 {
			n.cfg.Log.Warn("requests cut off without an answer", "address", s.listener.Addr(), "connections", unanswered)
		}
		_ = s.http.Close() // of idle connections
	}
}
