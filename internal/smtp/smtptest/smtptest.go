// Package smtptest is a mail server for tests: a real one (go-smtp) on a
// loopback port, which keeps the mails it gets and misbehaves on request.
//
//	sink := smtptest.Start(t, smtptest.Options{})
//	// … let something send to sink.URL() …
//	mail := sink.Wait(t, "ada@example.com", 1)[0]
//	code := mail.Parse(t).Text
//
// It refuses, hangs up or falls silent at a chosen [Stage], until Behave:
//
//	sink.Refuse(smtptest.AtRecipient, 550)
//	sink.HangUp(smtptest.AtContent)
//	sink.Stall(smtptest.AtConnect)
//	sink.StallTo(func(recipient string) bool { return strings.HasSuffix(recipient, "@dead.example") })
//
// Stop makes it unreachable, Restart brings it back on the same port. All
// methods may be called at any time from any goroutine.
package smtptest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/doorward/doorward/internal/waittest"
)

// Options configure the mail server. The zero value accepts mail from anyone and has no
// TLS.
type Options struct {
	TLS            *tls.Config // its certificate (see NewCA); offers STARTTLS
	Implicit       bool        // with TLS: TLS from the first byte, instead of STARTTLS
	User, Password string      // both or neither: requires authentication; with TLS, only under TLS
	Mechanisms     []string    // of authentication: PLAIN, LOGIN; nil is PLAIN
	SevenBit       bool        // does not offer 8BITMIME; not together with TLS
}

// Mail is a mail as the server accepted it.
type Mail struct {
	From     string   // of the envelope
	To       []string // of the envelope
	Raw      []byte   // headers and body, lines ended by CRLF
	TLS      bool     // came through TLS
	User     string   // who signed in; empty: nobody
	EightBit bool     // was announced with BODY=8BITMIME
}

// Stage is a moment in the conversation between client and server.
type Stage int

// The stages, in the order in which they come.
const (
	AtConnect   Stage = iota + 1 // in place of the greeting; with Options.Implicit only Stall
	AtHello                      // EHLO
	AtLogin                      // AUTH
	AtSender                     // MAIL FROM
	AtRecipient                  // RCPT TO
	AtContent                    // Refuse: after all of it; HangUp, Stall: in the middle of it
	AtQuit                       // QUIT, after the mail was accepted; HangUp and Stall only, not under TLS
)

// Server is a running mail server. Start makes one.
type Server struct {
	options Options
	addr    string

	mu          sync.Mutex
	mails       []Mail
	arrived     chan struct{} // closed, and replaced, at every mail
	reactions   map[Stage]reaction
	unreachable func(recipient string) bool // see StallTo; nil: none
	stalled     int                         // connections that wait for an answer
	transcript  strings.Builder
	run         *run // nil while stopped
}

// A run is the server from a start to a stop.
type run struct {
	server   *smtp.Server
	listener *listener
	stopped  chan struct{} // closed by Stop: ends stalls
	served   chan struct{} // closed when no more connections are accepted
}

// Start starts a server on a free port of 127.0.0.1 and stops it when the test
// ends.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	if o.Mechanisms == nil {
		o.Mechanisms = []string{"PLAIN"}
	}
	s := &Server{
		options:   o,
		addr:      "127.0.0.1:0",
		arrived:   make(chan struct{}),
		reactions: map[Stage]reaction{},
	}
	s.Restart(tb)
	tb.Cleanup(s.Stop)
	return s
}

// Restart starts a stopped server again, on the same port and with the mails it
// had. The test fails if another program has taken the port.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		return
	}
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		tb.Fatalf("smtptest: %v", err)
	}
	s.addr = listener.Addr().String()
	s.run = s.serve(listener)
}

func (s *Server) serve(l net.Listener) *run {
	r := &run{stopped: make(chan struct{}), served: make(chan struct{})}
	r.server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return s.newSession(r, c)
	}))
	r.server.Domain = "smtptest.example"
	r.server.ErrorLog = log.New(io.Discard, "", 0) // tests break connections on purpose
	r.server.Debug = (*transcriptWriter)(s)
	r.server.EnableSMTPUTF8 = true // so that unneeded use of it shows
	r.server.AllowInsecureAuth = s.options.TLS == nil
	r.listener = &listener{Listener: l, server: s, run: r}
	l = r.listener
	if s.options.Implicit {
		l = tls.NewListener(l, s.options.TLS)
	} else {
		r.server.TLSConfig = s.options.TLS
	}
	go func() {
		defer close(r.served)
		_ = r.server.Serve(l) // ends by Stop
	}()
	return r
}

// Stop closes the port and cuts all connections. Mails and reactions stay.
func (s *Server) Stop() {
	s.mu.Lock()
	r := s.run
	s.run = nil
	s.mu.Unlock()
	if r == nil {
		return
	}
	close(r.stopped)
	_ = r.server.Close()
	r.listener.closeAll()
}

// Addr is host:port, the same after each Restart.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// URL is the destination of this server, including credentials.
func (s *Server) URL() string {
	u := url.URL{Scheme: "smtp", Host: s.Addr()}
	if s.options.Implicit {
		u.Scheme = "smtps"
	}
	if s.options.User != "" {
		u.User = url.UserPassword(s.options.User, s.options.Password)
	}
	return u.String()
}

// Mails returns all mails accepted so far, oldest first.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// Wait returns the mails to an address of the envelope (any, when recipient is empty),
// oldest first, as soon as there are n of them.
func (s *Server) Wait(tb testing.TB, recipient string, n int) []Mail {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), waittest.Limit)
	defer cancel()
	for {
		found, more := s.mailsTo(recipient)
		if len(found) >= n {
			return found
		}
		select {
		case <-more:
		case <-ctx.Done():
			tb.Fatalf("smtptest: %d mails to %q in %v, want %d", len(found), recipient, waittest.Limit, n)
		}
	}
}

func (s *Server) mailsTo(recipient string) (found []Mail, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mails {
		if recipient == "" || slices.Contains(m.To, recipient) {
			found = append(found, m)
		}
	}
	return found, s.arrived
}

func (s *Server) accept(m Mail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, m)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// Transcript returns everything that clients and server sent so far on all connections,
// before encryption.
func (s *Server) Transcript() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transcript.String()
}

// transcriptWriter writes to the transcript of a Server.
type transcriptWriter Server

func (s *transcriptWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transcript.Write(p)
}
