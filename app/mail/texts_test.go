package mail

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/texts"
	"github.com/doorward/doorward/store"
)

func parseTexts(t *testing.T, source string) *texts.File {
	t.Helper()
	f, err := texts.Parse([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What is listed can be given back, in each language and as another one.
func TestListedTextsAreAccepted(t *testing.T) {
	for language := range catalogues() {
		for _, tag := range []string{language, "fr"} {
			l := texts.Language{Tag: tag, Name: "x", Direction: "rtl", Sections: []texts.Section{ListTexts(nil, language)}}
			var out bytes.Buffer
			if err := texts.Write(&out, l); err != nil {
				t.Fatal(err)
			}
			own := parseTexts(t, out.String())
			if _, faults := CheckTexts(own); len(faults) > 0 {
				t.Errorf("%s as %s: %v", language, tag, faults)
			}
			v := variablesWith("x")
			got, want := cataloguesWith(own).render(store.MailRoleChanged, tag, v), catalogues().render(store.MailRoleChanged, language, v)
			if got.Direction != "rtl" || got.text() != want.text() {
				t.Errorf("%s as %s is %q, want %q", language, tag, got.text(), want.text())
			}
		}
	}
}

// A text takes the place of one part, in its language only.
func TestOwnTexts(t *testing.T) {
	own := parseTexts(t, "en:\n  mail:\n    roles: {USER: Clerk}\n    reset:\n      subject: 'Your password for the shop'\n")
	if _, faults := CheckTexts(own); len(faults) > 0 {
		t.Fatal(faults)
	}
	all, v := cataloguesWith(own), variablesWith("x")
	v.Role = "USER"
	reset := all.render(store.MailReset, "en", v)
	if got := reset.subject(); got != "Your password for the shop" || reset.Button == "" {
		t.Errorf("the subject is %q, the button %q", got, reset.Button)
	}
	if got := all.render(store.MailReset, "de", v).subject(); got != catalogues().render(store.MailReset, "de", v).subject() {
		t.Errorf("the German subject is %q", got)
	}
	if got := all.render(store.MailInvitation, "en", v).text(); !strings.Contains(got, "Clerk") {
		t.Errorf("the role has its old name: %s", got)
	}
}

// An operator's text that fails with some value is replaced by the built-in one.
func TestOwnTextThatFails(t *testing.T) {
	own := parseTexts(t, "en:\n  mail:\n    removed:\n      greeting: '{{if eq .Tenant \"x\"}}{{if eq .Tenant 1}}{{end}}{{end}}Hello'\n")
	v := variablesWith("x")
	if got, want := cataloguesWith(own).render(store.MailRemoved, "en", v).text(), catalogues().render(store.MailRemoved, "en", v).text(); got != want {
		t.Errorf("the mail is %q, want %q", got, want)
	}
}

func TestFaultsOfOwnTexts(t *testing.T) {
	for source, want := range map[string]string{
		"remowed: {}":                                  `line 3: there is no mail "remowed"`,
		"direction: {}":                                `line 3: there is no mail "direction"`,
		"roles: {KING: King}":                          `line 3: "roles" has no part "KING"`,
		"reset: {buton: Go}":                           `line 3: "reset" has no part "buton"`,
		"reset: {advice: [Go]}":                        `line 3: "reset" has no part "advice"`,
		"reset: {paragraphs: Go}":                      `line 3: write "paragraphs" as a list of texts`,
		"reset: {subject: [Go]}":                       `line 3: write a text for "subject"`,
		"reset: {subject: ' '}":                        `line 3: write a text for "subject"`,
		"reset: {subject: 7}":                          `line 3: write a text for "subject"`,
		"reset: {subject: 'x {{.Name'}":                `line 3: "subject": `,
		"reset: {subject: '{{shout .Site}}'}":          `line 3: "subject": `,
		"reset: {subject: '{{printf .Site}}'}":         `line 3: "subject": the function "printf" is not supported`,
		"reset: {subject: '{{range .Site}}{{end}}'}":   `line 3: "subject": `,
		"reset: {subject: '{{.Password}}'}":            `line 3: "subject": it can't be filled in`,
		"reset: {subject: '{{.Tenant}}'}":              `line 3: "subject" has {{.Tenant}}, which this mail doesn't know`,
		"removed:\n      subject: Gone":                `line 4: "subject" lacks {{.Tenant}}`,
		"removed: {}\n    removed: {}":                 `line 4: "removed" is already in line 3`,
		"removed: Gone":                                `line 3: write this as names with values`,
		"removed: {subject: '{{.Tenant}}{{eq 1}}'}":    `line 3: "subject": it can't be filled in`,
		"invitation: {note: '{{$.Until}}{{$.Actor}}'}": "",
	} {
		f, err := texts.Parse([]byte("de:\n  mail:\n    " + source))
		var faults texts.Faults
		if err == nil {
			_, faults = CheckTexts(f)
		} else if !errors.As(err, &faults) {
			t.Fatal(err)
		}
		if got := faults.Error(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
	for source, want := range map[string]string{
		"fr: {name: F}":                          "line 1: the language fr is not built in, so it must be whole: the section mail is missing",
		"fr:\n  mail: {roles: {OWNER: Chef}}":    "line 2: the language fr is not built in, so it must be whole: mail lacks invitation, ",
		"fr:\n  mail:\n    roles: {OWNER: Chef}": `line 3: the mail "roles" lacks ADMIN, USER, VIEWER`,
	} {
		if _, faults := CheckTexts(parseTexts(t, source)); !strings.Contains(faults.Error(), want) {
			t.Errorf("%q: %q, want %q", source, faults.Error(), want)
		}
	}
}
