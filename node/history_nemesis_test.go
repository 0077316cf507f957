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
)

// fleet is several nodes on one database, each with a network of its own to it.
type fleet struct {
	nodes   []*process
	proxies []*faultproxy.Proxy // empty where there is no network
}

// startFleet starts nodes on a PostgreSQL database, behind a proxy each.
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

// fate is something that happens to one node for a time.
type fate struct {
	name    string
	strike  func(f *fleet, node int)
	heal    func(f *fleet, node int)
	lasting time.Duration
}

func cut(name string, how func(*faultproxy.Proxy), lasting time.Duration) fate {
	return fate{
		name,
		func(f *fleet, n int) { how(f.proxies[n]) },
		func(f *fleet, n int) { f.proxies[n].Heal() },
		lasting,
	}
}

func stopped(lasting time.Duration) fate {
	return fate{
		"stopped",
		func(f *fleet, n int) { f.nodes[n].pause() },
		func(f *fleet, n int) { f.nodes[n].resume() },
		lasting,
	}
}

func killed(lasting time.Duration) fate {
	return fate{
		"killed",
		func(f *fleet, n int) { f.nodes[n].kill() },
		func(f *fleet, n int) {
			if err := f.nodes[n].start(); err != nil {
				f.nodes[n].t.Error(err)
			}
		},
		lasting,
	}
}

func held(lasting time.Duration) fate { return cut("cut off: held", (*faultproxy.Proxy).Hold, lasting) }

func dropped(lasting time.Duration) fate {
	return cut("cut off: dropped", (*faultproxy.Proxy).Drop, lasting)
}

func broken(lasting time.Duration) fate {
	return cut("cut off: reset", (*faultproxy.Proxy).Break, lasting)
}

func delayed(lasting time.Duration) fate {
	return cut("delayed", func(p *faultproxy.Proxy) { p.Delay(500 * time.Millisecond) }, lasting)
}

// allFates: times shorter than the lease, somewhat longer, and so long that a node
// is taken for dead (three leases).
var allFates = []fate{
	stopped(400 * time.Millisecond), stopped(1300 * time.Millisecond), stopped(2 * time.Second), stopped(4500 * time.Millisecond),
	killed(50 * time.Millisecond), killed(1500 * time.Millisecond), killed(4500 * time.Millisecond),
	held(600 * time.Millisecond), held(2 * time.Second), held(4500 * time.Millisecond),
	dropped(600 * time.Millisecond), dropped(2 * time.Second), dropped(4500 * time.Millisecond),
	broken(600 * time.Millisecond), broken(2 * time.Second), broken(4500 * time.Millisecond),
	delayed(3 * time.Second), delayed(3 * time.Second), delayed(3 * time.Second),
}

// someFates has each kind once, and each of the three times.
var someFates = []fate{
	stopped(4500 * time.Millisecond), killed(50 * time.Millisecond), held(2 * time.Second), dropped(4500 * time.Millisecond),
	broken(600 * time.Millisecond), delayed(3 * time.Second), stopped(1300 * time.Millisecond),
}

// nemesis brings its fates over the nodes, in any order, to one node or to two
// at the same time, and waits each time until all nodes are well again.
type nemesis struct {
	f         *fleet
	l         *load
	witness   *session // that nobody ends
	recovered map[string]time.Duration
}

func newNemesis(f *fleet, l *load) *nemesis {
	l.t.Helper()
	s := l.login(0, newPerson("owner@acme.example", "OWNER"))
	if s == nil {
		l.t.Fatal("the witness cannot sign in")
	}
	l.bury(s)
	return &nemesis{f, l, s, map[string]time.Duration{}}
}

// visit runs one round: each fate on a node of its own.
func (n *nemesis) visit(ctx context.Context, fates ...fate) {
	nodes := rand.Perm(len(n.f.nodes))
	var round sync.WaitGroup
	for i, fate := range fates {
		round.Go(func() { n.strike(ctx, fate, nodes[i]) })
	}
	round.Wait()
	wait(ctx, 500*time.Millisecond)
}

// strike is one fate of one node, from the fault until it answers again.
func (n *nemesis) strike(ctx context.Context, fate fate, node int) {
	began := n.l.now()
	fate.strike(n.f, node)
	wait(ctx, fate.lasting)
	fate.heal(n.f, node)
	healed := n.l.now()
	n.l.suffered(fault{span{began, healed}, node, fate.name})
	took := n.awaitWell(node)
	n.l.mu.Lock()
	n.recovered[fate.name] = max(n.recovered[fate.name], took.Round(time.Millisecond))
	n.l.mu.Unlock()
}

// patience is for a machine that has much else to do.
const patience = 30 * time.Second

// awaitWell returns how long it takes until the node accepts the witness, by
// itself: nobody restarts or tells it anything.
func (n *nemesis) awaitWell(node int) time.Duration {
	healed := n.l.now()
	for n.l.now()-healed < patience {
		// This endpoint asks the database, where a check may not have to.
		if r := n.l.with(n.witness, node, http.MethodGet, "/api/v2/auth/session", nil); r.status == http.StatusOK {
			return n.l.now() - healed
		}
		wait(context.Background(), 20*time.Millisecond)
	}
	n.l.t.Errorf("node %d does not recover by itself within %v:\n%s", node, patience, n.f.nodes[node].tail())
	return patience
}

func (l *load) suffered(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.faults = append(l.history.faults, f)
}
