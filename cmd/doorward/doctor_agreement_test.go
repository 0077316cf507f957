package main

import (
	"slices"
	"testing"

	"github.com/doorward/doorward/store/lease"
)

// TestEqualDifferencesAreGrouped: of a hundred nodes with the same setting, one is named.
func TestEqualDifferencesAreGrouped(t *testing.T) {
	hold := lease.Setting{Name: "tenant-hold", Value: "0s", Strict: true}
	length := lease.Setting{Name: "revocation-lease", Value: "1s"}
	var got []string
	for _, same := range groupEqual([]lease.Difference{
		{Setting: hold, OtherValue: "336h0m0s", Node: "nod_1"},
		{Setting: length, OtherValue: "2s", Node: "nod_1"},
		{Setting: hold, OtherValue: "336h0m0s", Node: "nod_2"},
		{Setting: hold, OtherValue: "1h0m0s", Node: "nod_3"},
	}) {
		got = append(got, describeDifference(same))
	}
	want := []string{
		"tenant-hold is 0s here and 336h0m0s on 2 nodes, such as nod_1",
		"revocation-lease is 1s here and 2s on the node nod_1",
		"tenant-hold is 0s here and 1h0m0s on the node nod_3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
