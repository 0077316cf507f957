package smtp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/smtp/smtptest"
	"github.com/doorward/doorward/internal/waittest"
)

// transportTo returns the transport to sink, trusting ca; an empty one is for servers without
// TLS.
func transportTo(t *testing.T, sink *smtptest.Server, query string, ca smtptest.CA) *server {
	t.Helper()
	s := mustOpen(t, sink.URL()+query).(*server)
	s.roots = ca.Roots
	return s
}

// withHost gives s another host name for its server, as if DNS resolved it to the sink.
func withHost(s *server, host string) *server {
	addr := s.addr()
	s.host = host
	s.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	return s
}

func TestMailArrives(t *testing.T) {
	ca := smtptest.NewCA(t)
	login := smtptest.Options{User: "bob@example.com", Password: "p@ss/wörd:%#?"}
	for name, tt := range map[string]struct {
		options smtptest.Options
		query   string
		tls     bool
	}{
		"in the clear":              {smtptest.Options{}, "", false},
		"STARTTLS":                  {smtptest.Options{TLS: ca.Server}, "", true},
		"STARTTLS, required":        {smtptest.Options{TLS: ca.Server}, "?tls=require", true},
		"STARTTLS, declined":        {smtptest.Options{TLS: ca.Server}, "?tls=none", false},
		"implicit TLS":              {smtptest.Options{TLS: ca.Server, Implicit: true}, "", true},
		"login on loopback":         {login, "", false},
		"login after STARTTLS":      {smtptest.Options{TLS: ca.Server, User: login.User, Password: login.Password}, "", true},
		"login in implicit TLS":     {smtptest.Options{TLS: ca.Server, Implicit: true, User: login.User, Password: login.Password}, "", true},
		"LOGIN, the only mechanism": {smtptest.Options{TLS: ca.Server, User: login.User, Password: login.Password, Mechanisms: []string{"LOGIN"}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			sink := smtptest.Start(t, tt.options)
			s := transportTo(t, sink, tt.query, ca)
			if err := s.Check(testContext(t)); err != nil {
				t.Fatalf("check: %v", err)
			}
			if got := sink.Mails(); len(got) != 0 {
				t.Fatalf("the check sent %d mails", len(got))
			}
			if err := s.Send(testContext(t), sample()); err != nil {
				t.Fatal(err)
			}
			want := []smtptest.Mail{{
				From: "no-reply@doorward.example", To: []string{"ada@example.com"},
				TLS: tt.tls, User: tt.options.User, EightBit: true,
			}}
			got := sink.Mails()
			if diff := cmp.Diff(want, got, cmp.FilterPath(isRaw, cmp.Ignore())); diff != "" {
				t.Fatalf("mails (-want +got):\n%s", diff)
			}
			if text := got[0].Parse(t).Text; text != sample().Text+"\n" {
				t.Errorf("text is %q", text)
			}
			talk := sink.Transcript()
			if strings.Count(talk, "QUIT\r\n") != 2 {
				t.Errorf("not every connection ends with QUIT:\n%s", talk)
			}
			if !strings.Contains(talk, "MAIL FROM:<no-reply@doorward.example> BODY=8BITMIME\r\n") {
				t.Errorf("BODY=8BITMIME is not the only parameter of MAIL FROM:\n%s", talk)
			}
		})
	}
}

func isRaw(p cmp.Path) bool { return p.Last().String() == ".Raw" }

func TestCodeAndLinkArriveUnfolded(t *testing.T) {
	for name, o := range map[string]smtptest.Options{"8BITMIME": {}, "7 bit": {SevenBit: true}} {
		sink := smtptest.Start(t, o)
		m := sample()
		if o.SevenBit { // where quoted-printable is needed it folds; ASCII needs none
			m.Text = link + "\n" + code + "\n"
		}
		if err := mustOpen(t, sink.URL()).Send(testContext(t), m); err != nil {
			t.Fatal(err)
		}
		raw := sink.Mails()[0].Raw
		for _, line := range []string{link, code} {
			if !bytes.Contains(raw, []byte("\r\n"+line+"\r\n")) {
				t.Errorf("%s: %s is not alone on a line of\n%s", name, line, raw)
			}
		}
	}
}

func TestSevenBitServerGetsASCII(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{SevenBit: true})
	if err := mustOpen(t, sink.URL()).Send(testContext(t), sample()); err != nil {
		t.Fatal(err)
	}
	got := sink.Mails()[0]
	if got.EightBit {
		t.Error("the mail was announced as 8BITMIME")
	}
	if bytes.ContainsFunc(got.Raw, func(r rune) bool { return r > 0x7f }) {
		t.Errorf("not ASCII:\n%s", got.Raw)
	}
	if text := got.Parse(t).Text; text != sample().Text+"\n" {
		t.Errorf("text is %q", text)
	}
}

func TestUntrustedServerGetsNothing(t *testing.T) {
	ours, theirs := smtptest.NewCA(t), smtptest.NewCA(t)
	for _, implicit := range []bool{false, true} {
		sink := smtptest.Start(t, smtptest.Options{TLS: theirs.Server, Implicit: implicit, User: "bob", Password: "sekret"})
		for name, s := range map[string]*server{
			"unknown CA": transportTo(t, sink, "", ours),
			"other name": withHost(transportTo(t, sink, "", theirs), "mail.example"),
		} {
			err := s.Send(testContext(t), sample())
			var untrusted *tls.CertificateVerificationError
			if !errors.As(err, &untrusted) || IsPermanent(err) {
				t.Errorf("%s, implicit %v: %v, want a temporary error about the certificate", name, implicit, err)
			} else if !strings.Contains(err.Error(), "SSL_CERT_FILE") {
				t.Errorf("%s: the error doesn't say what to do: %v", name, err)
			}
		}
		if talk := sink.Transcript(); strings.Contains(talk, "AUTH ") || strings.Contains(talk, "MAIL") {
			t.Errorf("the server received:\n%s", talk)
		}
	}
}

// The system's roots are read once per process, so this starts other processes.
func TestSystemRootsComeFromSSLCertFile(t *testing.T) {
	ca := smtptest.NewCA(t)
	sink := smtptest.Start(t, smtptest.Options{TLS: ca.Server, User: "bob", Password: "sekret"})
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	distrusting := jobCommand(t, "check", sink.URL())
	if out, err := distrusting.CombinedOutput(); err == nil || !strings.Contains(string(out), "certificate") {
		t.Errorf("without SSL_CERT_FILE: %v, %s", err, out)
	}
	trusting := jobCommand(t, "check", sink.URL())
	trusting.Env = append(trusting.Env, "SSL_CERT_FILE="+file)
	if out, err := trusting.CombinedOutput(); err != nil {
		t.Errorf("with SSL_CERT_FILE: %v, %s", err, out)
	}
}

func TestPasswordIsNotSentWithoutTLS(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{User: "bob", Password: "sekret"})
	err := withHost(transportTo(t, sink, "", smtptest.CA{}), "mail.example").Send(testContext(t), sample())
	if err == nil || IsPermanent(err) || !strings.Contains(err.Error(), "STARTTLS") {
		t.Errorf("got %v, want a temporary error that names STARTTLS", err)
	}
	if talk := sink.Transcript(); !strings.Contains(talk, "EHLO") || strings.Contains(talk, "\nAUTH") {
		t.Errorf("want a hello and no AUTH:\n%s", talk)
	}
}

// If secure wrongly allowed a connection, go-mail would still refuse to send the
// password.
func TestPasswordIsGuardedTwice(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "LOGIN"} {
		sink := smtptest.Start(t, smtptest.Options{User: "bob", Password: "sekret", Mechanisms: []string{mechanism}})
		s := withHost(transportTo(t, sink, "", smtptest.CA{}), "mail.example")
		s.security = tlsNone // parsing refuses this
		if err := s.Send(testContext(t), sample()); err == nil {
			t.Errorf("%s: sent", mechanism)
		}
		if talk := sink.Transcript(); strings.Contains(talk, "\nAUTH") {
			t.Errorf("%s: the server received:\n%s", mechanism, talk)
		}
	}
}

func TestRequiredTLSIsRequired(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{})
	err := transportTo(t, sink, "?tls=require", smtptest.CA{}).Send(testContext(t), sample())
	if err == nil || IsPermanent(err) || !strings.Contains(err.Error(), "STARTTLS") {
		t.Errorf("got %v, want a temporary error that names STARTTLS", err)
	}
	if got := sink.Mails(); len(got) != 0 {
		t.Errorf("%d mails arrived", len(got))
	}
}

func TestClearTextIsWarnedAboutOnce(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{})
	var lines bytes.Buffer
	s := withHost(transportTo(t, sink, "", smtptest.CA{}), "mail.example")
	s.log = slog.New(slog.NewTextHandler(&lines, nil))
	for range 2 {
		if err := s.Send(testContext(t), sample()); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(lines.String(), "level=WARN"); got != 1 {
		t.Errorf("%d warnings, want 1:\n%s", got, lines.String())
	}
}

func TestTLSToAPlainPortIsExplained(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{})
	err := mustOpen(t, strings.Replace(sink.URL(), "smtp:", "smtps:", 1)).Check(testContext(t))
	if err == nil || !strings.Contains(err.Error(), "write smtp://") {
		t.Errorf("got %v, want the hint to write smtp://", err)
	}
}

func TestRefusalsArePermanentOrNot(t *testing.T) {
	const temporary, permanent = false, true
	for _, tt := range []struct {
		at   smtptest.Stage
		code int
		want bool
	}{
		{smtptest.AtConnect, 421, temporary},
		{smtptest.AtConnect, 554, temporary},
		{smtptest.AtHello, 450, temporary},
		{smtptest.AtHello, 550, temporary},
		{smtptest.AtLogin, 454, temporary},
		{smtptest.AtLogin, 535, temporary},
		{smtptest.AtSender, 451, temporary},
		{smtptest.AtSender, 550, temporary},
		{smtptest.AtRecipient, 421, temporary},
		{smtptest.AtRecipient, 450, temporary},
		{smtptest.AtRecipient, 499, temporary},
		{smtptest.AtRecipient, 530, temporary},
		{smtptest.AtRecipient, 535, temporary},
		{smtptest.AtRecipient, 500, permanent},
		{smtptest.AtRecipient, 550, permanent},
		{smtptest.AtRecipient, 599, permanent},
		{smtptest.AtContent, 451, temporary},
		{smtptest.AtContent, 552, permanent},
		{smtptest.AtContent, 554, permanent},
	} {
		t.Run(fmt.Sprint(tt.at, tt.code), func(t *testing.T) {
			sink := smtptest.Start(t, smtptest.Options{User: "bob", Password: "sekret"})
			s := mustOpen(t, sink.URL())
			sink.Refuse(tt.at, tt.code)
			err := s.Send(testContext(t), sample())
			if err == nil {
				t.Fatal("sent")
			}
			if got := IsPermanent(err); got != tt.want {
				t.Errorf("permanent is %v, want %v: %v", got, tt.want, err)
			}
			for _, want := range []string{sink.Addr(), fmt.Sprint(tt.code)} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not name %s: %v", want, err)
				}
			}
			if mails := sink.Mails(); len(mails) != 0 {
				t.Errorf("%d mails arrived", len(mails))
			}
			sink.Behave()
			if err := s.Send(testContext(t), sample()); err != nil {
				t.Errorf("the next attempt: %v", err)
			}
		})
	}
}

// Replies of Postfix, Exim, Exchange, qmail, Gmail, Amazon SES and SendGrid. Those about this machine or its sender are corrected by
// the operator, while the mail waits; doctor finds those about the machine.
func TestRefusalsOfThisMachine(t *testing.T) {
	for _, tt := range []struct {
		at                smtptest.Stage
		code              int
		text              string
		permanent, client bool
	}{
		{smtptest.AtRecipient, 554, "5.7.1 <ada@example.com>: Relay access denied", false, true},
		{smtptest.AtRecipient, 550, "relay not permitted", false, true},
		{smtptest.AtRecipient, 550, "5.7.54 SMTP; Unable to relay recipient in non-accepted domain", false, true},
		{smtptest.AtRecipient, 550, "5.7.1 Relaying denied", false, true},
		{smtptest.AtRecipient, 553, "sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", false, true},
		{smtptest.AtRecipient, 504, "5.5.2 <box>: Helo command rejected: need fully-qualified hostname", false, true},
		{smtptest.AtRecipient, 450, "4.7.1 <box>: Helo command rejected: Host not found", false, false},
		{smtptest.AtRecipient, 554, "5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org", false, true},
		{smtptest.AtRecipient, 530, "5.7.0 Must issue a STARTTLS command first", false, true},
		{smtptest.AtRecipient, 553, "5.7.1 <no-reply@doorward.example>: Sender address rejected: not owned by user bob", false, false},
		{smtptest.AtRecipient, 550, "5.1.1 <ada@example.com>: Recipient address rejected: User unknown", true, false},
		{smtptest.AtRecipient, 554, "5.7.1 <ada@example.com>: Recipient address rejected: Access denied", true, false},
		{smtptest.AtContent, 550, "5.7.26 Unauthenticated email from doorward.example is not accepted due to domain's DMARC policy", false, false},
		{smtptest.AtContent, 550, "5.7.25 The IP address sending this message does not have a PTR record", false, false},
		{smtptest.AtContent, 554, "5.7.1 Spam message rejected", true, false},
		{smtptest.AtRecipient, 550, "5.7.1 Client was not authenticated", false, true},
		{smtptest.AtRecipient, 503, "5.5.1 authentication required", false, true},
		{smtptest.AtRecipient, 550, "5.7.606 Access denied, banned sending IP [192.0.2.1]", false, true},
		{smtptest.AtRecipient, 550, "5.7.1 [192.0.2.1] The IP you're using to send mail is not authorized to send email directly to our servers", false, true},
		{smtptest.AtRecipient, 550, "5.4.5 Daily user sending limit exceeded", false, true},
		{smtptest.AtRecipient, 550, "Sender verify failed", false, false},
		{smtptest.AtContent, 550, "5.7.60 SMTP; Client does not have permissions to send as this sender", false, false},
		{smtptest.AtContent, 554, "Message rejected: Email address is not verified. The following identities failed the check: no-reply@doorward.example", false, false},
		{smtptest.AtContent, 550, "The from address does not match a verified Sender Identity", false, false},
		{smtptest.AtContent, 550, "5.7.515 Access denied, sending domain doorward.example doesn't meet the required level", false, false},
		{smtptest.AtRecipient, 550, "5.1.1 <relay@dkim.example.com>: Recipient address rejected: User unknown", true, false}, // an address says nothing
		{smtptest.AtRecipient, 550, "5.1.1 ehlo@example.com... User unknown", true, false},
		{smtptest.AtRecipient, 552, "5.2.2 mailbox over quota", true, false},
		{smtptest.AtSender, 504, "5.5.2 <box>: Helo command rejected: need fully-qualified hostname", false, true},
		{smtptest.AtHello, 550, "5.7.1 invalid EHLO name", false, true},
	} {
		sink := smtptest.Start(t, smtptest.Options{})
		s := mustOpen(t, sink.URL())
		sink.RefuseSaying(tt.at, tt.code, tt.text)
		if err := s.Send(testContext(t), sample()); err == nil || IsPermanent(err) != tt.permanent {
			t.Errorf("%s: %v, want permanent: %v", tt.text, err, tt.permanent)
		}
		if err := s.Check(testContext(t)); IsClientRefused(err) != tt.client || (err != nil) != tt.client {
			t.Errorf("%s: the check says %v, want a refusal of the machine: %v", tt.text, err, tt.client)
		}
	}
}

// The name in EHLO, which servers judge: RFC 5321, section 4.1.1.1.
func TestHello(t *testing.T) {
	for name, want := range map[string]string{"auth.example.com": "auth.example.com", "192.0.2.1": "[192.0.2.1]", "2001:db8::1": "[IPv6:2001:db8::1]"} {
		sink := smtptest.Start(t, smtptest.Options{})
		transport, err := Open(sink.URL(), sender, name, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := transport.Send(testContext(t), sample()); err != nil || !strings.Contains(sink.Transcript(), "EHLO "+want+"\r\n") {
			t.Errorf("%s: %v, in\n%s", name, err, sink.Transcript())
		}
	}
	for _, name := range []string{"a b", "auth.example.com\r\nQUIT", "bücher.example", "auth..example", "[192.0.2.1]", "fe80::1%eth0", strings.Repeat("a", 256)} {
		if _, err := Open("smtp://localhost", sender, name, quiet); err == nil || !strings.Contains(err.Error(), "mail hello: ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestWrongPasswordIsTemporary(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{User: "bob", Password: "sekret"})
	s := mustOpen(t, strings.Replace(sink.URL(), "sekret", "hunter2", 1))
	for name, err := range map[string]error{"send": s.Send(testContext(t), sample()), "check": s.Check(testContext(t))} {
		switch {
		case err == nil:
			t.Errorf("%s: passed", name)
		case IsPermanent(err):
			t.Errorf("%s: permanent: %v", name, err)
		case !strings.Contains(err.Error(), `signing in as "bob": 535`):
			t.Errorf("%s: error does not say what failed: %v", name, err)
		case strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: error repeats the password: %v", name, err)
		}
	}
}

func TestMissingPasswordIsTemporary(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{User: "bob", Password: "sekret"})
	if err := mustOpen(t, "smtp://"+sink.Addr()).Send(testContext(t), sample()); err == nil || IsPermanent(err) {
		t.Errorf("got %v, want a temporary error", err)
	}
}

func TestServerWithoutLoginIsExplained(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{})
	err := mustOpen(t, "smtp://bob:sekret@"+sink.Addr()).Check(testContext(t))
	if err == nil || !strings.Contains(err.Error(), "leave user and password out") {
		t.Errorf("got %v, want the hint to leave user and password out", err)
	}
}

var stagesBeforeAcceptance = []smtptest.Stage{
	smtptest.AtConnect, smtptest.AtHello, smtptest.AtLogin,
	smtptest.AtSender, smtptest.AtRecipient, smtptest.AtContent,
}

func TestSilentServerEndsAtTheDeadline(t *testing.T) {
	ca := smtptest.NewCA(t)
	for _, at := range stagesBeforeAcceptance {
		sink := smtptest.Start(t, smtptest.Options{User: "bob", Password: "sekret"})
		sink.Stall(at)
		checkDeadline(t, fmt.Sprint("stage ", at), transportTo(t, sink, "", ca))
	}
	sink := smtptest.Start(t, smtptest.Options{TLS: ca.Server, Implicit: true})
	sink.Stall(smtptest.AtConnect)
	checkDeadline(t, "TLS handshake", transportTo(t, sink, "", ca))
}

func checkDeadline(t *testing.T, name string, s *server) {
	t.Helper()
	short, cancel := waittest.Interrupt(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Send(short, sample()); !errors.Is(err, context.DeadlineExceeded) || IsPermanent(err) {
		t.Errorf("%s: %v, want a temporary error by deadline", name, err)
	}
	s.sendTimeout = 100 * time.Millisecond
	if err := s.Send(context.Background(), sample()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s, context without deadline: %v, want an error by deadline", name, err)
	}
}

func TestCancellingEndsASending(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{})
	sink.Stall(smtptest.AtConnect)
	s := mustOpen(t, sink.URL()).(*server)
	ctx, cancel := context.WithCancel(testContext(t))
	dial := s.dial
	s.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		defer cancel() // once connected
		return dial(ctx, network, addr)
	}
	if err := s.Send(ctx, sample()); !errors.Is(err, context.Canceled) || IsPermanent(err) {
		t.Errorf("got %v, want a temporary error by cancellation", err)
	}
}

// A reply without an end must not fill the memory of a service that signs people in.
func TestRaceEndlessReplyEndsASending(t *testing.T) {
	for name, endless := range map[string]string{"line": "220 x", "lines": "220-x\r\n"} {
		s := mustOpen(t, "smtp://127.0.0.1").(*server)
		s.dial = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				var err error
				for err == nil { // until ours is closed
					_, err = io.WriteString(theirs, endless)
				}
			}()
			return ours, nil
		}
		err := s.Send(testContext(t), sample())
		if err == nil || !strings.Contains(err.Error(), "sent more than 256 KiB") || IsPermanent(err) {
			t.Errorf("%s: got %.300v, want a temporary error by the size", name, err)
		}
	}
}

func TestCutConnectionIsTemporary(t *testing.T) {
	for _, at := range stagesBeforeAcceptance {
		checkCut(t, at, sample())
	}
	large := sample()
	large.Text = strings.Repeat("a line among very many\n", 400_000) // exceeds the buffers
	checkCut(t, smtptest.AtContent, large)
}

func checkCut(t *testing.T, at smtptest.Stage, m Message) {
	t.Helper()
	sink := smtptest.Start(t, smtptest.Options{User: "bob", Password: "sekret"})
	sink.HangUp(at)
	s := mustOpen(t, sink.URL())
	if err := s.Send(testContext(t), m); err == nil || IsPermanent(err) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stage %d: %v, want a temporary error at once", at, err)
	}
	if got := sink.Mails(); len(got) != 0 {
		t.Errorf("stage %d: %d mails arrived", at, len(got))
	}
	sink.Behave()
	if err := s.Send(testContext(t), sample()); err != nil {
		t.Errorf("stage %d: the next attempt: %v", at, err)
	}
}

// closeRecorder reports when a connection has been closed.
type closeRecorder struct {
	net.Conn
	closed chan<- struct{}
	once   sync.Once
}

func (c *closeRecorder) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func TestEveryConnectionIsClosed(t *testing.T) {
	for _, at := range stagesBeforeAcceptance {
		sink := smtptest.Start(t, smtptest.Options{User: "bob", Password: "sekret"})
		sink.Refuse(at, 450)
		s, closed := mustOpen(t, sink.URL()).(*server), make(chan struct{})
		dial := s.dial
		s.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &closeRecorder{Conn: conn, closed: closed}, err
		}
		if err := s.Send(testContext(t), sample()); err == nil {
			t.Errorf("stage %d: sent", at)
		}
		select {
		case <-closed:
		default:
			t.Errorf("stage %d: the connection is left open", at)
		}
	}
}

// A mail that the server has accepted is sent, whatever happens at QUIT: an error here
// would send it twice.
func TestAcceptedIsSent(t *testing.T) {
	for name, misbehave := range map[string]func(*smtptest.Server){
		"hangs up":     func(s *smtptest.Server) { s.HangUp(smtptest.AtQuit) },
		"falls silent": func(s *smtptest.Server) { s.Stall(smtptest.AtQuit) },
	} {
		sink := smtptest.Start(t, smtptest.Options{})
		misbehave(sink)
		if err := mustOpen(t, sink.URL()).Send(testContext(t), sample()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := len(sink.Mails()); got != 1 {
			t.Errorf("%s: %d mails, want 1", name, got)
		}
	}
}

func TestRestartedServerGetsMail(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{})
	s := mustOpen(t, sink.URL())
	sink.Stop()
	if err := s.Send(testContext(t), sample()); !IsUnreachable(err) || IsPermanent(err) {
		t.Fatalf("server is down: %v, want a temporary error", err)
	}
	sink.Restart(t)
	if err := s.Send(testContext(t), sample()); err != nil {
		t.Fatalf("server is back: %v", err)
	}
	sink.Wait(t, "ada@example.com", 1)
}

func TestRaceManySendAtOnce(t *testing.T) {
	sink := smtptest.Start(t, smtptest.Options{})
	s, ctx := mustOpen(t, sink.URL()), testContext(t)
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			m := sample()
			m.ID, m.To = fmt.Sprint("evt_", i), fmt.Sprintf("p%d@example.com", i)
			if err := s.Send(ctx, m); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for i := range 50 {
		got := sink.Wait(t, fmt.Sprintf("p%d@example.com", i), 1)
		want := fmt.Sprintf("<evt_%d@doorward.example>", i)
		if id := got[0].Parse(t).Header.Get("Message-Id"); len(got) != 1 || id != want {
			t.Errorf("mail %d: %d mails, ID %s", i, len(got), id)
		}
	}
}
