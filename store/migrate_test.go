package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/waittest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
	"github.com/doorward/doorward/store/transfer"
)

// countTables are the queries that count the tables, and for SQLite the indexes, by engine.
var countTables = map[string]string{
	"sqlite":   `SELECT count(*) FROM sqlite_master`,
	"postgres": `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`,
}

// wantEachOnce fails unless every migration is complete and recorded once, beside the version 0
// and those that the test has added.
func wantEachOnce(t *testing.T, db *store.DB, added int64) {
	t.Helper()
	ok(t, db.CheckSchema(t.Context()))
	write, _ := store.Pools(db)
	got := storetest.Query[int64](t, write, `SELECT count(*) FROM goose_db_version WHERE is_applied`)
	if want := store.SchemaNeeded - store.FirstSchema + 1 + added; got != want+1 {
		t.Errorf("%d migrations are complete, want %d and the version 0", got, want)
	}
}

// TestAnotherProgramsDatabase: a SQLite file with other tables is refused, unchanged.
func TestAnotherProgramsDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes.db")
	db, err := store.Open(t.Context(), "sqlite:"+file, time.Now)
	ok(t, err)
	defer db.Close()
	write, _ := store.Pools(db)
	_, err = write.ExecContext(t.Context(), `CREATE TABLE notes (text TEXT)`)
	ok(t, err)
	if err := db.Migrate(t.Context()); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), file+" is the database of another program") {
		t.Errorf("the migration answers %v", err)
	}
	if n := storetest.Query[int64](t, write, countTables["sqlite"]); n != 1 {
		t.Errorf("there are %d tables, want the one from before", n)
	}
}

func TestRaceNodesMigrateTogether(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			const nodes = 8
			address := dsn(t)
			errs := make([]error, nodes)
			gate := make(chan struct{})
			var all sync.WaitGroup
			for i := range nodes {
				all.Go(func() {
					<-gate
					db, err := store.Open(t.Context(), address, time.Now)
					if err == nil {
						err = errors.Join(db.Migrate(t.Context()), db.CheckSchema(t.Context()), db.Close())
					}
					errs[i] = err
				})
			}
			close(gate)
			all.Wait()
			ok(t, errors.Join(errs...))
			wantEachOnce(t, storetest.Open(t, address, time.Now), 0)
		})
	}
}

// TestProcessesMigrateTogether is TestRaceNodesMigrateTogether with processes: the lock must hold
// between them, too.
func TestProcessesMigrateTogether(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := dsn(t)
			var starts []io.WriteCloser
			var ends []*bufio.Reader
			for range 4 {
				in, out := child(t, address)
				starts, ends = append(starts, in), append(ends, out)
			}
			for _, out := range ends {
				if line, err := out.ReadString('\n'); line != "ready\n" {
					t.Fatalf("a child says %q, %v", line, err)
				}
			}
			for _, in := range starts {
				in.Close()
			}
			for _, out := range ends {
				if line, err := out.ReadString('\n'); line != "<nil>\n" {
					t.Errorf("a child says %q, %v", line, err)
				}
			}
			wantEachOnce(t, storetest.Open(t, address, time.Now), 0)
		})
	}
}

// addressVariable makes a process a child: it holds the DSN of the database to migrate.
const addressVariable = "DOORWARD_MIGRATE_CHILD"

// child starts a process that runs TestMigrateChild, which begins when its input is closed.
func child(t *testing.T, address string) (io.WriteCloser, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMigrateChild$")
	cmd.Env = append(os.Environ(), addressVariable+"="+address)
	in, err := cmd.StdinPipe()
	ok(t, err)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	return in, bufio.NewReader(out)
}

// TestMigrateChild is a process of TestProcessesMigrateTogether.
func TestMigrateChild(t *testing.T) {
	address := os.Getenv(addressVariable)
	if address == "" {
		t.Skip("runs only as a child of TestProcessesMigrateTogether")
	}
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin) // until all are ready
	db, err := store.Open(t.Context(), address, time.Now)
	if err == nil {
		err = errors.Join(db.Migrate(t.Context()), db.CheckSchema(t.Context()), db.Close())
	}
	fmt.Println(strings.ReplaceAll(fmt.Sprint(err), "\n", "; "))
}

func TestCheckSchemaChangesNothing(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Open(t, dsn(t), time.Now)
			write, _ := store.Pools(db)
			wantSchemaError(t, db.CheckSchema(t.Context()), `run "doorward migrate"`, "schema 0", strconv.FormatInt(store.SchemaNeeded, 10))
			if n := storetest.Query[int](t, write, countTables[engine]); n != 0 {
				t.Errorf("inspecting an empty database created %d tables or indexes", n)
			}

			// The last migration is not complete.
			ok(t, db.Migrate(t.Context()))
			storetest.Exec(t, write, `UPDATE goose_db_version SET is_applied = $1 WHERE version_id = $2`, false, store.SchemaNeeded)
			wantSchemaError(t, db.CheckSchema(t.Context()), `run "doorward migrate"`)
		})
	}
}

// TestOlderSchemaIsRefused: a schema from before the first migration is left as it is, and the
// message says what to do.
func TestOlderSchemaIsRefused(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		for _, schema := range []int64{1, store.FirstSchema - 1} {
			t.Run(fmt.Sprint(engine, schema), func(t *testing.T) {
				db := storetest.Open(t, dsn(t), time.Now)
				write, _ := store.Pools(db)
				storetest.Exec(t, write, `CREATE TABLE goose_db_version (version_id BIGINT NOT NULL, is_applied BOOLEAN NOT NULL)`)
				storetest.Exec(t, write, `INSERT INTO goose_db_version VALUES (0, $1), (1, $1), ($2, $1)`, true, schema)
				_, err := db.Schema(t.Context())
				_, moveErr := transfer.Move(t.Context(), db, storetest.Migrated(t, dsn(t), time.Now))
				for _, err := range []error{err, moveErr, db.CheckSchema(t.Context()), db.CheckOwnSchema(t.Context()), db.Migrate(t.Context())} {
					wantSchemaError(t, err, fmt.Sprintf("schema %d,", schema), "start doorward of commit "+store.LastCommit+" on it once")
				}
				if engine == "sqlite" {
					wantSchemaError(t, transfer.Backup(t.Context(), db, filepath.Join(t.TempDir(), "copy.db")), "of commit "+store.LastCommit)
				}
				if n := storetest.Query[int](t, write, countTables[engine]); n != 1 {
					t.Errorf("there are %d tables, want the one from before", n)
				}
				if n := storetest.Query[int64](t, write, `SELECT max(version_id) FROM goose_db_version`); n != schema {
					t.Errorf("the schema is %d", n)
				}
			})
		}
	}
}

// A newer version migrates the database, and its record says that this binary works with the
// schema: this binary starts without waiting for the end, and changes nothing.
func TestOlderBinaryGoesOn(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			address := dsn(t)
			db := storetest.Migrated(t, address, time.Now)
			write, _ := store.Pools(db)
			storetest.Exec(t, write, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9876, $1)`, false)
			before := storetest.Query[int](t, write, `SELECT count(*) FROM goose_db_version`)
			release := holdLock[engine](t, address)
			ok(t, errors.Join(db.CheckSchema(t.Context()), db.Migrate(t.Context())))
			release()
			if after := storetest.Query[int](t, write, `SELECT count(*) FROM goose_db_version`); after != before {
				t.Errorf("%d migrations are recorded, want %d, as before", after, before)
			}
			wantSchemaError(t, db.CheckOwnSchema(t.Context()), "schema 9876", "newer")
			_, err := transfer.Move(t.Context(), db, storetest.Migrated(t, dsn(t), time.Now))
			wantSchemaError(t, err, "newer") // it would not copy tables that it doesn't know
			if engine == "sqlite" {
				copied := filepath.Join(t.TempDir(), "copy.db")
				ok(t, transfer.Backup(t.Context(), db, copied))
				_, err := transfer.Check(t.Context(), copied, false)
				ok(t, err)
			}
		})
	}
}

// The record says that this binary doesn't work with the newer schema.
func TestOlderBinaryRefuses(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Migrated(t, dsn(t), time.Now)
			write, _ := store.Pools(db)
			storetest.Exec(t, write, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9876, $1)`, true)
			storetest.Exec(t, write, `UPDATE oldest_binary SET knows = $1`, store.SchemaNeeded+1)
			before := storetest.Query[int](t, write, `SELECT count(*) FROM goose_db_version`)
			for _, err := range []error{db.CheckSchema(t.Context()), db.Migrate(t.Context())} {
				wantSchemaError(t, err, "schema 9876", fmt.Sprintf("the %d this binary knows", store.SchemaNeeded), "newer")
			}
			if after := storetest.Query[int](t, write, `SELECT count(*) FROM goose_db_version`); after != before {
				t.Errorf("%d migrations are recorded, want %d, as before", after, before)
			}
			if engine == "sqlite" { // Backup checks the copy before it keeps it
				wantSchemaError(t, transfer.Backup(t.Context(), db, filepath.Join(t.TempDir(), "copy.db")), "schema 9876", "newer")
			}
		})
	}
}

// wantSchemaError fails unless the error is an ErrSchema that contains all the words.
func wantSchemaError(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, store.ErrSchema) || doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("got %v: want ErrSchema", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in %q", word, err)
		}
	}
}

// holdLock takes the lock of a node that migrates, by engine.
var holdLock = map[string]func(t *testing.T, address string) (release func()){
	"sqlite": func(t *testing.T, address string) func() {
		f, err := os.OpenFile(strings.TrimPrefix(address, "sqlite:")+".lock", os.O_CREATE|os.O_RDWR, 0o600)
		ok(t, err)
		ok(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
		return func() { f.Close() }
	},
	"postgres": func(t *testing.T, address string) func() {
		other, err := sql.Open("pgx", address)
		ok(t, err)
		storetest.Exec(t, other, `SELECT pg_advisory_lock($1)`, store.MigrationLock)
		return func() { other.Close() }
	},
}

// TestWaitingForTheLockCanBeGivenUp: a node that waits for another node's migration stops
// when its context ends, as it does after Ctrl-C.
func TestWaitingForTheLockCanBeGivenUp(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			address := dsn(t)
			release := holdLock[engine](t, address)
			db := storetest.Open(t, address, time.Now)
			ctx, cancel := waittest.Interrupt(t.Context(), 50*time.Millisecond)
			defer cancel()
			err := db.Migrate(ctx)
			if !doorward.HasCode(err, doorward.CodeUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v: want the wait to be cancelled", err)
			}
			write, _ := store.Pools(db)
			if n := storetest.Query[int](t, write, countTables[engine]); n != 0 {
				t.Errorf("without the lock %d tables and indexes were created", n)
			}
			release()
			ok(t, db.Migrate(t.Context()))
			ok(t, db.Migrate(t.Context())) // the lock was released
			wantEachOnce(t, db, 0)
		})
	}
}

// TestRaceWaitingMigrationBlocksNoQuery: a dump that reads a table for an hour delays
// the migration, but later queries don't wait behind it.
func TestRaceWaitingMigrationBlocksNoQuery(t *testing.T) {
	begin := map[string]string{"sqlite": `UPDATE users SET revision = 1`, "postgres": `SELECT count(*) FROM users`}
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			address := dsn(t)
			other := dial(t, engine, address)
			db := storetest.Migrated(t, address, time.Now)
			dump, err := other.Begin()
			ok(t, err)
			defer dump.Rollback()
			_, err = dump.Exec(begin[engine])
			ok(t, err)

			migrated := make(chan error, 1)
			go func() { migrated <- store.MigrateWith(t.Context(), db, `ALTER TABLE users ADD COLUMN nick TEXT;`) }()
			if engine == "postgres" {
				awaitQueue(t, dump)
			}
			reading, cancel := context.WithTimeout(t.Context(), waittest.Limit)
			defer cancel()
			_, read := store.Pools(db)
			if _, err := read.ExecContext(reading, `SELECT count(*) FROM users`); err != nil {
				t.Errorf("a reader waits for the migration: %v", err)
			}
			select {
			case err := <-migrated:
				t.Errorf("migrated while the dump was running: %v", err)
			default:
			}
			ok(t, dump.Rollback())
			ok(t, <-migrated)
			wantEachOnce(t, db, 1)
		})
	}
}

// dial opens the database as another program does.
func dial(t *testing.T, engine, address string) *sql.DB {
	t.Helper()
	driver := map[string]string{"sqlite": "sqlite", "postgres": "pgx"}[engine]
	db, err := sql.Open(driver, strings.TrimPrefix(address, "sqlite:"))
	ok(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// awaitQueue returns when a connection waits for a lock on users.
func awaitQueue(t *testing.T, holder *sql.Tx) {
	t.Helper()
	for waiting := 0; waiting == 0; {
		ok(t, holder.QueryRow(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'users'::regclass`).Scan(&waiting))
		ok(t, t.Context().Err())
	}
}

// TestMigrationsGoForward: migrations are numbered without a gap, only go up, have
// one text for both databases, and each run in a transaction.
func TestMigrationsGoForward(t *testing.T) {
	files, err := filepath.Glob("schema/*")
	ok(t, err)
	name := regexp.MustCompile(`^schema/(\d{4})_[a-z_]+\.sql$`)
	banned := regexp.MustCompile(`(?i)\+goose\s+(down|no\s+transaction|statementbegin)|\b(serial|bigserial|autoincrement|identity|strict|without\s+rowid|timestamptz?|datetime|jsonb?|uuid|varchar|citext|collate|rename|pragma|if\s+not\s+exists|default\s+(now|current)|drop\s+table)\b`)
	comment := regexp.MustCompile(`--[^+\n]*(\n|$)`)
	for i, file := range files {
		parts := name.FindStringSubmatch(file)
		if parts == nil {
			t.Errorf("%s: name it NNNN_what_for.sql", file)
			continue
		}
		if n, _ := strconv.ParseInt(parts[1], 10, 64); n != store.FirstSchema+int64(i) {
			t.Errorf("%s: want the next number, %04d", file, store.FirstSchema+int64(i))
		}
		raw, err := os.ReadFile(file)
		ok(t, err)
		if !strings.HasPrefix(string(raw), "-- +goose Up\n") {
			t.Errorf("%s: must begin with -- +goose Up", file)
		}
		text := comment.ReplaceAllString(string(raw), "\n")
		if found := banned.FindString(text); found != "" {
			t.Errorf("%s: %q is not valid in both databases, or goes down", file, found)
		}
	}
}

// TestMigrationsAreCompatible: the previous version can work with the schema of each
// migration, or the migration records which binaries can't.
func TestMigrationsAreCompatible(t *testing.T) {
	files, err := filepath.Glob("schema/*")
	ok(t, err)
	for i, file := range files {
		raw, err := os.ReadFile(file)
		ok(t, err)
		if fault := incompatibility(string(raw), int(store.FirstSchema)+i); i > 0 && fault != "" {
			t.Errorf("%s: %s; docs/upgrades.md says how", file, fault)
		}
	}
}

func TestIncompatibleMigrationsAreFound(t *testing.T) {
	for text, good := range map[string]bool{
		"ALTER TABLE users ADD COLUMN nick TEXT":                                                                         true,
		"ALTER TABLE users ADD COLUMN nick TEXT NOT NULL DEFAULT ''":                                                     true,
		"ALTER TABLE users ADD COLUMN nick TEXT NOT NULL":                                                                false,
		"ALTER TABLE users ADD COLUMN nick TEXT UNIQUE":                                                                  false,
		"ALTER TABLE users DROP COLUMN locale":                                                                           false,
		"DROP INDEX events_page":                                                                                         true,
		"CREATE INDEX users_nick ON users (nick)":                                                                        true,
		"CREATE UNIQUE INDEX users_nick ON users (nick)":                                                                 false,
		"CREATE TABLE nicks (nick TEXT); CREATE UNIQUE INDEX nicks_nick ON nicks (nick)":                                 true,
		"CREATE TABLE nicks (user_id TEXT NOT NULL REFERENCES users (id))":                                               false,
		"CREATE TABLE nicks (user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE)":                             true,
		"CREATE TABLE nicks (user_id TEXT REFERENCES users (id) ON DELETE SET NULL)":                                     true,
		"CREATE TABLE a (id TEXT PRIMARY KEY); CREATE TABLE b (a TEXT REFERENCES a (id)); INSERT INTO a VALUES ('x; y')": true,
		"UPDATE users SET locale = 'en'":                                                                                 true,
		"DELETE FROM users":                                                                                              false,
		"ALTER TABLE users DROP COLUMN locale; UPDATE oldest_binary SET knows = 11":                                      true,
		"ALTER TABLE users DROP COLUMN locale; UPDATE oldest_binary SET knows = 12":                                      false, // prevents a rolling upgrade
	} {
		if fault := incompatibility("-- +goose Up\n"+text+";\n", 12); (fault == "") != good {
			t.Errorf("%s: %q", text, fault)
		}
	}
}

var (
	oldestBinary = regexp.MustCompile(`UPDATE oldest_binary SET knows = (\d+);`)
	createsTable = regexp.MustCompile(`CREATE TABLE (\w+)`)
	references   = regexp.MustCompile(`REFERENCES (\w+) \(\w+\)( ON DELETE (?:CASCADE|SET NULL))?`)
	statements   = regexp.MustCompile(`(?s)[^;']*(?:'[^']*'[^;']*)*;`)
	harmless     = regexp.MustCompile(`^(CREATE TABLE|CREATE INDEX|DROP INDEX|INSERT INTO|UPDATE|SELECT|ALTER TABLE \w+ ADD COLUMN) `)
	uniqueIndex  = regexp.MustCompile(`^CREATE UNIQUE INDEX \w+ ON (\w+)`)
)

// incompatibility returns why the previous version can't work after a migration that doesn't
// record this; empty: it can.
func incompatibility(text string, number int) string {
	text = regexp.MustCompile(`--[^\n]*`).ReplaceAllString(text, "")
	if oldest := oldestBinary.FindStringSubmatch(text); oldest != nil {
		if knows, _ := strconv.Atoi(oldest[1]); knows >= number {
			return "the previous version can't go on, so a rolling upgrade is impossible: split the migration"
		}
		return ""
	}
	made := map[string]bool{}
	for _, m := range createsTable.FindAllStringSubmatch(text, -1) {
		made[m[1]] = true
	}
	for _, s := range statements.FindAllString(text, -1) {
		s = strings.TrimSpace(s)
		if unique := uniqueIndex.FindStringSubmatch(s); unique != nil && made[unique[1]] {
			continue
		}
		if !harmless.MatchString(s) {
			return "the previous version may not go on after " + s
		}
		if fault := blockedRows(s, made); fault != "" {
			return fault
		}
	}
	return ""
}

// blockedRows returns why the previous version can't add or delete rows after a statement;
// made are the tables that the migration creates.
func blockedRows(s string, made map[string]bool) string {
	adds := strings.HasPrefix(s, "ALTER TABLE")
	if adds && (strings.Contains(s, "NOT NULL") && !strings.Contains(s, "DEFAULT") || strings.Contains(s, "UNIQUE") || strings.Contains(s, "CHECK")) {
		return "the previous version can't add rows after " + s
	}
	for _, reference := range references.FindAllStringSubmatch(s, -1) {
		if !made[reference[1]] && reference[2] == "" {
			return "the previous version can't delete what this refers to: ON DELETE CASCADE or SET NULL is missing in " + s
		}
	}
	return ""
}
