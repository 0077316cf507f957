package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/doorward/doorward/store"
)

var errBroken = errors.New("broken")

// TestWriteRows: what is not written is returned once, and nothing is written twice.
func TestWriteRows(t *testing.T) {
	var written []int
	write := func(rows []int) error {
		if slices.Contains(rows, 7) {
			return errBroken
		}
		written = append(written, rows...)
		return nil
	}
	unwritten, err := store.WriteRows([]int{1, 2, 3, 4, 5, 6, 7, 8}, 3, write, nil)
	if !errors.Is(err, errBroken) || !slices.Equal(unwritten, []int{7, 8}) || !slices.Equal(written, []int{1, 2, 3, 4, 5, 6}) {
		t.Errorf("written %v, unwritten %v, %v", written, unwritten, err)
	}
}
