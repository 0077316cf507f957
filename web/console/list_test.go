package console

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

var (
	sortLink    = regexp.MustCompile(`<a class="sort"`)
	sortedBy    = regexp.MustCompile(`aria-sort="(?:ascending|descending)"`)
	sortedLink  = regexp.MustCompile(`aria-sort="(?:ascending|descending)"><a class="sort"`)
	laterRange  = regexp.MustCompile(`>51–100 of `)
	unnamedTime = regexp.MustCompile(`<td role="cell"><time[ >]`)
	currentSort = regexp.MustCompile(`<select id="sort".*<option value="[^"]*" selected>`)
)

// A heading that sorts is a link, and one of them shows the present order, which "Sort by" has chosen, too;
// a list of one order shows none. A later page of a list has a link to the one before it. On a phone, which
// shows no headings, a time says which one it is.
func TestHeadingsOfLists(t *testing.T) {
	for _, s := range samples() {
		var page bytes.Buffer
		if err := set.Render(&page, uitest.FrameOf(s, ui.Languages[0])); err != nil {
			t.Fatal(err)
		}
		for _, fault := range faultsOfList(page.String()) {
			t.Errorf("%s: %s", s.Name, fault)
		}
	}
	for text, want := range map[string]int{
		`<th aria-sort="descending">Version</th>`: 1, `<th><a class="sort" href="?">Name</a></th>`: 2, `<span class="small">51–100 of 163</span>`: 1,
		`<td role="cell"><time datetime="2026-11-21">today</time></td>`: 1, `<td role="cell" class="wide-only"><time datetime="2026-11-21">today</time></td>`: 0,
	} {
		if got := faultsOfList(text); len(got) != want {
			t.Errorf("the faults of %s are %q, want %d", text, got, want)
		}
	}
}

// faultsOfList returns what is wrong with the headings and the links of the list on a page.
func faultsOfList(page string) (all []string) {
	links, orders := len(sortLink.FindAllString(page, -1)), len(sortedBy.FindAllString(page, -1))
	if orders != len(sortedLink.FindAllString(page, -1)) {
		all = append(all, "a heading shows an order and is no link")
	}
	if links > 0 && orders != 1 {
		all = append(all, "no heading shows the present order, or several do")
	}
	if links > 0 && !currentSort.MatchString(page) {
		all = append(all, `"Sort by" doesn't have the present order`)
	}
	if unnamedTime.MatchString(page) {
		all = append(all, "a time has no name on a phone")
	}
	if laterRange.MatchString(page) && !strings.Contains(page, `rel="prev"`) {
		all = append(all, "no link leads to the page before this one")
	}
	return all
}

var (
	actionOption = regexp.MustCompile(`<option value="([a-z]+\.[a-z]+)"[^>]*>([^<]*)</option>`)
	unbroken     = regexp.MustCompile(`<bdi>https?://[^<]*`)
)

// An action among the options of a select has a capital letter and its name last, as a checkbox has; an
// address of a webhook can end a line after each of its parts.
func TestOptionsAndAddresses(t *testing.T) {
	options, addresses := 0, 0
	for _, s := range samples() {
		for _, l := range ui.Languages {
			page := uitest.Rendered(t, set, s, l)
			for _, m := range actionOption.FindAllStringSubmatch(page, -1) {
				options++
				if name, label := m[1], m[2]; label != name && (strings.HasPrefix(label, name) || !startsWithCapital(label)) {
					t.Errorf("%s-%s: the option %q", l.Tag, s.Name, label)
				}
			}
			addresses += strings.Count(page, "<bdi>https:/<wbr>")
			for _, address := range unbroken.FindAllString(page, -1) {
				t.Errorf("%s-%s: %s breaks within a word", l.Tag, s.Name, address)
			}
		}
	}
	if options == 0 || addresses == 0 {
		t.Errorf("the samples have %d options and %d addresses", options, addresses)
	}
}

func startsWithCapital(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return !unicode.IsLower(first)
}
