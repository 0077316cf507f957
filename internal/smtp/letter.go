package smtp

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
)

const (
	maxLine    = 998 // bytes in a line without CRLF, RFC 5322 section 2.1.1
	maxSubject = 900 // bytes; more is a mistake
	maxSender  = 320 // bytes of name and address; more is a mistake
	maxAddress = 254 // bytes, RFC 5321 section 4.5.3.1.3 less the angle brackets
	maxID      = 128 // bytes
)

// dotAtom is the subset of RFC 5322's dot-atom that all systems read the same way.
var dotAtom = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// A letter is a validated message.
type letter struct {
	Message
	from *mail.Address
	at   time.Time
}

// newLetter validates and normalises m. Its errors are permanent, and don't quote subject
// or text, which may hold secrets.
func newLetter(from *mail.Address, m Message) (*letter, error) {
	if err := checkMessage(m); err != nil {
		return nil, &permanentError{fmt.Errorf("mail %q: %w", m.ID, err)}
	}
	m.Subject = tidySubject(m.Subject)
	m.Text, m.HTML = canonicalLines(m.Text), canonicalLines(m.HTML)
	return &letter{Message: m, from: from, at: time.Now().UTC()}, nil
}

func checkMessage(m Message) error {
	switch {
	case len(m.ID) > maxID || !dotAtom.MatchString(m.ID):
		return errors.New("its ID is not 1 to 128 of [A-Za-z0-9_.-]")
	case !isPlainAddress(m.To):
		return fmt.Errorf("recipient %q is not a plain ASCII address", m.To)
	case !utf8.ValidString(m.Subject) || strings.ContainsFunc(m.Subject, unicode.IsControl):
		return errors.New("its subject holds a line break, another control character, or invalid UTF-8")
	case len(m.Subject) > maxSubject:
		return fmt.Errorf("its subject is over %d bytes long", maxSubject)
	case m.Text == "":
		return errors.New("it has no text")
	case !isPlainText(m.Text) || !isPlainText(m.HTML):
		return errors.New("its text holds a NUL or invalid UTF-8")
	}
	return nil
}

// isPlainAddress reports whether s is an ASCII address of at most maxAddress bytes, without
// names, comments, quotes, angle brackets and surrounding space.
func isPlainAddress(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= maxAddress && isPrintableASCII(s)
}

func isPrintableASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func isPlainText(s string) bool {
	return utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

// tidySubject replaces each run of white space by a space and trims the ends, because folding
// must not leave a line of spaces only (RFC 5322 section 4.2).
func tidySubject(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// encodeSubject writes a subject in words that fit on the line of the header's name:
// otherwise go-mail begins with an empty line, which some readers show as a space. It
// encodes (RFC 2047) non-ASCII text, long words, and text that looks encoded already,
// which mail programs would decode into unchecked text.
func encodeSubject(s string) string {
	if isPlainSubject(s) {
		return s
	}
	var words []string
	for s != "" {
		n := min(len(s), 36) // 48 characters of base64, 60 with =?UTF-8?B? and ?=
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		words = append(words, "=?UTF-8?B?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, " ")
}

func isPlainSubject(s string) bool {
	isLong := func(word string) bool { return len(word) > 60 }
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) &&
		!strings.Contains(s, "=?") && !slices.ContainsFunc(strings.Fields(s), isLong)
}

// crlf matches CRLF first, so that it stays as it is.
var crlf = strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n")

// canonicalLines ends every line, the last one too, with CRLF. A bare CR or LF
// must not reach a mail server: where servers disagree on what ends a line, one
// mail can be made to read as two (SMTP smuggling).
func canonicalLines(s string) string {
	s = crlf.Replace(s)
	if s != "" && !strings.HasSuffix(s, "\r\n") {
		s += "\r\n"
	}
	return s
}

// bytes returns the mail in transfer format, with CRLF, and in ASCII unless eightBit.
func (l *letter) bytes(eightBit bool) ([]byte, error) {
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.SetMessageIDWithValue(l.ID + "@" + domainOf(l.from.Address))
	m.SetDateWithValue(l.at)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.FromMailAddress(l.from)
	m.ToMailAddress(&mail.Address{Address: l.To})
	m.Subject(encodeSubject(l.Subject))
	m.SetBodyString(gomail.TypeTextPlain, l.Text, gomail.WithPartEncoding(encodingOf(l.Text, eightBit)))
	if l.HTML != "" {
		m.AddAlternativeString(gomail.TypeTextHTML, l.HTML, gomail.WithPartEncoding(encodingOf(l.HTML, eightBit)))
	}
	var b bytes.Buffer
	if _, err := m.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("mail %q: encoding it: %w", l.ID, err)
	}
	return b.Bytes(), nil
}

// encodingOf returns 8bit wherever that is allowed, also for ASCII, because go-mail would
// write quoted-printable and call it 7bit. Without 8BITMIME, RFC 6152 forbids bytes over
// 127, but not the label 8bit.
func encodingOf(s string, eightBit bool) gomail.Encoding {
	if !eightBit && strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) {
		return gomail.EncodingQP
	}
	for line := range strings.SplitSeq(s, "\r\n") {
		if len(line) > maxLine {
			return gomail.EncodingQP
		}
	}
	return gomail.NoEncoding
}

func domainOf(address string) string {
	return address[strings.LastIndexByte(address, '@')+1:]
}

// quotable escapes what a quoted string can't hold as it is (RFC 5322, section 3.2.4).
var quotable = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

var errSender = errors.New("mail sender: write Name <local@domain>, or the address alone; the address in ASCII (an international domain as xn--…), a name with special characters in double quotes")

// parseSender reads the From of all mails. The parser of net/mail drops
// comments and understands obsolete forms, so only what can be written back
// unchanged is accepted.
func parseSender(s string) (*mail.Address, error) {
	a, err := mail.ParseAddress(s)
	if err != nil || len(s) > maxSender || !isPlainAddress(a.Address) {
		return nil, errSender
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s+a.Name, unicode.IsControl) {
		return nil, errSender
	}
	switch s {
	case a.Address, a.String(), a.Name + " <" + a.Address + ">", `"` + quotable.Replace(a.Name) + `" <` + a.Address + ">":
		return a, nil
	}
	return nil, errSender
}
