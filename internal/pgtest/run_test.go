package pgtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestRunChild runs in a child process of TestOneClusterInARun.
func TestRunChild(t *testing.T) {
	if os.Getenv(ending) != "run" {
		t.Skip("runs only as a child of TestOneClusterInARun")
	}
	template := Template{Name: "prepared", Prepare: func(dsn string) error {
		fmt.Println("\nprepared it")
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err
		}
		return conn.Close(t.Context())
	}}
	conn := connect(t, template.DSN(t))
	fmt.Printf("\ndata %s\n", query[string](t, conn, "SHOW data_directory"))
	killSelf(t, syscall.SIGKILL)
}

// Test binaries of a run share one cluster and one prepared database. The cluster outlives them,
// even the one that started it, and goes with the process that holds the pipe.
func TestOneClusterInARun(t *testing.T) {
	requirePostgres(t)
	pipe := filepath.Join(t.TempDir(), "run")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	one, two := startOfRun(t, run, held), startOfRun(t, run, held)
	held.Close()
	first, second := one(), two()
	if first[0] != second[0] || !strings.HasPrefix(first[0], "data /") {
		t.Errorf("the binaries have the clusters %q and %q, want the same", first, second)
	}
	if n := len(first) + len(second); n != 3 {
		t.Errorf("the database was prepared %d times, want once: %q %q", n-2, first, second)
	}
	folder := strings.TrimPrefix(first[0], "data ")
	if _, err := os.Stat(filepath.Dir(folder)); err != nil {
		t.Errorf("the cluster went before the run: %v", err)
	}
	run.Close()
	alive.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadAll(alive); err != nil {
		t.Errorf("a process of the cluster outlived the run by a minute: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(folder)); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", folder, err)
	}
}

// startOfRun starts TestRunChild and returns a function that waits for it and returns the lines
// "data …" and "prepared it" in that order. The child inherits both files, as from scripts/test.sh.
func startOfRun(t *testing.T, run, held *os.File) func() []string {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestRunChild$")
	child.Env = append(os.Environ(), ending+"=run", runPipe+"="+run.Name())
	child.ExtraFiles = []*os.File{held, run}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		found := []string{"no data directory"}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "data "):
				found[0] = line
			case line == "prepared it":
				found = append(found, line)
			}
		}
		child.Wait()
		return found
	}
}
