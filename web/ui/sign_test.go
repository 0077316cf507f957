package ui

import "testing"

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
