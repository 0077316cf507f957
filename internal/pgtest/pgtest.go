// Package pgtest gives tests a real PostgreSQL server of their own.
//
//	db, err := sql.Open("pgx", pgtest.DSN(t))
//
// [DSN] returns the address of a new, empty database that is dropped when
// the test ends. All such databases of a test binary live in one cluster, made when
// the first is asked for (about a second) and removed when the binary ends. If
// DOORWARD_TEST_PGRUN names a named pipe, they live in the one cluster of the run, which is
// removed when no process holds the pipe open for writing any more: scripts/test.sh does so.
//
// [Template] makes databases that are copies of one prepared before.
//
// [Start] makes a cluster for one test, which can stop, restart and freeze it.
// [StartPair] makes a primary and a standby for failovers.
//
// # What it needs
//
// The programs initdb and pg_ctl, version 13 or later: those on $PATH, or else the
// newest where Debian puts them. PostgreSQL refuses to run as root: a test run as
// root uses the user postgres, or else nobody. Without the programs, and under go
// test -short, such tests are skipped. With DOORWARD_TEST_POSTGRES=require, which
// make test sets, they fail instead.
//
// initdb takes most of the time in which a cluster is made. If DOORWARD_TEST_PGDATA names a
// folder, which need not exist, initdb runs once, and each cluster is a copy of the folder.
// Use it with one version of PostgreSQL only, and remove it afterwards: pgtest doesn't.
//
// # Cleaning up
//
// Nothing is left behind, even after a panic, a timeout or SIGKILL of the test
// binary. A small shell process, the keeper (keeper.sh), owns the cluster and waits
// on a pipe from the test binary; when the pipe closes it stops the server and
// removes the folder, within a second. Only SIGKILL of the keeper itself leaves a
// folder pgtest.* in /dev/shm or /tmp and a server. Pausing and killing need Linux's
// /proc.
//
// # Differences from production
//
// Unless [Durable] is given, fsync is off: a commit outlives the death of the
// server's processes, but not that of the machine. Every connection is trusted; it
// listens only on loopback and a socket in the cluster's folder.
package pgtest

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a running PostgreSQL server with its data. Its methods may be
// called from several goroutines; a failure ends the test that is passed.
type Cluster struct {
	home string
	port int
	last atomic.Int64 // the number in the last database's name

	mu     sync.Mutex // one command to the keeper at a time
	keeper *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// Option changes how [Start] sets a cluster up.
type Option func(settings map[string]string)

// Durable makes commits wait for the disk, as they do in production. Use it to
// measure; a test of recovery after a kill does not need it.
func Durable(settings map[string]string) {
	settings["fsync"] = "on"
	settings["full_page_writes"] = "on"
}

// Mode says how [Cluster.Stop] ends the server; the values are pg_ctl's.
type Mode string

const (
	// Fast rolls open transactions back, closes every connection and writes a
	// checkpoint.
	Fast Mode = "fast"
	// Immediate ends every process at once, as a crash does: the next start
	// recovers from the log.
	Immediate Mode = "immediate"
)

// DSN returns the URL of a new, empty database in the cluster that all tests of this binary
// share. Its user is a superuser. When tb ends, the database is dropped with its
// connections. For faults of the server use [Start].
func DSN(tb testing.TB) string {
	tb.Helper()
	s := shared(tb)
	return s.lend(tb, s.create(tb, "template0", ""))
}

// Start makes a cluster for tb alone and removes it when tb ends.
func Start(tb testing.TB, options ...Option) *Cluster {
	tb.Helper()
	requirePostgres(tb)
	c, err := launch(options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.stopKeeper)
	return c
}

// DSN returns the URL of a new, empty database in c, as the function [DSN] does; it is
// removed with the cluster. The server must be running.
func (c *Cluster) DSN(tb testing.TB) string {
	tb.Helper()
	_, dsn := c.create(tb)
	return dsn
}

// Stop ends the server and waits for its end. The data stays. A paused server is
// resumed first.
func (c *Cluster) Stop(tb testing.TB, mode Mode) {
	tb.Helper()
	c.run(tb, "stop "+string(mode))
}

// Start starts a stopped server again, with the same data on the same port, and
// returns when it takes connections.
func (c *Cluster) Start(tb testing.TB) {
	tb.Helper()
	c.run(tb, "start "+strconv.Itoa(c.port))
}

// Pause freezes every process of the server: the kernel accepts connections, but
// nothing answers, as when a machine hangs. [Cluster.Resume] undoes it; so do
// [Cluster.Stop] and the end of the test.
func (c *Cluster) Pause(tb testing.TB) {
	tb.Helper()
	c.run(tb, "pause")
}

// Resume lets a paused server continue.
func (c *Cluster) Resume(tb testing.TB) {
	tb.Helper()
	c.run(tb, "resume")
}

func (c *Cluster) create(tb testing.TB) (name, dsn string) {
	tb.Helper()
	name = c.newName()
	c.exec(tb, createDatabase(name, "template0"))
	return name, c.url(name)
}

func createDatabase(name, template string) string {
	return "CREATE DATABASE " + name + " TEMPLATE " + template
}

// newName returns the name of a new database. The cluster may be shared with other processes.
func (c *Cluster) newName() string { return fmt.Sprintf("t%d_%d", os.Getpid(), c.last.Add(1)) }

func (c *Cluster) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
}

// exec opens a connection each time: calls are rare, and an idle connection would not
// survive the faults that tests cause.
func (c *Cluster) exec(tb testing.TB, query string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.url("postgres"))
	if err != nil {
		tb.Fatalf("pgtest: is the server stopped or paused? %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, query); err != nil {
		tb.Fatalf("pgtest: %s: %v", query, err)
	}
}

// run gives the keeper a command, and ends the test if it fails.
func (c *Cluster) run(tb testing.TB, command string) {
	tb.Helper()
	if err := c.command(command); err != nil {
		tb.Fatal(err)
	}
}

//go:embed keeper.sh
var keeperScript string

// launch makes a cluster and starts it on a free port.
func launch(options ...Option) (*Cluster, error) {
	bin, err := locate()
	if err != nil {
		return nil, err
	}
	return newCluster(bin, settings(options))
}

// newCluster makes a cluster and starts it; args are empty, or for a standby the folder of its
// stopped primary.
func newCluster(bin, settings string, args ...string) (*Cluster, error) {
	c, err := newKeeper(bin, settings, args...)
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.keeper.StdinPipe(); err != nil {
		return nil, err
	}
	return c, c.begin()
}

// begin starts the keeper and then the server.
func (c *Cluster) begin() error {
	if err := c.keeper.Start(); err != nil {
		return fmt.Errorf("pgtest: keeper: %w", err)
	}
	err := c.initialize()
	if err != nil {
		c.stopKeeper()
	}
	return err
}

func settings(options []Option) string {
	all := map[string]string{
		"listen_addresses": "'127.0.0.1'",
		"max_connections":  "200",
		"fsync":            "off",
		"full_page_writes": "off",
	}
	for _, option := range options {
		option(all)
	}
	var lines strings.Builder
	for name, value := range all {
		fmt.Fprintf(&lines, "%s = %s\n", name, value)
	}
	return lines.String()
}

// templateFolder is the environment variable that names the folder of which each cluster is a
// copy. A [Template] is another thing, a database.
const templateFolder = "DOORWARD_TEST_PGDATA"

// newKeeper returns a cluster whose keeper is not started. The keeper has its own session, so that
// Ctrl-C, which the terminal sends to all of go test, doesn't reach it: it must outlive this process
// to clean up.
func newKeeper(bin, settings string, args ...string) (*Cluster, error) {
	attr, err := unprivileged()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", keeperScript, "pgtest-keeper", bin, settings}, args...)...)
	cmd.Dir = "/"
	// Not this environment: PGDATA, PGPORT and the like would change the server.
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", templateFolder + "=" + os.Getenv(templateFolder)}
	cmd.SysProcAttr = attr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Cluster{keeper: cmd, stdout: bufio.NewReader(stdout)}, nil
}

// initialize waits until the cluster is made and starts it. Another process may take the
// free port before the server uses it, so it tries several.
func (c *Cluster) initialize() error {
	home, err := c.stdout.ReadString('\n')
	if err != nil {
		return fmt.Errorf("pgtest: the keeper made no folder in /dev/shm or /tmp: %w", err)
	}
	c.home = strings.TrimSpace(home)
	if err := c.readAnswer("initdb"); err != nil {
		return err
	}
	for range 5 {
		c.port = freePort()
		if err = c.command("start " + strconv.Itoa(c.port)); err == nil {
			return nil
		}
	}
	return err
}

// command gives the keeper a command and waits for the answer. pg_ctl's own time
// limits, a minute, keep the wait finite.
func (c *Cluster) command(command string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintln(c.stdin, command); err != nil {
		return fmt.Errorf("pgtest: the keeper is gone: %w", err)
	}
	return c.readAnswer(command)
}

// readAnswer reads the keeper's answer to a command.
func (c *Cluster) readAnswer(command string) error {
	answer, err := c.stdout.ReadString('\n')
	if err != nil {
		return fmt.Errorf("pgtest: the keeper is gone: %w", err)
	}
	if answer != "ok\n" {
		log, _ := os.ReadFile(filepath.Join(c.home, "log"))
		return fmt.Errorf("pgtest: %s failed; the end of the server's log:\n%s", command, log[max(0, len(log)-2000):])
	}
	return nil
}

// stopKeeper lets the keeper clean up, and waits for it.
func (c *Cluster) stopKeeper() {
	c.stdin.Close()
	c.keeper.Wait()
}

// nextPort counts, from a random number on, the ports that this process has tried. A random
// choice each time could give one port to two servers that don't listen yet.
var nextPort atomic.Uint32

func init() { nextPort.Store(rand.Uint32N(10_000)) }

// freePort picks a port below the range of outgoing connections (32768 and up on
// Linux), so that none of them takes the port while the server is stopped, and below
// the range of package freeport.
func freePort() int {
	for {
		port := 10_000 + int(nextPort.Add(1)%10_000)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			l.Close()
			return port
		}
	}
}
