package pages

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// heading is a heading of a text, with the ID that links use.
type heading struct {
	ID, Title string
	Level     int
}

// document is a parsed Markdown text.
type document struct {
	source   []byte
	tree     ast.Node
	headings []heading
	used     map[string]bool // ids that are taken
}

// newDocument parses CommonMark with tables.
func newDocument(source []byte) *document {
	p := &document{source: source, used: map[string]bool{"main": true}} // the layout has this id
	p.tree = goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	p.each(func(n ast.Node) {
		if h, ok := n.(*ast.Heading); ok {
			title := p.plain(h)
			p.headings = append(p.headings, heading{ID: p.idFor(title), Title: title, Level: h.Level})
			h.SetAttributeString("id", []byte(p.headings[len(p.headings)-1].ID))
		}
	})
	return p
}

// each calls visit with every node, in the order of the text.
func (p *document) each(visit func(ast.Node)) {
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

// notInID matches the characters that GitHub leaves out of the id of a heading.
var notInID = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// idFor makes the id of a heading from its title as GitHub does, so that links work there
// and here. A repeated title gets a number.
func (p *document) idFor(title string) string {
	name := strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
	id := name
	for i := 1; p.used[id]; i++ {
		id = fmt.Sprintf("%s-%d", name, i)
	}
	p.used[id] = true
	return id
}

// plain returns the text below n, without markup.
func (p *document) plain(n ast.Node) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			out.Write(t.Segment.Value(p.source))
			if t.SoftLineBreak() {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// title returns the first heading.
func (p *document) title() string {
	if len(p.headings) == 0 {
		return ""
	}
	return p.headings[0].Title
}

// summary returns the first sentence of the first paragraph.
func (p *document) summary() string {
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindParagraph {
			sentence, _, _ := strings.Cut(p.plain(n), ". ")
			return strings.TrimSuffix(sentence, ".") + "."
		}
	}
	return p.title()
}

// relink makes links and pictures lead to the pages. A link whose text is the name of a
// file shows the title of its page.
func (p *document) relink(links linkResolver) {
	p.each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Link:
			if label := links.label(string(n.Destination)); label != "" && strings.HasSuffix(p.plain(n), ".md") {
				n.RemoveChildren(n)
				n.AppendChild(n, ast.NewString([]byte(label)))
			}
			n.Destination = []byte(links.address(string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(links.address(string(n.Destination)))
		}
	})
}

// html returns the text as HTML for a strict policy. goldmark is in safe mode,
// without the HTML of the source and without addresses such as javascript:.
func (p *document) html(links linkResolver) (template.HTML, error) {
	p.relink(links)
	var out bytes.Buffer
	page := renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(&nodeRenderer{document: p}, 100),
		util.Prioritized(extension.NewTableHTMLRenderer(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)), 500),
		util.Prioritized(html.NewRenderer(), 1000),
	))
	err := page.Render(&out, p.source, p.tree)
	return template.HTML(out.String()), err
}

// nodeRenderer renders the nodes that the pages show differently from goldmark.
type nodeRenderer struct {
	*document
	headingID     string // of the last heading
	afterCommands bool   // the block above has shell commands, whose output may follow
}

// RegisterFuncs implements goldmark's renderer.NodeRenderer.
func (s *nodeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, s.heading)
	r.Register(ast.KindFencedCodeBlock, s.block)
	r.Register(ast.KindCodeBlock, s.block)
	r.Register(table.KindTable, s.table)
	r.Register(table.KindTableCell, s.cell)
	r.Register(ast.KindHTMLBlock, renderNothing)
	r.Register(ast.KindRawHTML, s.raw)
}

func renderNothing(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
	return ast.WalkSkipChildren, nil
}

// raw keeps <br> only: Markdown has no line break inside a table.
func (s *nodeRenderer) raw(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering && string(n.(*ast.RawHTML).Segments.Value(s.source)) == "<br>" {
		_, _ = w.WriteString("<br>")
	}
	return ast.WalkSkipChildren, nil
}

// heading links each heading below the first level to itself.
func (s *nodeRenderer) heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	level := n.(*ast.Heading).Level
	id, _ := n.AttributeString("id")
	s.headingID = string(id.([]byte))
	open, end := "", ""
	if level > 1 {
		open, end = fmt.Sprintf(`<a class="self" href="#%s">`, s.headingID), "</a>"
	}
	if entering {
		_, _ = fmt.Fprintf(w, `<h%d id="%s">%s`, level, s.headingID, open)
	} else {
		_, _ = fmt.Fprintf(w, "%s</h%d>\n", end, level)
	}
	return ast.WalkContinue, nil
}

// block renders a figure with a caption. It scrolls, so it must be focusable and needs a
// name.
func (s *nodeRenderer) block(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	id := s.idFor("code")
	_, _ = fmt.Fprintf(w, `<figure><figcaption id="%s">%s</figcaption><pre tabindex="0" role="group" aria-labelledby="%[1]s"><code>`,
		id, template.HTMLEscapeString(s.caption(n)))
	var code strings.Builder
	for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
		code.Write(line.Value(s.source))
	}
	_, _ = w.WriteString(highlight(code.String(), s.language(n)) + "</code></pre></figure>\n")
	return ast.WalkContinue, nil
}

// language returns the language after the fence; empty for none.
func (s *nodeRenderer) language(n ast.Node) string {
	fenced, ok := n.(*ast.FencedCodeBlock)
	if !ok || fenced.Info == nil {
		return ""
	}
	language, _, _ := strings.Cut(string(fenced.Info.Segment.Value(s.source)), " ")
	if language == "console" {
		return "sh"
	}
	return language
}

// captions are the captions by language; other languages are shown by name.
var captions = map[string]string{
	"": "Text", "text": "Text", "sh": "Shell", "go": "Go", "json": "JSON", "yaml": "YAML", "cedar": "Cedar", "sql": "SQL", "ini": "Settings", "haproxy": "HAProxy",
}

// caption returns the caption for the text after the fence; see package doctest.
func (s *nodeRenderer) caption(n ast.Node) string {
	fenced, ok := n.(*ast.FencedCodeBlock)
	if !ok || fenced.Info == nil {
		return captions[""]
	}
	language, more, _ := strings.Cut(string(fenced.Info.Segment.Value(s.source)), " ")
	isAnswer := s.afterCommands && (language == "text" || language == "json")
	s.afterCommands = language == "sh" || language == "console"
	switch {
	case isAnswer:
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

// table renders a table that scrolls if the screen is too narrow.
func (s *nodeRenderer) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = fmt.Fprintf(w, `<div class="scroll" tabindex="0" role="group" aria-labelledby="%s"><table>`+"\n", s.headingID)
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

// cell renders an empty header as an ordinary cell.
func (s *nodeRenderer) cell(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	tag, more := "td", ""
	if n.Parent().Kind() == table.KindTableHeader && n.HasChildren() {
		tag, more = "th", ` scope="col"`
	}
	if entering {
		_, _ = fmt.Fprintf(w, "<%s%s>", tag, more)
	} else {
		_, _ = fmt.Fprintf(w, "</%s>\n", tag)
	}
	return ast.WalkContinue, nil
}

// resolve returns the file that a link in the file from leads to; both are relative to the
// folder docs. isLocal is false for links to other sites.
func resolve(from, target string) (file, fragment string, isLocal bool) {
	target, fragment, _ = strings.Cut(target, "#")
	if strings.Contains(target, ":") {
		return "", "", false
	}
	if target == "" {
		return from, fragment, true
	}
	return path.Join(path.Dir(from), target), fragment, true
}
