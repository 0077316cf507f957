// Package installed finds the programs that tests need. If one is missing the test
// is skipped. In make test, which installs them and sets
// DOORWARD_TEST_GATEWAYS=require, it fails instead.
package installed

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Required reports whether a missing program fails the test.
func Required() bool { return os.Getenv("DOORWARD_TEST_GATEWAYS") == "require" }

// Program returns the path of a program, which the Debian package pkg installs.
func Program(tb testing.TB, name, pkg string) string {
	tb.Helper()
	// Debian installs servers in folders that are only in root's PATH.
	for _, candidate := range []string{name, "/usr/sbin/" + name} {
		if found, err := exec.LookPath(candidate); err == nil {
			return found
		}
	}
	Missing(tb, fmt.Errorf("no %s here: apt-get install %s", name, pkg))
	return ""
}

// Missing skips the test, or fails it if Required, because something is missing.
func Missing(tb testing.TB, err error) {
	tb.Helper()
	if Required() {
		tb.Fatal(err)
	}
	tb.Skip(err)
}
