package doorward_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward/internal/doctest"
)

// documents returns the pages that mention files and tests.
func documents(t *testing.T) []string {
	t.Helper()
	pages := doctest.Pages(t, ".")
	for _, pattern := range []string{"examples/*.md", "examples/*/*.md"} {
		pages = append(pages, glob(t, pattern)...)
	}
	return pages
}

// glob returns the files that a pattern matches; it fails the test if there are none.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return files
}

// readText returns the text of a file.
func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPagesAtTheRootAreNamed: doctest.Pages, which has a fixed list of the pages at the root,
// returns all of them.
func TestPagesAtTheRootAreNamed(t *testing.T) {
	got := slices.DeleteFunc(doctest.Pages(t, "."), func(page string) bool { return strings.Contains(page, "/") })
	if diff := cmp.Diff(glob(t, "*.md"), got); diff != "" {
		t.Errorf("doctest.Pages has other pages (+) than the root (-):\n%s", diff)
	}
}

var (
	links = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	// codePath matches a code span that looks like a file of this tree.
	codePath = regexp.MustCompile("`([\\w./*-]+\\.(?:go|sql|md|txt|txtar|sh)|[.]?\\w+/[\\w./*-]+)`")
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestDocumentsNameExistingFiles: pages mention no missing files.
func TestDocumentsNameExistingFiles(t *testing.T) {
	for _, page := range documents(t) {
		text := fenced.ReplaceAllString(readText(t, page), "")
		for _, found := range links.FindAllStringSubmatch(text, -1) {
			if fault := linkFault(t, page, found[1], found[2]); fault != "" {
				t.Errorf("%s links to %s", page, fault)
			}
		}
		for _, found := range codePath.FindAllStringSubmatch(text, -1) {
			if !exists(found[1]) && !exists(filepath.Join(filepath.Dir(page), found[1])) && !namesNoFile(found[1]) {
				t.Errorf("%s names %s, which doesn't exist", page, found[1])
			}
		}
	}
}

// linkFault returns what is wrong with a link to this tree; empty if nothing is.
func linkFault(t *testing.T, page, target, section string) string {
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
	case section != "" && !slices.Contains(sections(readText(t, path)), section):
		return path + "#" + section + ", which has no such heading"
	}
	return ""
}

var (
	headings    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// sections returns the anchors of the headings, as GitHub makes them.
func sections(page string) (names []string) {
	for _, found := range headings.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		names = append(names, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-"))
	}
	return names
}

// exists reports whether a file matches the path from the root, which may be a pattern.
func exists(path string) bool {
	found, err := filepath.Glob(filepath.Join(".", path))
	return err == nil && len(found) > 0
}

// namesNoFile reports whether a name only looks like a file of this tree.
func namesNoFile(name string) bool {
	return slices.Contains([]string{"database/sql", "net/http", "x/crypto/argon2", "go/parser", "pgx/v5/stdlib", "doorward-dev/", "short-name.md"}, name)
}

// unknownNames returns the names in code spans of a page that occur neither in the source nor in
// the code that the page shows.
func unknownNames(page, source string) (names []string) {
	known := map[string]bool{}
	for _, name := range word.FindAllString(source+strings.Join(fenced.FindAllString(page, -1), " "), -1) {
		known[name] = true
	}
	for _, span := range nameSpan.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		for name := range strings.SplitSeq(span[1], ".") {
			if !known[name] {
				names = append(names, span[1])
				break
			}
		}
	}
	return names
}

var (
	word     = regexp.MustCompile(`\w+`)
	nameSpan = regexp.MustCompile("`(\\w+(?:\\.\\w+)*)(?:\\([^`]*\\))?`") // also of a call
)

// TestAddingAFeatureNamesWhatExists: what the page tells people to change is there.
func TestAddingAFeatureNamesWhatExists(t *testing.T) {
	var source strings.Builder
	for _, f := range parseTree(t, ".").files {
		source.WriteString(f.name + " " + readText(t, f.name))
	}
	const page = "docs/adding-a-feature.md"
	for _, name := range unknownNames(readText(t, page), source.String()) {
		t.Errorf("%s names %s, which doesn't exist", page, name)
	}
	if got := unknownNames("`a` `b.c` `d(x)` `e.f`\n```go\ne.f\n```\n", "a b d"); !slices.Equal(got, []string{"b.c"}) {
		t.Errorf("%q, want b.c", got)
	}
}

// TestAGENTSCommandsTest: each "go test" in AGENTS.md runs a test in each of its packages, and
// each alternative of its pattern matches one.
func TestAGENTSCommandsTest(t *testing.T) {
	commands := testCommand.FindAllStringSubmatch(readText(t, "AGENTS.md"), -1)
	if len(commands) < 60 {
		t.Fatalf("only %d commands", len(commands))
	}
	for _, c := range commands {
		for _, fault := range commandFaults(t, c[1], c[2]) {
			t.Errorf("%s: %s", c[0], fault)
		}
	}
}

// TestIdleCommandsAreNoticed: a command that runs nothing is a fault.
func TestIdleCommandsAreNoticed(t *testing.T) {
	for _, c := range []struct{ module, args, fault string }{
		{"", "./store -run 'Contract'", ""},
		{"client/tests", "-run Proof", ""},
		{"", `./store -run 'Contract\|Qqq'`, "no test matches Qqq"},
		{"", "./store ./docs -run 'Contract'", "./docs has no such test"},
		{"client/tests", "-run Qqq", ". has no such test, no test matches Qqq"},
	} {
		if got := strings.Join(commandFaults(t, c.module, c.args), ", "); got != c.fault {
			t.Errorf("%s: %q, want %q", c.args, got, c.fault)
		}
	}
}

var testCommand = regexp.MustCompile("`go (?:-C (\\S+) )?test ?([^`]*)`")

// commandFaults returns what is wrong with the arguments of a "go test" in a module's folder.
func commandFaults(t *testing.T, module, args string) (faults []string) {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(args, `\|`, "|"))
	run := ""
	if i := slices.Index(words, "-run"); i >= 0 {
		run = subtest.ReplaceAllString(strings.Trim(words[i+1], "'"), "")
	}
	packages := slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, ".") })
	if len(packages) == 0 {
		packages = []string{"."}
	}
	var all []string
	for _, pkg := range packages {
		names := testsIn(t, filepath.Join(module, pkg))
		if !slices.ContainsFunc(names, regexp.MustCompile(run).MatchString) {
			faults = append(faults, pkg+" has no such test")
		}
		all = append(all, names...)
	}
	for alternative := range strings.SplitSeq(run, "|") {
		if !slices.ContainsFunc(all, regexp.MustCompile(alternative).MatchString) {
			faults = append(faults, "no test matches "+alternative)
		}
	}
	return faults
}

// subtest is the part of a pattern that names a test within a test.
var subtest = regexp.MustCompile(`/[^|]*`)

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testsIn returns the names of the tests in a package and, if it ends in /..., in the folders
// directly in it.
func testsIn(t *testing.T, pkg string) (names []string) {
	t.Helper()
	folder, below := strings.CutSuffix(pkg, "/...")
	globs := []string{filepath.Join(folder, "*_test.go")}
	if below {
		globs = append(globs, filepath.Join(folder, "*", "*_test.go"))
	}
	for _, glob := range globs {
		files, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, found := range testFunc.FindAllStringSubmatch(readText(t, file), -1) {
				names = append(names, found[1])
			}
		}
	}
	return names
}

// TestDocsAreListed: the table of contents lists every page.
func TestDocsAreListed(t *testing.T) {
	contents := readText(t, "docs/README.md")
	for _, page := range documents(t) {
		name, isOurs := strings.CutPrefix(page, "docs/")
		if isOurs && !strings.Contains(name, "/") && name != "README.md" && !strings.Contains(contents, "]("+name+")") {
			t.Errorf("docs/README.md doesn't list %s", page)
		}
	}
}

// TestBrokenLinksAreNoticed: a link to a missing page or heading is a fault.
func TestBrokenLinksAreNoticed(t *testing.T) {
	for _, l := range []struct{ target, section, fault string }{
		{"lease.md", "", ""},
		{"../README.md", "try-it", ""},
		{"", "exit-codes", "docs/commands.md#exit-codes, which has no such heading"},
		{"nowhere.md", "", "docs/nowhere.md, which is not there"},
		{"../README.md", "nowhere", "README.md#nowhere, which has no such heading"},
		{"https://example.com/nowhere", "", ""},
	} {
		if got := linkFault(t, "docs/commands.md", l.target, l.section); got != l.fault {
			t.Errorf("%s#%s: %q, want %q", l.target, l.section, got, l.fault)
		}
	}
}

// TestPostgreSQLVersionsAreTested: docs/operations.md lists the versions of PostgreSQL that the public CI
// runs tests on.
func TestPostgreSQLVersionsAreTested(t *testing.T) {
	const workflow = ".github/workflows/postgresql.yml"
	matrix := regexp.MustCompile(`postgresql: \[(.*)\]`).FindStringSubmatch(readText(t, workflow))
	rows := regexp.MustCompile(`(?m)^\| ([0-9, ]+) \| by `).FindAllStringSubmatch(readText(t, "docs/operations.md"), -1)
	if matrix == nil || len(rows) == 0 {
		t.Fatalf("%s has no matrix, or docs/operations.md no table of versions", workflow)
	}
	var listed []string
	for _, row := range rows {
		listed = append(listed, row[1])
	}
	if tested := strings.ReplaceAll(matrix[1], `"`, ""); tested != strings.Join(listed, ", ") {
		t.Errorf("%s tests %s, docs/operations.md lists %q", workflow, tested, listed)
	}
}
