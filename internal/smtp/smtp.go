// Package smtp sends mail: to a mail server, into a directory, or into the log.
// [Open] takes the destination as one string:
//
//	smtp://user:password@host:port   a mail server, STARTTLS whenever it offers it
//	smtps://user:password@host:port  a mail server, TLS from the first byte
//	file:DIR                         one *.eml file per mail in DIR
//	log:                             one log line per mail, for development only
//
// The port defaults to 465 for smtps, to 587 (submission, RFC 6409) for smtp with a
// user, and to 25 (relay) for smtp without one. User and password are given both or
// neither, with characters special to URLs percent-encoded.
//
// TLS certificates are always verified, against the system's roots; for another CA use
// SSL_CERT_FILE or SSL_CERT_DIR. A password is sent only under TLS, except to loopback.
// If the server offers no STARTTLS, which an attacker on the network can suppress, mail
// without credentials is sent unencrypted, with a warning. Two settings change that:
//
//	?tls=require  fail when the server offers no STARTTLS
//	?tls=none     never use STARTTLS, for a relay whose certificate can't be verified;
//	              refused together with a password unless the host is localhost or a loopback IP
//
// DIR is taken literally, is created for its owner only, and gets files whose names
// sort by time and never collide, even with several processes. A file is complete and
// on the disk before it gets its name; its lines end with LF. Everybody who can read a
// log with mails can use the links in them, so it is for development only.
//
// Every mail is UTF-8 text, with an optional HTML alternative, in 8bit encoding without
// folded lines. Quoted-printable is used only for a part with a line over 998 bytes
// (the limit of RFC 5322), and for non-ASCII characters if the server doesn't support
// 8BITMIME (RFC 6152). Every mail has "Auto-Submitted: auto-generated" (RFC 3834).
//
// A failed Send may be retried, unless the error is [IsPermanent]. If the connection
// breaks between the end of the mail and the server's reply, the mail may have arrived
// although Send failed: a retry with the same Message.ID lets the recipient's system
// detect the duplicate. Every mail makes its own connection, and many goroutines may
// use a Transport at once.
package smtp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/mail"
	"strings"
)

// Message is one mail to one person.
type Message struct {
	ID      string // unique and the same in every attempt; becomes the local part of Message-ID; 1 to 128 of [A-Za-z0-9_.-], each dot between two others
	To      string // a plain ASCII address, no display name
	Subject string // at most 900 bytes, no control characters
	Text    string // the plain text, not empty; any of LF, CRLF, CR ends a line
	HTML    string // the same as HTML; empty: no HTML part
}

// Transport sends mails. Open makes one.
type Transport interface {
	// Send sends one mail. It returns nil once the mail server has accepted
	// responsibility for it (or the file has its name). To a mail server it ends
	// with ctx, or after a minute if ctx has no deadline; for a directory and the log it
	// only tests ctx at its start. IsPermanent reports whether an error is final.
	Send(ctx context.Context, m Message) error

	// Check tries the destination without sending: for a mail server it connects,
	// secures the connection, signs in, sends MAIL FROM, RCPT TO and RSET and quits
	// (IsSenderRefused reports a refused sender, IsClientRefused that the server relays no
	// mail for this machine, or refuses its name); for a directory it writes a file,
	// there or where the directory would be made, and removes it; for the log it
	// does nothing.
	Check(ctx context.Context) error
}

// Open makes the Transport for a destination of the package comment. From is the
// sender of all mails, as in "Doorward <no-reply@example.com>". It doesn't contact
// a mail server yet; a directory is made with its first mail. hello is the name or address
// that this machine has for mail servers (EHLO); empty: that of the operating system. Warnings
// and the mails of log: go to log, or to slog.Default when it is nil.
//
// Errors have a line for each fault, say what to write instead, and never repeat any part of dest, since
// a mistyped one may hold the password anywhere.
func Open(dest, from, hello string, log *slog.Logger) (Transport, error) {
	sender, senderFault := parseSender(from)
	transport, err := open(dest, sender, hello, cmp.Or(log, slog.Default()))
	if err := errors.Join(senderFault, err); err != nil {
		return nil, err
	}
	return transport, nil
}

func open(dest string, sender *mail.Address, hello string, log *slog.Logger) (Transport, error) {
	scheme, rest, _ := strings.Cut(dest, ":")
	switch strings.ToLower(scheme) {
	case "smtp", "smtps":
		return openServer(dest, sender, hello, log)
	case "file":
		return openDirectory(rest, sender)
	case "log":
		return openLog(rest, sender, log)
	}
	return nil, errors.New("mail destination: write smtp://user:password@host:port, smtps://user:password@host:port, file:DIR, or log: for development")
}

// Address returns the address of a sender that Open accepts.
func Address(from string) (string, error) {
	sender, err := parseSender(from)
	if err != nil {
		return "", err
	}
	return sender.Address, nil
}

// IsPermanent reports whether err, from Transport.Send, is final for the mail: the
// server refused its recipient or its content with a 5xx reply (RFC 5321 section
// 4.2.1), or it is malformed. Everything else may succeed later, including refused
// credentials, a refused sender, a refused name in EHLO and refused relaying: an operator can
// correct these while the mail waits.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// IsUnreachable reports whether err, from Transport.Send or Transport.Check, says that nothing listens at the
// mail server's address, or that it doesn't answer: so that another mail would not arrive either.
func IsUnreachable(err error) bool {
	var u *unreachableError
	return errors.As(err, &u)
}

// IsSenderRefused reports whether err, from Transport.Check, is a mail server's refusal
// of the sender.
func IsSenderRefused(err error) bool {
	var s *senderError
	return errors.As(err, &s)
}

// IsClientRefused reports whether err, from Transport.Check, is a mail server's refusal of this machine:
// of its name in EHLO, or of relaying its mail to other servers.
func IsClientRefused(err error) bool {
	var c *clientError
	return errors.As(err, &c)
}

type clientError struct{ err error }

func (e *clientError) Error() string { return e.err.Error() }
func (e *clientError) Unwrap() error { return e.err }

type senderError struct{ err error }

func (e *senderError) Error() string { return e.err.Error() }
func (e *senderError) Unwrap() error { return e.err }

type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }
