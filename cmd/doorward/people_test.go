package main

import "testing"

// TestPeople does what docs/people.md says, on another port.
func TestPeople(t *testing.T) {
	t.Parallel()
	follow(t, "../../docs/people.md")
}
