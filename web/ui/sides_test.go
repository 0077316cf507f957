package ui

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// physicalSides match rules for left or right, which are wrong in text from right to left.
var physicalSides = []*regexp.Regexp{
	regexp.MustCompile(`(margin|padding|border|scroll-margin|scroll-padding)-(left|right)\b`),
	regexp.MustCompile(`border-(top|bottom)-(left|right)-radius`),
	regexp.MustCompile(`(?:^|[\s;{])(left|right)\s*:`),
	regexp.MustCompile(`(text-align|float|clear)\s*:\s*(left|right)\b`),
}

// fourValues matches a shorthand with values for top, right, bottom and left, none of them
// with a parenthesis.
var fourValues = regexp.MustCompile(`(?:margin|padding|inset|border-width)\s*:\s*([^\s;()]+)\s+([^\s;()]+)\s+([^\s;()]+)\s+([^\s;()]+)\s*[;}]`)

// linesWithSides returns the lines of a style sheet that distinguish left and right.
func linesWithSides(css string) (found []string) {
	for line := range strings.Lines(css) {
		wrong := false
		for _, s := range physicalSides {
			wrong = wrong || s.MatchString(line)
		}
		for _, v := range fourValues.FindAllStringSubmatch(line, -1) {
			wrong = wrong || v[2] != v[4]
		}
		if wrong {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// A language written from right to left needs a line in Languages, but no style rules.
func TestStylesUseLogicalSides(t *testing.T) {
	for _, name := range []string{"assets/ui.css", "../console/assets/console.css"} {
		css, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range linesWithSides(string(css)) {
			t.Errorf("%s: %q: write margin-inline-start, inset-inline-end, text-align: start and the like", name, line)
		}
	}
	for _, planted := range []string{
		"a { margin-left: 1px; }", "a { left: 0 }", "a{right:0}", "a { text-align: right; }", "a { float: left; }",
		"a { border-left: 1px solid; }", "a { padding: 1px 2px 3px 4px; }", "a { margin: 0 auto 0 0 }", "a { border-top-left-radius: 1px; }",
	} {
		if len(linesWithSides(planted)) != 1 {
			t.Errorf("%s passes", planted)
		}
	}
	for _, fine := range []string{".left { color: red; }", "a { padding: 1px 2px 3px 2px; }", "a { margin-inline: 0 1rem; inset-inline-start: 0; }", "a { padding: calc(1px + 2px) 3px; }"} {
		if len(linesWithSides(fine)) != 0 {
			t.Errorf("%s is reported", fine)
		}
	}
}
