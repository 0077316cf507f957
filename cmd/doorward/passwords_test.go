package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/doorward/doorward/internal/commonpw"
)

// TestFailedBuildKeepsTheEarlierFilter: a build that is stopped, or whose disk is full, leaves the
// earlier filter as it was, and no other file.
func TestFailedBuildKeepsTheEarlierFilter(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	list, filter := filepath.Join(folder, "list"), filepath.Join(folder, "filter")
	writeFile(t, folder, "list", "swordfish\n")
	if err := buildFilter(t.Context(), io.Discard, list, filter, 1e-4); err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder, "list", "marlin\n")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := buildFilter(stopped, io.Discard, list, filter, 1e-4); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the build stopped", err)
	}
	full := errors.New("no space left on device")
	if err := replaceFile(filter, 0o644, func(io.Writer) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v, want the disk full", err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
		t.Errorf("%v, %v, want the list and the filter", files, err)
	}
	f, err := os.Open(filter)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if earlier, err := commonpw.Load(f); err != nil || !earlier.Contains("swordfish") || earlier.Contains("marlin") {
		t.Errorf("the earlier filter has changed: %v", err)
	}
}
