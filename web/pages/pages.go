// Package pages serves a landing page, the documentation, the API reference, and
// the pages of the problem types.
//
// All but the search are rendered once for each model, on the first request, and don't depend on
// the request.
// The documentation is a file system that the caller passes, in the order of its README.md;
// the program passes package docs, so that a changed page compiles few packages again. The reference is made from the OpenAPI
// document, so both always agree.
//
//	pages.go     the routes, rendering and answering
//	guide.go     GET /docs and below: the documentation
//	markdown.go  its text as HTML
//	search.go    GET /docs/search: in guides, endpoints and problems
//	spec.go      reads the OpenAPI document
//	reference.go GET /docs/api and below, made of it: a page for each group
//	sample.go    examples: bodies, answers, curl commands
//	language.go  the same requests in JavaScript, Go and Python
//	examples.go  actions of the model in force in place of those of the built-in model
//	problems.go  GET /problems and GET /problems/{code}
//	html, assets templates, style sheet, scripts
//
// The pages need no build step and no external files: one style sheet and a few ES
// modules, and a Content-Security-Policy that allows no other. All work without
// JavaScript.
package pages

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"sync"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// Routes returns the routes of the pages, which show the version. The document is
// the OpenAPI description that is served and shown; like every page it is made on
// first use, so that it doesn't delay the start of a server. docs has the pages below /docs
// and a README.md that lists them.
func Routes(s *front.Site, version string, docs fs.FS, document func() ([]byte, error)) []front.Route {
	document = sync.OnceValues(document)
	all := &renderers{readModel: s.App.Model, make: func(m *doorward.Model) *pageRenderer {
		p := &pageRenderer{base: s.BasePath(), version: version, docs: docs, asset: s.FileName, model: m, examples: examplesOf(m)}
		p.reference = sync.OnceValues(func() (*reference, error) { return p.readReference(document) })
		p.docPages, p.groups = sync.OnceValues(p.docRenderers), sync.OnceValues(p.groupRenderers)
		p.sections = sync.OnceValues(p.readSections)
		p.routes = p.pageRoutes()
		return p
	}}
	all.current = all.make(doorward.BuiltIn())
	routes := append(all.routes(),
		ui.Asset("doorward.css", "text/css; charset=utf-8", assets),
		ui.Asset("copy.js", "text/javascript; charset=utf-8", assets),
		ui.Asset("reading.js", "text/javascript; charset=utf-8", assets),
	)
	return append(routes, getRoute("/openapi.json", sends(rawContent("application/json", document))))
}

// renderers makes the pages again when another model is in force.
type renderers struct {
	readModel func(context.Context) (*doorward.Model, error)
	make      func(*doorward.Model) *pageRenderer

	mu      sync.Mutex
	current *pageRenderer
}

// of returns the renderer of the model in force; while the database doesn't answer, of the last.
func (r *renderers) of(ctx context.Context) *pageRenderer {
	m, err := r.readModel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && m != r.current.model {
		r.current = r.make(m)
	}
	return r.current
}

// routes returns the routes of the pages. All renderers have the same, in the same order.
func (r *renderers) routes() (all []front.Route) {
	for i, one := range r.current.routes {
		all = append(all, getRoute(one.path, func(ctx context.Context, call *front.Call) error {
			return r.of(ctx).routes[i].answer(ctx, call)
		}))
	}
	return all
}

// route is a route of a pageRenderer.
type route struct {
	path   string
	answer func(context.Context, *front.Call) error
}

func (p *pageRenderer) readReference(document func() ([]byte, error)) (*reference, error) {
	text, err := document()
	if err != nil {
		return nil, err
	}
	doc, err := parse(text)
	if err != nil {
		return nil, err
	}
	return newReference(doc, p.base, p.model), nil
}

// pageRenderer makes pages that show a model.
type pageRenderer struct {
	model     *doorward.Model
	examples  examples
	routes    []route
	base      string // path of the base URL, in front of every link
	version   string
	docs      fs.FS
	asset     func(name string) string
	reference func() (*reference, error)
	docPages  func() (docPages, error)
	groups    func() (docPages, error) // the pages of the reference, without its first
	sections  func() ([]section, error)
}

// docPages render the pages of the documentation, by path below /docs/.
type docPages map[string]func() (content, error)

func (p *pageRenderer) pageRoutes() []route {
	home := p.page(func(ref *reference) view {
		return view{File: "home", Title: "Doorward", Description: "The authentication and access service of this platform.", Body: ref}
	})
	routes := append(p.guideRoutes(), route{"/{$}", sends(home)}, route{"/docs/api", sends(p.page(func(ref *reference) view {
		return view{File: "reference", Title: "API reference", Description: "Every endpoint of Doorward's HTTP API.", Scripts: readingScripts, Body: groupPage{reference: ref}}
	}))})
	if p.base != "" { // the base URL itself, which needs no slash at its end
		routes = append([]route{{p.base, sends(home)}}, routes...)
	}
	return append(routes, p.problemRoutes()...)
}

// readingScripts are those of the pages that people read: they copy examples, remember the
// chosen language, and move the cursor to the search.
var readingScripts = []string{"copy.js", "reading.js"}

// groupRenderers returns the functions that render the pages of the groups and of the objects.
func (p *pageRenderer) groupRenderers() (docPages, error) {
	ref, err := p.reference()
	if err != nil {
		return nil, err
	}
	all := docPages{}
	for _, g := range ref.Groups {
		all["api/"+g.ID] = p.renderOnce(func() (view, error) {
			return view{Examples: true, File: "group", Title: g.Name, Description: "The API reference: " + g.Name + ".", Scripts: readingScripts, Body: groupPage{ref, g}}, nil
		})
	}
	all["api/"+objects] = p.renderOnce(func() (view, error) {
		return view{Examples: true, File: objects, Title: "Objects", Description: "The API reference: objects.", Scripts: readingScripts, Body: groupPage{ref, group{Name: "Objects"}}}, nil
	})
	return all, nil
}

//go:embed html
var templates embed.FS

//go:embed assets
var assets embed.FS

// view is what the layout shows; Body is for the template of the page.
type view struct {
	File        string // name of the template
	Title       string
	Description string   // for search engines and previews
	Scripts     []string // names of ES modules
	Body        any
	Examples    bool // made of the OpenAPI document, whose examples name actions of the built-in model

	Base, Version string                   // set by renderView
	Asset         func(name string) string // likewise: the name of a file, with a hash
}

// page returns the function that renders, on its first call, a view of the reference.
func (p *pageRenderer) page(viewOf func(*reference) view) func() (content, error) {
	return p.renderOnce(func() (view, error) {
		ref, err := p.reference()
		if err != nil {
			return view{}, err
		}
		v := viewOf(ref)
		v.Examples = true
		return v, nil
	})
}

// renderOnce returns the function that renders a view, on its first call. An error is a
// defect of a template or of the document, which tests find.
func (p *pageRenderer) renderOnce(makeView func() (view, error)) func() (content, error) {
	return sync.OnceValues(func() (content, error) {
		v, err := makeView()
		if err != nil {
			return content{}, err
		}
		return p.renderView(v)
	})
}

// renderView renders a view in the layout.
func (p *pageRenderer) renderView(v view) (content, error) {
	v.Base, v.Version, v.Asset = p.base, p.version, p.asset
	body, err := v.execute()
	if err != nil {
		return content{}, fmt.Errorf("pages: %s: %w", v.File, err)
	}
	if v.Examples {
		body = p.examples.replaceIn(body)
	}
	return content{Content: front.NewContent("text/html; charset=utf-8", body), policy: v.policy()}, nil
}

func (v view) execute() ([]byte, error) {
	t, err := template.New("layout.html").Option("missingkey=error").Funcs(helpers).
		ParseFS(templates, "html/layout.html", "html/parts.html", "html/"+v.File+".html")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, v)
	return out.Bytes(), err
}

// rawContent returns the function that returns the body unchanged, as content of the media type.
func rawContent(mediaType string, body func() ([]byte, error)) func() (content, error) {
	return sync.OnceValues(func() (content, error) {
		text, err := body()
		return content{Content: front.NewContent(mediaType, text)}, err
	})
}

// policy lets a page load from this server only, and send the form of the search. Scripts
// are allowed only if the page has some. They send no requests, but auditing tools fetch
// /robots.txt from within the page, so connect-src allows that.
func (v view) policy() string {
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; connect-src 'self'; "
	if len(v.Scripts) > 0 {
		policy += "script-src 'self'; "
	}
	return policy + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// content is an answer, ready to be sent.
type content struct {
	front.Content
	policy string // Content-Security-Policy; empty for the site's own
	status int    // 0 is 200
}

// send lets every cache keep the content, if it asks each time whether the ETag is still the
// same: an upgrade changes it. Nothing in it is private.
func (c content) send(call *front.Call) {
	if c.policy != "" {
		call.SetPage(c.policy)
	}
	call.W.Header().Set("Cache-Control", "no-cache")
	call.Send(cmp.Or(c.status, http.StatusOK), c.Content)
}

func getRoute(path string, answer func(context.Context, *front.Call) error) front.Route {
	return front.On("GET "+path, front.Public(), front.Raw(answer), front.Doc{})
}

// sends returns the function that answers with the content.
func sends(render func() (content, error)) func(context.Context, *front.Call) error {
	return func(_ context.Context, call *front.Call) error {
		c, err := render()
		if err != nil {
			return err
		}
		c.send(call)
		return nil
	}
}

// helpers are the functions of the templates.
var helpers = template.FuncMap{"spans": spans, "status": statusText}
