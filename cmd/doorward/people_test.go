package main

import "testing"

// TestPeople follows docs/people.md.
func TestPeople(t *testing.T) {
	t.Parallel()
	follow(t, "../../docs/people.md")
}

// TestRolesPage follows docs/roles.md.
func TestRolesPage(t *testing.T) {
	follow(t, "../../docs/roles.md")
}
