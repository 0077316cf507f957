package main

import "testing"

// TestPeople follows docs/people.md, on another port.
func TestPeople(t *testing.T) {
	t.Parallel()
	follow(t, "../../docs/people.md")
}
