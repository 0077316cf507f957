//go:build linux

package node_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/faultproxy"
	"github.com/doorward/doorward/internal/waittest"
)

// fleet is several nodes on one database, each with its own network to it.
type fleet struct {
	nodes   []*process
	proxies []*faultproxy.Proxy // empty with SQLite
}

// startFleet starts nodes on a PostgreSQL database, each behind a proxy.
func startFleet(t *testing.T, program, dsn string, nodes int, flags ...string) *fleet {
	t.Helper()
	f := &fleet{}
	for range nodes {
		at, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := faultproxy.New(at.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		at.Host = proxy.Addr()
		f.proxies = append(f.proxies, proxy)
		f.nodes = append(f.nodes, serve(t, program, at.String(), flags...))
	}
	return f
}

// plannedFault is a fault of one node for a time.
type plannedFault struct {
	name     string
	inject   func(f *fleet, node int)
	undo     func(f *fleet, node int)
	duration time.Duration
}

// networkFault is a fault of a node's network to the database.
func networkFault(name string, how func(*faultproxy.Proxy), duration time.Duration) plannedFault {
	return plannedFault{
		name,
		func(f *fleet, n int) { how(f.proxies[n]) },
		func(f *fleet, n int) { f.proxies[n].Heal() },
		duration,
	}
}

func stopped(duration time.Duration) plannedFault {
	return plannedFault{
		"stopped",
		func(f *fleet, n int) { f.nodes[n].pause() },
		func(f *fleet, n int) { f.nodes[n].resume() },
		duration,
	}
}

func killed(duration time.Duration) plannedFault {
	return plannedFault{
		"killed",
		func(f *fleet, n int) { f.nodes[n].kill() },
		func(f *fleet, n int) {
			if err := f.nodes[n].start(); err != nil {
				f.nodes[n].t.Error(err)
			}
		},
		duration,
	}
}

func held(duration time.Duration) plannedFault {
	return networkFault("cut off: held", (*faultproxy.Proxy).Hold, duration)
}

func dropped(duration time.Duration) plannedFault {
	return networkFault("cut off: dropped", (*faultproxy.Proxy).Drop, duration)
}

func broken(duration time.Duration) plannedFault {
	return networkFault("cut off: reset", (*faultproxy.Proxy).Break, duration)
}

func delayed(duration time.Duration) plannedFault {
	return networkFault("delayed", func(p *faultproxy.Proxy) { p.Delay(500 * time.Millisecond) }, duration)
}

// allFaults have durations below the lease, above it, and long enough for a node to be
// treated as dead (three leases).
var allFaults = []plannedFault{
	stopped(400 * time.Millisecond), stopped(1300 * time.Millisecond), stopped(2 * time.Second), stopped(4500 * time.Millisecond),
	killed(50 * time.Millisecond), killed(1500 * time.Millisecond), killed(4500 * time.Millisecond),
	held(600 * time.Millisecond), held(2 * time.Second), held(4500 * time.Millisecond),
	dropped(600 * time.Millisecond), dropped(2 * time.Second), dropped(4500 * time.Millisecond),
	broken(600 * time.Millisecond), broken(2 * time.Second), broken(4500 * time.Millisecond),
	delayed(3 * time.Second), delayed(3 * time.Second), delayed(3 * time.Second),
}

// someFaults has each kind of fault, and durations below the lease, above it and above three
// leases.
var someFaults = []plannedFault{
	stopped(4500 * time.Millisecond), killed(50 * time.Millisecond), held(2 * time.Second), dropped(4500 * time.Millisecond),
	broken(600 * time.Millisecond), delayed(3 * time.Second), stopped(1300 * time.Millisecond),
}

// faultInjector injects faults into nodes, also into several at the same time, and waits
// until the nodes have recovered.
type faultInjector struct {
	fleet        *fleet
	load         *load
	probeSession *session // never ended
	recovered    map[string]time.Duration
}

func newFaultInjector(f *fleet, l *load) *faultInjector {
	l.t.Helper()
	return &faultInjector{f, l, l.loginOwner(), map[string]time.Duration{}}
}

// runRound injects the faults at the same time, each into another node, and returns when
// these nodes answer again.
func (fi *faultInjector) runRound(ctx context.Context, planned ...plannedFault) {
	nodes := rand.Perm(len(fi.fleet.nodes))
	var round sync.WaitGroup
	for i, p := range planned {
		round.Go(func() { fi.inject(ctx, p, nodes[i]) })
	}
	round.Wait()
	wait(ctx, 500*time.Millisecond)
}

// inject injects one fault into one node and returns when the node answers again.
func (fi *faultInjector) inject(ctx context.Context, planned plannedFault, node int) {
	began := fi.load.now()
	planned.inject(fi.fleet, node)
	wait(ctx, planned.duration)
	planned.undo(fi.fleet, node)
	healed := fi.load.now()
	fi.load.recordFault(fault{span{began, healed}, node, planned.name})
	took := fi.awaitRecovery(node)
	fi.load.mu.Lock()
	fi.recovered[planned.name] = max(fi.recovered[planned.name], took.Round(time.Millisecond))
	fi.load.mu.Unlock()
}

// awaitRecovery returns the time until the node accepts the probe session again, without
// help.
func (fi *faultInjector) awaitRecovery(node int) time.Duration {
	healed := fi.load.now()
	for fi.load.now()-healed < waittest.Limit {
		// This endpoint queries the database; a check may not.
		if r := fi.load.callWith(fi.probeSession, node, http.MethodGet, "/api/v2/auth/session", nil); r.status == http.StatusOK {
			return fi.load.now() - healed
		}
		wait(context.Background(), 20*time.Millisecond)
	}
	fi.load.t.Errorf("node %d does not recover within %v:\n%s", node, waittest.Limit, fi.fleet.nodes[node].tail())
	return waittest.Limit
}

func (l *load) recordFault(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.faults = append(l.history.faults, f)
}
