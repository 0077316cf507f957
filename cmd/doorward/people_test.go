package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/doctest"
)

// TestPeople does what docs/people.md says, with a free port in place of the one
// on the page.
func TestPeople(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	addr := freeAddress()
	reader := doctest.Reader{
		Dir:     t.TempDir(),
		Env:     []string{"DOORWARD_LISTEN=" + addr},
		Rewrite: strings.NewReplacer("localhost:8080", addr, "bin/doorward", "doorward").Replace,
	}
	for _, block := range doctest.Read(t, "../../docs/people.md") {
		reader.Do(t, block)
	}
}
