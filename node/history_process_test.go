//go:build linux

package node_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/waittest"
)

// The tests with real processes stop and kill them. They need Linux, which kills a
// process whose parent has died, so that a test that panics leaves none behind.

// program is doorward, built once for all tests.
var program = sync.OnceValues(func() (string, error) { return build() })

// buildFolder holds the built programs; TestMain removes it.
var buildFolder string

func TestMain(m *testing.M) {
	// Most of these tests wait for leases to end and for nodes to stop, so more run at once than
	// there are cores.
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	var err error
	if buildFolder, err = os.MkdirTemp("", "doorward-node-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(buildFolder)
	os.Exit(code)
}

// build builds the program, with flags for go build. It stats the command's sources,
// because go test doesn't see what its children read, and would answer "ok (cached)"
// after a change there.
func build(flags ...string) (string, error) {
	sources, _ := filepath.Glob("../cmd/doorward/*.go")
	for _, name := range sources {
		if _, err := os.Stat(name); err != nil {
			return "", err
		}
	}
	folder, err := os.MkdirTemp(buildFolder, "")
	if err != nil {
		return "", err
	}
	to := filepath.Join(folder, "doorward")
	out, err := exec.Command("go", append(append([]string{"build", "-ldflags=-s -w", "-o", to}, flags...), "../cmd/doorward")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return to, nil
}

func builtProgram(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// process is one doorward serve. Its methods are called from one goroutine at a
// time.
type process struct {
	t         *testing.T
	program   string
	args      []string
	address   string // the same after a restart
	log       string
	env       []string // nil: that of the test
	cmd       *exec.Cmd
	ended     chan struct{}
	shortages int // of CPU, over all starts; each stop counts them
}

// serve starts a node with cheap hashes and no limits, and returns when it is
// ready.
func serve(t *testing.T, program, dsn string, flags ...string) *process {
	t.Helper()
	p := newProcess(t, program, dsn, flags...)
	requireStarted(t, p)
	return p
}

func newProcess(t *testing.T, program, dsn string, flags ...string) *process {
	t.Helper()
	dir, address := t.TempDir(), freeport.AddressOn("127.0.0.1")
	p := &process{t: t, program: program, address: address, log: filepath.Join(dir, "log")}
	p.args = append([]string{
		"serve", "--listen", address, "--database", dsn, "--smtp", "file:" + filepath.Join(dir, "mail"),
		"--password-memory-kib", "1024", "--password-time", "1", "--session-limit", "0",
		"--limit-login-account", "0", "--limit-login-ip", "0", "--log-level", "warn",
	}, flags...)
	return p
}

func requireStarted(t *testing.T, p *process) {
	t.Helper()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
}

func (p *process) url() string { return "http://" + p.address }

// start starts the node, the first time or after kill, and returns when it is
// ready.
func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(p.program, p.args...)
	p.cmd.Stderr, p.cmd.Env = log, p.env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.ended = ended
	go func() { _ = p.cmd.Wait(); close(ended) }()
	return p.waitReady()
}

func (p *process) waitReady() error {
	timeout := time.After(waittest.Limit)
	for {
		res, err := http.Get(p.url() + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.ended:
			return fmt.Errorf("the node ended at its start:\n%s", p.tail())
		case <-timeout:
			return fmt.Errorf("the node is not ready: %w\n%s", err, p.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %v: %v", s, err)
	}
}

func (p *process) pause()  { p.signal(syscall.SIGSTOP) }
func (p *process) resume() { p.signal(syscall.SIGCONT) }

// kill ends the node as a power cut would.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// countShortages counts what makes a node without CPU answer 503 since its start, as
// doorwardtest's Server.Shortages does; none if the node doesn't answer.
func (p *process) countShortages() (all int) {
	text, _ := readMetrics(p.url())
	for _, series := range []string{"doorward_lease_lapses_total", "doorward_password_hashes_refused_total", "doorward_timed_out_total"} {
		if n, err := metricIn(text, series); err == nil {
			all += int(n)
		}
	}
	return all
}

// stop ends the node by SIGTERM, which must work after any fault.
func (p *process) stop() {
	p.t.Helper()
	select {
	case <-p.ended:
		p.t.Errorf("a node had already ended:\n%s", p.tail())
		return
	default:
	}
	p.shortages += p.countShortages()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			p.t.Errorf("after SIGTERM the node ended with %d, want 0:\n%s", code, p.tail())
		}
	case <-time.After(waittest.Limit):
		p.signal(syscall.SIGQUIT) // for the stacks
		<-p.ended
		p.t.Errorf("the node is still running after SIGTERM:\n%s", p.tail())
	}
}

// tail is the end of the node's log.
func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-9000):])
}

// wait returns after a time, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
