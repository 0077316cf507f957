package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/pgtest"
)

// TestExportFollowsThroughARestart: "audit export --follow" continues after a restart of
// the database, ends with status 0 at SIGTERM, and the next run begins after its last line:
// each event is exported once.
func TestExportFollowsThroughARestart(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	dir, dsn := t.TempDir(), cluster.DSN(t)
	newCommand := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append(args, "--database", dsn)...)
		cmd.Dir = dir
		return cmd
	}
	create := func(name string) {
		t.Helper()
		if out, err := newCommand("tenant", "create", "--name", name, "--owner-email", "ann@x.example", "--smtp", "file:mail").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	export := []string{"audit", "export", "--all", "--state", "shipped"}
	if out, err := newCommand("migrate").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	create("before")
	file, err := os.Create(filepath.Join(dir, "lines"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var log bytes.Buffer
	following := newCommand(append(export, "--follow")...)
	following.Stdout, following.Stderr = file, &log
	if err := following.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { following.Process.Kill() })
	countLines := func() int {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "tenant.create")
	}
	awaitLines := func(n int) {
		t.Helper()
		for end := time.Now().Add(waitTimeout); countLines() != n; <-time.After(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d lines, want %d\n%s", countLines(), n, &log)
			}
		}
	}
	awaitLines(1)
	cluster.Stop(t, pgtest.Immediate)
	cluster.Start(t)
	create("afterwards")
	awaitLines(2)
	if err := following.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := following.Wait(); err != nil {
		t.Errorf("at SIGTERM: %v\n%s", err, &log)
	}
	create("later")
	out, err := newCommand(export...).Output()
	if n := bytes.Count(out, []byte("tenant.create")); err != nil || n != 1 {
		t.Errorf("the next run has %d lines, %v:\n%s", n, err, out)
	}
}
