package pgtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/doorward/doorward/internal/waittest"
)

// ending is the environment variable that says how a child of TestNothingIsLeft ends. For a
// child of TestMissingPostgres it is "missing".
const ending = "PGTEST_ENDING"

// endings are the ways a test binary ends. Each makes a cluster, reports its folder,
// and ends. (A test's own timeout is a panic. Ctrl-C is SIGINT, and SIGQUIT is what go
// test sends to a binary that is stuck.)
var endings = map[string]func(t *testing.T){
	"normally":              func(t *testing.T) { startShared(t) },
	"by os.Exit":            func(t *testing.T) { startShared(t); os.Exit(3) },
	"by panic":              func(t *testing.T) { startShared(t); panic("as a test may") },
	"by Ctrl-C":             func(t *testing.T) { startShared(t); killSelf(t, syscall.SIGINT) },
	"by go test":            func(t *testing.T) { startShared(t); killSelf(t, syscall.SIGQUIT) },
	"by kill":               func(t *testing.T) { startShared(t); killSelf(t, syscall.SIGKILL) },
	"with a paused server":  func(t *testing.T) { startShared(t).Pause(t); killSelf(t, syscall.SIGKILL) },
	"with a stopped server": func(t *testing.T) { startShared(t).Stop(t, Fast); killSelf(t, syscall.SIGKILL) },
	"during initdb": func(t *testing.T) {
		c := startDuringInitdb(t)
		fmt.Println("\nhome " + c.home)
		killSelf(t, syscall.SIGKILL)
	},
}

// startShared makes the shared cluster and reports its folder to the parent.
func startShared(t *testing.T) *Cluster {
	t.Helper()
	DSN(t)
	c := shared(t).Cluster
	fmt.Println("\nhome " + c.home)
	return c
}

// startDuringInitdb returns a cluster for which initdb is still running.
func startDuringInitdb(t *testing.T) *Cluster {
	t.Helper()
	bin, err := locate()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(templateFolder, "") // so that initdb runs, which takes a while
	c, err := newKeeper(bin, settings(nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.stdin, err = c.keeper.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.keeper.Start(); err != nil {
		t.Fatal(err)
	}
	home, err := c.stdout.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c.home = strings.TrimSpace(home)
	return c
}

func killSelf(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), signal); err != nil {
		t.Fatal(err)
	}
	select {}
}

// TestEndingChild runs in a child process of TestNothingIsLeft.
func TestEndingChild(t *testing.T) {
	finish, ok := endings[os.Getenv(ending)]
	if !ok {
		t.Skip("runs only as a child of TestNothingIsLeft")
	}
	finish(t)
}

func TestNothingIsLeft(t *testing.T) {
	requirePostgres(t)
	for name := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0], "-test.run=^TestEndingChild$")
			child.Env = append(os.Environ(), ending+"="+name, runPipe+"=")
			home := awaitEnd(t, child)
			if _, err := os.Stat(home); !os.IsNotExist(err) {
				t.Errorf("%s is still there (%v)", home, err)
			}
		})
	}
}

// awaitEnd runs child and waits until it and every process that it started have ended; it
// returns the cluster's folder. All of them inherit the writing end of a pipe, which is
// closed when the last of them ends.
func awaitEnd(t *testing.T, child *exec.Cmd) (home string) {
	t.Helper()
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	child.ExtraFiles = []*os.File{held}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	held.Close()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if after, ok := strings.CutPrefix(lines.Text(), "home "); ok {
			home = after
		}
	}
	child.Wait()
	if home == "" {
		t.Fatal("the child started no cluster")
	}
	alive.SetReadDeadline(waittest.Deadline())
	if _, err := io.ReadAll(alive); err != nil {
		t.Fatalf("a process of the cluster in %s outlived the test binary: %v", home, err)
	}
	return home
}

// TestMissingChild runs in a child process of TestMissingPostgres.
func TestMissingChild(t *testing.T) {
	if os.Getenv(ending) != "missing" {
		t.Skip("runs only as a child of TestMissingPostgres")
	}
	installFolders = "/nonexistent/*/bin"
	t.Setenv("PATH", "/nonexistent")
	DSN(t)
	fmt.Println("was given a database")
}

func TestMissingPostgres(t *testing.T) {
	for _, c := range []struct{ name, mode, flag, want string }{
		{"is skipped with the reason", "", "-test.short=false", "--- SKIP: TestMissingChild"},
		{"is skipped under -short", "", "-test.short=true", "no PostgreSQL under -short"},
		{"fails when required", "require", "-test.short=false", "--- FAIL: TestMissingChild"},
		{"fails when required under -short", "require", "-test.short=true", "--- FAIL: TestMissingChild"},
		{"refuses a value it does not know", "required", "-test.short=false", "the only valid value is require"},
	} {
		t.Run(c.name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestMissingChild$", "-test.v", c.flag)
			child.Env = append(os.Environ(), ending+"=missing", "DOORWARD_TEST_POSTGRES="+c.mode)
			out, _ := child.CombinedOutput()
			if !strings.Contains(string(out), c.want) {
				t.Errorf("no %q in:\n%s", c.want, out)
			}
			if c.flag == "-test.short=false" && c.mode != "required" && !strings.Contains(string(out), "apt-get install postgresql") {
				t.Errorf("no advice in:\n%s", out)
			}
		})
	}
}
