package ui

import (
	"context"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/texts"
)

// Set has the pages of one protocol in every language. Make it with NewSet.
type Set struct {
	name  string  // of the section in files of texts
	files []fs.FS // those of this package first

	errorView func(context.Context, *Call, ErrorPage) (View, error) // see WithErrorView

	mu       sync.Mutex
	parsed   map[*texts.File]func() (map[string]page, error)
	matchers map[*texts.File]language.Matcher
}

// page is a page in one language.
type page struct {
	*template.Template
	words  catalogue
	ofLink catalogue // words for the holders of set-up links, see catalogue.ofLink
}

// NewSet returns the set of own's templates in html and messages in text, in addition to
// those of this package; own is nil for none. They are parsed on first use. An operator's file of
// texts has its messages in a section of the name.
func NewSet(name string, own fs.FS) *Set {
	s := &Set{name: name, files: []fs.FS{files}, parsed: map[*texts.File]func() (map[string]page, error){}, matchers: map[*texts.File]language.Matcher{}}
	if own != nil {
		s.files = append(s.files, own)
	}
	return s
}

// WithErrorView makes the set show errors within its own pages where the caller has a session that the page
// accepts: fn returns the view, whose Body embeds the ErrorPage. Its errors leave the plain error page.
func (s *Set) WithErrorView(fn func(context.Context, *Call, ErrorPage) (View, error)) *Set {
	s.errorView = fn
	return s
}

// pages returns the pages with the operator's texts, which may be nil.
func (s *Set) pages(own *texts.File) (map[string]page, error) {
	s.mu.Lock()
	parse := s.parsed[own]
	if parse == nil {
		parse = sync.OnceValues(func() (map[string]page, error) { return s.parse(own) })
		s.parsed[own] = parse
	}
	s.mu.Unlock()
	return parse()
}

// matcher returns what finds the nearest language of LanguagesWith.
func (s *Set) matcher(own *texts.File) language.Matcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.matchers[own] == nil {
		s.matchers[own] = newMatcher(LanguagesWith(own))
	}
	return s.matchers[own]
}

// shared are the files whose templates every page of a set can use: those of this package,
// and a protocol's own files of these names.
var shared = []string{"layout.html", "parts.html", "signon.html"}

func (s *Set) parse(own *texts.File) (map[string]page, error) {
	all := map[string]page{}
	for _, l := range LanguagesWith(own) {
		words, err := s.catalogue(l.Tag, own)
		if err != nil {
			return nil, err
		}
		if err := s.parseIn(l, words, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// catalogue returns the messages in a language: those that are built in, or else those in English,
// with the operator's own in their place.
func (s *Set) catalogue(tag string, own *texts.File) (catalogue, error) {
	words := catalogue{languageKey: tag}
	if !isBuiltIn(tag) {
		tag = Languages[0].Tag
	}
	for _, f := range s.files {
		if err := words.read(f, "text/"+tag+".txt"); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{sharedSection, s.name} {
		section, _ := own.Section(words[languageKey], name)
		words.replace(section)
	}
	actions, _ := own.Section(words[languageKey], actionsSection)
	words.addActions(actions)
	return words, nil
}

func (s *Set) parseIn(l Language, words catalogue, into map[string]page) error {
	ofLink := words.ofLink()
	base := template.New("").Option("missingkey=error").Funcs(words.helpers())
	for _, f := range s.files {
		for _, name := range shared {
			text, err := fs.ReadFile(f, "html/"+name)
			if err != nil {
				continue
			}
			if _, err := base.New(name).Parse(string(text)); err != nil {
				return err
			}
		}
	}
	for _, f := range s.files {
		names, err := fs.Glob(f, "html/*.html")
		if err != nil {
			return err
		}
		for _, name := range names {
			if slices.Contains(shared, path.Base(name)) {
				continue
			}
			key := strings.TrimSuffix(path.Base(name), ".html")
			t, err := base.Clone()
			if err == nil {
				t, err = t.ParseFS(f, name)
			}
			if err != nil {
				return err
			}
			into[l.Tag+" "+key] = page{t, words, ofLink}
		}
	}
	return nil
}

// page returns the page in the language.
func (s *Set) page(own *texts.File, tag, name string) (page, error) {
	all, err := s.pages(own)
	if err != nil {
		return page{}, err
	}
	p, ok := all[tag+" "+name]
	if !ok {
		return page{}, fmt.Errorf("ui: no page %q", name)
	}
	return p, nil
}

// Message returns a message as a page has it in the language, and an error if it has none with the key.
func (s *Set) Message(l Language, page, key string) (string, error) {
	p, err := s.page(nil, l.Tag, page)
	if err != nil {
		return "", err
	}
	return p.words.say(key)
}

// helpers are what templates can call, in the language of the catalogue.
func (c catalogue) helpers() template.FuncMap {
	return template.FuncMap{
		"t":            c.say,   // t "key" "name" value…
		"rich":         c.rich,  // as t, values in bold
		"count":        c.count, // count "key" n
		"ago":          func(f Frame, at time.Time) (string, error) { return c.ago(f.Now.Sub(at)) },
		"about":        c.about, // about action "description by the model"
		"day":          c.day,
		"shortDay":     c.shortDay,
		"moment":       c.moment,
		"exact":        c.exact,
		"number":       c.number,
		"duration":     c.duration,
		"latency":      c.latency,
		"device":       c.device,
		"deviceKind":   deviceKind,
		"alphabetical": c.alphabetical, // alphabetical "did." actions
		"field":        field,          // field $ "name" "attribute" value…
		"confirmation": confirmation,   // confirmation "text of the button" "address to go back to" takes
		"breaks":       breaks,         // breaks "a_long/name"
		"withName":     withName,       // withName "words about it" action
		"isLong":       isLong,         // isLong "a name as a heading"
		"tone":         tone,           // tone "key of a state"
		"copied":       copied,         // copied "key of the label" value
		"signOf":       signOf,         // signOf "key of what was done"
		"nothing":      nothing,        // nothing "sentence" "address of the button" "its text"
		"unmatched":    unmatched,      // the same, where filters are in use
		"secretDays":   func() []int { return SecretDays },
		"next":         func(n int) int { return n + 1 },
		"role":         func(r any) (string, error) { return c.role(doorward.Role(fmt.Sprint(r))) },
	}
}

// isLong reports whether a name needs a smaller heading.
func isLong(name string) bool { return utf8.RuneCountInString(name) > 24 }

// withName returns the words about an action, with a capital letter, and its name: an option can't be styled.
// Without words of its own it has its name alone.
func withName(words string, action doorward.Action) string {
	if words == string(action) || words == "" {
		return string(action)
	}
	first, size := utf8.DecodeRuneInString(words)
	return fmt.Sprintf("%c%s (%s)", unicode.ToUpper(first), words[size:], action)
}

// breaks returns a name in which a line may end after each "_", "/", ".", "-", "?", "&" and "=", so that a
// long one isn't cut within a word.
func breaks(name string) template.HTML {
	var b strings.Builder
	for _, r := range name {
		b.WriteString(template.HTMLEscapeString(string(r)))
		if strings.ContainsRune("_/.-?&=", r) {
			b.WriteString("<wbr>")
		}
	}
	return template.HTML(b.String()) // escaped above
}
