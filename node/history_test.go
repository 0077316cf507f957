//go:build linux

package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
)

// TestHistory tests the revocation lease on real processes: three nodes on one
// PostgreSQL, operations of people and operators, and injected faults.
// history_model_test.go has the requirements. make test-all runs a long history.
func TestHistory(t *testing.T) {
	t.Parallel()
	checks, planned := 10_000, someFaults
	if fulltest.On() {
		checks, planned = 100_000, append(slices.Clone(allFaults), allFaults[:6]...) // the first six, which stop or kill nodes, twice
	}
	dsn := pgtest.DSN(t)
	f := startFleet(t, builtProgram(t), dsn, 3)
	l := newLoad(t, f.nodes, dsn, 40)
	v := l.runWithFaults(f, planned, checks)
	requireGood(t, v)
	if got := l.checks(); got < checks {
		t.Errorf("%d checks, want at least %d for a meaningful test", got, checks)
	}
}

// TestHistoryOnSQLite is the same with one node and commands on its database. It needs
// only Go.
func TestHistoryOnSQLite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	f := &fleet{nodes: []*process{serve(t, builtProgram(t), dsn)}}
	l := newLoad(t, f.nodes, dsn, 10)
	requireGood(t, l.runWithFaults(f, []plannedFault{stopped(1300 * time.Millisecond), killed(50 * time.Millisecond)}, 500))
}

// TestHistoryFindsBrokenRules runs programs that omit a rule of the lease (store/lease) or
// an announcement: the test must fail for them. Violations occur by chance, so each program
// has a few attempts. Each compiles half of Doorward again.
func TestHistoryFindsBrokenRules(t *testing.T) {
	fulltest.Only(t, "it tests TestHistory, and takes minutes")
	t.Parallel()
	cutOffs := []plannedFault{dropped(4 * time.Second), held(4 * time.Second)}
	stale, old := func(v verdict) int { return v.stale }, func(v verdict) int { return v.old }
	for _, c := range []struct {
		name, source, pattern, replacement string
		faults                             []plannedFault
		count                              func(verdict) int
	}{
		{"rule 4: a revoking call waits for no node", "../store/lease/settle.go", `if longest <= took \{`, `if true {`, nil, stale},
		{"rule 3: memory stays valid for ever", "../store/lease/lease.go", `(func \(l \*Lease\) Valid\(\) bool) \{[^}]*\}`, `$1 { return true }`, cutOffs, stale},
		{"models aren't announced", "../store/rules.go", `(\) InsertModel\(.*\n)\ttx.announce\(ChangeAll, ""\)`, `$1`, nil, old},
		{"policies aren't announced", "../store/policy.go", `return tx.changeRules\(ctx, v.TenantID\)`, `return tx.run(ctx, sqlChangeRules, newRevision(), v.TenantID)`, nil, old},
		{"roles aren't announced", "../store/rules.go", `(\) UpdateCustomRole\([^}]*\}\n\treturn true, )tx.changeRules\(ctx, tenantID\)`, `${1}tx.run(ctx, sqlChangeRules, newRevision(), tenantID)`, nil, old},
	} {
		t.Run(c.name, func(t *testing.T) {
			program, err := build("-overlay", overlay(t, c.source, c.pattern, c.replacement))
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				dsn := pgtest.DSN(t)
				f := startFleet(t, program, dsn, 3)
				l := newLoad(t, f.nodes, dsn, 40)
				l.pause = shortPause // as in make test, which must find it, too
				if v := l.runWithFaults(f, c.faults, 500); c.count(v) > 0 {
					t.Logf("found, as expected: %s", v.examples[0])
					return
				}
			}
			t.Error("a program without this rule passes")
		})
	}
}

// overlay returns a file for go build -overlay that replaces one place of a source.
func overlay(t *testing.T, source, pattern, replacement string) string {
	t.Helper()
	return overlayOf(t, map[string]string{source: changed(t, source, pattern, replacement)})
}

// changed returns a source with one place replaced.
func changed(t *testing.T, source, pattern, replacement string) string {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile(pattern)
	if n := len(place.FindAll(text, -1)); n != 1 {
		t.Fatalf("%s has %d matches of %s, want 1: was it rewritten?", source, n, pattern)
	}
	return string(place.ReplaceAll(text, []byte(replacement)))
}

// overlayOf returns a file for go build -overlay that replaces or adds files.
func overlayOf(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	writeFile := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for source, text := range contents {
		path, err := filepath.Abs(source)
		if err != nil {
			t.Fatal(err)
		}
		replace[path] = writeFile(filepath.Base(source), text)
	}
	list, _ := json.Marshal(map[string]any{"Replace": replace})
	return writeFile("overlay.json", string(list))
}

// faultFreeTime returns how long the load runs before the first fault and after the last one.
func faultFreeTime() time.Duration {
	if fulltest.On() {
		return 3 * time.Second
	}
	return time.Second
}

// runWithFaults runs the load and injects the faults in random order, until all have
// occurred and the number of checks is reached. It verifies and reports.
func (l *load) runWithFaults(f *fleet, planned []plannedFault, checks int) verdict {
	l.t.Helper()
	injector := newFaultInjector(f, l)
	ctx, stop := context.WithCancel(l.t.Context())
	defer stop()
	l.changeRules(ctx)
	l.run(ctx, 3, 4*len(f.nodes))
	wait(ctx, faultFreeTime())
	planned = slices.Clone(planned)
	rand.Shuffle(len(planned), func(i, j int) { planned[i], planned[j] = planned[j], planned[i] })
	for len(planned) > 0 {
		round := planned[:min(len(planned), len(f.nodes), 1+rand.IntN(2))]
		injector.runRound(ctx, round...)
		planned = planned[len(round):]
	}
	for deadline := time.Now().Add(3 * time.Minute); !l.hasEnough(checks) && time.Now().Before(deadline); {
		wait(ctx, 100*time.Millisecond)
	}
	v := l.finish(stop)
	l.report(v)
	for _, operation := range operations {
		if l.succeeded[operation] == 0 {
			l.t.Errorf("the load never succeeded in: %s", operation)
		}
	}
	l.t.Logf("slowest recovery, from the end of the fault to an answer from the database: %s", table(injector.recovered))
	return v
}

func (l *load) checks() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.history.probes)
}

// hasEnough reports whether the number of checks is reached, and every operation has
// succeeded at least once.
func (l *load) hasEnough(checks int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.history.probes) >= checks && !slices.ContainsFunc(operations, func(operation string) bool { return l.succeeded[operation] == 0 })
}

// finish ends the load, checks every session once more on every node, runs further checks,
// ends the nodes and verifies.
func (l *load) finish(stop context.CancelFunc, checks ...func()) verdict {
	l.t.Helper()
	stop()
	l.running.Wait()
	l.checkAllSessions()
	for _, check := range checks {
		check()
	}
	for _, n := range l.nodes {
		n.stop()
	}
	l.reportHealthy()
	l.history.resolve()
	return l.history.verify()
}

// reportHealthy logs the revocations by nodes that had no fault at the time, while others
// may have had one.
func (l *load) reportHealthy() {
	l.t.Helper()
	all, failed, slowest := 0, 0, time.Duration(0)
	for _, p := range l.history.people {
		for _, e := range p.endings {
			if l.hadFault(e.node, e.span) {
				continue
			}
			all++
			if !e.succeeded {
				failed++
			}
			slowest = max(slowest, e.to-e.from)
		}
	}
	l.t.Logf("revocations on nodes without a fault: %d, without a certain answer: %d, slowest: %v", all, failed, slowest.Round(time.Millisecond))
}

// hadFault reports whether the node had a fault during the span. With names, only faults of
// these names count.
func (l *load) hadFault(node int, during span, names ...string) bool {
	return slices.ContainsFunc(l.history.faults, func(f fault) bool {
		return f.node == node && !f.before(during) && !during.before(f.span) && (len(names) == 0 || slices.Contains(names, f.name))
	})
}

// requireGood fails the test for a bad verdict.
func requireGood(t *testing.T, v verdict) {
	t.Helper()
	if !v.isGood() {
		t.Errorf("stale accepts: %d, live sessions answered 401: %d, answers from replaced values: %d; for example\n%s",
			v.stale, v.refused, v.old, strings.Join(v.examples, "\n"))
	}
}

// report logs a summary.
func (l *load) report(v verdict) {
	l.t.Helper()
	counts, injected, unavailable := map[int]int{}, map[string]int{}, map[string]time.Duration{}
	for _, p := range l.history.probes {
		counts[p.status]++
	}
	for _, f := range l.history.faults {
		injected[f.name]++
		unavailable[f.name] = max(unavailable[f.name], l.unavailableAfter(f))
	}
	var faults []string
	sessions, revocations, doubtful := 0, 0, 0
	for _, p := range l.history.people {
		sessions += len(p.sessions)
		for _, e := range p.endings {
			revocations++
			if !e.succeeded {
				doubtful++
			}
		}
	}
	l.t.Logf("%v: %d checks (200: %d, 403: %d, 401: %d, 503: %d, no answer: %d); %d sessions, %d revocations, %d of them without a certain answer",
		l.now().Round(time.Second), len(l.history.probes), counts[http.StatusOK], counts[http.StatusForbidden], counts[http.StatusUnauthorized],
		counts[http.StatusServiceUnavailable], counts[0], sessions, revocations, doubtful)
	for _, f := range l.history.faults {
		faults = append(faults, fmt.Sprintf("node %d %s %v", f.node, f.name, f.span))
	}
	l.t.Logf("%s", strings.Join(faults, "; "))
	l.t.Logf("stale accepts %d, live sessions answered 401 %d, answers from replaced values %d", v.stale, v.refused, v.old)
	l.t.Logf("succeeded: %s; faults: %s", table(l.succeeded), table(injected))
	l.t.Logf("slowest check of a node that was not stopped: %v", l.slowestCheck().Round(time.Millisecond))
	l.t.Logf("longest time from the end of a fault to the last check without an answer or with 503: %s", table(unavailable))
	l.t.Logf("X-Revocation-Ms: %s; without a fault: %s", summary(l.timings), summary(slices.DeleteFunc(slices.Clone(l.timings), l.wasDuringFault)))
}

// unavailableAfter is how long after a fault the last check on its node got 503 or no
// answer, up to the node's next fault, and at most 20 s.
func (l *load) unavailableAfter(f fault) time.Duration {
	until, last := f.to+20*time.Second, f.to
	for _, next := range l.history.faults {
		if next.node == f.node && next.from > f.to {
			until = min(until, next.from)
		}
	}
	for _, p := range l.history.probes {
		if p.node == f.node && !p.isConclusive() && p.to > last && p.to < until {
			last = p.to
		}
	}
	return (last - f.to).Round(time.Millisecond)
}

// slowestCheck is the longest check that a running node answered. It skips probes without an
// action, since they may be other calls than checks.
func (l *load) slowestCheck() (longest time.Duration) {
	for _, p := range l.history.probes {
		if p.status != 0 && p.action != "" && !l.hadFault(p.node, p.span, "stopped") {
			longest = max(longest, p.to-p.from)
		}
	}
	return longest
}

// wasDuringFault reports whether any node had a fault during the revocation, or so shortly
// before it that the revocation may have waited for that node.
func (l *load) wasDuringFault(r revocation) bool {
	return slices.ContainsFunc(l.history.faults, func(f fault) bool { return f.from <= r.to && r.from <= f.to+deadAfter })
}

func summary(took []revocation) string {
	if len(took) == 0 {
		return "none"
	}
	slices.SortFunc(took, func(a, b revocation) int { return int(1000 * (a.ms - b.ms)) })
	return fmt.Sprintf("n %d, median %.1f, max %.0f", len(took), took[len(took)/2].ms, took[len(took)-1].ms)
}

func table[V any](m map[string]V) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s %v", k, m[k]))
	}
	return strings.Join(all, ", ")
}
