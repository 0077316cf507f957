package pages_test

import (
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/doorward/doorward/docs"
)

// sources returns the files of the pages in docs.
func sources() (files []string) {
	for _, glob := range []string{"*.md", "*/*.md"} {
		found, err := fs.Glob(docs.Files, glob)
		if err != nil {
			panic(err)
		}
		files = append(files, found...)
	}
	return files
}

// docPaths returns the paths of the pages of the documentation.
func docPaths() []string {
	all := []string{"/docs/decisions"}
	for _, file := range sources() {
		all = append(all, pathOf(file))
	}
	return all
}

func pathOf(file string) string {
	if file == "README.md" {
		return "/docs"
	}
	return "/docs/" + strings.TrimSuffix(file, ".md")
}

const repository = "https://github.com/doorward/doorward/blob/HEAD/"

// isExternal reports whether a link leads to another site. A link to the repository must
// lead to an existing file outside the documentation.
func isExternal(t *testing.T, from, link string) bool {
	t.Helper()
	file, inRepository := strings.CutPrefix(link, repository)
	file, _, _ = strings.Cut(file, "#")
	if _, err := os.Stat(filepath.Join("../..", file)); inRepository && err != nil {
		t.Errorf("%s links to %s, which is not there", from, file)
	}
	if name, inDocs := strings.CutPrefix(file, "docs/"); inRepository && inDocs && slices.Contains(sources(), name) {
		t.Errorf("%s links to the repository for %s, which is served here", from, name)
	}
	return strings.HasPrefix(link, "http")
}

func TestNoLinkLeadsToMarkdown(t *testing.T) {
	server := start(t)
	for _, at := range docPaths() {
		for a := range elements(page(t, server.URL+at), "a") {
			if link := attr(a, "href"); strings.Contains(link, ".md") && !strings.HasPrefix(link, repository) {
				t.Errorf("%s has the link %q", at, link)
			}
		}
	}
}

// A page shows the text of its file, whatever its markup.
func TestPagesSayWhatTheirFilesSay(t *testing.T) {
	server := start(t)
	for _, file := range sources() {
		source, err := docs.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := len(words.FindAllString(notShown.ReplaceAllString(string(source), ""), -1))
		got := len(words.FindAllString(text(find(page(t, server.URL+pathOf(file)), "article")), -1))
		if got < want*9/10 { // the rest are names of languages and the texts of pictures
			t.Errorf("%s has %d words, its page %d", file, want, got)
		}
	}
}

var (
	words         = regexp.MustCompile(`\pL+`)
	notShown      = regexp.MustCompile(`<!--.*?-->|\]\([^)]*\)`)
	codeOrComment = regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$|`[^`]*`|<!--.*?-->")
	htmlElement   = regexp.MustCompile(`<[/a-zA-Z][^>]*>`)
)

// Pages contain no HTML: rendering drops it.
func TestPagesAreMarkdownAlone(t *testing.T) {
	for _, file := range sources() {
		source, err := docs.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range htmlElement.FindAllString(codeOrComment.ReplaceAllString(string(source), ""), -1) {
			if found != "<br>" && !strings.HasPrefix(found, "<http") {
				t.Errorf("%s has %s; the only HTML element that is shown is <br>", file, found)
			}
		}
	}
}

func TestNavigationListsEveryPage(t *testing.T) {
	server := start(t)
	side := &html.Node{}
	for n := range elements(page(t, server.URL+"/docs/lease"), "nav") {
		if attr(n, "class") == "side" {
			side = n
		}
	}
	var links, current []string
	for a := range elements(side, "a") {
		links = append(links, attr(a, "href"))
		if attr(a, "aria-current") == "page" {
			current = append(current, attr(a, "href"))
		}
	}
	for _, at := range docPaths() {
		if at != "/docs" && path.Dir(at) == "/docs" && !slices.Contains(links, at) {
			t.Errorf("the contents lack %s: give it a line in docs/README.md", at)
		}
	}
	if !slices.Equal(current, []string{"/docs/lease"}) {
		t.Errorf("the current page in the contents is %q", current)
	}
}

// Links such as "see install.md" are for readers of the repository.
func TestNamesOfFilesBecomeTitles(t *testing.T) {
	shown := map[string]string{}
	for a := range elements(page(t, start(t).URL+"/docs/rotate"), "a") {
		shown[attr(a, "href")] = text(a)
	}
	for link, want := range map[string]string{"/docs/install#tls": "Install", "/docs/people#sign-somebody-out": "signing out"} {
		if shown[link] != want {
			t.Errorf("the link to %s says %q, want %q", link, shown[link], want)
		}
	}
}

func TestCaptionsDistinguishCommandsFromAnswers(t *testing.T) {
	var captions []string
	for c := range elements(page(t, start(t).URL+"/docs/tutorial"), "figcaption") {
		captions = append(captions, text(c))
	}
	want := []string{"Shell", "Shell, in a terminal of its own", "It answers"}
	if len(captions) < 10 || !slices.Equal(captions[:3], want) {
		t.Errorf("the captions are %q, want to begin with %q", captions, want)
	}
}

func TestMissingPageOfTheDocumentation(t *testing.T) {
	server := start(t)
	for _, at := range []string{"nowhere", "README", "tutorial.md", "decisions/", "images/", "images/nowhere.png", "docs.go", "lease/lease.pml", "..%2fgo.mod", "%2e%2e/go.mod", "tutorial/x", "%00"} {
		plain := get(t, server.URL+"/docs/"+at)
		if plain.StatusCode != http.StatusNotFound || plain.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("/docs/%s: %d %s", at, plain.StatusCode, plain.Header.Get("Content-Type"))
		}
		a := getAsBrowser(t, server.URL+"/docs/"+at)
		root, err := html.Parse(strings.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		if a.StatusCode != http.StatusNotFound || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("/docs/%s in a browser: %d %s", at, a.StatusCode, a.Header.Get("Content-Type"))
		}
		if strings.HasPrefix(at, "nowhere") && !strings.Contains(text(root), "No such page") {
			t.Errorf("/docs/%s says %s", at, text(root))
		}
	}
}

// getAsBrowser gets a page as a browser does.
func getAsBrowser(t *testing.T, address string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	return do(t, req)
}

func TestPicturesAreThere(t *testing.T) {
	server := start(t)
	pictures := 0
	for _, at := range docPaths() {
		for img := range elements(page(t, server.URL+at), "img") {
			pictures++
			a := get(t, server.URL+attr(img, "src"))
			if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "image/png" || attr(img, "alt") == "" {
				t.Errorf("%s: the picture %s is %d %s, alt %q", at, attr(img, "src"), a.StatusCode, a.Header.Get("Content-Type"), attr(img, "alt"))
			}
		}
	}
	if pictures == 0 {
		t.Error("no page has a picture")
	}
}
