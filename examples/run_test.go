package examples_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/logtest"
	"github.com/doorward/doorward/internal/waittest"
)

// need returns the path of a program. Without the program the test is skipped, or fails where
// gateways are required.
func need(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("no gateways under -short; make test runs everything")
	}
	return installed.Program(t, name, name)
}

// keeper runs a program and kills it when its own standard input is closed, at the end
// of the test in any case.
const keeper = `"$@" </dev/null & child=$!
read -r _
kill -9 "$child"
wait "$child"`

// program is a child of the test that doesn't outlive it.
type program struct {
	output *output
	end    func()
}

// run starts a program in a folder.
func run(t *testing.T, folder string, command ...string) *program {
	t.Helper()
	p := &program{output: &output{}}
	child := exec.Command("sh", append([]string{"-c", keeper, "keeper"}, command...)...)
	child.Dir, child.Stdout, child.Stderr = folder, p.output, p.output
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	p.end = sync.OnceFunc(func() {
		_ = stdin.Close()
		_ = child.Wait() // killed: it has no other way to end
	})
	t.Cleanup(func() {
		p.end()
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(command[0]), p.output)
		}
	})
	return p
}

// output is a program's output, readable while it runs.
type output struct{ logtest.Journal }

// lines returns the complete lines so far.
func (o *output) lines() []string {
	all := strings.Split(o.String(), "\n")
	return all[:len(all)-1]
}

// freeAddress returns an unused address of loopback.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func isListening(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// upstreamProgram builds the service once for all tests.
var upstreamProgram = sync.OnceValues(func() (string, error) {
	// Read, so that go test knows that this test depends on it.
	if _, err := os.ReadFile("upstream/main.go"); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "examples")
	if err != nil {
		return "", err
	}
	scratch = folder
	file := filepath.Join(folder, "upstream")
	out, err := exec.Command("go", "build", "-o", file, "./upstream").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the service: %w\n%s", err, out)
	}
	return file, nil
})

// scratch is the folder that the tests share, if it exists.
var scratch string

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(scratch); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// copyExample copies an example to a new folder, with the addresses replaced that an
// operator has to change, and returns the folder.
func copyExample(t *testing.T, example string, addresses map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	found := map[string]bool{}
	entries, err := os.ReadDir(example)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(example, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), ".md") {
			continue
		}
		replaced := string(text)
		for old, address := range addresses {
			found[old] = found[old] || strings.Contains(replaced, old)
			replaced = strings.ReplaceAll(replaced, old, address)
		}
		write(t, filepath.Join(folder, e.Name()), replaced)
	}
	for old := range addresses {
		if !found[old] {
			t.Fatalf("no file in %s names %s", example, old)
		}
	}
	return folder
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The helpers need tests of their own: one that does nothing would let every test pass.

func TestProgramsEndWithTheTest(t *testing.T) {
	file, err := upstreamProgram()
	if err != nil {
		t.Fatal(err)
	}
	var address string
	t.Run("running", func(t *testing.T) {
		p := run(t, ".", file, "-listen", "127.0.0.1:0")
		waittest.Until(t, "the service says its address", func() bool { return len(p.output.lines()) > 0 })
		address = p.output.lines()[0]
		if !isListening(address) {
			t.Errorf("nobody listens on %s", address)
		}
	})
	if isListening(address) {
		t.Errorf("the service still listens on %s", address)
	}
}

// killedVariable is set for the child process of TestProgramsEndWithAKilledTest. It names the
// service that the child starts before it kills itself.
const killedVariable = "EXAMPLES_KILLED"

// A killed test binary runs no clean-up.
func TestProgramsEndWithAKilledTest(t *testing.T) {
	if file := os.Getenv(killedVariable); file != "" {
		p := run(t, ".", file, "-listen", "127.0.0.1:0")
		waittest.Until(t, "the service says its address", func() bool { return len(p.output.lines()) > 0 })
		fmt.Println("\nlistens " + p.output.lines()[0])
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {} // the signal is on its way
	}
	file, err := upstreamProgram()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), killedVariable+"="+file)
	out, err := child.Output()
	_, address, found := strings.Cut(string(out), "\nlistens ")
	if err == nil || !found {
		t.Fatalf("the child ended with %v and printed %q", err, out)
	}
	address = strings.TrimSpace(address)
	waittest.Until(t, "nobody listens on "+address, func() bool { return !isListening(address) })
}
