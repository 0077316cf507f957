// Package linediff compares texts line by line.
package linediff

import "strings"

// Kind says in which texts a line is.
type Kind string

// The kinds of lines.
const (
	Same    Kind = "same"
	Removed Kind = "removed"
	Added   Kind = "added"
)

// Line is a line of one of the texts, or of both.
type Line struct {
	Kind Kind
	// Old and New are its numbers in the texts, from 1; 0 in a text without it.
	Old, New int
	Text     string
}

// Hunk has lines that differ, and up to three equal ones before and after them.
type Hunk struct {
	// Skipped is how many equal lines are left out before it.
	Skipped int
	Lines   []Line
}

// Diff is what differs between two texts. Without a difference it has no hunks.
type Diff struct {
	Hunks []Hunk
	// Skipped is how many equal lines are left out at the end.
	Skipped int
}

// context is how many equal lines a hunk has before and after a difference.
const context = 3

// maxCells bounds the table of a comparison, and so its time and memory (2 bytes a cell).
// If the lines between the equal beginning and end need more, all of them count as
// replaced.
const maxCells = 2 << 20

// Lines splits a text into lines. A line break at its end begins no line.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// Compare returns what differs between two texts.
func Compare(before, after string) Diff {
	return hunks(compare(Lines(before), Lines(after)))
}

func compare(a, b []string) (all []Line) {
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	w := walker{a: a, b: b}
	w.same(start)
	w.walkTo(len(a)-end, len(b)-end)
	w.same(end)
	return w.all
}

// walker walks through two texts; i and j are how many lines of each it has passed.
type walker struct {
	a, b []string
	i, j int
	all  []Line
}

// same adds n equal lines.
func (w *walker) same(n int) {
	for range n {
		w.all = append(w.all, Line{Same, w.i + 1, w.j + 1, w.a[w.i]})
		w.i, w.j = w.i+1, w.j+1
	}
}

func (w *walker) remove() {
	w.all = append(w.all, Line{Removed, w.i + 1, 0, w.a[w.i]})
	w.i++
}

func (w *walker) add() {
	w.all = append(w.all, Line{Added, 0, w.j + 1, w.b[w.j]})
	w.j++
}

// walkTo walks until m lines of the first text and n of the second are passed, along a
// longest common subsequence. Without a table (see maxCells) no line in between counts as equal.
func (w *walker) walkTo(m, n int) {
	i, j := w.i, w.j // where the table begins
	lengths := lcsLengths(w.a[i:m], w.b[j:n])
	for w.i < m || w.j < n {
		switch {
		case w.i < m && w.j < n && lengths != nil && w.a[w.i] == w.b[w.j]:
			w.same(1)
		case w.i < m && (w.j == n || lengths == nil || lengths[w.i-i+1][w.j-j] >= lengths[w.i-i][w.j-j+1]):
			w.remove()
		default:
			w.add()
		}
	}
}

// lcsLengths returns at [i][j] the length of the longest common subsequence of a[i:] and
// b[j:]; nil if the table would be too large.
func lcsLengths(a, b []string) [][]uint16 {
	if (len(a)+1)*(len(b)+1) > maxCells {
		return nil
	}
	table := make([][]uint16, len(a)+1)
	for i := range table {
		table[i] = make([]uint16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if table[i][j] = max(table[i+1][j], table[i][j+1]); a[i] == b[j] {
				table[i][j] = table[i+1][j+1] + 1
			}
		}
	}
	return table
}

func hunks(all []Line) (d Diff) {
	shown := shownLines(all)
	open := false // whether the next line belongs to the last hunk
	for i, line := range all {
		switch {
		case !shown[i]:
			d.Skipped, open = d.Skipped+1, false
			continue
		case !open:
			d.Hunks, open = append(d.Hunks, Hunk{Skipped: d.Skipped}), true
			d.Skipped = 0
		}
		last := &d.Hunks[len(d.Hunks)-1]
		last.Lines = append(last.Lines, line)
	}
	return d
}

// shownLines returns for each line whether it is in a hunk. A single line that would be left
// out between two hunks joins them, because a note about it would take as much room.
func shownLines(all []Line) []bool {
	shown := make([]bool, len(all))
	for i, line := range all {
		if line.Kind != Same {
			for k := max(0, i-context); k < min(len(all), i+context+1); k++ {
				shown[k] = true
			}
		}
	}
	for i := 1; i+1 < len(all); i++ {
		shown[i] = shown[i] || shown[i-1] && shown[i+1]
	}
	return shown
}
