package ui

import (
	"golang.org/x/text/language"

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

var matcher = func() language.Matcher {
	var tags []language.Tag
	for _, l := range Languages {
		tags = append(tags, language.MustParse(l.Tag))
	}
	return language.NewMatcher(tags)
}()

// The query parameter that chooses a language, the cookie that remembers it, and for how
// many seconds; a theme is remembered as long.
const (
	languageQuery  = "lang"
	languageCookie = "doorward_lang"
	languageLife   = 365 * 24 * 60 * 60
)

// languageOf returns the first available language of these: in the query, in the cookie of an
// earlier choice, among those that the browser prefers (RFC 9110, section 12.5.4).
func languageOf(c *front.Call) Language {
	if l, ok := languageByTag(c.R.URL.Query().Get(languageQuery)); ok {
		return l
	}
	if l, ok := languageByTag(c.Cookie(languageCookie)); ok {
		return l
	}
	// A header that can't be parsed is ignored.
	requested, _, _ := language.ParseAcceptLanguage(c.R.Header.Get("Accept-Language"))
	_, i, _ := matcher.Match(requested...)
	return Languages[i]
}

func languageByTag(tag string) (Language, bool) {
	for _, l := range Languages {
		if l.Tag == tag {
			return l, true
		}
	}
	return Language{}, false
}
