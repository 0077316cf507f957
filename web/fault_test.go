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
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/web/routetest"
)

// needsNoDatabase are paths that are answered from memory.
var needsNoDatabase = []string{checkPath, "/api/v2/auth/token", "/.well-known/"}

// answersWithin is the documented limit for every answer.
const answersWithin = 3 * time.Second

// requireUnavailable sends all samples at once and requires a 503 within the duration for each,
// without a cookie, so that browsers keep the session. Requests with slow answers are tried twice
// more, since the machine may be busy.
func (s *server) requireUnavailable(t *testing.T, fault string, samples []operation, callers map[string]opt, within time.Duration) {
	t.Helper()
	for range 3 {
		if samples = s.slowRefusals(t, fault, samples, callers, within); len(samples) == 0 {
			return
		}
	}
	t.Errorf("%s: not refused within %v: %v", fault, within, samples)
}

// slowRefusals sends all samples, requires 503 for each, and returns those that took too long.
// What anybody may send is sent with a valid session.
func (s *server) slowRefusals(t *testing.T, fault string, samples []operation, callers map[string]opt, within time.Duration) (slow []operation) {
	t.Helper()
	var mu sync.Mutex
	var senders sync.WaitGroup
	for _, e := range samples {
		senders.Go(func() {
			began := time.Now()
			a := s.try(t, e, e.Body, callers[cmp.Or(e.Who, "OWNER")])
			if a.status != http.StatusServiceUnavailable || a.text("code") != "unavailable" || len(a.cookies()) > 0 {
				t.Errorf("%s: %s answered %d %s %q, want 503", fault, e.Request, a.status, a.body, a.cookies())
			}
			if time.Since(began) > within {
				mu.Lock()
				defer mu.Unlock()
				slow = append(slow, e)
			}
		})
	}
	senders.Wait()
	return slow
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
		d.requireUnavailable(t, "database closed", d.operations(t, needsNoDatabase...), callers, answersWithin)
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
		d.requireUnavailable(t, fault.name, d.operations(t, needsNoDatabase...), callers, answersWithin)
		d.requireAnswersWithoutDatabase(t)
		fault.up(t)
		d.waitUntilReady(t)
		d.send(t, "GET /api/v2/auth/session", nil, as(owner.Token())).ok(http.StatusOK)
		d.login(t, owner.Email, password).ok(http.StatusOK)
	}
}

func (s *server) waitUntilReady(t *testing.T) {
	t.Helper()
	began := time.Now()
	for deadline := began.Add(time.Minute); time.Now().Before(deadline); {
		if s.send(t, "GET /readyz", nil).status == http.StatusOK {
			t.Logf("ready again after %v", time.Since(began).Round(time.Millisecond))
			return
		}
	}
	t.Fatal("the server did not reconnect to its database")
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
			d.requireUnavailable(t, "locked", []operation{e}, callers, answersWithin)
		}
	}
	d.send(t, "GET /api/v2/auth/session", nil, as(owner.Token())).ok(http.StatusOK)
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	d.login(t, owner.Email, password).ok(http.StatusOK)
}
