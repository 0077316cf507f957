package console

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
)

func TestParsePeople(t *testing.T) {
	for text, want := range map[string][]draft{
		"ann@acme.example":                                                     {{Email: "ann@acme.example"}},
		"Ann Lee <ann@acme.example>":                                           {{Email: "ann@acme.example", Name: "Ann Lee"}},
		`"Lee, Ann" <ann@acme.example>`:                                        {{Email: "ann@acme.example", Name: "Lee, Ann"}},
		"a@x.example, b@x.example;c@x.example":                                 {{Email: "a@x.example"}, {Email: "b@x.example"}, {Email: "c@x.example"}},
		"Ann Lee\tann@acme.example\tadmin":                                     {{Email: "ann@acme.example", Name: "Ann Lee", Role: "ADMIN"}},
		`"Lee, Ann",ann@acme.example`:                                          {{Email: "ann@acme.example", Name: "Lee, Ann"}},
		"\ufeffName;E-Mail;Rolle\r\n\"Müller; Jürgen\";j@x.example;viewer\r\n": {{Email: "j@x.example", Name: "Müller; Jürgen", Role: "VIEWER"}},
		"email,name\nnone,Bob":                                                 {{Email: "none", Name: "Bob"}},
		"Vorname;Nachname;E-Mail\nJürgen;Müller;j@x.example":                   {{Email: "j@x.example", Name: "Jürgen Müller"}},
		"a@x.example\na@x.example":                                             {{Email: "a@x.example"}},
		"\u200bann@acme.example\u200b\nmailto:bob@acme.example?subject=Hi\n<MAILTO:cat%2Bx@acme.example>": {{Email: "ann@acme.example"}, {Email: "bob@acme.example"}, {Email: "cat+x@acme.example"}},
		"\u202aAnn\u202c <\u00a0ann@acme.example\u2060>":                                                  {{Email: "ann@acme.example", Name: "Ann"}},
		" \n\n": nil,
	} {
		if diff := cmp.Diff(want, parsePeople(text, nil)); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
}

func TestCheckDrafts(t *testing.T) {
	all := []draft{
		{Email: "a@x.example", Role: "USER"},
		{Email: "A@x.example", Role: "USER"},
		{Email: "none", Role: "USER"},
		{Name: "Bob", Role: "USER"},
		{Email: "b@x.example", Role: "OWNER"},
	}
	checkDrafts(all, []doorward.Role{doorward.RoleUser})
	var got []string
	for _, d := range all {
		got = append(got, d.FaultKey)
	}
	if diff := cmp.Diff([]string{"", "left.twice", "left.email.invalid", "left.email.required", "left.role"}, got); diff != "" {
		t.Error(diff)
	}
}

// A fault is shown at the field that has it.
func TestFieldOfAFault(t *testing.T) {
	for key, want := range map[string]string{"": "", "left.email.invalid": "email", "left.twice": "email", "left.name": "name", "left.role": "role"} {
		for _, field := range []string{"email", "name", "role"} {
			if got := (draft{FaultKey: key}).IsWrong(field); got != (field == want) {
				t.Errorf("%q at %s: %v", key, field, got)
			}
		}
	}
}

func TestDecodeText(t *testing.T) {
	for file, want := range map[string]string{
		"\xef\xbb\xbfJürgen":                    "Jürgen",
		"J\xfcrgen":                             "Jürgen",
		"\xff\xfeJ\x00\xfc\x00\x3d\xd8\x00\xde": "Jü😀",
		"\xfe\xff\x00J\x00\xfc":                 "Jü",
		"\xff\xfe":                              "",
		"\xff\xfe\x41":                          "",
	} {
		if got := decodeText([]byte(file)); got != want {
			t.Errorf("%q is %q, want %q", file, got, want)
		}
	}
}
