package ui

import (
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/web/front"
)

// The themes; the first leaves the choice to the system. Like the language, one is chosen by a
// query and kept in a cookie, so it works without scripts.
var themes = []string{"system", "light", "dark"}

const (
	themeQuery  = "theme"
	themeCookie = "doorward_theme"
)

// themeOf returns the theme in the cookie's value; empty for that of the system.
func themeOf(kept string) string {
	if slices.Contains(themes[1:], kept) {
		return kept
	}
	return ""
}

// chooseTheme sets the theme of the page: that of the query, or else that of the cookie.
func (c *Call) chooseTheme() {
	c.theme = themeOf(c.Cookie(themeCookie))
	c.setTheme(c.R.URL.Query().Get(themeQuery))
}

// setTheme sets the theme of this and later pages, and reports whether the name is known.
func (c *Call) setTheme(name string) bool {
	if !slices.Contains(themes, name) {
		return false
	}
	if c.theme = themeOf(name); c.theme == "" {
		c.SetCookie(themeCookie, "", 0)
		return true
	}
	c.SetCookie(themeCookie, name, languageLife)
	return true
}

// ThemeChoice is a theme with the link that chooses it; no link for the present theme.
type ThemeChoice struct{ Name, Link string }

// themeChoices returns the themes to choose from. On a page that answers a form they are buttons
// that send it again, as for the languages.
func (c *Call) themeChoices(v View) (all []ThemeChoice) {
	if !front.Safe(c.R.Method) && (v.OneLanguage || c.form == nil) {
		return nil
	}
	for _, name := range themes {
		q := c.R.URL.Query()
		q.Del(languageQuery)
		q.Set(themeQuery, name)
		one := ThemeChoice{name, "?" + q.Encode()}
		if name == c.theme || c.theme == "" && name == themes[0] {
			one.Link = ""
		}
		all = append(all, one)
	}
	return all
}

// Sheet returns the file name of a style sheet in the theme of the page.
func (f Frame) Sheet(name string) string { return themedName(name, f.Theme) }

// ColorScheme is the value of the meta element of that name.
func (f Frame) ColorScheme() string {
	if f.Theme == "" {
		return "light dark"
	}
	return f.Theme
}

func themedName(name, theme string) string {
	if theme == "" {
		return name
	}
	return strings.TrimSuffix(name, ".css") + "-" + theme + ".css"
}

// inTheme returns the style sheet with the media queries resolved, as if the system preferred
// the theme.
func inTheme(css, theme string) string {
	other := map[string]string{"light": "dark", "dark": "light"}[theme]
	return strings.NewReplacer(
		"(prefers-color-scheme: "+theme+")", "all",
		"(prefers-color-scheme: "+other+")", "not all",
		"color-scheme: light dark;", "color-scheme: "+theme+";",
	).Replace(css)
}

// Sheets returns the routes of an embedded style sheet, one for each theme.
func Sheets(name string, from fs.FS) []front.Route {
	body, err := fs.ReadFile(from, "assets/"+name)
	if err != nil {
		panic(err)
	}
	const css = "text/css; charset=utf-8"
	all := []front.Route{front.File(name, css, body)}
	for _, theme := range themes[1:] {
		all = append(all, front.File(themedName(name, theme), css, []byte(inTheme(string(body), theme))))
	}
	return all
}

// withoutTheme removes the choice of a theme from the query, and returns the query.
func withoutTheme(q url.Values) url.Values {
	q.Del(themeQuery)
	return q
}
