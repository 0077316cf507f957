package main

import "testing"

// TestMoving does what docs/import.md says, on another port.
func TestMoving(t *testing.T) {
	t.Parallel()
	follow(t, "../../docs/import.md")
}
