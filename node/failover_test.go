//go:build linux

package node_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/faultproxy"
	"github.com/doorward/doorward/internal/pgtest"
)

// TestFailover kills the primary under load and promotes its synchronous standby. Nodes
// that know both find the new primary by themselves. Everything answered before still
// holds; during the failover the answer is 503, never 401.
func TestFailover(t *testing.T) {
	t.Parallel()
	t.Run("the server dies", func(t *testing.T) {
		t.Parallel()
		pair := pgtest.StartPair(t)
		dsn := pair.DSN(t)
		failOver(t, dsn, [2]string{dsn, dsn}, pair, func() { pair.Primary.Kill(t) })
	})
	t.Run("the machine vanishes", func(t *testing.T) {
		t.Parallel()
		pair := pgtest.StartPair(t)
		dsn := pair.DSN(t)
		proxy, proxied := throughProxy(t, dsn)
		failOver(t, dsn, [2]string{proxied, proxied}, pair, func() {
			proxy.Drop()
			pair.Primary.Kill(t)
		})
	})
	// The worst case of a failover without fencing: one node has lost the primary and
	// finds the new one. The other stays with the old one, which still claims to be the
	// primary and answers reads, but can no longer commit.
	t.Run("the server lives on", func(t *testing.T) {
		t.Parallel()
		pair := pgtest.StartPair(t)
		dsn := pair.DSN(t)
		proxy, proxied := throughProxy(t, dsn)
		failOver(t, dsn, [2]string{dsn, proxied}, pair, proxy.Break)
	})
}

// throughProxy puts a proxy in front of the first server in dsn, and returns the DSN with it.
func throughProxy(t *testing.T, dsn string) (proxy *faultproxy.Proxy, proxied string) {
	t.Helper()
	_, rest, _ := strings.Cut(dsn, "@")
	primary, _, _ := strings.Cut(rest, ",")
	proxy, err := faultproxy.New(primary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy, strings.Replace(dsn, primary, proxy.Addr(), 1)
}

// failOver runs a load on two nodes with these DSNs, and commands with dsn. It calls inject,
// promotes the standby, and verifies the history.
func failOver(t *testing.T, dsn string, dsns [2]string, pair *pgtest.Pair, inject func()) {
	t.Helper()
	program := builtProgram(t)
	nodes := []*process{serve(t, program, dsns[0]), serve(t, program, dsns[1])}
	l := newLoad(t, nodes, dsn, 20)
	injector := newFaultInjector(&fleet{nodes: nodes}, l)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l.run(ctx, 3, 8)
	wait(ctx, faultFreeTime())
	diedAt := l.now()
	inject()
	wait(ctx, 2*time.Second)
	pair.Standby.Promote(t)
	promotedAt := l.now()
	for _, node := range []int{0, 1, operatorNode} {
		l.recordFault(fault{span{diedAt, promotedAt}, node, "failover"})
	}
	for node := range nodes {
		t.Logf("node %d answers again %v after the promotion", node, injector.awaitRecovery(node))
	}
	wait(ctx, faultFreeTime())
	v := l.finish(stop)
	l.report(v)
	l.reportGap(diedAt, promotedAt)
	requireGood(t, v)
}

// reportGap logs how long calls failed around the failover.
func (l *load) reportGap(diedAt, promotedAt time.Duration) {
	l.t.Helper()
	for node := range l.nodes {
		first, last := time.Duration(0), time.Duration(0)
		for _, p := range l.history.probes {
			if p.node == node && p.status == http.StatusServiceUnavailable && p.from > diedAt-time.Second {
				if first == 0 {
					first = p.from
				}
				last = max(last, p.to)
			}
		}
		l.t.Logf("node %d: 503 for %v, from %v after the death of the primary to %v after the promotion, which came after %v",
			node, (last - first).Round(time.Millisecond), (first - diedAt).Round(time.Millisecond), (last - promotedAt).Round(time.Millisecond), (promotedAt - diedAt).Round(time.Millisecond))
	}
}
