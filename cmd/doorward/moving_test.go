package main

import "testing"

// TestMoving follows docs/import.md, on another port.
func TestMoving(t *testing.T) {
	t.Parallel()
	follow(t, "../../docs/import.md")
}
