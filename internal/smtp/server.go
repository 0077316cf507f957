package smtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/textproto"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

const (
	sendTimeout = time.Minute // for Send or Check, when ctx sets no deadline
	quitTimeout = time.Second // for the reply to QUIT, which is ignored
	// maxReceived is how many bytes a server may send on one connection: its certificates and replies.
	// go-mail reads a reply of any length into memory.
	maxReceived = 256 << 10
)

// A server is the transport to a mail server. It drives go-mail's SMTP client itself:
// go-mail's own Send reports a mail as failed if the connection breaks after the server
// accepted it, which would send it twice, and treats a lost connection as a permanent
// fault.
type server struct {
	destination
	from        *mail.Address
	log         *slog.Logger
	warnOnce    sync.Once
	hello       string
	sendTimeout time.Duration

	// Tests set their own CA and network.
	roots *x509.CertPool // nil: the system's
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
}

func openServer(dest string, from *mail.Address, hello string, log *slog.Logger) (Transport, error) {
	d, err := parseDestination(dest)
	hello, helloFault := parseHello(hello)
	if err := errors.Join(err, helloFault); err != nil {
		return nil, err
	}
	return &server{
		destination: d,
		from:        from,
		log:         log,
		hello:       hello,
		sendTimeout: sendTimeout,
		dial:        (&net.Dialer{}).DialContext,
	}, nil
}

var errHello = errors.New("mail hello: write the name of this machine, as in auth.example.com, or its IP address")

// parseHello returns the argument of EHLO for a name or an IP address (RFC 5321, section 4.1.3). For
// an empty name it is that of the machine, or localhost if that is malformed: servers refuse a
// malformed name.
func parseHello(name string) (string, error) {
	if addr, err := netip.ParseAddr(name); err == nil && addr.Zone() == "" {
		if addr = addr.Unmap(); addr.Is6() {
			return "[IPv6:" + addr.String() + "]", nil
		}
		return "[" + addr.String() + "]", nil
	}
	if name != "" {
		if !isHelloName(name) {
			return "", errHello
		}
		return name, nil
	}
	if name, err := os.Hostname(); err == nil && isHelloName(name) {
		return name, nil
	}
	return "localhost", nil
}

func isHelloName(name string) bool { return len(name) <= 255 && dotAtom.MatchString(name) }

func (s *server) Send(ctx context.Context, m Message) error {
	l, err := newLetter(s.from, m)
	if err != nil {
		return err
	}
	return s.withClient(ctx, l.deliver)
}

// strangerAddress is a recipient to whom a server that relays for this machine accepts mail, or whom it
// refuses for a reason of the recipient's. No mail is sent there: Check ends with RSET.
const strangerAddress = "postmaster@example.com"

func (s *server) Check(ctx context.Context) error {
	return s.withClient(ctx, func(client *smtp.Client) error {
		if err := client.Mail("<" + s.from.Address + ">"); err != nil {
			err = fmt.Errorf("sender %s: %w", s.from.Address, err)
			if isClientRefusal(err) {
				return &clientError{err}
			}
			return &senderError{err}
		}
		// Many servers say only now that they refuse the name of EHLO, or don't relay for this machine.
		if err := client.Rcpt("<" + strangerAddress + ">"); isClientRefusal(err) {
			return &clientError{fmt.Errorf("a recipient elsewhere: %w", err)}
		}
		return client.Reset()
	})
}

// withClient connects, calls run and quits. When ctx ends it closes the connection, which
// works at any point, even in a TLS handshake. Unlike a deadline on the connection, this
// guarantees that ctx.Err() is set when explain sees the error.
func (s *server) withClient(ctx context.Context, run func(*smtp.Client) error) (err error) {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	defer func() { err = s.explain(ctx, err) }()
	dialed, err := s.dial(ctx, "tcp", s.addr())
	if err != nil {
		return &unreachableError{fmt.Errorf("connecting: %w", err)}
	}
	defer dialed.Close()
	defer context.AfterFunc(ctx, func() { dialed.Close() })()
	conn := &boundedConn{Conn: dialed, left: maxReceived}

	client, err := s.prepare(ctx, conn)
	if err != nil {
		return err
	}
	if err := run(client); err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(quitTimeout))
	_ = client.Quit() // run has succeeded, whatever the reply
	return nil
}

// boundedConn fails when more than maxReceived was read from it.
type boundedConn struct {
	net.Conn
	left int
}

func (c *boundedConn) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, fmt.Errorf("it sent more than %d KiB", maxReceived>>10)
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

func (s *server) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.sendTimeout)
}

// prepare makes a new connection ready for sending a mail.
func (s *server) prepare(ctx context.Context, conn net.Conn) (*smtp.Client, error) {
	if s.security == tlsImplicit {
		secured := tls.Client(conn, s.tlsConfig())
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("beginning TLS: %w", err)
		}
		conn = secured
	}
	client, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, fmt.Errorf("waiting for its greeting: %w", err)
	}
	// SMTPUTF8 is useless for mails whose addresses are ASCII: the first server on
	// the way that doesn't support it would bounce them.
	client.SkipSMTPUTF8(true)
	if err := client.Hello(s.hello); err != nil {
		return nil, helloError(s.hello, err)
	}
	if err := s.secure(client); err != nil {
		return nil, err
	}
	return client, s.signIn(client)
}

// secure changes to TLS by STARTTLS (RFC 3207) if possible. If not, it fails where TLS is
// required, and else warns once, except on loopback.
func (s *server) secure(client *smtp.Client) error {
	if s.security == tlsImplicit || s.security == tlsNone {
		return nil
	}
	if offered, _ := client.Extension("STARTTLS"); offered {
		if err := client.StartTLS(s.tlsConfig()); err != nil {
			return fmt.Errorf("changing to TLS: %w", err)
		}
		return nil
	}
	if s.needsTLS() {
		return errors.New("it offers no STARTTLS, and neither a password nor a mail with tls=require is sent in the clear: write smtps:// if it has a TLS port, or enable STARTTLS there")
	}
	if !s.isLoopback() {
		s.warnOnce.Do(func() {
			s.log.Warn("mail server offers no STARTTLS: mail crosses the network in the clear", "server", s.addr())
		})
	}
	return nil
}

func (s *server) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
}

// signIn runs after secure, which has checked that the password may be sent. go-mail checks
// that again: the last argument of the mechanisms allows it without TLS.
func (s *server) signIn(client *smtp.Client) error {
	if s.user == "" {
		return nil
	}
	_, offered := client.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offered))
	var auth smtp.Auth
	switch {
	case slices.Contains(mechanisms, "PLAIN"):
		auth = smtp.PlainAuth("", s.user, s.password, s.host, s.isLoopback())
	case slices.Contains(mechanisms, "LOGIN"):
		auth = smtp.LoginAuth(s.user, s.password, s.host, s.isLoopback())
	default:
		return fmt.Errorf("it offers neither AUTH PLAIN nor AUTH LOGIN, only %q: leave user and password out if it needs none", offered)
	}
	if err := client.Auth(auth); err != nil {
		return fmt.Errorf("signing in as %q: %w", s.user, err)
	}
	return nil
}

// deliver sends the letter. Errors about the recipient or the content may be permanent,
// those about the sender aren't (see IsPermanent).
func (l *letter) deliver(client *smtp.Client) error {
	eightBit, _ := client.Extension("8BITMIME")
	raw, err := l.bytes(eightBit)
	if err != nil {
		return err
	}
	if err := client.Mail("<" + l.from.Address + ">"); err != nil {
		return fmt.Errorf("sender %s: %w", l.from.Address, err)
	}
	if err := client.Rcpt("<" + l.To + ">"); err != nil {
		return classify(fmt.Errorf("recipient %s: %w", l.To, err))
	}
	w, err := client.Data()
	if err != nil {
		return classify(fmt.Errorf("mail %q: %w", l.ID, err))
	}
	// After a failed write w must not be closed: that would send the final dot, and the
	// part written so far would count as a complete mail.
	if _, err := w.Write(raw); err != nil {
		return fmt.Errorf("mail %q: sending the content: %w", l.ID, err)
	}
	if err := w.Close(); err != nil {
		return classify(fmt.Errorf("mail %q: waiting for the receipt: %w", l.ID, err))
	}
	return nil
}

// helloError is a refusal of the name of EHLO, or a fault of the connection.
func helloError(name string, err error) error {
	named := fmt.Errorf("saying hello as %s: %w", name, err)
	if reply := (*textproto.Error)(nil); errors.As(err, &reply) && reply.Code >= 500 {
		return &clientError{named}
	}
	return named
}

// classify makes the error of a 5xx reply permanent, unless the reply is about this client or its sender:
// the operator can correct that while the mail waits.
func classify(err error) error {
	var reply *textproto.Error
	if !errors.As(err, &reply) || reply.Code < 500 || reply.Code > 599 || isClientRefusal(err) || aboutSender.MatchString(wordsOf(reply)) {
		return err
	}
	return &permanentError{err}
}

// aboutClient matches refusals of this client, which Postfix, Exim, Exchange, qmail and Gmail send at RCPT: no
// relaying for it, its name in EHLO, its address or name in DNS (RFC 7372, 5.7.25), that it hasn't
// authenticated, or has sent too much.
var aboutClient = regexp.MustCompile(`(?i)\brelay|rcpthosts|\b(helo|ehlo)\b|client host|\bauthenticat|banned sending|not authorized to send|\bsending (limit|quota)|^5\.7\.25\b`)

// aboutSender matches refusals of the sender, which servers send at RCPT or after the content: its address
// (RFC 3463, 5.1.7 and 5.1.8), that it isn't this client's or isn't verified (Exchange, Exim, Amazon SES,
// SendGrid), or that SPF, DKIM or DMARC don't vouch for it (RFC 7372).
var aboutSender = regexp.MustCompile(`(?i)^5\.1\.[78]\b|^5\.7\.2[0-7]\b|sender (address )?rejected|sender verify|send as this sender|address is not verified|verified sender|sending domain|\b(spf|dkim|dmarc)\b`)

// wordsOf returns the text of a reply without addresses, which may have any words.
func wordsOf(reply *textproto.Error) string { return address.ReplaceAllString(reply.Msg, "") }

var address = regexp.MustCompile(`\S*@\S*`)

// isClientRefusal reports whether a reply refuses this client: by its words, by 504 (a parameter of EHLO
// as Postfix judges it), or by the codes of RFC 4954, section 6, that ask for (another way of)
// authentication, which some servers send only at RCPT.
func isClientRefusal(err error) bool {
	var reply *textproto.Error
	if !errors.As(err, &reply) || reply.Code < 500 || reply.Code > 599 {
		return false
	}
	switch reply.Code {
	case 504, 530, 534, 535, 538:
		return true
	}
	return aboutClient.MatchString(wordsOf(reply))
}

// IsLoginRefused reports whether the server has refused user and password: 535 of RFC 4954, section 6.
func IsLoginRefused(err error) bool {
	var reply *textproto.Error
	return errors.As(err, &reply) && reply.Code == 535
}

// explain adds the server's address to an error, whether ctx has ended, and what to do
// about common faults of configuration.
func (s *server) explain(ctx context.Context, err error) error {
	var untrusted *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("mail server %s: %w: %w", s.addr(), ctx.Err(), err)
	case errors.As(err, &untrusted):
		return fmt.Errorf("mail server %s: %w (use the host name in its certificate, and SSL_CERT_FILE for a CA of your own)", s.addr(), err)
	case errors.As(err, &noTLS):
		return fmt.Errorf("mail server %s: %w (it does not begin with TLS on this port: write smtp:// for STARTTLS)", s.addr(), err)
	}
	return fmt.Errorf("mail server %s: %w", s.addr(), err)
}
