package pages_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/docs"
	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/node"
)

// paths returns the paths of all pages.
func paths() []string {
	all := append(docPaths(), "/", "/docs/api", "/docs/search", "/problems")
	all = append(all, groups...)
	for _, p := range doorward.Problems() {
		all = append(all, "/problems/"+string(p.Code))
	}
	return all
}

// groups are all pages of the API reference but the first.
var groups = []string{
	"/docs/api/invitations", "/docs/api/sessions", "/docs/api/people", "/docs/api/roles", "/docs/api/api-keys", "/docs/api/webhooks", "/docs/api/sign-on", "/docs/api/domains", "/docs/api/audit",
	"/docs/api/tenants", "/docs/api/policies", "/docs/api/model", "/docs/api/second-factors", "/docs/api/passwords", "/docs/api/account", "/docs/api/access",
	"/docs/api/objects",
}

var scripts = []string{"/assets/copy.js", "/assets/reading.js"}

type answer struct {
	*http.Response
	body string
}

// start starts a server with the documentation, as the program has it.
func start(t *testing.T, options ...doorwardtest.Option) *doorwardtest.Server {
	t.Helper()
	return doorwardtest.Start(t, append(options, func(c *node.Config) { c.Docs = docs.Files })...)
}

func get(t *testing.T, address string) answer { return send(t, http.MethodGet, address) }

func send(t *testing.T, method, address string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) answer {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, string(body)}
}

// page gets a page and parses it.
func page(t *testing.T, address string) *html.Node {
	t.Helper()
	a := get(t, address)
	if a.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d %s", address, a.StatusCode, a.body)
	}
	root, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestHeadersOfPages(t *testing.T) {
	server := start(t)
	withScripts := "default-src 'none'; style-src 'self'; img-src 'self'; connect-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	withoutScripts := "default-src 'none'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	policies := map[string]string{"/": withoutScripts, "/problems": withoutScripts, "/docs": withScripts, "/docs/lease": withScripts, "/docs/api": withScripts, "/docs/api/people": withScripts, "/problems/not_found": withScripts}
	for path, policy := range policies {
		h := get(t, server.URL+path).Header
		if got := h["Content-Security-Policy"]; !slices.Equal(got, []string{policy}) {
			t.Errorf("%s: the policy is %q, want %q", path, got, policy)
		}
	}
	for _, path := range paths() {
		h := get(t, server.URL+path).Header
		want := map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
		}
		for name, value := range want {
			if got := h.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", path, name, got, value)
			}
		}
	}
}

func TestAssetsHaveTheirTypes(t *testing.T) {
	server := start(t)
	types := map[string]string{"/assets/doorward.css": "text/css; charset=utf-8", "/assets/ui.css": "text/css; charset=utf-8", "/assets/icon.svg": "image/svg+xml", "/openapi.json": "application/json"}
	for _, path := range scripts {
		types[path] = "text/javascript; charset=utf-8"
	}
	for path, want := range types {
		a := get(t, server.URL+path)
		if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != want || a.body == "" {
			t.Errorf("%s: %d, %q, %d bytes; want %q", path, a.StatusCode, a.Header.Get("Content-Type"), len(a.body), want)
		}
	}
}

func TestHeadIsGetWithoutTheBody(t *testing.T) {
	server := start(t)
	for _, path := range append(paths(), "/assets/doorward.css", "/openapi.json") {
		full, head := get(t, server.URL+path), send(t, http.MethodHead, server.URL+path)
		if head.StatusCode != http.StatusOK || head.body != "" || head.ContentLength != int64(len(full.body)) {
			t.Errorf("HEAD %s: %d with the length %d, GET has %d bytes", path, head.StatusCode, head.ContentLength, len(full.body))
		}
	}
}

func TestPagesRefusePOST(t *testing.T) {
	server := start(t)
	for _, path := range paths() {
		a := send(t, http.MethodPost, server.URL+path)
		if a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d, Allow %q", path, a.StatusCode, a.Header.Get("Allow"))
		}
	}
}

func TestEveryCodeHasAPage(t *testing.T) {
	server := start(t)
	index := text(page(t, server.URL+"/problems"))
	for _, about := range doorward.Problems() {
		got := text(find(page(t, server.URL+"/problems/"+string(about.Code)), "main"))
		for _, want := range []string{string(about.Code), about.Title, about.Help} {
			if !strings.Contains(got, want) {
				t.Errorf("the page of %s does not say %q", about.Code, want)
			}
		}
		if !strings.Contains(index, string(about.Code)) {
			t.Errorf("/problems does not list %s", about.Code)
		}
	}
}

func TestPageOfAProblemNamesItsEndpoints(t *testing.T) {
	server := start(t)
	for code, want := range map[string][]string{
		"reset_not_found": {"/docs/api/second-factors#resetFactors", "/docs/api/passwords#resetPassword"},
		"account_exists":  {"/docs/api/invitations#completeRegistration", "/docs/api/account#confirmEmail", "/docs/api/account#undoEmail"},
		"resend_too_soon": {"/docs/api/invitations#invite", "/docs/api/invitations#resendInvitation"},
	} {
		var got []string
		for a := range elements(find(page(t, server.URL+"/problems/"+code), "main"), "a") {
			if href := attr(a, "href"); strings.Contains(href, "/docs/api/") && !strings.Contains(href, "#object-") {
				got = append(got, href)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is answered by %q, want %q alone", code, got, want)
		}
	}
}

func TestUnknownCodeIsAProblem(t *testing.T) {
	server := start(t)
	for _, path := range []string{"/problems/nonsense", "/problems/", "/problems/not_found/x", "/assets/", "/assets/x/nonsense.css"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			a := send(t, method, server.URL+path)
			if a.StatusCode != http.StatusNotFound || a.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.body, `"code":"not_found"`) {
				t.Errorf("%s %s: %d %s", method, path, a.StatusCode, a.body)
			}
		}
	}
}

// A proxy may strip the path of the base URL or not; links always have it.
func TestEveryLinkResolves(t *testing.T) {
	for _, base := range []string{"", "/deep/er"} {
		t.Run("base"+base, func(t *testing.T) {
			t.Parallel()
			server := start(t, doorwardtest.BaseURL("https://auth.example"+base))
			c := crawler{t: t, server: server.URL, base: base, seen: map[string]*html.Node{}}
			for _, path := range []string{"/", "/accept", "/reset", "/login"} { // mails and gateways lead to these
				c.visit(base + path)
			}
			for _, path := range append(paths(), scripts...) {
				if !c.reached(base + path) {
					t.Errorf("no link leads to %s", base+path)
				}
				if a := get(t, server.URL+path); a.StatusCode != http.StatusOK {
					t.Errorf("%s without the base path: %d", path, a.StatusCode)
				}
			}
			if a := get(t, server.URL+base); a.StatusCode != http.StatusOK {
				t.Errorf("the base URL itself: %d", a.StatusCode)
			}
		})
	}
}

// crawler follows all links and requires the targets of fragments.
type crawler struct {
	t            *testing.T
	server, base string
	seen         map[string]*html.Node
}

// reached reports whether a link leads to the path, or to the file by its name with a hash.
func (c crawler) reached(path string) bool {
	if c.seen[path] != nil {
		return true
	}
	name, ending, _ := strings.Cut(path, ".")
	for seen := range c.seen {
		if strings.HasPrefix(path, c.base+"/assets/") && strings.HasPrefix(seen, name+".") && strings.HasSuffix(seen, "."+ending) {
			return true
		}
	}
	return false
}

// visit returns the content of the path, parsed as HTML whatever its type.
func (c crawler) visit(path string) *html.Node {
	c.t.Helper()
	if c.seen[path] != nil {
		return c.seen[path]
	}
	a := get(c.t, c.server+path)
	if a.StatusCode != http.StatusOK {
		c.t.Errorf("%s: %d", path, a.StatusCode)
	}
	root, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		c.t.Fatal(err)
	}
	c.seen[path] = root
	for _, link := range linksIn(a, root) {
		c.follow(path, link)
	}
	return root
}

func (c crawler) follow(path, link string) {
	c.t.Helper()
	target, fragment, _ := strings.Cut(link, "#")
	switch {
	case isExternal(c.t, path, link):
		return
	case target == "":
		target = path
	case strings.HasPrefix(target, "?"): // the same page in another language
		target = path
	case strings.HasPrefix(target, "./"):
		target = path[:strings.LastIndex(path, "/")] + target[1:]
	}
	if !strings.HasPrefix(target, c.base+"/") {
		c.t.Errorf("%s: the link %q is outside the base path %q", path, link, c.base)
		return
	}
	if root := c.visit(target); fragment != "" && byID(root, fragment) == nil {
		c.t.Errorf("%s: the link %q leads nowhere on its page", path, link)
	}
}

// linksIn returns the addresses in a page, or those that a script imports.
func linksIn(a answer, root *html.Node) (links []string) {
	switch mediaType, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";"); mediaType {
	case "text/html":
		for n := range root.Descendants() {
			for _, name := range []string{"href", "src", "action"} {
				if link := attr(n, name); link != "" && attr(n, "method") != "post" {
					links = append(links, link)
				}
			}
		}
	case "text/javascript":
		for line := range strings.Lines(a.body) {
			if _, from, ok := strings.Cut(line, "} from "); ok {
				links = append(links, strings.Trim(strings.TrimSpace(from), `";`))
			}
		}
	}
	return links
}
