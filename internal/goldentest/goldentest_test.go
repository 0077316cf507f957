package goldentest

import (
	"os"
	"path/filepath"
	"testing"
)

// recordingTB is a test that records failures.
type recordingTB struct {
	testing.TB
	failed bool
}

func (t *recordingTB) Helper()               {}
func (t *recordingTB) Errorf(string, ...any) { t.failed = true }

const page = "# Codes\n\nProse.\n\n<!-- made by a test: codes -->\n\n| old |\n\n<!-- end: codes -->\n\nMore prose.\n"

func TestSection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	differs := func(text string) bool {
		seen := &recordingTB{TB: t}
		Section(seen, file, "codes", text)
		return seen.failed
	}
	if differs("| old |\n") {
		t.Error("an up-to-date page fails")
	}
	if !differs("| new |\n") {
		t.Error("an outdated page passes")
	}
	*update = true
	defer func() { *update = false }()
	if differs("| new |\n") {
		t.Error("with -update the page fails")
	}
	*update = false
	if differs("| new |\n") {
		t.Error("-update has not updated the page")
	}
}

func TestFaultySections(t *testing.T) {
	for name, text := range map[string]string{
		"none": "# Codes\n", "no end": "<!-- made by a test: codes -->\n", "two": page + page,
	} {
		if _, err := replace(text, "codes", "| new |"); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
