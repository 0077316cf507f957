package node_test

import (
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/doorwardtest"
	"github.com/doorward/doorward/internal/waittest"
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
	if _, err := other.Exec("CREATE TABLE saved AS SELECT * FROM goose_db_version; DELETE FROM goose_db_version WHERE version_id > 1"); err != nil {
		t.Fatal(err)
	}
	waitForReadiness(t, s, "schema")
	if _, err := other.Exec("DELETE FROM goose_db_version; INSERT INTO goose_db_version SELECT * FROM saved; DROP TABLE saved"); err != nil {
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
