package pages_test

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/doorward/doorward/doorwardtest"
)

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// elements iterates over the elements below n with one of the names.
func elements(n *html.Node, names ...string) iter.Seq[*html.Node] {
	return func(yield func(*html.Node) bool) {
		for d := range n.Descendants() {
			if d.Type == html.ElementNode && slices.Contains(names, d.Data) && !yield(d) {
				return
			}
		}
	}
}

// find returns the first element of the name below n; an empty node if there is none.
func find(n *html.Node, name string) *html.Node {
	for d := range elements(n, name) {
		return d
	}
	return &html.Node{}
}

func byID(n *html.Node, id string) *html.Node {
	for d := range n.Descendants() {
		if attr(d, "id") == id {
			return d
		}
	}
	return nil
}

// text returns the text below n with its spaces.
func text(n *html.Node) string {
	var all strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			all.WriteString(d.Data)
		}
	}
	return all.String()
}

func TestPagesAreWellFormed(t *testing.T) {
	server := start(t, doorwardtest.BaseURL("https://auth.example/platform"))
	for _, path := range paths() {
		for _, fault := range tagFaults(get(t, server.URL+path).body) {
			t.Errorf("%s: %s", path, fault)
		}
		root := page(t, server.URL+path)
		for _, check := range []func(*html.Node) []string{
			idFaults, referenceFaults, labelFaults, foreignFaults, outlineFaults, headFaults,
		} {
			for _, fault := range check(root) {
				t.Errorf("%s: %s", path, fault)
			}
		}
	}
}

// tagFaults checks the source text, because a parser repairs its input.
func tagFaults(page string) (faults []string) {
	void := []string{"meta", "link", "input", "br", "img", "hr"}
	var open []string
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if z.Err() != io.EOF || len(open) > 0 {
				faults = append(faults, fmt.Sprintf("%v, still open: %q", z.Err(), open))
			}
			return faults
		case html.StartTagToken:
			if name, _ := z.TagName(); !slices.Contains(void, string(name)) {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				return append(faults, fmt.Sprintf("</%s> closes %q", name, open))
			}
			open = open[:len(open)-1]
		}
	}
}

func idFaults(root *html.Node) (faults []string) {
	seen := map[string]bool{}
	for n := range root.Descendants() {
		id := attr(n, "id")
		if seen[id] || hasAttr(n, "id") && (id == "" || strings.ContainsAny(id, " \t\n")) {
			faults = append(faults, fmt.Sprintf("the id %q is a duplicate, empty or has spaces", id))
		}
		seen[id] = id != ""
	}
	return faults
}

func referenceFaults(root *html.Node) (faults []string) {
	for n := range root.Descendants() {
		for _, name := range []string{"for", "aria-labelledby", "aria-describedby", "aria-controls"} {
			for id := range strings.FieldsSeq(attr(n, name)) {
				if byID(root, id) == nil {
					faults = append(faults, fmt.Sprintf("%s of <%s> names %q, which no element has", name, n.Data, id))
				}
			}
		}
	}
	return faults
}

// labelFaults requires an accessible name for every control, link and region.
func labelFaults(root *html.Node) (faults []string) {
	labels := map[string]bool{}
	for label := range elements(root, "label") {
		labels[attr(label, "for")] = strings.TrimSpace(text(label)) != ""
	}
	for n := range elements(root, "input", "button", "a", "nav", "section", "pre") {
		named := strings.TrimSpace(text(n)) != ""
		switch n.Data {
		case "input":
			named = labels[attr(n, "id")]
		case "nav", "section":
			named = hasAttr(n, "aria-label") || hasAttr(n, "aria-labelledby")
		case "pre": // scrolls, so it must be focusable
			named = hasAttr(n, "aria-labelledby") && attr(n, "tabindex") == "0"
		}
		if !named {
			faults = append(faults, fmt.Sprintf("<%s id=%q> has no name", n.Data, attr(n, "id")))
		}
	}
	return faults
}

// foreignFaults finds content that the page's policy blocks, and addresses of other
// sites, except for links in an article.
func foreignFaults(root *html.Node) (faults []string) {
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "style" || n.Data == "script" && (attr(n, "src") == "" || n.FirstChild != nil) {
			faults = append(faults, fmt.Sprintf("an inline <%s>", n.Data))
		}
		for _, a := range n.Attr {
			if n.Data == "a" && a.Key == "href" && isInArticle(n) && strings.HasPrefix(a.Val, "http") {
				continue
			}
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				faults = append(faults, fmt.Sprintf("<%s> has %s", n.Data, a.Key))
			}
			if strings.Contains(a.Val, "://") || strings.HasPrefix(a.Val, "//") || strings.HasPrefix(a.Val, "javascript:") {
				faults = append(faults, fmt.Sprintf("<%s> has %s=%q", n.Data, a.Key, a.Val))
			}
		}
	}
	return faults
}

func isInArticle(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n.Data == "article" {
			return true
		}
	}
	return false
}

// outlineFaults requires one h1 that isn't hidden, no skipped level, and one main element that
// the first link leads to.
func outlineFaults(root *html.Node) (faults []string) {
	level, titles := 0, 0
	for h := range elements(root, "h1", "h2", "h3", "h4", "h5", "h6") {
		next := int(h.Data[1] - '0')
		if next > level+1 {
			faults = append(faults, fmt.Sprintf("%q comes after a heading of level %d", text(h), level))
		}
		if next == 1 && !isHidden(h) {
			titles++
		}
		level = next
	}
	mains := slices.Collect(elements(root, "main"))
	skip := find(root, "a")
	if titles != 1 || len(mains) != 1 || attr(skip, "href") != "#"+attr(mains[0], "id") {
		faults = append(faults, fmt.Sprintf("%d <h1>, %d <main>, first link to %q", titles, len(mains), attr(skip, "href")))
	}
	return faults
}

func isHidden(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if hasAttr(n, "hidden") {
			return true
		}
	}
	return false
}

func headFaults(root *html.Node) (faults []string) {
	if lang := attr(find(root, "html"), "lang"); lang != "en" {
		faults = append(faults, fmt.Sprintf("the language is %q", lang))
	}
	title := text(find(root, "title"))
	if !strings.Contains(title, "Doorward") {
		faults = append(faults, fmt.Sprintf("the title is %q", title))
	}
	metas := map[string]string{}
	for m := range elements(root, "meta") {
		metas[attr(m, "name")] = attr(m, "content")
	}
	if metas["viewport"] != "width=device-width, initial-scale=1" || metas["description"] == "" {
		faults = append(faults, fmt.Sprintf("the metas are %q", metas))
	}
	return faults
}

func TestAssetsNameNoOtherSite(t *testing.T) {
	server := start(t)
	for _, path := range append(scripts, "/assets/doorward.css", "/assets/ui.css", "/assets/ui.js", "/assets/code.js") {
		body := get(t, server.URL+path).body
		for _, foreign := range []string{"//www", "http:", "https:", "url(", "@import", "innerHTML", "eval("} {
			if strings.Contains(body, foreign) {
				t.Errorf("%s has %q", path, foreign)
			}
		}
	}
}
