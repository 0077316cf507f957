package web_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/texts"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/web"
)

func listTexts(t *testing.T, own *texts.File, tag string) string {
	t.Helper()
	var out bytes.Buffer
	if err := web.ListTexts(&out, own, tag); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// checkTexts parses and checks a file.
func checkTexts(source string) (*texts.File, error) {
	own, err := texts.Parse([]byte(source))
	if err == nil {
		err = web.CheckTexts(own)
	}
	return own, err
}

// named gives the language of a list a name and a direction.
func named(list string) string {
	tag, rest, _ := strings.Cut(list, "\n")
	return tag + "\n  name: Own\n  direction: rtl\n" + rest
}

// What is listed is a file of texts, in built-in languages and in others with other plural forms. What
// is listed with that file is the file.
func TestListedTexts(t *testing.T) {
	for _, tag := range []string{"en", "de", "fr", "pl", "ar", "ja", "pt-BR"} {
		list := listTexts(t, nil, tag)
		if tag != "en" && tag != "de" {
			list = named(list)
		}
		own, err := checkTexts(list)
		if err != nil {
			t.Errorf("%s: %v", tag, err)
			continue
		}
		if again := listTexts(t, own, tag); again != list {
			t.Errorf("%s: the list with its own texts is another one", tag)
		}
	}
	if list := listTexts(t, nil, "pl"); !strings.Contains(list, "minutes.few: ") || strings.Contains(list, "minutes.two: ") {
		t.Error("the texts in Polish lack the form few, or have the form two")
	}
}

// Each mistake in a file is an error that names its line.
func TestFaultsOfTexts(t *testing.T) {
	polish := named(listTexts(t, nil, "pl"))
	lineOf := func(text, part string) int {
		before, _, _ := strings.Cut(text, part)
		return strings.Count(before, "\n") + 1
	}
	for _, c := range []struct {
		source string
		line   int
		want   string
	}{
		{"en:\n  hosted:\n    login.titel: Sign in", 3, `hosted has no text "login.titel"`},
		{"en:\n  hosted:\n    minutes.one: x", 3, `hosted has no text "minutes.one"`},
		{"en:\n  shared:\n    minutes.few: x", 3, `shared has no text "minutes.few"`},
		{"en:\n  hosted:\n    accept.join: Join us", 3, `"accept.join" lacks the placeholder {tenant}`},
		{"en:\n  hosted:\n    accept.join: Join {tenant}, {name}", 3, `"accept.join" has the unknown placeholder {name}`},
		{"en:\n  shared:\n    minutes.other: minutes", 3, `"minutes.other" lacks the placeholder {n}`},
		{"en:\n  mails: {}", 2, `there is no section "mails"; write shared, hosted, console, actions, mail`},
		{"en:\n  actions:\n    user.invite: x", 3, `"user.invite" is an action of Doorward's own; its text is "can.user.invite" in shared`},
		{"en:\n  actions:\n    Invoice.pay: x", 3, `"Invoice.pay" is no name of an action`},
		{"en:\n  actions:\n    invoice.pay: " + strings.Repeat("x", 201), 3, `"invoice.pay" is longer than 200 characters`},
		{"en:\n  actions:\n    invoice.pay: 7", 3, "write this as text"},
		{"en:\n  hosted:\n    login.title: 7", 3, "write this as text"},
		{"en:\n  hosted:\n    login.title: ''", 3, `"login.title" has no text`},
		{"en:\n  hosted:\n    login.title: A\n    login.title: B", 4, `"login.title" is already in line 3`},
		{"en:\n  hosted:\n    login.title: &a A", 3, "anchors, aliases and tags"},
		{"en:\n  hosted: []", 2, `write "hosted" as keys with texts`},
		{"en: {}\nEN: {}", 2, `"EN" is no language tag`},
		{"en:\n  name: English", 1, "the language en is built in"},
		{"[en]", 1, "write this as names with values"},
		{"en: {", 1, "did not find"},
		{"tlh-x: {}", 1, `"tlh-x" is no language tag`},
		{"fr:\n  name: Français\n  direction: down", 3, "the direction is ltr or rtl"},
		{"\nfr: {}", 2, "give it a name and a direction"},
		{"\nfr:\n  name: Français\n  direction: ltr", 2, "the language fr is not built in, so it must be whole: hosted lacks "},
		{strings.Replace(polish, "    minutes.few: ", "    minutes.fewer: ", 1), lineOf(polish, "    minutes.other: "), `"minutes" lacks the plural form "few", which pl needs`},
		{strings.Replace(polish, "    login.title: ", "    # ", 1), 1, "hosted lacks login.title"},
	} {
		_, err := checkTexts(c.source)
		var faults texts.Faults
		if !errors.As(err, &faults) {
			t.Errorf("%.60q: %v, want %q", c.source, err, c.want)
			continue
		}
		found := false
		for _, f := range faults {
			found = found || f.Line == c.line && strings.Contains(f.Message, c.want)
		}
		if !found {
			t.Errorf("%.60q: %v\nwant line %d: %q", c.source, faults, c.line, c.want)
		}
	}
}

// The model describes the platform's actions in one language, the file in others.
func TestTextsOfActions(t *testing.T) {
	source := "de:\n  actions:\n    invoice.pay: Rechnungen zahlen\n    invoice.gone: Gibt es nicht\n    message.send: Faxe senden\n"
	own, err := checkTexts(source)
	if err != nil {
		t.Fatal(err)
	}
	if list := listTexts(t, own, "de"); !strings.Contains(list, "\n  actions:\n    invoice.pay: Rechnungen zahlen\n") {
		t.Error("the list lacks the actions")
	}
	s := doorwardtest.Start(t, func(c *node.Config) { c.Texts = own })
	owner := s.Tenant("Acme").Owner
	roles := func(language string) string {
		_, body := owner.Get("/console/roles?lang=" + language)
		return string(body)
	}
	if german := roles("de"); strings.Contains(german, "Faxe senden") {
		t.Error("a text of the platform's actions is shown for one of the built-in model")
	}
	s.ApplyModel("actions:\n  invoice.pay: {about: Pay invoices, roles: [OWNER, ADMIN]}\n  message.send: {roles: [OWNER, ADMIN]}\n")
	for language, want := range map[string]string{"de": "<bdi>Rechnungen zahlen</bdi>, <bdi>Faxe senden</bdi>", "en": "<bdi>Pay invoices</bdi>, <bdi>message.send</bdi>"} {
		if body := roles(language); !strings.Contains(body, want) {
			t.Errorf("the roles in %s lack %q:\n%s", language, want, body)
		}
	}
}

// The texts are on pages, in error pages and in mails, also in another language; other servers don't
// have them.
func TestOwnTexts(t *testing.T) {
	list := listTexts(t, nil, "pl")
	for old, text := range map[string]string{
		"\n    login.title: ": "\n    login.title: Zaloguj się #", "\n      USER: User\n": "\n      USER: Klient\n",
		"\n    error.not_found.title: ": "\n    error.not_found.title: Nie ma takiej strony #",
	} {
		if !strings.Contains(list, old) {
			t.Fatalf("the list lacks %q", old)
		}
		list = strings.Replace(list, old, text, 1)
	}
	own, err := checkTexts(named(list) + "en:\n  hosted:\n    login.title: Enter the shop\n")
	if err != nil {
		t.Fatal(err)
	}
	s, plain := doorwardtest.Start(t, func(c *node.Config) { c.Texts = own }), doorwardtest.Start(t)
	page := func(s *doorwardtest.Server, path, language, want string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Language", language)
		req.Header.Set("Accept", "text/html")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var body bytes.Buffer
		if _, err := body.ReadFrom(res.Body); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(body.String(), want) {
			t.Errorf("%s in %s lacks %q:\n%s", path, language, want, body.String())
		}
	}
	page(s, "/login", "en", "Enter the shop")
	page(s, "/login", "pl-PL", "Zaloguj się")
	page(s, "/login", "pl", `<html lang="pl" dir="rtl"`)
	page(s, "/login?lang=pl", "en", "Zaloguj się")
	page(s, "/login", "de", ">Own</a>")
	page(s, "/nowhere", "pl", "Nie ma takiej strony")
	page(plain, "/login", "pl", "Sign in")

	invitation := m{"email": "ben@acme.example", "role": "USER", "locale": "pl"}
	if status, answer := s.Tenant("Acme").Owner.Post("/api/v2/auth/invite", invitation); status != http.StatusCreated {
		t.Fatalf("the invitation is answered %d %s", status, answer)
	}
	s.Code("ben@acme.example")
	if mail := s.Mails("ben@acme.example")[0]; !strings.Contains(mail.Text, "Klient") || !strings.Contains(mail.HTML, `dir="rtl"`) {
		t.Errorf("the mail is %s", mail.Text)
	}
}
