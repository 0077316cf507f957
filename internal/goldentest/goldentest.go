// Package goldentest compares generated text with a file of the repository, and
// rewrites the file when a test runs with -update.
//
//	goldentest.File(t, "testdata/who-may-what.txt", text)
//	goldentest.Section(t, "docs/errors.md", "codes", table)
//
// A section is the part between two marker lines of a Markdown page, so that a
// generated table can be part of a hand-written page:
//
//	<!-- made by a test: codes -->
//	…
//	<!-- end: codes -->
package goldentest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// File fails the test if the file, a path from the folder of the test, differs from
// text.
func File(tb testing.TB, file, text string) {
	tb.Helper()
	want, err := os.ReadFile(file)
	if err != nil && !*update {
		tb.Fatalf("%v: run go test -run %s . -update in the folder of this test to create it", err, tb.Name())
	}
	compare(tb, file, string(want), text)
}

// Section is File for a section of a Markdown page.
func Section(tb testing.TB, file, name, text string) {
	tb.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	updated, err := replace(string(page), name, text)
	if err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
	compare(tb, file, string(page), updated)
}

// replace returns the page with another text in the section.
func replace(page, name, text string) (string, error) {
	begin, end := fmt.Sprintf("<!-- made by a test: %s -->\n", name), fmt.Sprintf("<!-- end: %s -->\n", name)
	before, rest, begins := strings.Cut(page, begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends || strings.Contains(after, begin) {
		return "", errors.New("the page needs exactly one section " + begin + "…\n" + end)
	}
	return before + begin + "\n" + strings.Trim(text, "\n") + "\n\n" + end + after, nil
}

func compare(tb testing.TB, file, want, got string) {
	tb.Helper()
	if want == got {
		return
	}
	if !*update {
		tb.Errorf("%s differs: if this is intended, run go test -run %s . -update in the folder of this test, and read its diff\n%s", file, tb.Name(), cmp.Diff(want, got))
		return
	}
	if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
		tb.Fatal(err)
	}
}
