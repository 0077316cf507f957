package smtp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDestinationIsUnderstood(t *testing.T) {
	for dest, want := range map[string]destination{
		"smtp://relay.example":                       {host: "relay.example", port: "25"},
		"smtp://relay.example:2525/":                 {host: "relay.example", port: "2525"},
		"SMTP://relay.example":                       {host: "relay.example", port: "25"},
		"smtp://bob:pw@mail.example":                 {host: "mail.example", port: "587", user: "bob", password: "pw"},
		"smtp://bob:pw@mail.example?tls=require":     {host: "mail.example", port: "587", user: "bob", password: "pw", security: tlsRequired},
		"smtp://bob%40example.com:p%2F%3A%25@m.test": {host: "m.test", port: "587", user: "bob@example.com", password: "p/:%"},
		"smtp://bob@x.test:p@w@mail.example:587":     {host: "mail.example", port: "587", user: "bob@x.test", password: "p@w"},
		"smtp://bob:pw@[::1]:1025?tls=none":          {host: "::1", port: "1025", user: "bob", password: "pw", security: tlsNone},
		"smtp://relay.example?tls=none":              {host: "relay.example", port: "25", security: tlsNone},
		"smtps://mail.example":                       {host: "mail.example", port: "465", security: tlsImplicit},
		"smtps://bob:pw@mail.example?tls=require":    {host: "mail.example", port: "465", user: "bob", password: "pw", security: tlsImplicit},
	} {
		got, err := parseDestination(dest)
		if err != nil {
			t.Errorf("%s: %v", dest, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(destination{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dest, diff)
		}
	}
}

func TestDestinationIsRefused(t *testing.T) {
	for dest, hint := range map[string]string{
		"":                                     "smtp://user:password@host:port",
		"mail.example:25":                      "smtp://user:password@host:port",
		"http://mail.example":                  "file:DIR, or log:",
		"sekret":                               "file:DIR, or log:",
		"smtp:mail.example:25":                 "smtp://user:password@host:port",
		"smtp://":                              "smtp://user:password@host:port",
		"smtp://:25":                           "smtp://user:password@host:port",
		"smtp://bob:sekret#1@mail.example":     "# as %23",
		"smtp://bob:12/sekret@mail.example":    "/ as %2F",
		"smtp://bob:12?sekret@mail.example":    "? as %3F",
		"smtp://bob:12#sekret@mail.example":    "# as %23",
		"smtp://bob:sekret%zz@mail.example":    "% as %25",
		"smtp://bob:sekret\n@mail.example":     "smtp://user:password@host:port",
		"smtp://bob:%00sekret@mail.example":    "control characters",
		"smtp://bob:se%0Akret@mail.example":    "control characters",
		"smtp://sekret@mail.example":           "user and password come together",
		"smtp://sekret:@mail.example":          "user and password come together",
		"smtp://:sekret@mail.example":          "user and password come together",
		"smtp://@mail.example":                 "user and password come together",
		"smtp://bob:sekret@mail.example:0":     "1 to 65535",
		"smtp://bob:sekret@mail.example:65536": "1 to 65535",
		"smtp://bob:sekret@mail.example:smtp":  "host:port",
		"smtp://bob:sekret@mail.example:465":   "smtps://…:465",
		"smtps://bob:sekret@mail.example:587":  "?tls=require",
		"smtps://mail.example:25":              "?tls=require",
		"smtps://mail.example?tls=none":        "smtp://…?tls=none",
		"smtp://bob:sekret@m.test?tls=none":    "leave ?tls=none out",
		"smtp://mail.example?tls=maybe":        "?tls=require and ?tls=none",
		"smtp://m.test?tls=none&tls=require":   "?tls=require and ?tls=none",
		"smtp://mail.example?sekret=1":         "?tls=require or ?tls=none",
		"smtp://mail.example/sekret":           "?tls=require or ?tls=none",
		"file:":                                "file:/var/spool/doorward",
		"file:a\x00b":                          "file:/var/spool/doorward",
		"file://mails":                         "file:relative/directory",
		"log:/var/log/sekret":                  "file:DIR",
	} {
		transport, err := Open(dest, sender, "", quiet)
		if err == nil {
			t.Errorf("%q is accepted", dest)
			continue
		}
		if transport != nil {
			t.Errorf("%q: a transport together with an error", dest)
		}
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: error %q does not say %q", dest, err, hint)
		}
		if strings.Contains(err.Error(), "sekret") {
			t.Errorf("%q: error repeats the secret: %q", dest, err)
		}
	}
}

func TestPrintedServerHidesThePassword(t *testing.T) {
	transport := mustOpen(t, "smtp://bob:sekret@mail.example")
	for _, format := range []string{"%v", "%+v", "%s", "%#v"} {
		for _, value := range []any{transport, transport.(*server).destination} {
			if got := fmt.Sprintf(format, value); strings.Contains(got, "sekret") {
				t.Errorf("%s prints the password: %s", format, got)
			}
		}
	}
}

func FuzzDestinationErrorsKeepSecrets(f *testing.F) {
	for _, s := range []string{"", ":1", "/", "#", "?", "%", "@", "\\", " ", "%zz", "[", "]:x", "\x7f", "?tls=", "://", "ü"} {
		f.Add("smtp://bob:", s, "@mail.example:587")
		f.Add("smtps://", s, "")
		f.Add("smtp:", s, "?tls=none")
	}
	f.Fuzz(func(t *testing.T, before, s, after string) {
		dest := before + "hunter2" + s + after
		d, err := parseDestination(dest)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Fatalf("%q: error repeats it: %v", dest, err)
		}
		if err == nil && (d.host == "" || d.port == "" || (d.user == "") != (d.password == "")) {
			t.Fatalf("%q: partly parsed: %#v", dest, d)
		}
	})
}

func TestSenderIsUnderstood(t *testing.T) {
	for from, want := range map[string]string{
		"Doorward <no-reply@localhost>":                 `"Doorward" <no-reply@localhost>`,
		"no-reply@localhost":                            `<no-reply@localhost>`,
		"<no-reply@localhost>":                          `<no-reply@localhost>`,
		`"Doorward, Inc." <no-reply@x.example>`:         `"Doorward, Inc." <no-reply@x.example>`,
		"Zürcher Tür <no-reply@xn--tr-xka.example>":     `=?utf-8?q?Z=C3=BCrcher_T=C3=BCr?= <no-reply@xn--tr-xka.example>`,
		`"Müller, Türen & Tore" <no-reply@x.example>`:   `=?utf-8?b?TcO8bGxlciwgVMO8cmVuICYgVG9yZQ==?= <no-reply@x.example>`,
		`"Zürcher \"Tür\"" <no-reply@x.example>`:        `=?utf-8?b?WsO8cmNoZXIgIlTDvHIi?= <no-reply@x.example>`,
		`"Doorward" <no-reply@x.example>`:               `"Doorward" <no-reply@x.example>`,
		"=?utf-8?q?T=C3=BCr?= <no-reply@doorward.test>": `=?utf-8?q?T=C3=BCr?= <no-reply@doorward.test>`,
	} {
		got, err := parseSender(from)
		if err != nil {
			t.Errorf("%q: %v", from, err)
			continue
		}
		if got.String() != want {
			t.Errorf("%q is understood as %s, want %s", from, got, want)
		}
	}
}

func TestSenderIsRefused(t *testing.T) {
	for _, from := range []string{
		"",
		"Doorward",
		"Doorward <>",
		"Doorward <no-reply>",
		"Doorward <no-reply@localhost",
		"Doorward <no-reply@localhost>\r\nBcc: eve@example.com",
		"Door\r\nward <no-reply@localhost>",
		"Door\r\n ward <no-reply@localhost>",
		"\"Door\x00ward\" <no-reply@localhost>",
		"=?utf-8?q?Door=0D=0ABcc:_eve=40example.com?= <no-reply@localhost>",
		"Doorward (the service) <no-reply@localhost>",
		"no-reply@localhost (Doorward)",
		"Doorward <no-reply@localhost>, Eve <eve@example.com>",
		"Doorward <no-reply@tür.example>",
		"Doorward <nö@example.com>",
		`Doorward <"no reply"@example.com>`,
		"Doorward  <no-reply@localhost>",
		" no-reply@localhost",
		"D\xff <no-reply@localhost>",
		strings.Repeat("D", 320) + " <no-reply@localhost>",
	} {
		if got, err := Open("log:", from, "", quiet); err == nil {
			t.Errorf("%q is accepted as %s", from, got.(*logTransport).from)
		}
	}
}
