//go:build linux

package node_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/waittest"
)

// TestRollingUpgrade replaces three nodes one after the other by nodes of the next version,
// under load, and then rolls back: no answer is lost, nothing acknowledged is lost, nothing
// ended is accepted. The next version has more migrations and one more kind of change; with
// DOORWARD_TEST_FULL it is this tree with them, compiled again, and otherwise they are made by SQL.
// scripts/upgrade.sh rolls from a real previous version.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	older, newer := versions(t)
	nodes := []*process{serve(t, older, dsn), serve(t, older, dsn), serve(t, older, dsn)}
	l := newLoad(t, nodes, dsn, 20)
	b := &balancer{nodes: nodes, ready: []int{0, 1, 2}}
	l.targets = b.readyNodes
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l.running.Go(func() { b.watch(ctx) })
	a := newAdministrator(l)
	a.run(ctx)
	for range 6 {
		l.running.Go(func() { l.checkBalanced(ctx) })
	}
	l.run(ctx, 0, 4) // no checkers: checkBalanced goes through the balancer

	if usesNextVersion() && !fulltest.On() {
		applyNextVersion(ctx, t, dsn)
	}
	replaceNodes(ctx, nodes, newer)
	for _, n := range nodes {
		if !usesNextVersion() {
			break
		}
		if !strings.Contains(n.get("/metrics"), `version="next"`) {
			t.Errorf("%s is not of the next version", n.address)
		}
	}
	replaceNodes(ctx, nodes, older)
	wait(ctx, time.Second)

	v := l.finish(stop, a.requireInvitations)
	l.report(v)
	requireGood(t, v)
	l.requireAllAnswered()
	if usesNextVersion() {
		requireMottos(t, dsn)
	}
	t.Logf("invitations: %d; longest time without a ready node: %v", len(a.invited), b.longestNone.Round(time.Millisecond))
}

// fromVariable names a program older than this tree, to upgrade from and roll back to.
const fromVariable = "DOORWARD_TEST_UPGRADE_FROM"

func usesNextVersion() bool { return os.Getenv(fromVariable) == "" }

// versions returns the programs to upgrade from and to.
func versions(t *testing.T) (older, newer string) {
	t.Helper()
	if from := os.Getenv(fromVariable); from != "" {
		return from, builtProgram(t)
	}
	flags := []string{"-ldflags=-s -w -X main.release=next"}
	if fulltest.On() {
		flags = append(flags, "-overlay", nextVersion(t))
	}
	newer, err := build(flags...)
	if err != nil {
		t.Fatal(err)
	}
	return builtProgram(t), newer
}

// nextVersion returns an overlay for go build that simulates the next version.
func nextVersion(t *testing.T) string {
	t.Helper()
	contents := map[string]string{
		"../store/change.go": changed(t, "../store/change.go", `(ChangeSession +ChangeKind = )"session"`, `$1"ended"`),
	}
	for i, text := range []string{motto, mottos, sessionIndex} {
		contents[fmt.Sprintf("../store/schema/%04d_next.sql", nextSchema(t)+i)] = "-- +goose Up\n" + text
	}
	return overlayOf(t, contents)
}

// nextSchema returns the number of the first migration that this tree doesn't have.
func nextSchema(t *testing.T) int {
	t.Helper()
	migrations, err := filepath.Glob("../store/schema/*.sql")
	if err != nil || len(migrations) == 0 {
		t.Fatalf("no migrations, %v", err)
	}
	newest, err := strconv.Atoi(filepath.Base(migrations[len(migrations)-1])[:4])
	if err != nil {
		t.Fatal(err)
	}
	return newest + 1
}

// applyNextVersion migrates as the next version does, without the index. A trigger gives the end of a session the
// next version's kind of change, whatever the version of the node that ends it. Compiling the
// next version would take longer than the test.
func applyNextVersion(ctx context.Context, t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn+"&lock_timeout=300") // in milliseconds, as for a migration
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i, text := range []string{motto, mottos + endedKind} {
		all := text + fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, true)", nextSchema(t)+i)
		for _, err = db.ExecContext(ctx, all); isLockTimeout(err); _, err = db.ExecContext(ctx, all) {
			wait(ctx, time.Second)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func isLockTimeout(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "55P03" // lock_not_available
}

const endedKind = `
CREATE FUNCTION end_by_next_kind() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.kind := 'ended'; RETURN NEW; END $$;
CREATE TRIGGER ended BEFORE INSERT ON changes FOR EACH ROW WHEN (NEW.kind = 'session') EXECUTE FUNCTION end_by_next_kind();
`

// The migrations of the next version.
const (
	motto = `
ALTER TABLE tenants ADD COLUMN motto TEXT NOT NULL DEFAULT '';
UPDATE tenants SET motto = 'onwards' WHERE id IN (SELECT id FROM tenants WHERE motto = '' LIMIT 100);
`
	mottos = `
CREATE TABLE mottos (
    user_id TEXT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    text    TEXT NOT NULL
);
INSERT INTO mottos (user_id, text) SELECT id, email FROM users WHERE id NOT IN (SELECT user_id FROM mottos) LIMIT 10;
`
	sessionIndex = `
CREATE INDEX sessions_newest ON sessions (last_seen_at, id);
DROP INDEX sessions_tenant;
`
)

// requireMottos: the next version's column is unchanged, although its predecessor has
// written to the same rows.
func requireMottos(t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var motto, name string
	var people int
	err = errors.Join(db.QueryRow(`SELECT motto, name FROM tenants`).Scan(&motto, &name),
		db.QueryRow(`SELECT count(*) FROM mottos`).Scan(&people))
	if err != nil || motto != "onwards" || !strings.HasPrefix(name, "Acme ") || people == 0 {
		t.Errorf("motto %q of %q, those of %d people, %v: want what the next version had written, under a new name", motto, name, people, err)
	}
}

// replaceNodes replaces one node after the other by one of the program.
func replaceNodes(ctx context.Context, nodes []*process, program string) {
	for _, n := range nodes {
		wait(ctx, 300*time.Millisecond) // with all of them serving
		n.stop()
		n.program = program
		if err := n.start(); err != nil {
			n.t.Error(err)
		}
	}
	wait(ctx, 300*time.Millisecond)
}

// get returns the text at a path of the node.
func (p *process) get(path string) string {
	res, err := http.Get(p.url() + path)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	defer res.Body.Close()
	var text strings.Builder
	if err := res.Write(&text); err != nil {
		p.t.Error(err)
	}
	return text.String()
}

// balancer sends clients to the ready nodes, like a gateway: it polls each node, and
// never retries a request.
type balancer struct {
	nodes []*process

	mu          sync.Mutex
	ready       []int
	noneSince   time.Time     // when the last node ceased to be ready; zero while one is
	longestNone time.Duration // the longest time without a ready node
}

// pollEvery is well below the second for which a stopping node reports not ready.
const pollEvery = 50 * time.Millisecond

func (b *balancer) watch(ctx context.Context) {
	client := http.Client{Timeout: waittest.Limit, Transport: &http.Transport{DisableKeepAlives: true}}
	var checking sync.WaitGroup
	for i, n := range b.nodes {
		checking.Go(func() {
			for ctx.Err() == nil {
				res, err := client.Get(n.url() + "/readyz")
				if err == nil {
					res.Body.Close()
				}
				b.update(i, err == nil && res.StatusCode == http.StatusOK)
				wait(ctx, pollEvery)
			}
		})
	}
	checking.Wait()
}

// update keeps the last node even if it isn't ready: requests must go somewhere.
func (b *balancer) update(node int, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(b.ready), func(i int) bool { return i == node })
	switch now := time.Now(); {
	case ready:
		b.ready, b.noneSince = append(others, node), time.Time{}
	case len(others) > 0:
		b.ready = others
	case b.noneSince.IsZero():
		b.noneSince = now
	default:
		b.longestNone = max(b.longestNone, now.Sub(b.noneSince))
	}
}

func (b *balancer) readyNodes() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

// checkBalanced checks random sessions through the balancer.
func (l *load) checkBalanced(ctx context.Context) {
	for ctx.Err() == nil {
		if s := l.pick(); s != nil {
			l.check(l.pickNode(), s)
		}
		wait(ctx, 2*l.pause)
	}
}

// requireAllAnswered checks that through a balancer every check is answered and every
// revocation acknowledged. Answers may be 503 only if a node was short of CPU.
func (l *load) requireAllAnswered() {
	l.t.Helper()
	failed, unavailable := map[string]int{}, int(l.unavailable.Load())
	for _, p := range l.history.probes {
		switch {
		case p.status == http.StatusServiceUnavailable:
			unavailable++
		case !p.isConclusive():
			failed[fmt.Sprintf("node %d answers %d at %v", p.node, p.status, p.to.Round(time.Second))]++
		}
	}
	for _, p := range l.history.people {
		for _, e := range p.endings {
			switch {
			case e.succeeded || e.node == operatorNode:
			case e.status == http.StatusServiceUnavailable:
				unavailable++
			default:
				failed[fmt.Sprintf("node %d leaves the end of a session in doubt at %v", e.node, e.to.Round(time.Second))]++
			}
		}
	}
	all := len(l.history.probes)
	if len(failed) > 0 {
		l.t.Errorf("of %d checks these failed: %s", all, table(failed))
	}
	shortages := 0
	for _, n := range l.nodes {
		shortages += n.shortages
	}
	if l.t.Logf("answers 503: %d, shortages of CPU: %d", unavailable, shortages); unavailable > 0 && shortages == 0 {
		l.t.Errorf("beside %d checks, %d answers were 503, and no node was short of CPU", all, unavailable)
	}
}

// administrator is the OWNER of the tenant, whose session is never ended.
type administrator struct {
	*load
	session *session
	invited map[string]bool // addresses whose invitation was acknowledged
}

func newAdministrator(l *load) *administrator {
	l.t.Helper()
	return &administrator{load: l, session: l.loginOwner(), invited: map[string]bool{}}
}

// run invites, gives roles and renames the tenant until ctx ends.
func (a *administrator) run(ctx context.Context) {
	a.running.Go(func() {
		for ctx.Err() == nil {
			a.invite()
			if len(a.invited)%10 == 0 {
				a.rename()
			}
			wait(ctx, 20*a.pause)
		}
	})
	a.running.Go(func() {
		for ctx.Err() == nil {
			a.operateAtRandom(a.operateByRequest)
			wait(ctx, 50*a.pause)
		}
	})
}

// requireStatus makes a call, again while it is answered 503, and checks the status.
// A repeated call may be a conflict, because the first can have taken effect.
func (a *administrator) requireStatus(want int, method, path string, body any) reply {
	again := false
	r := a.call(a.pickNode(), method, path, a.session.token, body)
	for deadline := waittest.Deadline(); r.status == http.StatusServiceUnavailable && time.Now().Before(deadline); again = true {
		a.unavailable.Add(1) // requireAllAnswered wants a reason
		r = a.call(a.pickNode(), method, path, a.session.token, body)
	}
	if r.status != want && !(again && r.status == http.StatusConflict) {
		a.t.Errorf("%s %s is answered %d %s, want %d", method, path, r.status, r.body, want)
	}
	return r
}

func (a *administrator) invite() {
	email := fmt.Sprintf("invited%d@acme.example", len(a.invited))
	a.requireStatus(http.StatusCreated, http.MethodPost, "/api/v2/auth/invite", map[string]string{"email": email, "role": "USER"})
	a.invited[email] = true
}

func (a *administrator) rename() {
	a.requireStatus(http.StatusOK, http.MethodPatch, "/api/v2/tenant", map[string]string{"name": fmt.Sprintf("Acme %d", len(a.invited))})
}

// operateByRequest runs an operation on a person as the console does.
func (a *administrator) operateByRequest(email, operation string) error {
	found, err := a.operator.App.Users.Find(context.Background(), email, "")
	if err != nil {
		return err
	}
	body := map[string]string{"role": operation}
	switch operation {
	case "suspend":
		body = map[string]string{"status": "suspended"}
	case "resume":
		body = map[string]string{"status": "active"}
	}
	if r := a.requireStatus(http.StatusOK, http.MethodPatch, "/api/v2/users/"+found[0].ID, body); r.status != http.StatusOK {
		return fmt.Errorf("answered %d", r.status) // unknown outcome, for the history
	}
	return nil
}

// requireInvitations checks that every acknowledged invitation is listed.
func (a *administrator) requireInvitations() {
	a.t.Helper()
	missing := len(a.invited)
	for path := "/api/v2/invitations?limit=200"; path != ""; {
		var page struct {
			Items      []struct{ Email string }
			NextCursor string
		}
		if err := json.Unmarshal(a.requireStatus(http.StatusOK, http.MethodGet, path, nil).body, &page); err != nil {
			a.t.Error(err)
			return
		}
		for _, i := range page.Items {
			if a.invited[i.Email] {
				missing--
			}
		}
		path = ""
		if page.NextCursor != "" {
			path = "/api/v2/invitations?limit=200&cursor=" + page.NextCursor
		}
	}
	if missing != 0 {
		a.t.Errorf("%d of %d invitations are lost", missing, len(a.invited))
	}
}
