package pages

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
	"github.com/doorward/doorward/web/front"
)

// section is a piece of text that a search finds: what stands below one heading, an
// endpoint, or a problem.
type section struct {
	Page, Title string // of the page, and of the piece
	Link        string
	Text        string
	folded      [3]string // page, title and text without case and accents
}

// weights are those of a word in the title of a page, in the title of a section, and in its
// text.
var weights = [3]int{4, 8, 1}

func newSection(page, title, link, text string) section {
	s := section{Page: page, Title: title, Link: link, Text: strings.Join(strings.Fields(text), " ")}
	for i, part := range []string{page, title, s.Text} {
		s.folded[i] = fold.Text(part)
	}
	return s
}

// score is 0 unless every word is in the section.
func (s section) score(words []string) (total int) {
	for _, word := range words {
		best := 0
		for i, text := range s.folded {
			if !strings.Contains(text, word) {
				continue
			}
			best = max(best, weights[i]*(1+min(4, strings.Count(text, word))))
			if startsWord(text, word) {
				best += weights[i] * 2
			}
		}
		if best == 0 {
			return 0
		}
		total += best
	}
	return total
}

// startsWord reports whether a word of the text begins with the prefix.
func startsWord(text, prefix string) bool {
	return strings.HasPrefix(text, prefix) || strings.Contains(text, " "+prefix)
}

// readSections reads the documentation for the search: pages by headings, endpoints, problems.
func (p *pageRenderer) readSections() ([]section, error) {
	ref, err := p.reference()
	if err != nil {
		return nil, err
	}
	b, err := readBook(p.base, p.docs)
	if err != nil {
		return nil, err
	}
	var all []section
	for name, read := range sorted(b.pages) {
		g, err := read()
		if err != nil {
			return nil, err
		}
		source, err := fs.ReadFile(p.docs, fileOf(name))
		if err != nil {
			continue // the list of decisions has no file
		}
		all = append(all, newDocument(source).sections(g.Title, b.link(name))...)
	}
	for e := range ref.endpoints() {
		all = append(all, newSection("API reference", e.Summary, e.Link, e.Method+" "+e.Path+". "+plainText(e.Description)))
	}
	for _, problem := range doorward.Problems() {
		one := newSection("Problems", problem.Title, p.base+front.ProblemPath(problem.Code), string(problem.Code)+": "+plainText(problem.Help))
		one.folded[1] += " " + string(problem.Code) // what people look for is the title, too
		all = append(all, one)
	}
	return all, nil
}

// fileOf is the file of a page.
func fileOf(page string) string {
	if page == "" {
		return contents
	}
	return page + ".md"
}

// sections cuts the document at its headings.
func (p *document) sections(page, link string) []section {
	var all []section
	var text strings.Builder
	title, at := page, link
	endSection := func() {
		all = append(all, newSection(page, title, at, text.String()))
		text.Reset()
	}
	seen := 0
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if _, ok := n.(*ast.Heading); ok {
			if seen > 0 {
				endSection()
				title, at = p.headings[seen].Title, link+"#"+p.headings[seen].ID
			}
			seen++
			continue
		}
		text.WriteString(p.searchText(n) + " ")
	}
	endSection()
	return all
}

// plainText returns a text in Markdown without its marks.
func plainText(markdown string) string {
	d := newDocument([]byte(markdown))
	return strings.TrimSpace(d.searchText(d.tree))
}

// searchText returns the text below n, including that of examples.
func (p *document) searchText(n ast.Node) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(n.Segment.Value(p.source))
				if n.SoftLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for i := 0; entering && i < n.Lines().Len(); i++ {
				line := n.Lines().At(i)
				out.Write(line.Value(p.source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// result is a section with an excerpt of its text, around the first hit.
type result struct {
	section
	Excerpt []excerptWord
}

// excerptWord is a word of an excerpt.
type excerptWord struct {
	Text string
	Hit  bool // it has one of the words of the query
}

// searchPage is what the page of a search shows.
type searchPage struct {
	Query string
	Found []result
}

const (
	maxQuery   = 200 // bytes
	maxResults = 30
)

// search returns the sections with all words of the query, the best first.
func search(all []section, query string) []result {
	words := fold.Words(query)
	if len(words) == 0 {
		return nil
	}
	type scored struct {
		section
		score int
	}
	var hits []scored
	for _, s := range all {
		if score := s.score(words); score > 0 {
			hits = append(hits, scored{s, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b scored) int { return b.score - a.score })
	var best []result
	for _, hit := range hits[:min(len(hits), maxResults)] {
		best = append(best, result{hit.section, hit.excerpt(words)})
	}
	return best
}

// excerpt returns up to 40 words of the text, beginning 8 before the first hit.
func (s section) excerpt(words []string) (out []excerptWord) {
	const before, maxWords = 8, 40
	all := strings.Fields(s.Text)
	isHit := func(text string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(fold.Text(text), word) })
	}
	from := max(0, slices.IndexFunc(all, isHit)-before)
	for _, text := range all[from:min(len(all), from+maxWords)] {
		out = append(out, excerptWord{text, isHit(text)})
	}
	return out
}

// showSearch answers GET /docs/search?q=…; without a query, or with one that is too long or
// not UTF-8, the page asks for one. Unlike the other pages it is rendered for each request.
func (p *pageRenderer) showSearch(_ context.Context, call *front.Call) error {
	all, err := p.sections()
	if err != nil {
		return err
	}
	query := strings.TrimSpace(call.R.URL.Query().Get("q"))
	if len(query) > maxQuery || !utf8.ValidString(query) {
		query = ""
	}
	c, err := p.renderView(view{File: "search", Title: "Search", Description: "Search in the documentation.", Scripts: readingScripts, Body: searchPage{Query: query, Found: search(all, query)}})
	if err != nil {
		return err
	}
	c.send(call)
	return nil
}
