package doorward_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/doorward/doorward/internal/doctest"
)

// TestEveryShellBlockIsRun: each page with a shell block has a test that runs all of its blocks
// in order.
func TestEveryShellBlockIsRun(t *testing.T) {
	followed, blocks := followedPages(t), 0
	for _, page := range doctest.Pages(t, ".") {
		for _, line := range indentedCommand.FindAllString(fenced.ReplaceAllString(readText(t, page), ""), -1) {
			t.Errorf("%s: put commands between fences: %s", page, line)
		}
		for _, b := range doctest.All(t, page) {
			blocks++
			if b.SkipReason == "" && !slices.Contains(followed, page) {
				t.Errorf("%s: no test runs this block. Add a test that follows the page (see cmd/doorward/operators_test.go), or say after \"console\" why none can.\n%s", b.Position, b.Script)
			}
		}
	}
	if blocks < 50 {
		t.Errorf("only %d blocks found: were the pages read?", blocks)
	}
}

// indentedCommand matches an indented command.
var indentedCommand = regexp.MustCompile(`(?m)^(?: {4,}|\t)(?:\$ .*|(?:bin/)?doorward .*|(?:go|make|curl|git|docker|kubectl|npm|sudo) .*)$`)

// runPagePattern matches the call with which a test runs the blocks of a page.
var runPagePattern = regexp.MustCompile(`\b(?:RunPage|Read|follow|blocksOf)\(t, "([\w./-]+\.md)"`)

// followedPages returns the pages whose blocks a test runs.
func followedPages(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go"} {
		for _, file := range glob(t, pattern) {
			for _, found := range runPagePattern.FindAllStringSubmatch(readText(t, file), -1) {
				pages = append(pages, filepath.Join(filepath.Dir(file), found[1]))
			}
		}
	}
	return pages
}
