package ui

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// What was done has the sign of what it means for the person: one can go on, has ended something, or has
// something left to do. Each is a message of the pages on which people land.
func TestSignsOfWhatWasDone(t *testing.T) {
	words, err := os.ReadFile("../hosted/text/en.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for done := range doneSigns {
		if got[signOf(done)] = append(got[signOf(done)], done); !strings.Contains(string(words), "\n"+done+" = ") {
			t.Errorf("nothing says %s", done)
		}
	}
	want := map[string][]string{
		SignOpen:    {"done.email-changed", "done.entered", "done.joined", "done.proved", "done.registered", "done.reset", "done.restored"},
		SignClosed:  {"done.erased", "done.left", "done.signed-out"},
		SignGuarded: {"done.choose", "done.email-sent", "done.email-undone", "done.factorreset"},
	}
	for sign, all := range got {
		if slices.Sort(all); !slices.Equal(all, want[sign]) {
			t.Errorf("%s is the sign of %q, want %q", sign, all, want[sign])
		}
	}
	if len(got) != len(want) || signOf("done.name") != "" {
		t.Errorf("the signs are %q, and that of a saved form %q", slices.Sorted(maps.Keys(got)), signOf("done.name"))
	}
}

// A list that filters leave empty isn't drawn as one that is still to be filled.
func TestNothing(t *testing.T) {
	first, none := nothing("No keys yet.", "/new", "Create a key"), unmatched("Nothing matches.", "?", "Clear filters")
	if first.Sign() != SignOpen || first.Link != "/new" || first.Button != "Create a key" {
		t.Errorf("nothing returns %+v", first)
	}
	if none.Sign() != SignClosed || none.Link != "?" || !none.IsFiltered {
		t.Errorf("unmatched returns %+v", none)
	}
	if alone := nothing("Nobody has it."); alone.Link != "" || alone.Button != "" {
		t.Errorf("without a button it returns %+v", alone)
	}
}
