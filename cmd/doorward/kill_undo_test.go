package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/internal/freeport"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
)

// A node is killed in the middle of the undo of what a customer's directory has done to very many people. Another node, at
// another address, ends it: its clock is three minutes ahead, so that what the killed one had claimed is over. Everybody is
// resumed once.

func TestKilledInAnUndoOnSQLite(t *testing.T) { killInAnUndo(t, "sqlite:doorward.db") }

func TestKilledInAnUndoOnPostgres(t *testing.T) { killInAnUndo(t, pgtest.DSN(t)) }

func killInAnUndo(t *testing.T, dsn string) {
	if testing.Short() {
		t.Skip("TestKilledOnSQLite kills the server, too")
	}
	t.Parallel()
	n := fulltest.Of(1500, 10_000)
	s := newTestServer(t, program, dsn)
	run := s.suspendByDirectory(n)
	s.start()
	status, answer, err := s.ask(s.owner, http.MethodPost, "/api/v2/sso/connections/"+run.ConnectionID+"/runs/"+run.ID+"/undo", map[string]bool{})
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("the undo is answered %d %s, %v", status, answer, err)
	}
	undone := func() int { return s.count(`SELECT undone FROM directory_runs`) }
	s.waitUntil("the undo to begin", func() bool { return undone() > 0 })
	s.kill()
	if at := undone(); at == n {
		t.Fatal("the undo had ended before the kill, so nothing was tested")
	} else {
		t.Logf("killed after %d of %d people", at, n)
	}
	other := *s
	other.addr = freeport.AddressOn("localhost")
	other.start("--clock-offset", "3m")
	other.waitWithin(5*waitTimeout, "the undo to end", func() bool { return s.count(`SELECT count(*) FROM directory_runs WHERE undo_state = 'done'`) == 1 })
	for what, query := range map[string]string{
		"people are as before the run": `SELECT undone FROM directory_runs WHERE left_as_is = 0`,
		"effects are marked":           `SELECT count(*) FROM directory_effects WHERE undone = 'done'`,
		"people are active":            `SELECT count(*) FROM memberships WHERE status = 'active' AND role = 'USER' AND suspended_by = ''`,
		"people are in the trail":      `SELECT count(DISTINCT target_id) FROM events WHERE action = 'user.resume' AND outcome = 'done'`,
		"events are in the trail":      `SELECT count(*) FROM events WHERE action = 'user.resume' AND outcome = 'done'`,
	} {
		if got := s.count(query); got != n {
			t.Errorf("%d %s, want %d", got, what, n)
		}
	}
	other.shutDown()
	other.checkTrail()
}

// suspendByDirectory writes a connection into the tables whose directory has suspended n members, and returns its run.
func (s *testServer) suspendByDirectory(n int) (run doorward.DirectoryRun) {
	s.Helper()
	ctx, dsn := s.Context(), s.dsn
	if file, is := strings.CutPrefix(dsn, "sqlite:"); is {
		dsn = "sqlite:" + filepath.Join(s.dir, file)
	}
	db, err := store.Open(ctx, dsn, time.Now)
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	tenant := s.ids(`SELECT id FROM tenants`)[0]
	run = doorward.DirectoryRun{ID: doorward.NewID(doorward.PrefixRun), ConnectionID: doorward.NewID(doorward.PrefixConnection), TenantID: tenant, Suspended: n}
	for first := 0; first < n; first += 500 {
		_, err := db.Write(ctx, func(tx *store.Tx) error {
			if first == 0 {
				c := doorward.Connection{ID: run.ConnectionID, TenantID: tenant, Type: doorward.SCIMDirectory, Name: "Directory", Status: doorward.ConnectionActive, JITRole: doorward.RoleUser, CreatedAt: tx.Now}
				if err := tx.InsertConnection(ctx, c); err != nil {
					return err
				}
				if err := tx.InsertDirectoryRun(ctx, run); err != nil {
					return err
				}
			}
			for i := first; i < min(n, first+500); i++ {
				if err := apptest.SuspendByRun(ctx, tx, run, i); err != nil {
					return err
				}
			}
			run.Last = tx.Now
			return tx.UpdateDirectoryRun(ctx, run)
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	return run
}
