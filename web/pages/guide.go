package pages

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

// repository is the address of files that aren't embedded in the binary.
const repository = "https://github.com/doorward/doorward/blob/HEAD/"

// contents is the file that lists the pages of the documentation; decisions is a folder, all
// of whose files are pages.
const (
	contents  = "README.md"
	decisions = "decisions"
)

// book is the documentation: the pages among the files, in the order of their
// README.md. Each page is rendered on first use.
type book struct {
	base  string
	files fs.FS
	parts []part
	pages map[string]func() (*guide, error) // by the path below /docs/
}

// part is a kind of pages: tutorial, how-to, reference, explanation.
type part struct {
	Title   string
	Entries []entry
}

// entry is a line of the contents.
type entry struct{ Title, Link string }

// guide is one page.
type guide struct {
	Title, Summary string
	Headings       []heading // of the second level
	Text           template.HTML
}

// guidePage is what the template of a page shows.
type guidePage struct {
	guide
	Link         string // its own
	Parts        []part
	Before, Next *entry // nil at the ends
	// Actions are the first of the platform's model, if the page names actions that this model lacks.
	Actions []doorward.Action
}

func readBook(base string, files fs.FS) (*book, error) {
	b := &book{base: base, files: files, pages: map[string]func() (*guide, error){}}
	for _, glob := range []string{"*.md", decisions + "/*.md"} {
		found, err := fs.Glob(files, glob)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			b.pages[pageOf(file)] = sync.OnceValues(func() (*guide, error) { return b.read(file) })
		}
	}
	b.pages[decisions] = sync.OnceValues(b.listDecisions)
	source, err := fs.ReadFile(files, contents)
	if err != nil {
		return nil, err
	}
	b.parts = b.readParts(newDocument(source))
	return b, nil
}

// pageOf is the path of a file's page below /docs/; that of the contents is empty.
func pageOf(file string) string {
	if file == contents {
		return ""
	}
	return strings.TrimSuffix(file, ".md")
}

func (b *book) link(page string) string { return strings.TrimSuffix(b.base+"/docs/"+page, "/") }

// readParts reads the contents: each heading of the second level is a part, and the
// links to pages below it are its entries. The API reference and the problems come first in
// the part for references.
func (b *book) readParts(p *document) (parts []part) {
	p.each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				parts = append(parts, part{Title: p.plain(n)})
			}
		case *ast.Link:
			file, fragment, isLocal := resolve(contents, string(n.Destination))
			if isLocal && fragment == "" && len(parts) > 0 && b.pages[pageOf(file)] != nil {
				last := &parts[len(parts)-1]
				last.Entries = append(last.Entries, entry{p.plain(n), b.link(pageOf(file))})
			}
		}
	})
	for i := range parts {
		if parts[i].Title == "Reference" {
			parts[i].Entries = slices.Insert(parts[i].Entries, 0, entry{"The API", b.link("api")}, entry{"Problems", b.base + "/problems"})
		}
	}
	return slices.DeleteFunc(parts, func(p part) bool { return len(p.Entries) == 0 })
}

// read parses and renders the page of a file.
func (b *book) read(file string) (*guide, error) {
	source, err := fs.ReadFile(b.files, file)
	if err != nil {
		return nil, err
	}
	return b.render(file, source)
}

func (b *book) render(file string, source []byte) (*guide, error) {
	p := newDocument(source)
	g := &guide{Title: p.title(), Summary: p.summary()}
	for _, h := range p.headings {
		if h.Level == 2 {
			g.Headings = append(g.Headings, h)
		}
	}
	var err error
	g.Text, err = p.html(linkResolver{b, file})
	return g, err
}

// listDecisions makes the page that lists the decisions: their folder has no contents page.
func (b *book) listDecisions() (*guide, error) {
	files, err := fs.Glob(b.files, decisions+"/*.md")
	if err != nil {
		return nil, err
	}
	source := "# Decisions\n\nWhat was decided, why, instead of what, and at which cost.\n\n"
	for _, file := range files {
		g, err := b.pages[pageOf(file)]()
		if err != nil {
			return nil, err
		}
		source += fmt.Sprintf("- [%s](%s)\n", g.Title, path.Base(file))
	}
	return b.render(decisions+"/index.md", []byte(source))
}

// linkResolver resolves the links in one file of the book.
type linkResolver struct {
	*book
	file string
}

// label returns the title that the contents give the page of a link; empty for other links.
func (b linkResolver) label(target string) string {
	file, _, isLocal := resolve(b.file, target)
	for _, p := range b.parts {
		for _, e := range p.Entries {
			if isLocal && e.Link == b.link(pageOf(file)) {
				return e.Title
			}
		}
	}
	return ""
}

// address is the target of a link: a page or a picture here, or a file in the repository.
// Links to other sites stay as they are.
func (b linkResolver) address(target string) string {
	file, fragment, isLocal := resolve(b.file, target)
	if !isLocal {
		return target
	}
	link := ""
	switch {
	case b.pages[pageOf(file)] != nil:
		link = b.link(pageOf(file))
	case isPicture(b.files, file):
		link = b.link(file)
	default:
		link = repository + path.Join("docs", file)
	}
	if fragment != "" {
		link += "#" + fragment
	}
	return link
}

func isPicture(files fs.FS, file string) bool {
	_, err := fs.Stat(files, file)
	return err == nil && path.Ext(file) == ".png"
}

// guidePage returns a page with the contents and its neighbours.
func (b *book) guidePage(page string) (*guidePage, error) {
	g, err := b.pages[page]()
	if err != nil {
		return nil, err
	}
	c := &guidePage{guide: *g, Link: b.link(page), Parts: b.parts}
	c.Before, c.Next = b.neighbours(c.Link)
	return c, nil
}

// neighbours are the entries around the one with the link.
func (b *book) neighbours(link string) (before, next *entry) {
	var all []entry
	for _, p := range b.parts {
		all = append(all, p.Entries...)
	}
	i := slices.IndexFunc(all, func(e entry) bool { return e.Link == link })
	if i > 0 {
		before = &all[i-1]
	}
	if i >= 0 && i+1 < len(all) {
		next = &all[i+1]
	}
	return before, next
}

// guideRoutes returns the routes of the documentation. All pages but the first share one route,
// since each route adds metrics.
func (p *pageRenderer) guideRoutes() []route {
	first := func() (content, error) { return p.docPage("") }
	return []route{{"/docs", sends(first)}, {"/docs/{$}", sends(first)}, {"/docs/search", p.showSearch}, {"/docs/{page...}", p.showDocPage}}
}

func (p *pageRenderer) showDocPage(_ context.Context, call *front.Call) error {
	c, err := p.docPage(call.R.PathValue("page"))
	if errors.Is(err, fs.ErrNotExist) && call.WantsPage() {
		c, err = p.docPage(missingPage)
		c.status = http.StatusNotFound
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return doorward.Fail(doorward.CodeNotFound, "")
	case err == nil:
		c.send(call)
	}
	return err
}

// missingPage is the key of the not-found page. No path can equal it.
const missingPage = "/"

// docPage returns the page or the picture below /docs/. It looks the name up among the
// files and opens no other; unknown names are fs.ErrNotExist.
func (p *pageRenderer) docPage(name string) (content, error) {
	pages := p.docPages
	if strings.HasPrefix(name, "api/") {
		pages = p.groups // separate, so that a guide doesn't wait for the OpenAPI document
	}
	all, err := pages()
	switch {
	case err != nil:
		return content{}, err
	case isPicture(p.docs, name):
		body, err := fs.ReadFile(p.docs, name)
		return content{Content: front.NewContent("image/png", body)}, err
	case all[name] == nil:
		return content{}, fs.ErrNotExist
	}
	return all[name]()
}

// docRenderers returns the functions that render the pages of the book.
func (p *pageRenderer) docRenderers() (docPages, error) {
	b, err := readBook(p.base, p.docs)
	if err != nil {
		return nil, err
	}
	all := docPages{missingPage: p.renderOnce(func() (view, error) {
		return view{File: "missing", Title: "No such page", Description: "There is no such page.", Body: &guidePage{Parts: b.parts}}, nil
	})}
	for name := range b.pages {
		all[name] = p.renderOnce(func() (view, error) {
			c, err := b.guidePage(name)
			if err != nil {
				return view{}, err
			}
			c.Actions = p.examples.insteadOf(string(c.Text))
			return view{File: "guide", Title: c.Title, Description: c.Summary, Scripts: readingScripts, Body: c}, nil
		})
	}
	return all, nil
}
