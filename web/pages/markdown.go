package pages

import (
	"fmt"
	"html/template"
	"path"
	"regexp"
	"strings"

	"github.com/doorward/doorward/internal/markdown"
)

// heading is one of a text, with the name that links use.
type heading struct {
	ID, Title string
	Level     int
}

// paper is a page in Markdown on its way to HTML that a strict policy lets
// through.
type paper struct {
	blocks   []markdown.Block
	headings []heading
	used     map[string]bool // ids

	from     shelf // what its links are seen from
	out      strings.Builder
	written  int    // headings so far
	under    string // id of the heading above
	commands bool   // the block above is of the shell, and what it prints hasn't come yet
}

func newPaper(source []byte) *paper {
	p := &paper{blocks: markdown.Parse(string(source)), used: map[string]bool{"main": true}}
	for _, b := range p.blocks {
		if b.Kind == markdown.Heading {
			title := markdown.PlainText(b.Text)
			p.headings = append(p.headings, heading{ID: p.name(title), Title: title, Level: b.Level})
		}
	}
	return p
}

var unsaid = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// name makes the id of a title as GitHub does, so that a link works there and
// here. A second one of the same title gets a number.
func (p *paper) name(title string) string {
	name := strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
	id := name
	for i := 1; p.used[id]; i++ {
		id = fmt.Sprintf("%s-%d", name, i)
	}
	p.used[id] = true
	return id
}

// title is the first heading.
func (p *paper) title() string {
	if len(p.headings) == 0 {
		return ""
	}
	return p.headings[0].Title
}

// summary is the first sentence of the first paragraph.
func (p *paper) summary() string {
	for _, b := range p.blocks {
		if b.Kind == markdown.Paragraph {
			sentence, _, _ := strings.Cut(markdown.PlainText(b.Text), ". ")
			return strings.TrimSuffix(sentence, ".") + "."
		}
	}
	return p.title()
}

// html returns the page. All that comes from it is escaped, and no address but
// one that the page links to is in it.
func (p *paper) html(from shelf) template.HTML {
	p.from = from
	p.write(p.blocks)
	return template.HTML(p.out.String())
}

func (p *paper) put(format string, args ...any) { _, _ = fmt.Fprintf(&p.out, format, args...) }

func (p *paper) write(blocks []markdown.Block) {
	for _, b := range blocks {
		switch b.Kind {
		case markdown.Paragraph:
			p.put("<p>")
			p.spans(b.Text)
			p.put("</p>\n")
		case markdown.Heading:
			p.heading(b)
		case markdown.Code:
			p.code(b)
		case markdown.List:
			p.list(b)
		case markdown.Table:
			p.table(b)
		}
	}
}

// heading links each but the first to itself, for who wants to point at it.
func (p *paper) heading(b markdown.Block) {
	p.under = p.headings[p.written].ID
	p.written++
	open, end := "", ""
	if b.Level > 1 {
		open, end = fmt.Sprintf(`<a class="self" href="#%s">`, p.under), "</a>"
	}
	p.put(`<h%d id="%s">%s`, b.Level, p.under, open)
	p.spans(b.Text)
	p.put("%s</h%d>\n", end, b.Level)
}

// code is a figure whose caption says what it is. It scrolls, so a keyboard has
// to get there, and it needs a name.
func (p *paper) code(b markdown.Block) {
	id := p.name("code")
	p.put(`<figure><figcaption id="%s">%s</figcaption><pre tabindex="0" role="group" aria-labelledby="%[1]s"><code>%[3]s</code></pre></figure>`+"\n",
		id, template.HTMLEscapeString(p.caption(b.Info)), template.HTMLEscapeString(b.Text))
}

// captions are those of languages; a language that is none of them is its own.
var captions = map[string]string{
	"": "Text", "text": "Text", "sh": "Shell", "go": "Go", "json": "JSON", "yaml": "YAML", "sql": "SQL", "ini": "systemd",
}

// caption goes by what stands behind the fence; package doctest says what that
// may be.
func (p *paper) caption(info string) string {
	language, more, _ := strings.Cut(info, " ")
	answers := p.commands && (language == "text" || language == "json")
	p.commands = language == "sh" || language == "console"
	switch {
	case answers:
		return "It answers"
	case language == "sh" && more == "background":
		return "Shell, in a terminal of its own"
	case language == "console":
		return "Shell, not run by a test: " + more
	case captions[language] != "":
		return captions[language]
	}
	return language
}

func (p *paper) list(b markdown.Block) {
	tag := map[bool]string{false: "ul", true: "ol"}[b.Ordered]
	p.put("<%s>\n", tag)
	for _, item := range b.Items {
		p.put("<li>")
		if !b.Loose && len(item) > 0 && item[0].Kind == markdown.Paragraph {
			p.spans(item[0].Text)
			item = item[1:]
		}
		p.write(item)
		p.put("</li>\n")
	}
	p.put("</%s>\n", tag)
}

// table scrolls where the screen is too narrow for it. A header without words is
// an ordinary cell, since it is a header of nothing.
func (p *paper) table(b markdown.Block) {
	p.put(`<div class="scroll" tabindex="0" role="group" aria-labelledby="%s"><table>`+"\n<thead>\n", p.under)
	for i, row := range b.Rows {
		p.put("<tr>")
		for _, cell := range row {
			open, end := "<td>", "</td>"
			if i == 0 && cell != "" {
				open, end = `<th scope="col">`, "</th>"
			}
			p.put("%s", open)
			p.spans(cell)
			p.put("%s\n", end)
		}
		p.put("</tr>\n")
		if i == 0 {
			p.put("</thead>\n<tbody>\n")
		}
	}
	p.put("</tbody>\n</table></div>\n")
}

// around are the tags of marks that are around other spans.
var around = map[markdown.Mark]string{markdown.Strong: "strong", markdown.Emphasis: "em"}

func (p *paper) spans(text string) { p.marked(markdown.Inline(text)) }

func (p *paper) marked(spans []markdown.Span) {
	for _, s := range spans {
		switch s.Mark {
		case markdown.Plain:
			p.put("%s", template.HTMLEscapeString(s.Text))
		case markdown.CodeSpan:
			p.put("<code>%s</code>", template.HTMLEscapeString(s.Text))
		case markdown.Break:
			p.put("<br>")
		case markdown.Picture:
			p.put(`<img src="%s" alt="%s">`, template.HTMLEscapeString(p.from.address(s.To)), template.HTMLEscapeString(s.Text))
		case markdown.Link:
			p.link(s)
		default:
			p.put("<%s>", around[s.Mark])
			p.marked(s.Spans)
			p.put("</%s>", around[s.Mark])
		}
	}
}

// link shows the title of a page where the text has the name of its file.
func (p *paper) link(s markdown.Span) {
	p.put(`<a href="%s">`, template.HTMLEscapeString(p.from.address(s.To)))
	if label := p.from.label(s.To); label != "" && strings.HasSuffix(s.Words(), ".md") {
		p.put("%s", template.HTMLEscapeString(label))
	} else {
		p.marked(s.Spans)
	}
	p.put("</a>")
}

// links are the links of a text, in the order of it.
func links(spans []markdown.Span) (all []markdown.Span) {
	for _, s := range spans {
		if s.Mark == markdown.Link {
			all = append(all, s)
		}
		all = append(all, links(s.Spans)...)
	}
	return all
}

// linksOf are those of a block and of what is in it.
func linksOf(b markdown.Block) []markdown.Span {
	all := links(markdown.Inline(b.Text))
	if b.Kind == markdown.Code {
		return nil
	}
	for _, item := range b.Items {
		for _, inner := range item {
			all = append(all, linksOf(inner)...)
		}
	}
	for _, row := range b.Rows {
		for _, cell := range row {
			all = append(all, links(markdown.Inline(cell))...)
		}
	}
	return all
}

// resolve returns the file that a link in another one leads to, seen from the
// same folder, unless it leads to another site.
func resolve(from, target string) (file, fragment string, ours bool) {
	target, fragment, _ = strings.Cut(target, "#")
	if strings.Contains(target, ":") {
		return "", "", false
	}
	if target == "" {
		return from, fragment, true
	}
	return path.Join(path.Dir(from), target), fragment, true
}
