// Package fulltest says whether tests run at full size, as in make test-all. It is the only
// reader of the switch:
//
//	DOORWARD_TEST_FULL=1 go test ./node -run History
//
// The table in CONTRIBUTING.md has both sizes of each test that asks.
package fulltest

import (
	"os"
	"testing"
)

// On reports whether tests run at full size.
func On() bool { return os.Getenv("DOORWARD_TEST_FULL") != "" }

// Of returns one of two sizes: of make test, of make test-all.
func Of(short, full int) int {
	if On() {
		return full
	}
	return short
}

// Only skips a test that has no short form. The reason says what shows the property in make test,
// or why it can do without.
func Only(tb testing.TB, reason string) {
	tb.Helper()
	if !On() {
		tb.Skip("make test-all runs this: " + reason)
	}
}
