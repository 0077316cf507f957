package smtptest

import (
	"crypto/subtle"
	"errors"
	"io"
	"strings"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// A session is one conversation, as go-smtp sees it. STARTTLS begins a new one.
type session struct {
	server *Server
	run    *run
	conn   *smtp.Conn
	user   string // signed in
	mail   Mail   // being received
}

func (s *Server) newSession(r *run, c *smtp.Conn) (smtp.Session, error) {
	if err := s.react(AtHello, r, c.Conn()); err != nil {
		return nil, err
	}
	return &session{server: s, run: r, conn: c}, nil
}

func (s *session) react(at Stage) error { return s.server.react(at, s.run, s.conn.Conn()) }

func (s *session) AuthMechanisms() []string {
	if s.server.options.User == "" {
		return nil
	}
	return s.server.options.Mechanisms
}

func (s *session) Auth(mechanism string) (sasl.Server, error) {
	if err := s.react(AtLogin); err != nil {
		return nil, err
	}
	switch mechanism {
	case "PLAIN":
		return sasl.NewPlainServer(func(_, user, password string) error { return s.login(user, password) }), nil
	case "LOGIN":
		return &loginServer{login: s.login}, nil
	}
	return nil, smtp.ErrAuthUnknownMechanism
}

func (s *session) login(user, password string) error {
	o := s.server.options
	if subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(o.User+"\x00"+o.Password)) == 0 {
		return smtp.ErrAuthFailed
	}
	s.user = user
	return nil
}

// A loginServer is the server's side of AUTH LOGIN (draft-murchison-sasl-login), which
// go-sasl has removed.
type loginServer struct {
	login func(user, password string) error
	step  int
	user  string
}

func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(response)
		return []byte("Password:"), false, nil
	}
	return nil, true, l.login(l.user, string(response))
}

func (s *session) Mail(from string, o *smtp.MailOptions) error {
	if err := s.react(AtSender); err != nil {
		return err
	}
	if s.server.options.User != "" && s.user == "" {
		return &smtp.SMTPError{Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "Authentication required"}
	}
	_, secured := s.conn.TLSConnectionState()
	s.mail = Mail{From: from, User: s.user, TLS: secured, EightBit: o.Body == smtp.Body8BitMIME}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if err := s.react(AtRecipient); err != nil {
		return err
	}
	if s.server.isUnreachable(to) {
		s.server.stall(s.run, s.conn.Conn())
		s.conn.Conn().Close()
		return errors.New("connection cut on request of the test")
	}
	s.mail.To = append(s.mail.To, to)
	return nil
}

// Data reads all content before it refuses, so that the client reads the reply, but
// only the beginning before it cuts the connection.
func (s *session) Data(r io.Reader) error {
	var raw strings.Builder
	if _, err := io.CopyN(&raw, r, 64); err != nil && err != io.EOF {
		return err
	}
	refusal := s.react(AtContent)
	if _, err := io.Copy(&raw, r); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	s.mail.Raw = []byte(raw.String())
	s.server.accept(s.mail)
	return nil
}

func (s *session) Reset()        { s.mail = Mail{} }
func (s *session) Logout() error { return nil }
