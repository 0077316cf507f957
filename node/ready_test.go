package node_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/node"
	"github.com/doorward/doorward/store/storetest"
)

// readiness returns the status of /readyz, and the reason if it isn't 200.
func readiness(t *testing.T, s *doorwardtest.Server) (status int, why string) {
	t.Helper()
	res, err := http.Get(s.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var problem struct{ Code, Detail string }
	if res.StatusCode != http.StatusOK {
		if err := json.Unmarshal(text, &problem); err != nil || problem.Code != "unavailable" || res.Header.Get("Retry-After") == "" {
			t.Errorf("%d %v %s", res.StatusCode, res.Header, text)
		}
	}
	return res.StatusCode, problem.Detail
}

// waitForReadiness waits until /readyz gives the reason why; an empty one means ready. /healthz
// must be 200 in any case.
func waitForReadiness(t *testing.T, s *doorwardtest.Server, why string) {
	t.Helper()
	for deadline := waittest.Deadline(); ; {
		status, reason := readiness(t, s)
		if why == "" && status == http.StatusOK || why != "" && status == http.StatusServiceUnavailable && strings.Contains(reason, why) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz says %d %q, want %q", status, reason, why)
		}
	}
	res, err := http.Get(s.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("/healthz says %d", res.StatusCode)
	}
}

// TestReadyz: each dependency of a node, and the reason given when it is missing.
// TestRaceDrainAnswersOpenRequests has the reason when it shuts down.
func TestReadyz(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "doorward.db")
	s := doorwardtest.Start(t, doorwardtest.Database("sqlite:"+path))
	waitForReadiness(t, s, "")
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.Begin() // others can read but not write
	if err != nil {
		t.Fatal(err)
	}
	waitForReadiness(t, s, "lease")
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	waitForReadiness(t, s, "")
	if _, err := other.Exec("UPDATE goose_db_version SET is_applied = FALSE WHERE version_id > 0"); err != nil {
		t.Fatal(err)
	}
	waitForReadiness(t, s, "schema")
	if _, err := other.Exec("UPDATE goose_db_version SET is_applied = TRUE"); err != nil {
		t.Fatal(err)
	}
	waitForReadiness(t, s, "")

	s = doorwardtest.Start(t)
	waitForReadiness(t, s, "")
	if err := s.Node.DB.Close(); err != nil {
		t.Fatal(err)
	}
	waitForReadiness(t, s, "database does not answer")
}

// TestHealthWhileMigrating: while a node waits for another that migrates, its admin address says
// that it is alive and not ready, and its main address is not bound.
func TestHealthWhileMigrating(t *testing.T) {
	const migrationLock = 0x646f6f7277617264 // as in store/migrate.go
	t.Parallel()
	dsn := pgtest.DSN(t)
	migrating, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer migrating.Close(context.Background())
	if _, err := migrating.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, migrationLock); err != nil {
		t.Fatal(err)
	}
	main, admin := freeport.AddressOn("127.0.0.1"), freeport.AddressOn("127.0.0.1")
	started := make(chan *doorwardtest.Server, 1)
	go func() {
		started <- doorwardtest.Start(t, doorwardtest.Database(dsn), func(c *node.Config) { c.Listen, c.AdminListen = main, admin })
	}()
	status := func(address, path string) int {
		res, err := http.Get("http://" + address + path)
		if err != nil {
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	storetest.Until(t, "the admin address to answer", func() bool { return status(admin, "/healthz") == http.StatusOK })
	if s := status(admin, "/readyz"); s != http.StatusServiceUnavailable {
		t.Errorf("/readyz is answered %d", s)
	}
	storetest.Until(t, "the node to wait for the lock", func() bool {
		var waits int
		err := migrating.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%' AND pid <> pg_backend_pid()`).Scan(&waits)
		return err == nil && waits > 0
	})
	if conn, err := net.Dial("tcp", main); err == nil {
		conn.Close()
		t.Error("the main address takes connections before the schema is up to date")
	}
	if _, err := migrating.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, migrationLock); err != nil {
		t.Fatal(err)
	}
	<-started
	storetest.Until(t, "the node to be ready", func() bool { return status(admin, "/readyz") == http.StatusOK })
	if s := status(main, "/healthz"); s != http.StatusNotFound {
		t.Errorf("the main address answers %d to /healthz, which is on the admin address", s)
	}
}
