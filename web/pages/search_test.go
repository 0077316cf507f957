package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/doorward/doorward/doorwardtest"
)

// search returns the links of the results, and the page.
func search(t *testing.T, server *doorwardtest.Server, query string) ([]string, *html.Node) {
	t.Helper()
	root := page(t, server.URL+"/docs/search?q="+url.QueryEscape(query))
	var links []string
	for h := range elements(find(root, "main"), "h2") {
		links = append(links, attr(find(h, "a"), "href"))
	}
	return links, root
}

func TestSearchFindsWhatPeopleLookFor(t *testing.T) {
	server := start(t)
	for query, want := range map[string]string{
		"rotate keys":           "/docs/rotate",
		"argon2 memory":         "/docs/",
		"invite a person":       "/docs/api/invitations#invite",
		"rate_limited":          "/problems/rate_limited",
		"WebSockets":            "/docs/other-languages",
		"nginx":                 "/docs/nginx",
		"revoked on every node": "/docs/",
		"users  STATUS suspend": "/docs/api/people",
		"last_owner":            "/problems/last_owner",
	} {
		links, _ := search(t, server, query)
		at := -1
		for i, link := range links {
			if at < 0 && strings.HasPrefix(link, want) {
				at = i
			}
		}
		if at < 0 || at > 4 {
			t.Errorf("%q finds %s at place %d of %q", query, want, at, links)
		}
	}
}

func TestSearchOfNothing(t *testing.T) {
	server := start(t)
	for query, want := range map[string]string{
		"":                        "Type some words",
		"xylophone":               "All words must be in one place",
		strings.Repeat("a ", 200): "Type some words",
		"\xff":                    "Type some words",
	} {
		links, root := search(t, server, query)
		if got := text(root); len(links) > 0 || !strings.Contains(got, want) {
			t.Errorf("%q finds %q, and the page is %s", query, links, got)
		}
	}
}

// The query is shown as text, not as HTML.
func TestSearchShowsTheQueryAsText(t *testing.T) {
	server := start(t)
	a := get(t, server.URL+"/docs/search?q="+url.QueryEscape(`"><script>alert(1)</script>`))
	if a.StatusCode != http.StatusOK || strings.Contains(a.body, "<script>") || !strings.Contains(a.body, "&lt;script&gt;") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	_, root := search(t, server, "session")
	marks := 0
	for range elements(root, "mark") {
		marks++
	}
	if marks == 0 {
		t.Error("no word is marked")
	}
}

// Excerpts have the text of descriptions, without the marks of Markdown.
func TestExcerptsHaveNoMarks(t *testing.T) {
	server := start(t)
	for _, query := range []string{"policy", "delivery", "webhook", "resource", "dryRun", "confirmMinutes"} {
		_, root := search(t, server, query)
		if found := text(find(root, "main")); strings.Contains(found, "`") {
			t.Errorf("%s finds %s", query, found)
		}
	}
}
