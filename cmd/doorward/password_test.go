package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/internal/pgtest"
)

// TestPasswordOfTheDatabaseIsReadAgain: the role gets another password, and its file, too. A running server
// takes it when PostgreSQL refuses the earlier one, without a signal.
func TestPasswordOfTheDatabaseIsReadAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a PostgreSQL server of its own")
	}
	admin := pgtest.Start(t).DSN(t)
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	run := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := conn.Exec(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "pgpass")
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("*:*:*:app:"+password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(`CREATE ROLE app SUPERUSER LOGIN PASSWORD 'first'`,
		`DO $$ BEGIN EXECUTE format('COPY (VALUES (%L), (%L)) TO %L', 'host all app all scram-sha-256', 'host all all all trust', current_setting('hba_file')); END $$`,
		`SELECT pg_reload_conf()`)
	write("first")
	dsn, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	dsn.User = url.User("app")
	query := dsn.Query()
	query.Set("passfile", file)
	dsn.RawQuery = query.Encode()
	s := newTestServer(t, program, dsn.String())
	s.start()
	defer s.kill()

	write("second")
	run(`ALTER ROLE app PASSWORD 'second'`, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'`)
	s.waitUntil("a connection with the new password", func() bool {
		var n int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
	s.waitUntil("ready", func() bool {
		status, _, err := s.ask("", http.MethodGet, "/readyz", nil)
		return err == nil && status == http.StatusOK
	})
}
