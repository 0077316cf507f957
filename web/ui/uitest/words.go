package uitest

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// BuiltInWords matches words of the built-in model, which pages and mails must not say when another
// model is in force.
var BuiltInWords = regexp.MustCompile(`(?i)\b(messages?|reports?|billing|destroy data)\b|\bNachrichten (senden|lesen)|(sendet|sieht|liest) Nachrichten|\bBerichte?\b|\bAbrechnung|Daten vernichten|data\.destroy`)

// Text returns the text of a page that people can read, without that of scripts and styles.
func Text(page string) string {
	var out strings.Builder
	hidden := false
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return out.String()
		case html.StartTagToken:
			name, _ := z.TagName()
			hidden = string(name) == "script" || string(name) == "style"
		case html.EndTagToken:
			hidden = false
		case html.TextToken:
			if !hidden {
				out.Write(z.Text())
			}
		}
	}
}
