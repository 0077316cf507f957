package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/doctest"
)

// TestMoving does what docs/import.md says, on a free port in place of the one
// on the page.
func TestMoving(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	addr := freeAddress()
	reader := doctest.Reader{
		Dir: t.TempDir(), Env: []string{"DOORWARD_LISTEN=" + addr},
		Rewrite: strings.NewReplacer("localhost:8080", addr).Replace,
	}
	for _, block := range doctest.Read(t, "../../docs/import.md") {
		reader.Do(t, block)
	}
}
