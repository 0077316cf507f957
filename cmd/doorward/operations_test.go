package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/doctest"
	"github.com/doorward/doorward/internal/pgtest"
)

// TestOperationsPage does what docs/operations.md says, on another port and with
// databases of a PostgreSQL of the test's.
func TestOperationsPage(t *testing.T) {
	for _, program := range []string{"bash", "awk", "pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	addr := freeAddress()
	dumped, restored, moved := pgtest.DSN(t), pgtest.DSN(t), pgtest.DSN(t)
	fill(t, dumped)
	reader := doctest.Reader{
		Dir: t.TempDir(), Env: []string{"DOORWARD_LISTEN=" + addr},
		Rewrite: strings.NewReplacer(
			"localhost:8080", addr, "postgres://doorward@db/doorward", dumped, "postgres://doorward@db/restored", restored, "postgres://doorward@db/new", moved,
		).Replace,
	}
	for _, block := range doctest.Read(t, "../../docs/operations.md") {
		reader.Do(t, block)
		if block.Background { // the rest is typed where the page exports it
			reader.Env = append(reader.Env, "DOORWARD_DATABASE=sqlite:doorward-dev/doorward.db")
		}
	}
}

// fill makes an installation.
func fill(t *testing.T, dsn string) {
	t.Helper()
	cmd := exec.Command("doorward", "tenant", "create", "--name", "Acme", "--owner-email", "ann@acme.example", "--database", dsn)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
