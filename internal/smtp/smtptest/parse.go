package smtptest

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
	"testing"
)

// Letter is a mail as a person reads it.
type Letter struct {
	Header  mail.Header // as sent; Subject is decoded below
	Subject string
	Text    string // lines ended by LF
	HTML    string // lines ended by LF; empty: none
}

// Parse parses the mail. The test fails if it is malformed.
func (m Mail) Parse(tb testing.TB) Letter {
	tb.Helper()
	return Parse(tb, m.Raw)
}

// Parse parses a mail, such as the content of an *.eml file, with lines ended by CRLF
// or LF. The test fails if it is malformed.
func Parse(tb testing.TB, raw []byte) Letter {
	tb.Helper()
	message, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		tb.Fatalf("smtptest: %v in mail:\n%s", err, raw)
	}
	l := Letter{Header: message.Header}
	if l.Subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject")); err != nil {
		tb.Fatalf("smtptest: subject: %v", err)
	}
	if err := l.addPart(textproto.MIMEHeader(message.Header), message.Body); err != nil {
		tb.Fatalf("smtptest: %v in mail:\n%s", err, raw)
	}
	return l
}

// addPart adds a part, or its nested parts.
func (l *Letter) addPart(h textproto.MIMEHeader, body io.Reader) error {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return err
	}
	if strings.HasPrefix(kind, "multipart/") {
		return l.addParts(multipart.NewReader(body, params["boundary"]))
	}
	content, err := io.ReadAll(decode(h, body))
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	if kind == "text/html" {
		l.HTML = text
	} else {
		l.Text = text
	}
	return nil
}

func (l *Letter) addParts(parts *multipart.Reader) error {
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.addPart(part.Header, part); err != nil {
			return err
		}
	}
}

func decode(h textproto.MIMEHeader, body io.Reader) io.Reader {
	switch strings.ToLower(h.Get("Content-Transfer-Encoding")) {
	case "quoted-printable":
		return quotedprintable.NewReader(body)
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, body)
	}
	return body
}
