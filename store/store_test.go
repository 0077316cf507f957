package store_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/storetest"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	for engine, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": american.DSN} {
		t.Run(engine, func(t *testing.T) {
			storetest.Run(t, func(t testing.TB, now doorward.Clock) *store.DB {
				if engine == "postgres" {
					return storetest.Open(t, storetest.FastDeadlocks(dsn(t)), now)
				}
				return storetest.Open(t, dsn(t), now)
			})
		})
	}
}

// american makes databases with the collation of a language, as operators have them: "a" sorts
// before "B". Those of pgtest.DSN sort by bytes, as SQLite does, which would hide code that
// depends on the collation.
var american = pgtest.Template{Prepare: dbtest.Migrate, Options: "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"}

// TestParametersGoByNumber: a driver that numbered parameters by position would
// mix up the columns of each statement that repeats one.
func TestParametersGoByNumber(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			write, read := store.Pools(storetest.Migrated(t, dsn(t), time.Now))
			for _, db := range []*sql.DB{write, read} {
				const query = `SELECT CAST($3 AS TEXT) || CAST($2 AS TEXT) || CAST($1 AS TEXT) || CAST($2 AS TEXT)`
				if got := storetest.Query[string](t, db, query, "a", "b", "c"); got != "cbab" {
					t.Errorf("$3 $2 $1 $2 of a, b, c are %q: want cbab", got)
				}
			}
		})
	}
}

// TestWithoutTables: without tables, say by an operator's mistake, every query and statement is
// a fault, not an absent row.
func TestWithoutTables(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) { storetest.WantBroken(t, storetest.Open(t, dsn(t), time.Now)) })
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
			t.Errorf("the error for %q contains the password: %v", dsn, err)
		}
	}
}

// TestDriftIncludesTheOffset: the installation's offset applies only while a node is registered.
func TestDriftIncludesTheOffset(t *testing.T) {
	for engine, dsn := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(engine, func(t *testing.T) {
			address := dsn(t)
			db, raw := storetest.Open(t, address, nil), storetest.Raw(t, address)
			storetest.Exec(t, raw, `UPDATE shared_clock SET moved = 86400000000`) // a day
			for want, statement := range []string{`DELETE FROM nodes`, `INSERT INTO nodes (id, lease, applied, beat) VALUES ('nod_1', 1, 0, 0)`} {
				storetest.Exec(t, raw, statement)
				drift, err := db.ClockDrift(t.Context())
				ok(t, err)
				if days := int(-drift.Round(24*time.Hour) / (24 * time.Hour)); days != want {
					t.Errorf("with %d nodes the drift is %v, want about %d days back", want, drift, want)
				}
			}
		})
	}
}
