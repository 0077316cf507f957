package ui

import (
	"html/template"
	"os"
	"strings"
	"testing"

	"github.com/doorward/doorward"
)

// Every state that a catalogue names has a tone, and states of one word have the same one.
func TestStatesHaveOneTone(t *testing.T) {
	for _, language := range []string{"en", "de"} {
		named, byWord := map[string]string{}, map[string]string{}
		for _, catalogue := range []string{"text/", "../console/text/", "../hosted/text/"} {
			text, err := os.ReadFile(catalogue + language + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if key, word, isMessage := strings.Cut(strings.TrimSpace(line), " = "); isMessage && isState(key) {
					named[key] = word
				}
			}
		}
		for key, word := range named {
			class, err := tone(key)
			if err != nil {
				t.Error(err)
			}
			if other, isKnown := byWord[word]; isKnown && other != class {
				t.Errorf("%s: %q has the tones %q and %q", language, word, class, other)
			}
			byWord[word] = class
		}
		for key := range tones {
			if named[key] == "" {
				t.Errorf("%s: no message names %s", language, key)
			}
		}
	}
}

// isState reports whether the message of the key names a state.
func isState(key string) bool {
	if key == "factor.disabled" {
		return true
	}
	for _, prefix := range []string{"status.", "state.", "hooks.delivery.", "hooks.kind.", "sso.state.", "sso.proof.", "operator.state."} {
		if name, isOf := strings.CutPrefix(key, prefix); isOf && !strings.Contains(name, ".") {
			return true
		}
	}
	return false
}

// A name is long by its characters, not by its bytes.
func TestLongNames(t *testing.T) {
	for name, want := range map[string]bool{
		"Reports of the shop": false, "Александра Александровна": false, "株式会社ドアワード情報システム部": false,
		"Maximiliane Freifrau von Stein": true, strings.Repeat("я", 25): true,
	} {
		if isLong(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// An avatar has initials, or without a name and an address the outline of a person.
func TestAvatarOfNobody(t *testing.T) {
	for of, want := range map[Avatar]string{{Name: "Ann Lee"}: ">AL<", {Email: "ann@acme.example"}: ">A<", {}: "avatar nobody"} {
		page := rendered(t, `{{template "avatar" .}}`, of)
		if !strings.Contains(page, want) {
			t.Errorf("%v: %s", of, page)
		}
	}
}

// The head of a page has its tags in one order.
func TestOrderOfTags(t *testing.T) {
	page := rendered(t, `{{template "tags" .}}`, Tags{About: "For the shop", Warnings: []string{"sso.warn.secret"}, Kinds: []string{"factor.none"}, Role: doorward.RoleAdmin, State: "status.suspended"})
	at := -1
	for _, part := range []string{"tag alarm", "Administrator", "No second factor", "tag warm", "For the shop"} {
		next := strings.Index(page, part)
		if next <= at {
			t.Errorf("%q is missing or comes too early: %s", part, page)
		}
		at = next
	}
	if page := rendered(t, `{{template "tags" .}}`, Tags{}); page != "" {
		t.Errorf("no tags: %s", page)
	}
}

// rendered is the text, a template that may use those of all pages, in English.
func rendered(t *testing.T, text string, data any) string {
	t.Helper()
	words := catalogue{languageKey: "en", "status.suspended": "Suspended"}
	parts, err := files.ReadFile("html/parts.html")
	if err == nil {
		err = words.read(files, "text/en.txt")
	}
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := template.Must(template.New("").Funcs(words.helpers()).Parse(string(parts)+text)).Execute(&page, data); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(page.String())
}
