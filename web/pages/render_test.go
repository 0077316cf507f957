package pages_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/web/ui/uitest"
)

// rendered are pages of each template, and those that are hardest to lay out, by name.
var rendered = map[string]string{
	"home": "/", "docs": "/docs", "rotate": "/docs/rotate", "tutorial": "/docs/tutorial", "missing": "/docs/nowhere",
	"reference": "/docs/api", "group": "/docs/api/invitations", "objects": "/docs/api/objects",
	"search": "/docs/search?q=invite+person", "search-none": "/docs/search?q=xyzzy", "problems": "/problems", "problem": "/problems/invitation_used",
}

var (
	assetLink = regexp.MustCompile(`"(/assets/[^"]+)"`)
	bodyClass = regexp.MustCompile(`<body class="(\w+)`)
)

// TestPagesRender: each template has a page in rendered. With -render it writes these and their
// assets to a folder.
func TestPagesRender(t *testing.T) {
	server := doorwardtest.Start(t)
	shown := []string{"layout", "parts"}
	for name, at := range rendered {
		page := load(t, server.URL+at)
		class := bodyClass.FindStringSubmatch(page)
		if class == nil {
			t.Fatalf("%s is no page: %s", at, page)
		}
		shown = append(shown, class[1])
		for _, link := range assetLink.FindAllStringSubmatch(page, -1) {
			uitest.Write(t, filepath.Join("pages", link[1]), []byte(load(t, server.URL+link[1])))
		}
		uitest.Write(t, filepath.Join("pages", "en-"+name+".html"), []byte(strings.ReplaceAll(page, `"/assets/`, `"assets/`)))
	}
	templates, err := os.ReadDir("html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range templates {
		if name := strings.TrimSuffix(file.Name(), ".html"); !slices.Contains(shown, name) {
			t.Errorf("html/%s is not rendered, so Chromium checks neither its colours nor its width: add a page to rendered", file.Name())
		}
	}
}

func load(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/html")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
