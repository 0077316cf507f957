package texts

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Whatever the bytes, the answer is a file that can be written and read again, or faults whose lines
// are in it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "en: {}", "en:\n  hosted:\n    a.b: Hello {name}\n", "fr:\n  name: Français\n  direction: ltr\n  mail: {reset: {subject: x}}",
		"en: {hosted: {a: 1}}", "en: {hosted: {a: x, a: y}}", "a: &a {}\nb: *a", "a: !!str x", "---\na: {}\n---\nb: {}", "\xff", "{", "- a", "? [a]\n: b", "en: {hosted: ~}", "en: {1: {}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		file, err := Parse(source)
		var faults Faults
		if err != nil {
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("the error is %v", err)
			}
			for _, fault := range faults {
				if lines := bytes.Count(source, []byte("\n")) + bytes.Count(source, []byte("\r")) + 2; fault.Line < 1 || fault.Line > lines {
					t.Errorf("line %d of %d: %s", fault.Line, lines, fault.Message)
				}
			}
			return
		}
		for _, l := range file.Languages {
			for _, s := range l.Sections {
				var faults Faults
				for _, one := range s.Texts(&faults) {
					if one.Text == "" || strings.ContainsAny(one.Text, "\n\t") {
						t.Errorf("the text of %q is %q", one.Key, one.Text)
					}
				}
			}
		}
	})
}
