package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/pgtest"
)

// TestOperationsPage follows docs/operations.md, on another port, with databases of the
// test's PostgreSQL and a folder instead of the system's.
func TestOperationsPage(t *testing.T) {
	t.Parallel()
	installed.Program(t, "pg_dump", "postgresql-client")
	installed.Program(t, "pg_restore", "postgresql-client")
	installed.Program(t, "sqlite3", "sqlite3")
	installed.Program(t, "id", "coreutils")
	dumped, system := pgtest.DSN(t), t.TempDir()
	createInstallation(t, dumped)
	writeFile(t, system, "doorward.yaml", "database: sqlite:doorward-dev/doorward.db\ntrace-otlp: http://localhost:4318\n")
	follow(t, "../../docs/operations.md",
		"postgres://doorward@db/doorward", dumped, "postgres://doorward@db/restored", pgtest.DSN(t), "postgres://doorward@db/new", pgtest.DSN(t),
		"-g doorward", "-g "+ownGroup(t), "/etc/doorward/", system+"/", "/var/backups/", system+"/",
	)
	if backups, err := filepath.Glob(filepath.Join(system, "doorward-?.db")); err != nil || len(backups) != 1 {
		t.Errorf("the backups of the week are %q, %v", backups, err)
	}
}

// ownGroup returns a group to which the current user may give files.
func ownGroup(t *testing.T) string {
	t.Helper()
	name, err := exec.Command("id", "-gn").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(name))
}

// createInstallation fills a database with one tenant.
func createInstallation(t *testing.T, dsn string) {
	t.Helper()
	cmd := exec.Command("doorward", "tenant", "create", "--name", "Acme", "--owner-email", "ann@acme.example", "--database", dsn)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestInstallPage follows the parts of docs/install.md that need no root, with the
// package's settings.
func TestInstallPage(t *testing.T) {
	installed.Program(t, "id", "coreutils")
	system := t.TempDir()
	settings, err := os.ReadFile("../../deploy/deb/doorward.yaml")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, system, "doorward.yaml", strings.NewReplacer("/var/lib/doorward/", system+"/", "base-url: http://localhost:8080", "base-url: https://auth.example.com").Replace(string(settings)))
	for _, name := range []string{"privkey.pem", "fullchain.pem"} {
		writeFile(t, system, "renewed/"+name, name)
	}
	t.Setenv("DOORWARD_SMTP", "file:"+filepath.Join(system, "mail"))
	t.Setenv("RENEWED_LINEAGE", filepath.Join(system, "renewed"))
	follow(t, "../../docs/install.md", "-g doorward", "-g "+ownGroup(t), "/etc/doorward/", system+"/")
	if key, err := os.Stat(filepath.Join(system, "tls", "privkey.pem")); err != nil || key.Mode().Perm() != 0o640 {
		t.Errorf("the hook left %v, %v", key, err)
	}
}
