package smtptest

import (
	"errors"
	"io"
	"net"
	"net/smtp"
	"net/textproto"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/waittest"
)

const note = "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nContent-Type: text/plain\r\n\r\nHello\r\n"

// send is a client that shares no code with package smtp, whose tests use this server.
func send(s *Server, to string) error {
	return smtp.SendMail(s.Addr(), nil, "me@example.com", []string{to}, []byte(note))
}

func TestWaitSeesWhatComesLater(t *testing.T) {
	s := Start(t, Options{})
	sent := make(chan error, 1)
	go func() { sent <- errors.Join(send(s, "eve@example.com"), send(s, "ada@example.com")) }()
	got := s.Wait(t, "ada@example.com", 1)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	want := []Mail{{From: "me@example.com", To: []string{"ada@example.com"}, Raw: []byte(note), EightBit: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mails to Ada (-want +got):\n%s", diff)
	}
	if l := got[0].Parse(t); l.Subject != "Grüße" || l.Text != "Hello\n" || l.HTML != "" {
		t.Errorf("the mail reads as %+v", l)
	}
	if all := s.Wait(t, "", 2); len(all) != 2 || len(s.Mails()) != 2 {
		t.Errorf("%d mails in all, want 2", len(all))
	}
}

func TestRestartKeepsPortAndMails(t *testing.T) {
	s := Start(t, Options{})
	addr := s.Addr()
	if err := send(s, "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s.Stop() // a second Stop does nothing
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Error("a stopped server can be reached")
	}
	s.Restart(t)
	s.Restart(t)
	if err := send(s, "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	if got := len(s.Wait(t, "ada@example.com", 2)); got != 2 || s.Addr() != addr {
		t.Errorf("%d mails at %s, want 2 at %s", got, s.Addr(), addr)
	}
}

// Stop may be called before go-smtp serves.
func TestStopAtOnce(t *testing.T) {
	for range 200 {
		s := Start(t, Options{})
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		s.Stop()
		conn.SetDeadline(waittest.Deadline())
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection is open after the stop")
		}
		conn.Close()
	}
}

func TestRefuseUntilBehave(t *testing.T) {
	s := Start(t, Options{})
	for _, at := range []Stage{AtConnect, AtSender, AtRecipient, AtContent} {
		s.Refuse(at, 451)
		var reply *textproto.Error
		if err := send(s, "ada@example.com"); !errors.As(err, &reply) || reply.Code != 451 {
			t.Errorf("stage %d: %v, want 451", at, err)
		}
		s.Behave()
		if err := send(s, "ada@example.com"); err != nil {
			t.Errorf("stage %d, after Behave: %v", at, err)
		}
	}
	if !strings.Contains(s.Transcript(), "RCPT TO:<ada@example.com>\r\n") {
		t.Errorf("the transcript misses the recipient:\n%s", s.Transcript())
	}
}

// A server that stalls for some recipients accepts mail for the others, and notices
// when a client disconnects.
func TestStallToSome(t *testing.T) {
	s := Start(t, Options{})
	s.StallTo(func(to string) bool { return strings.HasSuffix(to, "@dead.example") })
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	client, err := smtp.NewClient(conn, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- errors.Join(client.Mail("me@example.com"), client.Rcpt("eve@dead.example")) }()
	waitForStalled(t, s, 1)
	if err := send(s, "ada@example.com"); err != nil {
		t.Error(err)
	}
	select {
	case err := <-answered:
		t.Errorf("answered for a dead host: %v", err)
	default:
	}
	conn.Close()
	waitForStalled(t, s, 0)
	if err := <-answered; err == nil {
		t.Error("the dead host got its mail")
	}
}

// waitForStalled returns when the server stalls this many clients.
func waitForStalled(t *testing.T, s *Server, clients int) {
	t.Helper()
	waittest.Until(t, "another number of stalled clients", func() bool { return s.Stalled() == clients })
}
