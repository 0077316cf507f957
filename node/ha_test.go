//go:build linux

package node_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/installed"
	"github.com/doorward/doorward/internal/waittest"
)

// TestHighAvailability applies the failures of docs/high-availability.md to three nodes
// on PostgreSQL under Patroni and etcd, under load, and writes the table of that guide.
// deploy/ha/exercise.sh (make ha) starts everything and this test; without it the test
// is skipped.
func TestHighAvailability(t *testing.T) {
	home := os.Getenv("HA_HOME")
	if home == "" {
		t.Skip("run make ha, which starts what this needs")
	}
	c := &cluster{home: home}
	program := builtProgram(t)
	for _, f := range failures {
		for n := range f.times {
			t.Run(f.name+strconv.Itoa(n+1), func(t *testing.T) { exerciseOnce(t, c, program, f) })
		}
	}
}

// cluster is PostgreSQL under Patroni, run by deploy/ha/cluster.sh. Its machines are
// numbered 1 to 3.
type cluster struct {
	home      string
	databases int
}

// run runs one of the script's commands and returns what it prints.
func (c *cluster) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("../deploy/ha/cluster.sh", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cluster.sh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// failure is a fault of the installation and its repair.
type failure struct {
	name, description string
	times             int
	cause             func(t *testing.T, c *cluster, nodes []*process) (repair func())
	duration          time.Duration // before the repair, at least minFailure; 0: until every node accepts logins again
}

// machine returns a failure of a machine, or of the named parts of it. find, cause and repair
// are commands of cluster.sh; find prints the number of the machine.
func machine(find, cause, repair string, parts ...string) func(*testing.T, *cluster, []*process) func() {
	return func(t *testing.T, c *cluster, _ []*process) func() {
		t.Helper()
		n := c.run(t, find)
		c.run(t, append([]string{cause, n}, parts...)...)
		return func() { c.run(t, repair, n) }
	}
}

var failures = []failure{
	{"primary-dies", "the primary's machine dies (PostgreSQL, Patroni, etcd: kill -9)", 5, machine("leader", "kill", "start"), 0},
	{"primary-freezes", "the primary's machine freezes for 40 s (SIGSTOP)", 1, machine("leader", "stop", "cont"), 40 * time.Second},
	{"postgres-dies", "PostgreSQL of the primary dies, its Patroni lives", 1, machine("leader", "kill", "start", "postgres"), 0},
	{"patroni-dies", "Patroni of the primary dies, and its unit restarts it", 1, func(t *testing.T, c *cluster, _ []*process) func() {
		t.Helper()
		n := c.run(t, "leader")
		c.run(t, "kill", n, "patroni", "postgres") // as patroni.conf has systemd do
		c.run(t, "start", n)
		return func() {}
	}, 0},
	{"patroni-gone", "the same without `patroni.conf`: its PostgreSQL lives, and Patroni is down for 40 s", 1, machine("leader", "kill", "start", "patroni"), 40 * time.Second},
	{"switchover", "switchover (`patronictl switchover`)", 1, func(t *testing.T, c *cluster, _ []*process) func() {
		t.Helper()
		c.run(t, "switchover")
		return func() {}
	}, 0},
	{"standby-dies", "the synchronous standby's machine dies", 1, machine("standby", "kill", "start"), 20 * time.Second},
	{"standby-freezes", "the synchronous standby's machine freezes for 40 s", 1, machine("standby", "stop", "cont"), 40 * time.Second},
	{"etcd-leader-dies", "the etcd that leads dies", 1, machine("etcd-leader", "kill", "start", "etcd"), 20 * time.Second},
	{"etcd-gone", "two of three etcd die, for 40 s", 1, func(t *testing.T, c *cluster, _ []*process) func() {
		t.Helper()
		c.run(t, "kill", "1", "etcd")
		c.run(t, "kill", "2", "etcd")
		return func() { c.run(t, "start", "1"); c.run(t, "start", "2") }
	}, 40 * time.Second},
	{"node-dies", "a node of Doorward dies for 5 s (kill -9)", 1, func(t *testing.T, _ *cluster, nodes []*process) func() {
		t.Helper()
		nodes[1].kill()
		return func() {
			if err := nodes[1].start(); err != nil {
				t.Error(err)
			}
		}
	}, 5 * time.Second},
}

// exerciseOnce runs one failure with its own database, nodes and people, so that earlier
// failures don't affect what is measured.
func exerciseOnce(t *testing.T, c *cluster, program string, f failure) {
	c.run(t, "await-healthy")
	c.databases++
	database := fmt.Sprintf("exercise%d_%d", os.Getpid(), c.databases)
	c.run(t, "url", "1", database)   // creates the database
	wait(t.Context(), 5*time.Second) // rebuilt standbys keep the disk busy and slow the database
	var nodes []*process
	for n := range 3 {
		nodes = append(nodes, serve(t, program, c.run(t, "url", strconv.Itoa(n+1), database)))
	}
	l := newLoad(t, nodes, c.run(t, "url", "1", database), 20)
	injector := newFaultInjector(&fleet{nodes: nodes}, l)
	im := &impact{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l.run(ctx, 2, 6)
	gateway := "http://" + startGateway(t, installed.Program(t, "haproxy", "haproxy"), c.home, nodes)
	l.running.Go(func() { l.checkThrough(ctx, gateway, injector.probeSession) })
	for node := range nodes {
		l.running.Go(func() { im.signIn(ctx, l, node, injector.probeSession.person) })
	}
	wait(ctx, 5*time.Second)
	l.exercise(t, c, f)
	wait(ctx, 5*time.Second)
	im.until = l.now()
	stop()
	l.running.Wait()
	im.checkSessions(l)
	v := l.finish(stop)
	l.report(v)
	im.write(t, c, f, l, v)
	requireGood(t, v)
}

// exercise injects the failure, repairs it, and returns after recovery.
func (l *load) exercise(t *testing.T, c *cluster, f failure) {
	t.Helper()
	began := l.now()
	repair := f.cause(t, c, l.nodes)
	t.Logf("failure at %s", time.Now().Format("15:04:05.000"))
	wait(t.Context(), max(f.duration, minFailure)-(l.now()-began))
	if f.duration == 0 {
		l.awaitSignIns(t)
	}
	repair()
	c.run(t, "await-healthy")
	l.awaitSignIns(t)
	for _, node := range []int{0, 1, 2, gatewayNode, operatorNode} {
		l.recordFault(fault{span{began, l.now()}, node, f.name})
	}
}

// minFailure is the least time before a repair. By then the failure has taken effect: HAProxy
// marks a server as down after two to three seconds.
const minFailure = 5 * time.Second

// awaitSignIns returns when every node accepts a login, which needs a write to the
// database.
func (l *load) awaitSignIns(t *testing.T) {
	t.Helper()
	for node, deadline := 0, l.now()+3*time.Minute; node < len(l.nodes); {
		if l.login(node, l.pickPerson()) != nil {
			node++
			continue
		}
		if l.now() > deadline {
			t.Fatalf("node %d accepts no login within three minutes:\n%s", node, l.nodes[node].tail())
		}
		wait(t.Context(), 50*time.Millisecond)
	}
}

// outages are the times in which calls got no answer, or 503.
type outages struct{ longest, sum time.Duration }

// outagesOf finds the outages of a node: each lasts from the start of an unanswered call to
// the end of the next answered one. A node without calls was down all the time.
func outagesOf(probes []probe, node int, before time.Duration) (o outages) {
	var calls []probe
	for _, p := range probes {
		if p.node == node && p.from < before {
			calls = append(calls, p)
		}
	}
	slices.SortFunc(calls, func(a, b probe) int { return cmp.Compare(a.to, b.to) })
	since := time.Duration(-1)
	for _, p := range calls {
		switch {
		case !p.isConclusive() && since < 0:
			since = p.from
		case p.isConclusive() && since >= 0:
			o.add(p.to - since)
			since = -1
		}
	}
	if since >= 0 || len(calls) == 0 {
		o.add(before - max(since, 0))
	}
	return o
}

func (o *outages) add(took time.Duration) { o.longest, o.sum = max(o.longest, took), o.sum+took }

// impact is what a failure did to sign-ins and checks, besides the random load.
type impact struct {
	until time.Duration // the end of the load

	mu       sync.Mutex
	signIns  []probe
	sessions []*session // opened by signIn and never ended
}

// signIn signs p in on a node until ctx ends. Nothing else changes p.
func (im *impact) signIn(ctx context.Context, l *load, node int, p *person) {
	for ctx.Err() == nil {
		r := l.call(node, http.MethodPost, "/api/v2/auth/login", "", map[string]string{"email": p.email, "password": doorwardtest.Password})
		var answer struct{ Token string }
		im.mu.Lock()
		im.signIns = append(im.signIns, probe{span: r.span, node: node, status: r.status})
		if r.status == http.StatusOK && json.Unmarshal(r.body, &answer) == nil {
			im.sessions = append(im.sessions, &session{span: r.span, person: p, token: answer.Token})
		}
		im.mu.Unlock()
		wait(ctx, 200*time.Millisecond)
	}
}

// checkSessions checks every session of the impact on every node: all were acknowledged, so
// all must be valid.
func (im *impact) checkSessions(l *load) {
	for _, s := range im.sessions {
		for node := range l.nodes {
			l.check(node, s)
		}
	}
}

// worst returns the longest outage and the largest sum of outages, each of any node.
func (im *impact) worst(probes []probe) (w outages) {
	for node := range 3 {
		o := outagesOf(probes, node, im.until)
		w.longest, w.sum = max(w.longest, o.longest), max(w.sum, o.sum)
	}
	return w
}

// write adds a line to the table that exercise.sh prints.
func (im *impact) write(t *testing.T, c *cluster, f failure, l *load, v verdict) {
	t.Helper()
	checks, signIns := im.worst(l.history.probes), im.worst(im.signIns)
	sessions, revocations := l.countAnswered()
	sessions += len(im.sessions)
	line := fmt.Sprintf("| %s | %s | %s | %s | %s | %d | %d | %d | %d | %d |\n", f.description, seconds(checks.longest), seconds(checks.sum),
		seconds(outagesOf(l.history.probes, gatewayNode, im.until).longest), seconds(signIns.longest), sessions, revocations, v.refused, v.stale, v.old)
	t.Log(line)
	table, err := os.OpenFile(filepath.Join(c.home, "table.md"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if _, err := table.WriteString(line); err != nil {
		t.Fatal(err)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// countAnswered counts the sign-ins and the revocations that were answered with success.
func (l *load) countAnswered() (sessions, revocations int) {
	for _, p := range l.history.people {
		sessions += len(p.sessions)
		for _, e := range p.endings {
			if e.succeeded {
				revocations++
			}
		}
	}
	return sessions, revocations
}

// Calls through the gateway are in the history under a node number of their own.
const gatewayNode = -2

// checkThrough checks a session through the gateway until ctx ends.
func (l *load) checkThrough(ctx context.Context, gateway string, s *session) {
	client := &http.Client{Timeout: waittest.Limit}
	for ctx.Err() == nil {
		req, err := http.NewRequest(http.MethodGet, gateway+"/api/v2/access/check", nil)
		if err != nil {
			panic(err)
		}
		req.Header.Set("Cookie", "JSESSIONID="+s.token)
		r := reply{span: span{from: l.now()}}
		if res, err := client.Do(req); err == nil {
			r.status, r.header = res.StatusCode, res.Header
			res.Body.Close()
		}
		r.to = l.now()
		l.recordProbe(s, gatewayNode, "", r)
		wait(ctx, 10*time.Millisecond)
	}
}

// TestOutagesOf: the outages in the guide's table are computed correctly.
func TestOutagesOf(t *testing.T) {
	ok, unavailable := http.StatusOK, http.StatusServiceUnavailable
	for _, c := range []struct {
		name   string
		probes []probe
		want   outages
	}{
		{"none", []probe{{span: spanOf(1, 2), status: ok}, {span: spanOf(2, 3), status: ok}}, outages{}},
		{"one, from the first unanswered call to the next answer", []probe{
			{span: spanOf(1, 2), status: ok}, {span: spanOf(3, 5), status: unavailable}, {span: spanOf(5, 6), status: 0}, {span: spanOf(7, 8), status: ok},
		}, outages{5 * time.Second, 5 * time.Second}},
		{"two", []probe{
			{span: spanOf(1, 2), status: unavailable}, {span: spanOf(3, 4), status: ok}, {span: spanOf(5, 6), status: unavailable}, {span: spanOf(6, 7), status: ok},
		}, outages{3 * time.Second, 5 * time.Second}},
		{"one that never ends", []probe{{span: spanOf(1, 2), status: ok}, {span: spanOf(4, 5), status: unavailable}}, outages{6 * time.Second, 6 * time.Second}},
		{"no calls", nil, outages{10 * time.Second, 10 * time.Second}},
		{"another node", []probe{{span: spanOf(1, 2), node: 1, status: ok}, {span: spanOf(1, 2), status: ok}}, outages{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outagesOf(c.probes, 0, 10*time.Second); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
