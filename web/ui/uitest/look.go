package uitest

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward/web/ui"
)

// message is what stands in a sample for the text of a message, see Said.
var message = regexp.MustCompile(`\[\[([\w.]+)\]\]`)

// Said stands in a sample for what a page says with its own message, such as a fault: the text is then that of the
// language, as in life.
func Said(key string) string { return "[[" + key + "]]" }

// Rendered returns the HTML of a sample in a language.
func Rendered(t *testing.T, set *ui.Set, s Sample, l ui.Language) string {
	t.Helper()
	var page bytes.Buffer
	if err := set.Render(&page, FrameOf(s, l)); err != nil {
		t.Fatalf("%s in %s: %v", s.Name, l.Tag, err)
	}
	return message.ReplaceAllStringFunc(page.String(), func(found string) string {
		text, err := set.Message(l, s.View.Page, message.FindStringSubmatch(found)[1])
		if err != nil {
			t.Errorf("%s in %s: %v", s.Name, l.Tag, err)
		}
		return html.EscapeString(text)
	})
}

var (
	unfilled   = regexp.MustCompile(`<title>[^<]*\{[^<]*`)
	currentTab = regexp.MustCompile(`<li><a href="[^"]*" aria-current="page">([^<]*)</a></li>`)
	label      = regexp.MustCompile(`<(?:p class="label"|label for="[^"]*")>([^<]*)<`)
	heading    = regexp.MustCompile(`<h2 id="[^"]*">([^<]*)</h2>`)
	tag        = regexp.MustCompile(`<span class="tag[^"]*">([^<]*)</span>`)
	form       = regexp.MustCompile(`(?s)<form method="post"[^>]*>.*?</form>`)
	typed      = regexp.MustCompile(`<(?:textarea|select)|type="(?:text|password|email|url|number)"`)
	mainButton = regexp.MustCompile(`<button [^>]*class="button(?: danger| grave)?"`)
)

// RepeatedHeadings returns the visible headings of sections that say again what the current tab above
// them, or the label of a field below them, says.
func RepeatedHeadings(page string) (repeated []string) {
	said := map[string]bool{}
	for _, m := range append(currentTab.FindAllStringSubmatch(page, -1), label.FindAllStringSubmatch(page, -1)...) {
		said[strings.TrimSpace(m[1])] = true
	}
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		if said[h[1]] {
			repeated = append(repeated, h[1])
		}
	}
	return repeated
}

// LowercaseTags returns the tags that don't begin as a sentence does.
func LowercaseTags(page string) (wrong []string) {
	for _, m := range tag.FindAllStringSubmatch(page, -1) {
		if first, _ := utf8.DecodeRuneInString(m[1]); unicode.IsLower(first) {
			wrong = append(wrong, m[1])
		}
	}
	return wrong
}

// FormsWithoutMainButton returns the forms with something to enter that haven't exactly one filled
// button. Forms of one row, of the class inline, have a small one.
func FormsWithoutMainButton(page string) (wrong []string) {
	for _, f := range form.FindAllString(page, -1) {
		head, _, _ := strings.Cut(f, ">")
		if typed.MatchString(f) && !strings.Contains(head, `class="inline"`) && len(mainButton.FindAllString(f, -1)) != 1 {
			wrong = append(wrong, head+">")
		}
	}
	return wrong
}
