package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are the pages that speak of files and tests.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "changelog/README.md", "docs/adding-a-feature.md", "docs/install.md"}
	decisions, err := filepath.Glob("../../docs/decisions/*.md")
	if err != nil || len(decisions) == 0 {
		t.Fatalf("no decisions: %v", err)
	}
	for _, d := range decisions {
		pages = append(pages, strings.TrimPrefix(d, "../../"))
	}
	return pages
}

var (
	links = regexp.MustCompile(`\]\(([^)#]+)\)`)
	// named are words of code that look like a file of ours.
	named  = regexp.MustCompile("`([\\w./*-]+\\.(?:go|sql|md|txt|txtar|sh)|[.]?\\w+/[\\w./*-]+)`")
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestDocumentsNameWhatIsThere: a page that sends its reader to a file that is
// gone is worse than none.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	for _, page := range documents(t) {
		text := fenced.ReplaceAllString(read(t, page), "")
		for _, found := range links.FindAllStringSubmatch(text, -1) {
			if target := filepath.Join(filepath.Dir(page), found[1]); !strings.Contains(found[1], ":") && !exists(target) {
				t.Errorf("%s links to %s, which is not there", page, target)
			}
		}
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			if !exists(found[1]) && !elsewhere(found[1]) {
				t.Errorf("%s names %s, which is not there", page, found[1])
			}
		}
	}
}

// exists takes a path from the root, or a pattern.
func exists(path string) bool {
	found, err := filepath.Glob(filepath.Join("../..", path))
	return err == nil && len(found) > 0
}

// elsewhere are names that look like files of ours and are none.
func elsewhere(name string) bool {
	return slices.Contains([]string{"database/sql", "go/parser", "pgx/v5/stdlib", "doorward-dev/", "short-name.md"}, name)
}

// TestAGENTSCommandsTest: each "go test" in AGENTS.md runs some test.
func TestAGENTSCommandsTest(t *testing.T) {
	commands := regexp.MustCompile("`go test ([^`]*)`").FindAllStringSubmatch(read(t, "AGENTS.md"), -1)
	if len(commands) < 10 {
		t.Fatalf("only %d commands", len(commands))
	}
	for _, c := range commands {
		words := strings.Fields(strings.ReplaceAll(c[1], `\|`, "|"))
		pattern := regexp.MustCompile("")
		if i := slices.Index(words, "-run"); i >= 0 {
			pattern = regexp.MustCompile(strings.Trim(words[i+1], "'"))
			words = slices.Delete(words, i, i+2)
		}
		for _, word := range words {
			if strings.HasPrefix(word, ".") && !tests(t, word, pattern) {
				t.Errorf("go test %s: %s has no such test", c[1], word)
			}
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// tests reports whether a package, or one below it, has a test by the pattern.
func tests(t *testing.T, pkg string, pattern *regexp.Regexp) bool {
	t.Helper()
	folder, below := strings.CutSuffix(pkg, "/...")
	globs := []string{filepath.Join("../..", folder, "*_test.go")}
	if below {
		globs = append(globs, filepath.Join("../..", folder, "*", "*_test.go"))
	}
	for _, glob := range globs {
		names, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range testFunc.FindAllStringSubmatch(string(text), -1) {
				if pattern.MatchString(found[1]) {
					return true
				}
			}
		}
	}
	return false
}
