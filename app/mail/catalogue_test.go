package mail

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
)

// kinds returns the kinds of mail, sorted by name.
func kinds() []string {
	all := []string{string(store.MailDigest)}
	for kind := range composers {
		all = append(all, string(kind))
	}
	slices.Sort(all)
	return all
}

// Each kind of mail that the queue returns has a composer, and there is no other composer.
func TestEveryKindIsComposed(t *testing.T) {
	var listed []string
	for _, kind := range store.MailKinds {
		listed = append(listed, string(kind))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(kinds(), listed); diff != "" {
		t.Errorf("composers have -, store.MailKinds +:\n%s", diff)
	}
}

// Every language has the same mails, with the same parts, as English, and uses only variables
// that docs/mail.md promises to the mail.
func TestEveryLanguageSaysEverything(t *testing.T) {
	promised := documented(t)
	for _, language := range []string{"en", "de"} {
		if _, ok := catalogues()[language]; !ok {
			t.Fatalf("the catalogue %s.yaml is missing", language)
		}
	}
	for language, c := range catalogues() {
		for _, fault := range faults(c, promised) {
			t.Errorf("%s.yaml: %s", language, fault)
		}
	}
}

// faults compares a catalogue with the English one and with the documented variables.
func faults(c catalogue, promised map[string][]string) (all []string) {
	if c.Direction != "ltr" && c.Direction != "rtl" {
		all = append(all, "direction is neither ltr nor rtl")
	}
	for _, role := range doorward.Roles {
		if c.Roles[string(role)] == "" {
			all = append(all, "the role "+string(role)+" has no name")
		}
	}
	english := catalogues()[fallback]
	for _, kind := range kinds() {
		have, want := parts(c.Mails[kind]), parts(english.Mails[kind])
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if have[name] == nil {
				all = append(all, kind+": "+name+" is missing")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(have)) {
			if want[name] == nil {
				all = append(all, kind+": "+name+" is superfluous")
			}
			for _, s := range have[name] {
				for _, v := range variablesIn(s.Root) {
					if !slices.Contains(promised[kind], v) {
						all = append(all, kind+": "+name+" uses "+v+", which docs/mail.md doesn't promise to it")
					}
				}
			}
		}
	}
	for kind := range c.Mails {
		if !slices.Contains(kinds(), kind) {
			all = append(all, kind+": there is no such mail")
		}
	}
	return all
}

// parts returns the sentences of a message by their names in the file, without the
// empty ones.
func parts(m message) map[string][]*sentence {
	all := map[string][]*sentence{}
	add := func(name string, sentences ...*sentence) {
		for _, s := range sentences {
			if s != nil && strings.TrimSpace(s.Root.String()) != "" {
				all[name] = append(all[name], s)
			}
		}
	}
	add("subject", m.Subject)
	add("greeting", m.Greeting)
	add("paragraphs", m.Paragraphs...)
	add("details", m.Details...)
	add("advice", m.Advice...)
	add("open_link", m.OpenLink)
	add("button", m.Button)
	add("enter_code", m.EnterCode)
	add("note", m.Note)
	add("item", m.Item)
	return all
}

// documented returns the variables of each mail from the table in docs/mail.md,
// which translators use.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/mail.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|.*\\|(.*)\\|$").FindAllStringSubmatch(string(page), -1) {
		all[row[1]] = []string{"Site", "Email"}
		for _, v := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(row[2], -1) {
			all[row[1]] = append(all[row[1]], v[1])
		}
	}
	if diff := cmp.Diff(kinds(), slices.Sorted(maps.Keys(all))); diff != "" {
		t.Fatalf("the mails that exist (-) and those in docs/mail.md (+) differ:\n%s", diff)
	}
	for kind, names := range all {
		for _, name := range names {
			if _, ok := reflect.TypeFor[variables]().FieldByName(name); !ok {
				t.Errorf("docs/mail.md lists %s for %s, but the variables lack it", name, kind)
			}
		}
	}
	return all
}

// For each mistake that a translator can make, there is an error that names the mail or the
// file.
func TestFaultsOfACatalogueAreNamed(t *testing.T) {
	german, err := builtInTexts.ReadFile("text/de.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"\nremoved:\n", "\nremowed:\n", "removed: subject is missing"},
		{"\nremoved:\n", "\nremowed:\n", "remowed: there is no such mail"},
		{"  button: 'Einladung annehmen'\n", "", "invitation: button is missing"},
		{"  button: 'Einladung annehmen'\n", "  button: ' '\n", "invitation: button is missing"},
		{"subject: 'Neues Passwort setzen'", "subject: 'Neues Passwort setzen'\n  advice: ['Hm.']", "reset: advice is superfluous"},
		{"'Neues Passwort setzen'", "'{{.Password}}'", "reset: subject uses Password, which docs/mail.md doesn't promise to it"},
		{"'Neues Passwort setzen'", "'{{if false}}{{else}}{{strong $.Tenant}}{{end}}'", "reset: subject uses Tenant, which docs/mail.md doesn't promise to it"},
		{"direction: ltr", "direction: left", "direction is neither ltr nor rtl"},
	} {
		changed := strings.Replace(string(german), c.from, c.to, 1)
		read, err := readCatalogue([]byte(changed))
		if err != nil || changed == string(german) {
			t.Fatalf("%q: %v", c.to, err)
		}
		if got := faults(read, documented(t)); !slices.Contains(got, c.want) {
			t.Errorf("for %q the faults are %q, want %q", c.to, got, c.want)
		}
	}
	for _, c := range []struct{ from, to, want string }{
		{"  button: 'Einladung", "  buton: 'Einladung", "buton"},
		{"'Neues Passwort setzen'", "'{{.Name'", "line"},
		{"'Neues Passwort setzen'", "'{{shout .Name}}'", "shout"},
		{"'Neues Passwort setzen'", "[a]", "cannot unmarshal"},
	} {
		file := &fstest.MapFile{Data: []byte(strings.Replace(string(german), c.from, c.to, 1))}
		_, err := readCatalogues(fstest.MapFS{"text/xx.yaml": file})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "text/xx.yaml") {
			t.Errorf("for %q the error is %v, want the file and %q", c.to, err, c.want)
		}
	}
}

func TestLanguage(t *testing.T) {
	for locale, want := range map[string]string{
		"": "en", "en": "en", "en-GB": "en", "de": "de", "DE": "de", "de-CH": "de", "de-Latn-CH-1996": "de",
		"fr": "en", "deu": "en", "nds": "en", "-": "en", "e": "en",
	} {
		if got := catalogues().language(locale); got != want {
			t.Errorf("mail for %q is in %s, want %s", locale, got, want)
		}
	}
}
