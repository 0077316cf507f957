package store_test

import (
	"context"
	"database/sql"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/storetest"
)

// engines are the databases that every test here runs on, by the DSN of a new
// and empty one.
var engines = map[string]func(testing.TB) string{
	"sqlite":   func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "doorward.db") },
	"postgres": func(t testing.TB) string { return impatient(pgtest.DSN(t)) },
}

// impatient looks for deadlocks after 20 ms, not a second: tests cause some.
func impatient(dsn string) string { return dsn + "&deadlock_timeout=20ms" }

// open opens a database as it is.
func open(t testing.TB, dsn string, now doorward.Clock) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), dsn, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// migrated opens a database and brings its schema up to date.
func migrated(t testing.TB, dsn string, now doorward.Clock) *store.DB {
	t.Helper()
	db := open(t, dsn, now)
	ok(t, db.Migrate(t.Context()))
	return db
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ask returns the single value that a query answers with.
func ask[T any](t testing.TB, db *sql.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func run(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func TestContract(t *testing.T) {
	for engine, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": american.DSN} {
		t.Run(engine, func(t *testing.T) {
			storetest.Run(t, func(t testing.TB, now doorward.Clock) *store.DB {
				if engine == "postgres" {
					return open(t, impatient(dsn(t)), now)
				}
				return open(t, dsn(t), now)
			})
		})
	}
}

// american makes databases in a language, as those of operators are: there "a"
// stands between "A" and "b". (pgtest's own sort by bytes, as SQLite does, and
// would hide that something rests on it.)
var american = pgtest.Template{Prepare: dbtest.Migrate, Options: "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"}

// TestParametersGoByNumber: a driver that counted the parameters as they come
// would mix up the columns of every statement that uses one twice.
func TestParametersGoByNumber(t *testing.T) {
	for engine, dsn := range engines {
		t.Run(engine, func(t *testing.T) {
			write, read := store.Pools(migrated(t, dsn(t), time.Now))
			for _, db := range []*sql.DB{write, read} {
				const query = `SELECT CAST($3 AS TEXT) || CAST($2 AS TEXT) || CAST($1 AS TEXT) || CAST($2 AS TEXT)`
				if got := ask[string](t, db, query, "a", "b", "c"); got != "cbab" {
					t.Errorf("$3 $2 $1 $2 of a, b, c are %q: want cbab", got)
				}
			}
		})
	}
}

// TestWithoutTables: what an operator's mistake leaves of a database is no
// answer to anybody's question.
func TestWithoutTables(t *testing.T) {
	for engine, dsn := range engines {
		t.Run(engine, func(t *testing.T) { storetest.Broken(t, open(t, dsn(t), time.Now)) })
	}
}

func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, dsn := range []string{"", "sqlite:", "mysql://root:sesame@localhost/x", "doorward.db", "postgres//u:sesame@h/x", "postgres://u:sesame@h:port/x"} {
		db, err := store.Open(t.Context(), dsn, time.Now)
		if err == nil {
			db.Close()
			t.Errorf("%q was opened", dsn)
			continue
		}
		if strings.Contains(err.Error(), "sesame") {
			t.Errorf("the error for %q tells the password: %v", dsn, err)
		}
	}
}

// TestOldChangesGo: only those made by the instant.
func TestOldChangesGo(t *testing.T) {
	for engine, dsn := range engines {
		t.Run(engine, func(t *testing.T) {
			now := time.Unix(1e9, 0)
			db := migrated(t, dsn(t), func() time.Time { return now })
			for range 3 {
				_, err := db.Write(t.Context(), func(tx *store.Tx) error { tx.AskFlush([]byte{1}); return nil })
				ok(t, err)
				now = now.Add(time.Second)
			}
			_, err := db.Write(t.Context(), func(tx *store.Tx) error {
				return tx.DeleteOldChanges(t.Context(), time.Unix(1e9+1, 0))
			})
			ok(t, err)
			_, read := store.Pools(db)
			if got := ask[string](t, read, `SELECT count(*) || ' from ' || min(seq) FROM changes`); got != "1 from 3" {
				t.Errorf("left are %s: want 1 from 3", got)
			}
		})
	}
}

// TestEveryMethodIsInTheContract: a query that no case calls is a query whose
// two answers nobody has compared.
func TestEveryMethodIsInTheContract(t *testing.T) {
	called := map[string]bool{}
	names, err := filepath.Glob("storetest/*.go")
	ok(t, err)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		ok(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, isOne := n.(*ast.SelectorExpr); isOne {
				called[selector.Sel.Name] = true
			}
			return true
		})
	}
	for m := range reflect.TypeFor[*store.Tx]().Methods() { // those of Reader included
		if !called[m.Name] {
			t.Errorf("no case of storetest calls %s: add one", m.Name)
		}
	}
}
