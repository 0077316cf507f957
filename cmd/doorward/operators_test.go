package main

import "testing"

// TestOperatorsPage does what docs/operators.md says, on another port.
func TestOperatorsPage(t *testing.T) {
	t.Parallel()
	follow(t, "../../docs/operators.md")
}
