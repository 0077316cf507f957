package main

import "testing"

// TestOperatorsPage does what docs/operators.md says, on another port.
func TestOperatorsPage(t *testing.T) { follow(t, "../../docs/operators.md") }
