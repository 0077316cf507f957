package ui

import (
	"cmp"
	"slices"

	"golang.org/x/text/language"

	"github.com/doorward/doorward/internal/texts"
	"github.com/doorward/doorward/web/front"
)

// Language is a language that pages are written in.
type Language struct {
	Tag  string // BCP 47
	Name string // in the language itself
	Dir  string // ltr or rtl
}

// Languages are the available languages; the first is the fallback. A new one needs
// a line here and a file beside each en.txt.
var Languages = []Language{
	{"en", "English", "ltr"},
	{"de", "Deutsch", "ltr"},
}

// LanguagesWith returns the available languages with those of the operator's texts, which may be
// nil.
func LanguagesWith(own *texts.File) []Language {
	all := slices.Clone(Languages)
	if own == nil {
		return all
	}
	for _, l := range own.Languages {
		if !isBuiltIn(l.Tag) {
			all = append(all, Language{l.Tag, l.Name, cmp.Or(l.Direction, "ltr")})
		}
	}
	return all
}

func isBuiltIn(tag string) bool {
	return slices.ContainsFunc(Languages, func(l Language) bool { return l.Tag == tag })
}

// newMatcher returns what finds the nearest of the languages. It takes 100 µs, so each Set keeps it.
func newMatcher(available []Language) language.Matcher {
	var tags []language.Tag
	for _, l := range available {
		tags = append(tags, language.Make(l.Tag))
	}
	return language.NewMatcher(tags)
}

// The query parameter that chooses a language, the cookie that remembers it, and for how
// many seconds; a theme is remembered as long.
const (
	languageQuery  = "lang"
	languageCookie = "doorward_lang"
	languageLife   = 365 * 24 * 60 * 60
)

// languageOf returns the first available language of these: in the query, in the cookie of an
// earlier choice, among those that the browser prefers (RFC 9110, section 12.5.4).
func (s *Set) languageOf(c *front.Call) Language {
	available := LanguagesWith(c.Site().Texts)
	if l, ok := languageByTag(available, c.R.URL.Query().Get(languageQuery)); ok {
		return l
	}
	if l, ok := languageByTag(available, c.Cookie(languageCookie)); ok {
		return l
	}
	// A header that can't be parsed is ignored.
	requested, _, _ := language.ParseAcceptLanguage(c.R.Header.Get("Accept-Language"))
	_, i, _ := s.matcher(c.Site().Texts).Match(requested...)
	return available[i]
}

func languageByTag(available []Language, tag string) (Language, bool) {
	for _, l := range available {
		if l.Tag == tag {
			return l, true
		}
	}
	return Language{}, false
}
