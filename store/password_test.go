package store_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
)

// TestSetPassword: after the password of the role has changed, new connections are refused until
// SetPassword, and made after it.
func TestSetPassword(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a PostgreSQL server of its own")
	}
	t.Parallel()
	admin := pgtest.Start(t).DSN(t)
	run := func(statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), admin)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, s := range statements {
			if _, err := conn.Exec(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	run(`CREATE ROLE app SUPERUSER LOGIN PASSWORD 'first'`,
		`DO $$ BEGIN EXECUTE format('COPY (VALUES (%L), (%L)) TO %L', 'host all app all scram-sha-256', 'host all all all trust', current_setting('hba_file')); END $$`,
		`SELECT pg_reload_conf()`)
	as := func(password string) string {
		u, err := url.Parse(admin)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("app", password)
		return u.String()
	}
	db, err := store.Open(t.Context(), as("first"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ping := func() error { return db.Ping(t.Context()) }
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	run(`ALTER ROLE app PASSWORD 'second'`, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'`)
	refused := &pgconn.PgError{}
	for err := ping(); !errors.As(err, &refused) || refused.Code != "28P01"; err = ping() { // until the ended connections are noticed
		if err == nil {
			t.Fatal("a new connection is made with the earlier password")
		}
	}
	select {
	case <-db.LoginRefused():
	default:
		t.Error("the refusal is not signalled")
	}
	if err := db.SetPassword(as("second")); err != nil {
		t.Fatal(err)
	}
	if err := ping(); err != nil {
		t.Errorf("after SetPassword: %v", err)
	}
	if err := db.CheckPooling(t.Context()); err != nil {
		t.Errorf("connections outside of the pool: %v", err)
	}
}
