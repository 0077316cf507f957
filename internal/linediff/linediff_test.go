package linediff

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"a\nb\n", "a\nb", ""},
		{"", "a\nb", "+a +b"},
		{"a\nb\n", "", "-a -b"},
		{"a\nb\nc", "a\nx\nc", " a -b +x  c"},
		{"a\nb\nc\nd", "b\nc\nx\nd", "-a  b  c +x  d"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\n5\n6\n7\n8\n!", "…5  6  7  8 -9 +!"},
		{"!\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\n5\n6\n7\n8\n9", "-! +1  2  3  4 …5"},
		{"!\n2\n3\n4\n5", "1\n2\n3\n4\n5", "-! +1  2  3  4 …1"},
		{"!\n2\n3\n4\n5\n6\n7\n8\n!", "1\n2\n3\n4\n5\n6\n7\n8\n9", "-! +1  2  3  4  5  6  7  8 -! +9"},
	} {
		if got := format(Compare(c.before, c.after)); got != c.want {
			t.Errorf("%q to %q: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

func format(d Diff) string {
	var all []string
	for _, h := range d.Hunks {
		if h.Skipped > 0 {
			all = append(all, fmt.Sprint("…", h.Skipped))
		}
		for _, l := range h.Lines {
			all = append(all, map[Kind]string{Same: " ", Removed: "-", Added: "+"}[l.Kind]+l.Text)
		}
	}
	if d.Skipped > 0 && len(d.Hunks) > 0 {
		all = append(all, fmt.Sprint("…", d.Skipped))
	}
	return strings.Join(all, " ")
}

// Both texts and their line numbers can be reconstructed from the comparison.
func TestCompareLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(most int) []string {
		all := make([]string, r.IntN(most))
		for i := range all {
			all[i] = fmt.Sprint(r.IntN(4))
		}
		return all
	}
	for i := range 500 {
		most := 12
		if i%100 == 0 {
			most = 4000 // mostly more than the table holds
		}
		a, b := text(most), text(most)
		var before, after []string
		for _, l := range compare(a, b) {
			if l.Kind != Added {
				before = append(before, l.Text)
			}
			if l.Kind != Removed {
				after = append(after, l.Text)
			}
			if l.Kind != Added && l.Old != len(before) || l.Kind != Removed && l.New != len(after) {
				t.Fatalf("the line %+v is number %d and %d", l, len(before), len(after))
			}
		}
		if strings.Join(before, "\n") != strings.Join(a, "\n") || strings.Join(after, "\n") != strings.Join(b, "\n") {
			t.Fatalf("%q and %q are reconstructed as %q and %q", a, b, before, after)
		}
	}
}

// A change of one line in a long text is found, and long texts without a line in common take
// little time.
func TestCompareLongTexts(t *testing.T) {
	long := strings.Repeat("a\n", 30_000)
	if got := format(Compare(long+"b\n"+long, long+"c\n"+long)); got != "…29997  a  a  a -b +c  a  a  a …29997" {
		t.Errorf("one line differs: %s", got)
	}
	d := Compare(long, strings.Repeat("b\n", 30_000))
	if len(d.Hunks) != 1 || len(d.Hunks[0].Lines) != 60_000 {
		t.Errorf("%d hunks", len(d.Hunks))
	}
}
