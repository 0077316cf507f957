package main

import (
	"os"
	"testing"
)

// With this variable in its environment the test binary is the program itself.
func TestMain(m *testing.M) {
	if os.Getenv("MESSAGING_TEST_AS_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}
