package storetest

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx" of Raw

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/sqlitefile"
)

// Engines are functions that return the DSN of a new, empty database, by the engine to test on.
var Engines = map[string]func(testing.TB) string{
	"sqlite":   func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "doorward.db") },
	"postgres": func(t testing.TB) string { return FastDeadlocks(pgtest.DSN(t)) },
}

// FastDeadlocks has PostgreSQL look for deadlocks after 20 ms, not a second: tests cause
// some.
func FastDeadlocks(dsn string) string { return dsn + "&deadlock_timeout=20ms" }

// Open opens a database, without a migration, until the test ends.
func Open(t testing.TB, dsn string, now doorward.Clock) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), dsn, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	engine := db.Engine()
	db.Watch(func(query string) { ran.Store(statement{engine, query}, true) })
	return db
}

type statement struct{ engine, query string }

// ran has each statement that a database of Open has run.
var ran sync.Map

// HasRun reports whether a database of Open has run the statement without an error.
func HasRun(engine, query string) bool {
	_, has := ran.Load(statement{engine, query})
	return has
}

// Migrated opens a database and brings its schema up to date.
func Migrated(t testing.TB, dsn string, now doorward.Clock) *store.DB {
	t.Helper()
	db := Open(t, dsn, now)
	noError(t, db.Migrate(t.Context()))
	return db
}

// Raw opens one connection to a database for the test's own statements. In SQLite a
// transaction takes the write lock when it begins.
func Raw(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	driver, name := "pgx", dsn
	if path, isSQLite := strings.CutPrefix(dsn, "sqlite:"); isSQLite {
		driver, name = "sqlite", sqlitefile.DSN(path, "_txlock=immediate&_pragma=busy_timeout(2000)")
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

// Query returns the single value of a query.
func Query[T any](t testing.TB, db *sql.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// Exec runs a statement.
func Exec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Until waits for a condition.
func Until(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	waittest.Until(t, condition, holds)
}
