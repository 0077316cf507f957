package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/doctest"
)

// TestOperatorsPage does what docs/operators.md says, on another port.
func TestOperatorsPage(t *testing.T) {
	for _, program := range []string{"bash", "curl", "awk"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	addr := freeAddress()
	reader := doctest.Reader{
		Dir: t.TempDir(), Env: []string{"DOORWARD_LISTEN=" + addr},
		Rewrite: strings.NewReplacer("localhost:8080", addr).Replace,
	}
	for _, block := range doctest.Read(t, "../../docs/operators.md") {
		reader.Do(t, block)
		if block.Background { // the rest is typed where the page exports these
			reader.Env = append(reader.Env, "DOORWARD_DATABASE=sqlite:doorward-dev/doorward.db", "DOORWARD_SMTP=file:mail")
		}
	}
}
