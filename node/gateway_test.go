//go:build linux

package node_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/pgtest"
)

// TestRollingRestartThroughHAProxy restarts three nodes one after the other while all
// clients go through the HAProxy of deploy/ha. No check fails, and nothing acknowledged
// is lost.
func TestRollingRestartThroughHAProxy(t *testing.T) {
	t.Parallel()
	haproxy := installed.Program(t, "haproxy", "haproxy")
	dsn := pgtest.DSN(t)
	doorward := builtProgram(t)
	nodes := []*process{serve(t, doorward, dsn), serve(t, doorward, dsn), serve(t, doorward, dsn)}
	gateway := &process{t: t, program: doorward, address: startGateway(t, haproxy, t.TempDir(), nodes)}
	l := newLoad(t, []*process{gateway}, dsn, 8)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l.run(ctx, 6, 4)
	began := l.now()
	replaceNodes(ctx, nodes, doorward)
	took := l.now() - began

	v := l.finish(stop, func() { l.nodes = nodes }) // finish stops l.nodes: not the gateway, but the nodes behind it
	l.report(v)
	requireGood(t, v)
	l.requireAllAnswered()
	t.Logf("three restarts in %v; the longest check took %v", took.Round(100*time.Millisecond), l.slowestProbe().Round(time.Millisecond))
}

// slowestProbe is how long the slowest probe took. Unlike slowestCheck it skips none.
func (l *load) slowestProbe() time.Duration {
	slowest := slices.MaxFunc(l.history.probes, func(a, b probe) int { return cmp.Compare(a.to-a.from, b.to-b.from) })
	return slowest.to - slowest.from
}

// startGateway starts HAProxy in front of the nodes, with its log in a folder,
// and returns its address.
func startGateway(t *testing.T, haproxy, folder string, nodes []*process) string {
	t.Helper()
	address, config := freeport.AddressOn("127.0.0.1"), "../deploy/ha/gateway.cfg"
	if _, err := os.Stat(config); err != nil { // so that go test reruns this test when it changes
		t.Fatal(err)
	}
	cmd := exec.Command(haproxy, "-db", "-f", config)
	cmd.Env = append(os.Environ(), "GATEWAY="+address)
	for i, n := range nodes {
		cmd.Env = append(cmd.Env, fmt.Sprintf("NODE%d=%s", i+1, n.address))
	}
	log, err := os.OpenFile(filepath.Join(folder, "gateway.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := (&process{t: t, address: address, log: log.Name()}).waitReady(); err != nil {
		t.Fatal(err)
	}
	return address
}
