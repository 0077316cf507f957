// Package installed finds the programs that tests need. If one is missing the test
// is skipped. In make test, which installs them and sets
// DOORWARD_TEST_GATEWAYS=require, it fails instead.
package installed

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
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

// Pinned returns the path of a program whose version a module in the folder tools pins. The
// script of that module builds it if it hasn't been built, which takes minutes.
func Pinned(tb testing.TB, script string) string {
	tb.Helper()
	build := exec.Command(script)
	build.Stderr = os.Stderr
	path, err := build.Output()
	if err != nil {
		tb.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(string(path))
}

// Missing skips the test, or fails it if Required, because something is missing.
func Missing(tb testing.TB, err error) {
	tb.Helper()
	if Required() {
		tb.Fatal(err)
	}
	tb.Skip(err)
}
