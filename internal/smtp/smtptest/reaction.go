package smtptest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/emersion/go-smtp"
)

// A reaction is how the server misbehaves at a stage.
type reaction struct {
	code  int    // answers with this code
	text  string // and this text; empty: one of its own
	stall bool   // never answers; without code and stall it hangs up
}

// Refuse makes the server answer with a code from 400 to 599 at a stage.
func (s *Server) Refuse(at Stage, code int) { s.misbehave(at, reaction{code: code}) }

// RefuseSaying makes the server answer with a code and the text of a real server's reply at a stage, with the
// enhanced status code, if it has one.
func (s *Server) RefuseSaying(at Stage, code int, text string) {
	s.misbehave(at, reaction{code: code, text: text})
}

// HangUp makes the server cut the connection at a stage.
func (s *Server) HangUp(at Stage) { s.misbehave(at, reaction{}) }

// Stall makes the server stop answering at a stage. The connection stays open until the
// client closes it or Stop cuts it.
func (s *Server) Stall(at Stage) { s.misbehave(at, reaction{stall: true}) }

// StallTo makes the server stop answering at a recipient for which unreachable returns true,
// like a server that waits for the recipient's host.
func (s *Server) StallTo(unreachable func(recipient string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreachable = unreachable
}

// Stalled returns how many clients are waiting for an answer now.
func (s *Server) Stalled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalled
}

// Behave makes the server accept everything again, except on connections that are
// already stalled.
func (s *Server) Behave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.reactions)
	s.unreachable = nil
}

func (s *Server) misbehave(at Stage, r reaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reactions[at] = r
}

// react misbehaves at a stage if the test has asked for it, and returns an error then.
func (s *Server) react(at Stage, r *run, conn net.Conn) error {
	s.mu.Lock()
	wanted, found := s.reactions[at]
	s.mu.Unlock()
	switch {
	case !found:
		return nil
	case wanted.text != "":
		return &smtp.SMTPError{Code: wanted.code, EnhancedCode: smtp.NoEnhancedCode, Message: wanted.text}
	case wanted.code != 0:
		return &smtp.SMTPError{Code: wanted.code, Message: "refused on request of the test"}
	case wanted.stall:
		s.stall(r, conn)
	}
	conn.Close()
	return errors.New("connection cut on request of the test")
}

// stall returns when the server is stopped or the client has disconnected.
func (s *Server) stall(r *run, conn net.Conn) {
	s.addStalled(1)
	defer s.addStalled(-1)
	disconnected := make(chan struct{})
	go func() {
		defer close(disconnected)
		_, _ = io.Copy(io.Discard, conn)
	}()
	select {
	case <-r.stopped:
	case <-disconnected:
	}
}

func (s *Server) addStalled(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled += n
}

func (s *Server) isUnreachable(recipient string) bool {
	s.mu.Lock()
	unreachable := s.unreachable
	s.mu.Unlock()
	return unreachable != nil && unreachable(recipient)
}

// A listener wraps connections and keeps them: go-smtp's Close misses connections and
// listeners that it doesn't serve yet.
type listener struct {
	net.Listener
	server *Server
	run    *run

	mu    sync.Mutex
	conns []*serverConn
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	w := &serverConn{Conn: conn, server: l.server, run: l.run}
	l.mu.Lock()
	l.conns = append(l.conns, w)
	l.mu.Unlock()
	return w, nil
}

// closeAll closes the port, and then all connections.
func (l *listener) closeAll() {
	_ = l.Listener.Close()
	<-l.run.served
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.conns {
		_ = w.Close()
	}
}

// A serverConn is the server's end of a connection. It misbehaves where go-smtp has no hook.
// Read and Write get whole lines: go-smtp flushes every line of an answer, and clients
// that don't pipeline send one command at a time.
type serverConn struct {
	net.Conn
	server  *Server
	run     *run
	greeted bool // the greeting was sent
}

var (
	quit         = []byte("QUIT\r\n")
	eightBitMIME = []byte("250-8BITMIME\r\n")
)

func (w *serverConn) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err == nil && bytes.Equal(p[:n], quit) {
		if err := w.server.react(AtQuit, w.run, w.Conn); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (w *serverConn) Write(p []byte) (int, error) {
	if w.server.options.SevenBit && bytes.Equal(p, eightBitMIME) {
		return len(p), nil
	}
	if w.greeted {
		return w.Conn.Write(p)
	}
	w.greeted = true
	err := w.server.react(AtConnect, w.run, w.Conn)
	var refusal *smtp.SMTPError
	if errors.As(err, &refusal) {
		fmt.Fprintf(w.Conn, "%d %s\r\n", refusal.Code, refusal.Message)
		w.Conn.Close()
	}
	if err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}
