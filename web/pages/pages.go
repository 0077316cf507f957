// Package pages serves what people read: a landing page, the reference of the
// API, the pages behind the types of errors, and the pages that mails link to.
//
// All of them are made once, at start, from html/template, and none of them
// holds anything of a request; what is personal on the pages of mails (the
// token in the fragment of the link) never reaches the server. The reference
// is made from the OpenAPI document, so that it can't say anything else.
//
//	pages.go     the routes, how a page is made and answered
//	spec.go      reads the OpenAPI document
//	reference.go GET /docs, made of it
//	sample.go    examples: bodies, answers, curl commands
//	problems.go  GET /problems and GET /problems/{code}
//	forms.go     GET /accept and GET /reset
//	html, assets templates, style sheet, scripts
//
// The pages need no build step and nothing from elsewhere: a style sheet and a
// few ES modules of our own, under a Content-Security-Policy that allows no
// other. All but the forms work without JavaScript.
package pages

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strconv"

	"github.com/doorward/doorward/web/front"
)

// Routes returns the routes of the pages. The document is the OpenAPI
// description that is served and shown. An error means that the document can't
// be read, or is a defect of a template.
func Routes(s *front.Site, document []byte) ([]front.Route, error) {
	doc, err := parse(document)
	if err != nil {
		return nil, err
	}
	p := press{base: s.BasePath(), version: doc.Info.Version, shortest: s.App.PasswordRules.MinLength}
	routes := p.pages(newReference(doc, s.BasePath()))
	for _, r := range []struct{ path, mediaType, file string }{
		{"/assets/doorward.css", "text/css; charset=utf-8", "doorward.css"},
		{"/assets/icon.svg", "image/svg+xml", "icon.svg"},
		{"/assets/copy.js", "text/javascript; charset=utf-8", "copy.js"},
		{"/assets/form.js", "text/javascript; charset=utf-8", "form.js"},
		{"/assets/mail.js", "text/javascript; charset=utf-8", "mail.js"},
		{"/assets/password.js", "text/javascript; charset=utf-8", "password.js"},
	} {
		routes = append(routes, get(r.path, content{mediaType: r.mediaType, body: p.asset(r.file)}))
	}
	return append(routes, get("/openapi.json", content{mediaType: "application/json", body: document})), p.err
}

// press makes pages. After the first failure it makes none and keeps the error.
type press struct {
	base     string // path of the base URL, in front of every link
	version  string
	shortest int // password, in code points
	err      error
}

func (p *press) pages(ref *reference) []front.Route {
	home := p.page(view{File: "home", Title: "Doorward", Description: "The authentication and access service of this platform.", Body: ref})
	routes := []front.Route{
		get("/{$}", home),
		get("/docs", p.page(view{File: "docs", Title: "API reference", Description: "Every endpoint of Doorward's HTTP API.", Scripts: []string{"copy.js"}, Body: ref})),
		get("/accept", p.page(acceptPage(p.base, p.shortest))),
		get("/reset", p.page(resetPage(p.base, p.shortest))),
	}
	if p.base != "" { // the base URL itself, which needs no slash at its end
		routes = append([]front.Route{get(p.base, home)}, routes...)
	}
	return append(routes, p.problemPages(ref)...)
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
	Form        bool     // a page for one task, without the menu of the others
	Body        any

	Base, Version string // set by the press
}

// page makes a page.
func (p *press) page(v view) content {
	v.Base, v.Version = p.base, p.version
	if p.err != nil {
		return content{}
	}
	t, err := template.New("layout.html").Option("missingkey=error").Funcs(helpers).
		ParseFS(templates, "html/layout.html", "html/parts.html", "html/"+v.File+".html")
	var out bytes.Buffer
	if err == nil {
		err = t.Execute(&out, v)
	}
	if err != nil {
		p.err = fmt.Errorf("pages: %s: %w", v.File, err)
	}
	return content{mediaType: "text/html; charset=utf-8", policy: v.policy(), body: out.Bytes()}
}

// asset returns an embedded file.
func (p *press) asset(name string) []byte {
	body, err := fs.ReadFile(assets, path.Join("assets", name))
	p.err = cmp.Or(p.err, err)
	return body
}

// policy lets a page load what it needs, all of it from here, and nothing
// else. A page without scripts may run none, a page without a form send none.
func (v view) policy() string {
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; "
	if len(v.Scripts) > 0 {
		policy += "script-src 'self'; "
	}
	if v.Form {
		return policy + "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	}
	return policy + "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}

// content is an answer made in advance.
type content struct {
	mediaType string
	policy    string // Content-Security-Policy; empty for the site's own
	body      []byte
}

// get returns the route that answers with the content. Every answer of the
// site is no-store, these too: they are small, and after an upgrade no browser
// joins an old script to a new page.
func get(path string, c content) front.Route {
	return front.On("GET "+path, front.Public(), front.Raw(func(_ context.Context, call *front.Call) error {
		h := call.W.Header()
		h.Set("Content-Type", c.mediaType)
		h.Set("Content-Length", strconv.Itoa(len(c.body)))
		if c.policy != "" {
			h.Set("Content-Security-Policy", c.policy)
		}
		_, _ = call.W.Write(c.body) // a client that is gone needs no answer
		return nil
	}), front.Doc{})
}

// helpers are the functions of the templates.
var helpers = template.FuncMap{"spans": spans, "status": statusText}
