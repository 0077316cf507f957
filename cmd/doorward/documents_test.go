package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are the pages that mention files and tests.
func documents(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, glob := range []string{"*.md", "changelog/README.md", "docs/*.md", "docs/decisions/*.md", "examples/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob("../../" + glob)
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s: %v", glob, err)
		}
		for _, page := range found {
			pages = append(pages, strings.TrimPrefix(page, "../../"))
		}
	}
	return pages
}

var (
	links = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	// named matches code in a page that looks like a file of this tree.
	named  = regexp.MustCompile("`([\\w./*-]+\\.(?:go|sql|md|txt|txtar|sh)|[.]?\\w+/[\\w./*-]+)`")
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestDocumentsNameWhatIsThere: pages mention no missing files.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	for _, page := range documents(t) {
		text := fenced.ReplaceAllString(read(t, page), "")
		for _, found := range links.FindAllStringSubmatch(text, -1) {
			if fault := broken(t, page, found[1], found[2]); fault != "" {
				t.Errorf("%s links to %s", page, fault)
			}
		}
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			if !exists(found[1]) && !exists(filepath.Join(filepath.Dir(page), found[1])) && !elsewhere(found[1]) {
				t.Errorf("%s names %s, which doesn't exist", page, found[1])
			}
		}
	}
}

// broken returns what is wrong with a link to this tree, or nothing.
func broken(t *testing.T, page, target, section string) string {
	t.Helper()
	if strings.Contains(target, ":") {
		return ""
	}
	path := page
	if target != "" {
		path = filepath.Join(filepath.Dir(page), target)
	}
	switch {
	case !exists(path):
		return path + ", which is not there"
	case section != "" && !slices.Contains(sections(read(t, path)), section):
		return path + "#" + section + ", which has no such heading"
	}
	return ""
}

var (
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unsaid   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// sections are the anchors of headings.
func sections(page string) (names []string) {
	for _, found := range headings.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		names = append(names, strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-"))
	}
	return names
}

// exists accepts a path from the root, or a pattern.
func exists(path string) bool {
	found, err := filepath.Glob(filepath.Join("../..", path))
	return err == nil && len(found) > 0
}

// elsewhere are names that look like files of this tree but aren't.
func elsewhere(name string) bool {
	return slices.Contains([]string{"database/sql", "net/http", "x/crypto/argon2", "go/parser", "pgx/v5/stdlib", "doorward-dev/", "short-name.md"}, name)
}

// TestAGENTSCommandsTest: each "go test" in AGENTS.md runs a test.
func TestAGENTSCommandsTest(t *testing.T) {
	commands := regexp.MustCompile("`go test ([^`]*)`").FindAllStringSubmatch(read(t, "AGENTS.md"), -1)
	if len(commands) < 10 {
		t.Fatalf("only %d commands", len(commands))
	}
	for _, c := range commands {
		words := strings.Fields(strings.ReplaceAll(c[1], `\|`, "|"))
		pattern := regexp.MustCompile("")
		if i := slices.Index(words, "-run"); i >= 0 {
			run := subtest.ReplaceAllString(strings.Trim(words[i+1], "'"), "")
			pattern = regexp.MustCompile(run)
			words = slices.Delete(words, i, i+2)
		}
		for _, word := range words {
			if strings.HasPrefix(word, ".") && !tests(t, word, pattern) {
				t.Errorf("go test %s: %s has no such test", c[1], word)
			}
		}
	}
}

// subtest is the part of a pattern that names a test within a test.
var subtest = regexp.MustCompile(`/[^|]*`)

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// tests reports whether a package, or one below it, has a test that matches.
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

// TestDocsAreListed: the table of contents lists every page.
func TestDocsAreListed(t *testing.T) {
	contents := read(t, "docs/README.md")
	for _, page := range documents(t) {
		name, isOurs := strings.CutPrefix(page, "docs/")
		if isOurs && !strings.Contains(name, "/") && name != "README.md" && !strings.Contains(contents, "]("+name+")") {
			t.Errorf("docs/README.md doesn't list %s", page)
		}
	}
}

// Negative tests: broken links.
func TestBrokenLinksAreNoticed(t *testing.T) {
	for _, l := range []struct{ target, section, fault string }{
		{"lease.md", "", ""},
		{"../README.md", "try-it", ""},
		{"", "exit-codes", "docs/commands.md#exit-codes, which has no such heading"},
		{"nowhere.md", "", "docs/nowhere.md, which is not there"},
		{"../README.md", "nowhere", "README.md#nowhere, which has no such heading"},
		{"https://example.com/nowhere", "", ""},
	} {
		if got := broken(t, "docs/commands.md", l.target, l.section); got != l.fault {
			t.Errorf("%s#%s: %q, want %q", l.target, l.section, got, l.fault)
		}
	}
}
