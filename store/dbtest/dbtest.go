// Package dbtest gives tests new databases that have the schema already.
//
//	db, err := store.Open(t.Context(), dbtest.SQLite(t), time.Now)
//
// The migrations run once in a test binary; each database is a copy of what they
// made. Tests of the migrations themselves, and of an empty database, use a file
// of their own or pgtest.DSN.
package dbtest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
)

// SQLite returns the DSN of a new database in a file that is deleted when tb ends.
func SQLite(tb testing.TB) string {
	tb.Helper()
	content, err := sqliteFile()
	if err != nil {
		tb.Fatalf("dbtest: %v", err)
	}
	name := filepath.Join(tb.TempDir(), "doorward.db")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		tb.Fatalf("dbtest: %v", err)
	}
	return "sqlite:" + name
}

// sqliteFile returns the file of a database that has nothing but the schema.
var sqliteFile = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "dbtest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	name := filepath.Join(folder, "doorward.db")
	if err := Migrate("sqlite:" + name); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
})

// Postgres returns the DSN of a new database in the cluster that all tests of the
// binary or run share. As with [pgtest.DSN], its user is a superuser, and it is dropped when tb ends.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return template.DSN(tb)
}

var template = pgtest.Template{Name: "migrated", Prepare: Migrate}

// Migrate brings a database up to the schema of this version and closes it.
func Migrate(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := store.Open(ctx, dsn, time.Now)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Migrate(ctx)
}
