package smtp

import (
	"bytes"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/smtp/smtptest"
)

// eightBitServer is an argument of encode: the mail goes to a server with 8BITMIME.
const eightBitServer = true

// encode returns m in transfer format.
func encode(t testing.TB, m Message, eightBit bool) []byte {
	t.Helper()
	from, err := parseSender(sender)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLetter(from, m)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := l.bytes(eightBit)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func headerNames(h mail.Header) []string { return slices.Sorted(maps.Keys(h)) }

var wantHeaders = []string{
	"Auto-Submitted", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To",
}

func TestLetterIsAsComposed(t *testing.T) {
	m := sample()
	got := smtptest.Parse(t, encode(t, m, eightBitServer))
	if diff := cmp.Diff(wantHeaders, headerNames(got.Header)); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"From":           `"Doorward" <no-reply@doorward.example>`,
		"To":             "<ada@example.com>",
		"Message-Id":     "<evt_0123456789@doorward.example>",
		"Auto-Submitted": "auto-generated",
		"Mime-Version":   "1.0",
	} {
		if got := got.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got.Subject != m.Subject {
		t.Errorf("subject is %q, want %q", got.Subject, m.Subject)
	}
	if want := m.Text + "\n"; got.Text != want {
		t.Errorf("text is %q, want %q", got.Text, want)
	}
	if want := m.HTML + "\n"; got.HTML != want {
		t.Errorf("HTML is %q, want %q", got.HTML, want)
	}
}

func TestHeadersAreASCIIInShortLines(t *testing.T) {
	head, _, _ := bytes.Cut(encode(t, sample(), eightBitServer), []byte("\r\n\r\n"))
	if i := bytes.IndexFunc(head, func(r rune) bool { return r > unicode.MaxASCII }); i >= 0 {
		t.Errorf("header is not ASCII from %q", head[i:])
	}
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if len(line) > 78 { // RFC 5322 section 2.1.1
			t.Errorf("header line of %d bytes: %s", len(line), line)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			t.Errorf("empty header line in:\n%s", head)
		}
	}
}

func TestEncodingFollowsTheContent(t *testing.T) {
	const eight, quoted = "Content-Transfer-Encoding: 8bit", "Content-Transfer-Encoding: quoted-printable"
	for name, tt := range map[string]struct {
		text     string
		eightBit bool
		want     string
	}{
		"ASCII":                       {"hello " + link, true, eight},
		"ASCII to a 7-bit server":     {"hello " + link, false, eight},
		"non-ASCII":                   {"Grüße " + link, true, eight},
		"non-ASCII to a 7-bit server": {"Grüße " + link, false, quoted},
		"longest line":                {strings.Repeat("ä", 499), true, eight},
		"one byte longer":             {strings.Repeat("ä", 499) + "a", true, quoted},
	} {
		m := sample()
		m.Text, m.HTML = tt.text, ""
		raw := encode(t, m, tt.eightBit)
		if !bytes.Contains(raw, []byte(tt.want+"\r\n")) {
			t.Errorf("%s: no %q in\n%s", name, tt.want, raw)
		}
		if got := smtptest.Parse(t, raw).Text; got != tt.text+"\n" {
			t.Errorf("%s: text is %q, want %q", name, got, tt.text)
		}
		if !tt.eightBit && bytes.ContainsFunc(raw, func(r rune) bool { return r > unicode.MaxASCII }) {
			t.Errorf("%s: the mail is not ASCII", name)
		}
	}
}

func TestEveryLineEndsWithCRLF(t *testing.T) {
	m := sample()
	m.Text = "one\rtwo\nthree\r\nfour\n\r\n.\r\n.\nfive"
	raw := encode(t, m, eightBitServer)
	rest := bytes.ReplaceAll(raw, []byte("\r\n"), nil)
	if i := bytes.IndexAny(rest, "\r\n"); i >= 0 {
		t.Errorf("bare CR or LF in %q", raw)
	}
	if want, got := "one\ntwo\nthree\nfour\n\n.\n.\nfive\n", smtptest.Parse(t, raw).Text; got != want {
		t.Errorf("text is %q, want %q", got, want)
	}
}

func TestMalformedMessagesArePermanentErrors(t *testing.T) {
	for name, change := range map[string]func(*Message){
		"no ID":                     func(m *Message) { m.ID = "" },
		"ID with a line break":      func(m *Message) { m.ID = "a\r\nBcc: eve@example.com" },
		"ID with a space":           func(m *Message) { m.ID = "a b" },
		"ID with a domain":          func(m *Message) { m.ID = "a@b" },
		"ID with two dots":          func(m *Message) { m.ID = "a..b" },
		"ID too long":               func(m *Message) { m.ID = strings.Repeat("a", 129) },
		"no recipient":              func(m *Message) { m.To = "" },
		"two recipients":            func(m *Message) { m.To = "ada@example.com, eve@example.com" },
		"recipient with a name":     func(m *Message) { m.To = "Ada <ada@example.com>" },
		"recipient in brackets":     func(m *Message) { m.To = "<ada@example.com>" },
		"recipient with a comment":  func(m *Message) { m.To = "ada@example.com (Ada)" },
		"recipient with quotes":     func(m *Message) { m.To = `"ada eve"@example.com` },
		"recipient with a break":    func(m *Message) { m.To = "ada@example.com\r\nBcc: eve@example.com" },
		"recipient with parameters": func(m *Message) { m.To = "ada@example.com> NOTIFY=NEVER" },
		"recipient not ASCII":       func(m *Message) { m.To = "ada@exämple.com" },
		"recipient too long":        func(m *Message) { m.To = "ada@" + strings.Repeat("a", 251) },
		"subject with CRLF":         func(m *Message) { m.Subject = "Hello\r\nBcc: eve@example.com" },
		"subject with LF":           func(m *Message) { m.Subject = "Hello\nBcc: eve@example.com" },
		"subject with CR":           func(m *Message) { m.Subject = "Hello\rBcc: eve@example.com" },
		"subject with NEL":          func(m *Message) { m.Subject = "Hello\u0085Bcc: eve@example.com" },
		"subject with NUL":          func(m *Message) { m.Subject = "Hello\x00" },
		"subject not UTF-8":         func(m *Message) { m.Subject = "Hello\xff" },
		"subject too long":          func(m *Message) { m.Subject = strings.Repeat("a", 901) },
		"no text":                   func(m *Message) { m.Text = "" },
		"text with NUL":             func(m *Message) { m.Text = "a\x00b" },
		"text not UTF-8":            func(m *Message) { m.Text = "a\xffb" },
		"HTML with NUL":             func(m *Message) { m.HTML = "a\x00b" },
		"HTML not UTF-8":            func(m *Message) { m.HTML = "a\xffb" },
	} {
		sink := smtptest.Start(t, smtptest.Options{})
		m := sample()
		change(&m)
		for _, dest := range []string{sink.URL(), "file:" + t.TempDir(), "log:"} {
			err := mustOpen(t, dest).Send(testContext(t), m)
			if err == nil {
				t.Errorf("%s: %s accepts it", name, dest)
				continue
			}
			if !IsPermanent(err) {
				t.Errorf("%s: %s calls it temporary: %v", name, dest, err)
			}
			if strings.ContainsAny(err.Error(), "\r\n\x00") {
				t.Errorf("%s: %s: the error repeats control characters: %q", name, dest, err)
			}
		}
		if talk := sink.Transcript(); talk != "" {
			t.Errorf("%s: the mail server was contacted: %s", name, talk)
		}
	}
}

func TestSubjectArrivesUnchanged(t *testing.T) {
	for _, subject := range []string{
		"",
		"Invitation to Acme",
		strings.Repeat("Invitation to Acme ", 20) + "and others",
		sample().Subject,
		strings.Repeat("門", 300),
		strings.Repeat("é", 17) + "x" + strings.Repeat("é", 17) + "門",
		strings.Repeat("x", 900),
		"=?utf-8?q?Bank=0D=0ABcc:_eve=40example.com?= wins",
	} {
		m := sample()
		m.Subject = subject
		raw := encode(t, m, eightBitServer)
		if got := smtptest.Parse(t, raw).Subject; got != subject {
			t.Errorf("subject is %q, want %q", got, subject)
		}
		_, value, _ := bytes.Cut(raw, []byte("\r\nSubject:"))
		if subject != "" && bytes.HasPrefix(value, []byte("\r\n")) {
			t.Errorf("%q begins with an empty line", subject)
		}
		for line := range bytes.SplitSeq(raw[:bytes.Index(raw, []byte("\r\n\r\n"))], []byte("\r\n")) {
			if len(line) > 78 { // RFC 5322 section 2.1.1
				t.Errorf("%q: header line of %d bytes: %s", subject, len(line), line)
			}
		}
	}
}

func TestSubjectIsTidied(t *testing.T) {
	m := sample()
	m.Subject = "  Acme \u2003 and   others "
	if got, want := smtptest.Parse(t, encode(t, m, eightBitServer)).Subject, "Acme and others"; got != want {
		t.Errorf("subject is %q, want %q", got, want)
	}
}

// FuzzLetter searches for a message that adds headers, loses its text or breaks out of
// its part.
func FuzzLetter(f *testing.F) {
	f.Add("Hello", "text", "<p>html</p>")
	f.Add("Grüße  \t aus =?utf-8?q?a?=", "a\r\n.\r\nb\rc", "")
	f.Add(strings.Repeat("word ", 100), "\n\n--boundary--\n\nContent-Type: text/html\n", "\r\n")
	f.Add(strings.Repeat("ä ", 200)+" "+strings.Repeat("x", 200), strings.Repeat("=", 1200), " ")
	f.Fuzz(func(t *testing.T, subject, text, html string) {
		m := Message{ID: "evt_1", To: "ada@example.com", Subject: subject, Text: text, HTML: html}
		if checkMessage(m) != nil {
			t.Skip()
		}
		for _, eightBit := range []bool{true, false} {
			raw := encode(t, m, eightBit)
			got := smtptest.Parse(t, raw)
			names := slices.DeleteFunc(headerNames(got.Header), func(s string) bool { return s == "Content-Transfer-Encoding" })
			if diff := cmp.Diff(wantHeaders, names); diff != "" {
				t.Fatalf("headers (-want +got):\n%s", diff)
			}
			if want := tidySubject(subject); got.Subject != want {
				t.Fatalf("subject is %q, want %q", got.Subject, want)
			}
			if want := strings.ReplaceAll(canonicalLines(text), "\r\n", "\n"); got.Text != want {
				t.Fatalf("text is %q, want %q", got.Text, want)
			}
			if want := strings.ReplaceAll(canonicalLines(html), "\r\n", "\n"); got.HTML != want {
				t.Fatalf("HTML is %q, want %q", got.HTML, want)
			}
			for line := range bytes.SplitSeq(raw, []byte("\r\n")) {
				if len(line) > maxLine {
					t.Fatalf("line of %d bytes", len(line))
				}
			}
		}
	})
}
