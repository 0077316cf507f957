package markdown

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	htmlrender "github.com/yuin/goldmark/renderer/html"
)

// What the pages say here is what they say to a program that reads all of
// Markdown.
func TestPagesAreReadAsMarkdownIs(t *testing.T) {
	pages := 0
	for _, glob := range []string{"docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob("../../" + glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			same(t, file, string(source))
		}
	}
	if pages < 20 {
		t.Errorf("only %d pages", pages)
	}
}

func TestPiecesAreReadAsMarkdownIs(t *testing.T) {
	for _, source := range []string{
		"", "a", "a\nb", "a  b\n\nc", "# A", "## A `b` *c* ##", "#no", "####### no", "a\n# b",
		"**a** b*c*d ** e*", "a ** b", "*a **b** c*", "**a", "a*", "* a", "`a *b*`", "`` a`b ``", "`a", "``", "` a `", "`a\nb`",
		"[a](b)", "[a](b#c) d", "[a", "[a] (b)", "[`a]`](b)", "[**a** b](c)", "![a *b*](c.png)", "!", "a [b](c", "[a](b c)",
		"<https://a.example/?b=c&d> e", "a<b", "a <br> b", "a & b &lt;c> &amp;d &", `a \* b \| c \d \`, "snake_case and snake_case", `"a" 'b'`,
		"- a\n- b", "- a\n\n- b", "- a\n  b\n- c", "- a\nb\n\nc", "- a\n\n  b\n- c", "1. a\n2. b", "1. a\n\n   b\n2. c", "- a\n  - b\n  - c\n- d",
		"- a\n\n  ```sh\n  b\n  ```\n- c", "a\n- b", "a\n1. b", "in\n503. b", "a\n10. b", "1. a\n3. b\nc\n503. d", "- a\n1. b", "- a\n\nb", "- **a** b\n  c.\n- d", "-a", "- a\n\n\n- b",
		"```sh\na\n\n  <b>\n```\nc", "```\na", "    a\n\n    b\nc", "a\n    b",
		"| a | b |\n|---|---|\n| c | d |\ne", "a | b\n---|---\n`c\\|d` | e | f\ng |", "| a |\n|---|\n\n| b |", "| a | b |\n|:--|--:|\n| | c |", "a | b",
		"| `a` | **b** [c](d) |\n|---|---|\n| x<br>y | &lt; |",
		"<!-- a -->\nb", "a\n\n<!-- b\n\nc -->\n\nd", "<!-- a -->\n\n| b |\n|---|\n| c |\n\n<!-- d -->",
	} {
		same(t, fmt.Sprintf("%q", source), source)
	}
}

func TestPlainText(t *testing.T) {
	if got := PlainText("the `a` of **b\nc**, [d *e*](f)"); got != "the a of b c, d e" {
		t.Errorf("it says %q", got)
	}
}

func same(t *testing.T, name, source string) {
	t.Helper()
	var theirs bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))), goldmark.WithRendererOptions(htmlrender.WithUnsafe())).Convert([]byte(source), &theirs); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bare(theirs.String()), bare(written(Parse(source)))); diff != "" {
		t.Errorf("%s: the same text is (-) to goldmark and (+) here:\n%s", name, diff)
	}
}

var (
	omitted = regexp.MustCompile(`(?s)<!--.*?-->| class="[^"]*"`)
	between = regexp.MustCompile(`\s*(</?(?:h\d|p|ul|ol|li|table|thead|tbody|tr|th|td|pre)>)\s*`)
	escapes = strings.NewReplacer("&quot;", `"`, "&#34;", `"`, "&#39;", "'", "%20", " ", " \n", "\n")
)

// bare takes out what HTML doesn't mean.
func bare(page string) []string {
	page = between.ReplaceAllString(omitted.ReplaceAllString(page, ""), "\n$1\n")
	page = regexp.MustCompile(`\n+`).ReplaceAllString(escapes.Replace(page), "\n")
	return strings.Split(strings.TrimSpace(page), "\n")
}

// written is the plainest HTML of a page.
func written(blocks []Block) string {
	var out strings.Builder
	for _, b := range blocks {
		switch b.Kind {
		case Paragraph:
			out.WriteString("<p>" + spansOf(b.Text) + "</p>")
		case Heading:
			fmt.Fprintf(&out, "<h%d>%s</h%[1]d>", b.Level, spansOf(b.Text))
		case Code:
			out.WriteString("<pre><code>" + html.EscapeString(b.Text) + "</code></pre>")
		case List:
			out.WriteString(listed(b))
		case Table:
			out.WriteString(tabled(b))
		}
	}
	return out.String()
}

func listed(b Block) string {
	tag, out := "ul", ""
	if b.Ordered {
		tag = "ol"
	}
	for _, item := range b.Items {
		text := written(item)
		if !b.Loose && len(item) > 0 && item[0].Kind == Paragraph {
			text = spansOf(item[0].Text) + written(item[1:])
		}
		out += "<li>" + text + "</li>"
	}
	return "<" + tag + ">" + out + "</" + tag + ">"
}

func tabled(b Block) string {
	out := "<table><thead>"
	for i, row := range b.Rows {
		out += "<tr>"
		for _, cell := range row {
			tag := "td"
			if i == 0 {
				tag = "th"
			}
			out += "<" + tag + ">" + spansOf(cell) + "</" + tag + ">"
		}
		out += "</tr>"
		switch {
		case i == 0 && len(b.Rows) > 1:
			out += "</thead><tbody>"
		case i == 0:
			return out + "</thead></table>"
		}
	}
	return out + "</tbody></table>"
}

func spansOf(text string) string { return marked(Inline(text)) }

func marked(spans []Span) string {
	out := ""
	for _, s := range spans {
		text := html.EscapeString(s.Text)
		switch s.Mark {
		case Plain:
			out += text
		case CodeSpan:
			out += "<code>" + text + "</code>"
		case Break:
			out += "<br>"
		case Strong:
			out += "<strong>" + marked(s.Spans) + "</strong>"
		case Emphasis:
			out += "<em>" + marked(s.Spans) + "</em>"
		case Link:
			out += `<a href="` + html.EscapeString(s.To) + `">` + marked(s.Spans) + "</a>"
		case Picture:
			out += `<img src="` + html.EscapeString(s.To) + `" alt="` + text + `">`
		}
	}
	return out
}
