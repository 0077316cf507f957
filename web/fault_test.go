package web_test

import (
	"cmp"
	"database/sql"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/web/routetest"
)

// needsNoDatabase are paths that are answered from memory.
var needsNoDatabase = []string{checkPath, "/api/v2/auth/token", "/.well-known/"}

// answersWithin is the documented limit for every answer but those of routes that call out, and the
// deadline of the work on each request (TestTimeRunsOut in web/front). Both are measured only in
// make test-all.
const (
	answersWithin  = 3 * time.Second
	callsOutWithin = 12 * time.Second
)

// requireUnavailable sends all samples at once and requires a 503 for each, without a cookie, so
// that browsers keep the session. What anybody may send is sent with a valid session.
func (s *server) requireUnavailable(t *testing.T, fault string, samples []operation, callers map[string]opt) {
	t.Helper()
	var senders sync.WaitGroup
	for _, e := range samples {
		senders.Go(func() {
			began := time.Now()
			// Once: a 503 for want of time, which send repeats, is the answer here.
			a := s.sendOnce(t, e.Request, e.Body, func(r *http.Request) { e.SetHeader(r.Header) }, callers[cmp.Or(e.Who, "OWNER")])
			if a.status != http.StatusServiceUnavailable || a.text("code") != "unavailable" || len(a.cookies()) > 0 {
				t.Errorf("%s: %s answered %d %s %q, want 503", fault, e.Request, a.status, a.body, a.cookies())
			}
			limit := answersWithin
			if e.route.IsCallingOut() {
				limit = callsOutWithin
			}
			if took := time.Since(began); fulltest.On() && took > limit {
				t.Errorf("%s: %s was refused after %v, want %v", fault, e.Request, took, limit)
			}
		})
	}
	senders.Wait()
}

// requireAnswersWithoutDatabase requires that requests that need no database are answered as
// usual.
func (s *server) requireAnswersWithoutDatabase(t *testing.T) {
	t.Helper()
	s.send(t, "GET /api/v2/auth/session", nil).fails(http.StatusUnauthorized, "unauthenticated")
	s.send(t, "GET /api/v2/nothing", nil).fails(http.StatusNotFound, "not_found")
	s.send(t, "POST /api/v2/auth/logout", nil).ok(http.StatusNoContent)
	s.login(t, "", "").invalid("/email", "required", "/password", "required")
	s.send(t, loginPath, "{").fails(http.StatusBadRequest, "invalid_body")
	s.send(t, "GET /healthz", nil).ok(http.StatusOK)
}

func TestDatabaseClosed(t *testing.T) {
	onBoth(t, func(t *testing.T, d *server) {
		callers := d.callers(t, d.Tenant("Acme").Owner)
		if err := d.Node.DB.Close(); err != nil {
			t.Fatal(err)
		}
		d.requireUnavailable(t, "database closed", d.operations(t, needsNoDatabase...), callers)
		d.send(t, "GET /api/v2/auth/session", nil, callers[routetest.Operator]).fails(http.StatusServiceUnavailable, "unavailable")
		d.send(t, "GET /api/v2/auth/session", nil, as(forged)).fails(http.StatusServiceUnavailable, "unavailable")
		d.send(t, "GET /readyz", nil).fails(http.StatusServiceUnavailable, "unavailable")
		d.requireAnswersWithoutDatabase(t)
	})
}

// Sessions survive when PostgreSQL is down or hangs and then recovers.
func TestPostgresGoneAndBack(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	d := start(t, doorwardtest.Database(cluster.DSN(t)))
	owner := d.Tenant("Acme").Owner
	callers := d.callers(t, owner)
	for _, fault := range []struct {
		name     string
		down, up func(testing.TB)
	}{
		{"stopped", func(tb testing.TB) { cluster.Stop(tb, pgtest.Immediate) }, cluster.Start},
		{"hanging", cluster.Pause, cluster.Resume},
	} {
		fault.down(t)
		d.requireUnavailable(t, fault.name, d.operations(t, needsNoDatabase...), callers)
		d.requireAnswersWithoutDatabase(t)
		fault.up(t)
		d.waitUntilReady(t)
		d.send(t, "GET /api/v2/auth/session", nil, as(owner.Token())).ok(http.StatusOK)
		d.login(t, owner.Email, password).ok(http.StatusOK)
	}
}

func (s *server) waitUntilReady(t *testing.T) {
	t.Helper()
	waittest.Until(t, "the server to reconnect to its database", func() bool { return s.send(t, "GET /readyz", nil).status == http.StatusOK })
}

// While another process locks the SQLite file, writes fail and reads work.
func TestSQLiteLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "doorward.db")
	d := start(t, doorwardtest.Database("sqlite:"+path))
	owner := d.Tenant("Acme").Owner
	callers := d.callers(t, owner)
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range d.operations(t) {
		if e.Request == loginPath || e.Request == "POST /api/v2/auth/logout" {
			d.requireUnavailable(t, "locked", []operation{e}, callers)
		}
	}
	d.send(t, "GET /api/v2/auth/session", nil, as(owner.Token())).ok(http.StatusOK)
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	d.login(t, owner.Email, password).ok(http.StatusOK)
}
