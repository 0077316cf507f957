package main

import "testing"

// TestOperatorsPage follows docs/operators.md, on another port.
func TestOperatorsPage(t *testing.T) {
	t.Parallel()
	follow(t, "../../docs/operators.md")
}

// TestAuthzenPage follows docs/authzen.md.
func TestAuthzenPage(t *testing.T) {
	t.Parallel()
	follow(t, "../../docs/authzen.md")
}
