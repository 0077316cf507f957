package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		"role\temail\tname\nUSER\ta@x.example\tLee, \"Ann\"; B\n\n\n":                              {{Email: "a@x.example", Name: `Lee, "Ann"; B`, Role: "USER"}},
		"name,notes,email\n\"Ann\",\"two\n\nlines, \"\"quoted\"\"\",a@x.example\nBob,,b@x.example": {{Email: "a@x.example", Name: "Ann"}, {Email: "b@x.example", Name: "Bob"}},
		"name;email\nAnn \"A;a@x.example\nBob \"B;b@x.example\nCid;c@x.example":                    {{Email: "a@x.example", Name: `Ann "A`}, {Email: "b@x.example", Name: `Bob "B`}, {Email: "c@x.example", Name: "Cid"}},
		"email,name\na@x.example,=HYPERLINK(1)\nb@x.example,<b>Bob</b>":                            {{Email: "a@x.example", Name: "=HYPERLINK(1)"}, {Email: "b@x.example", Name: "<b>Bob</b>"}},
	} {
		if diff := cmp.Diff(want, parsePeople(text, nil), cmpopts.IgnoreFields(draft{}, "Line")); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
}

// Where the lines of a quoted value end is found in one reading of at most maxJoined lines, and never beyond.
func TestLinesOfRow(t *testing.T) {
	for text, want := range map[string]int{
		"a,b": 1, `"a`: 1, "\"a\nb\"\nc": 2, "\"a\nb\" c\nd\"": 1, "\"a\nb": 1, "a \"b\nc\"": 1, `"a"`: 1, "x,\"\n\"\"\ny\"": 3,
		"\"" + strings.Repeat("a\n", maxJoined-1) + "\"": maxJoined, "\"" + strings.Repeat("a\n", maxJoined) + "\"": 1,
	} {
		lines := textLines(text)
		if got := linesOfRow(lines[:min(len(lines), maxJoined)], ','); got != want {
			t.Errorf("%q has a row of %d lines, want %d", text, got, want)
		}
	}
}

// A fault names the line of the file, also after empty lines and values of several lines.
func TestLinesOfPeople(t *testing.T) {
	text := "\ufeffname,email\r\n\r\nAnn,a@x.example\r\n\"Bob\r\nB\",b@x.example\r\nCid,c@x.example\r\n\"open,d@x.example\r\nEve,e@x.example\r\n\r\n"
	var got []string
	for _, d := range parsePeople(decodeText([]byte(text)), nil) {
		got = append(got, fmt.Sprint(d.Line, " ", d.Email))
	}
	if diff := cmp.Diff([]string{"3 a@x.example", "4 b@x.example", "6 c@x.example", "7 ", "8 e@x.example"}, got); diff != "" {
		t.Error(diff)
	}
}

// Workbooks, and text that isn't UTF-8 nor UTF-16 with its mark, are refused; so are columns of passwords.
func TestFilesThatAreNoLists(t *testing.T) {
	for file, want := range map[string]bool{
		"PK\x03\x04\x14\x00": false, "e\x00m\x00a\x00": false, "\xff\xfee\x00m\x00": true, "J\xfcrgen": true, "email\nPK@x.example": true,
	} {
		if got := isReadable([]byte(file)); got != want {
			t.Errorf("%q is readable: %v", file, got)
		}
	}
	for text, want := range map[string]bool{
		"email,passwordHash\na@x.example,1": true, "\ufeffPasswort-Hash;E-Mail\n": true, "email;password\n": true,
		"email,name\na@x.example,password": false, "password@x.example,Ann": false, "": false,
	} {
		if got := hasPasswords(text); got != want {
			t.Errorf("%q has passwords: %v", text, got)
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
