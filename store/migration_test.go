package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// twoIndexes is a migration whose transaction can't be repeated.
const twoIndexes = `
ALTER TABLE tenants ADD COLUMN nick TEXT; -- of another table; a transaction holds a lock on users
CREATE INDEX users_by_address ON users (email, id);
CREATE INDEX users_created ON users (created_at, id);
DROP INDEX users_left;
`

// migratedPostgres returns a database, and its address, on which no statement of the test waits
// for a lock for long.
func migratedPostgres(t *testing.T) (db *store.DB, address string) {
	t.Helper()
	address = storetest.Engines["postgres"](t) + "&lock_timeout=20s"
	return storetest.Migrated(t, address, time.Now), address
}

// begun returns a transaction of another program that has written to users.
func begun(t *testing.T, other *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := other.Begin()
	ok(t, err)
	t.Cleanup(func() { tx.Rollback() })
	_, err = tx.Exec(`UPDATE users SET revision = revision + 1`)
	ok(t, err)
	return tx
}

// awaitBuilding returns when a connection waits to build an index.
func awaitBuilding(t *testing.T, other *sql.DB) {
	t.Helper()
	storetest.Until(t, "an index that is being built", func() bool {
		return storetest.Query[int](t, other, `SELECT count(*) FROM pg_stat_activity
WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock' AND datname = current_database()`) > 0
	})
}

// TestIndexesBlockNobody: while an index is built, which on PostgreSQL waits for a transaction
// that has written to the table, other writers don't wait.
func TestIndexesBlockNobody(t *testing.T) {
	db, address := migratedPostgres(t)
	other, watcher := dial(t, "postgres", address), dial(t, "postgres", address)
	insertPeople(t, db, 10)
	open := begun(t, other)
	migrated := make(chan error, 1)
	go func() { migrated <- store.MigrateWith(t.Context(), db, twoIndexes) }()
	awaitBuilding(t, watcher)
	storetest.Exec(t, watcher, `INSERT INTO users (id, email, password_hash, created_at) VALUES ('usr_new', 'new@acme.example', '', 1)`)
	ok(t, open.Rollback())
	ok(t, <-migrated)
	wantIndexes(t, db)
}

func wantIndexes(t *testing.T, db *store.DB) {
	t.Helper()
	wantEachOnce(t, db, 1)
	write, _ := store.Pools(db)
	if n := storetest.Query[int](t, write, `SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid IN (to_regclass('users_by_address'), to_regclass('users_created'))`); n != 2 {
		t.Errorf("%d of the migration's two indexes are valid", n)
	}
	if n := storetest.Query[int](t, write, `SELECT count(*) FROM pg_class WHERE relname = 'users_left'`); n != 0 {
		t.Error("the dropped index is still there")
	}
}

// TestInterruptedIndexIsBuiltAgain: a migration that was interrupted while it built an index
// isn't complete, leaves an invalid index, and is completed by the next start.
func TestInterruptedIndexIsBuiltAgain(t *testing.T) {
	db, address := migratedPostgres(t)
	other, watcher := dial(t, "postgres", address), dial(t, "postgres", address)
	insertPeople(t, db, 10)
	open := begun(t, other)
	ctx, interrupt := context.WithCancel(t.Context())
	migrated := make(chan error, 1)
	go func() { migrated <- store.MigrateWith(ctx, db, twoIndexes) }()
	awaitBuilding(t, watcher)
	interrupt()
	if err := <-migrated; err == nil {
		t.Fatal("the migration succeeds although it was interrupted")
	}
	storetest.Until(t, "the interrupted statement to end", func() bool {
		return storetest.Query[int](t, watcher, `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND state = 'active' AND datname = current_database()`) == 0
	})
	ok(t, open.Rollback())
	if n := storetest.Query[int](t, watcher, `SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indexrelid = to_regclass('users_by_address')`); n != 1 {
		t.Fatal("the interrupted statement has left no invalid index, so this test shows nothing")
	}
	if n := storetest.Query[int](t, watcher, `SELECT count(*) FROM goose_db_version WHERE NOT is_applied`); n != 1 {
		t.Errorf("%d migrations are recorded as incomplete, want 1", n)
	}
	ok(t, store.MigrateWith(t.Context(), db, twoIndexes))
	wantIndexes(t, db)
}

// TestNodesBuildIndexesTogether: nodes that wait for the one that builds an index don't make
// it wait. Each of them may also be the one that completes the migration.
func TestNodesBuildIndexesTogether(t *testing.T) {
	db, address := migratedPostgres(t)
	insertPeople(t, db, 1000)
	const nodes = 4
	migrated := make(chan error, nodes)
	for range nodes {
		node := storetest.Open(t, address, time.Now)
		go func() { migrated <- store.MigrateWith(t.Context(), node, twoIndexes) }()
	}
	for range nodes {
		select {
		case err := <-migrated:
			ok(t, err)
		case <-time.After(time.Minute):
			t.Fatal("after a minute the nodes still wait for each other")
		}
	}
	wantIndexes(t, db)
}

// filling is a migration that fills a new column. Each batch finds its rows by an index.
const filling = `
ALTER TABLE users ADD COLUMN nick TEXT;
CREATE INDEX users_unfilled ON users (id) WHERE nick IS NULL;
UPDATE users SET nick = lower(email) WHERE id IN (SELECT id FROM users WHERE nick IS NULL ORDER BY id LIMIT 100);
DROP INDEX users_unfilled;
`

// TestFilling: rows are filled in batches. After an interruption the next start fills those that
// are missing, and each start says how far it is.
func TestFilling(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			const people = 1050
			db := storetest.Migrated(t, dsn(t), time.Now)
			insertPeople(t, db, people)
			write, _ := store.Pools(db)
			ctx, interrupt := context.WithCancel(t.Context())
			db.LogTo(slog.New(&interrupter{slog.DiscardHandler, "filling rows", interrupt}))
			if err := store.MigrateWith(ctx, db, filling); err == nil {
				t.Fatal("the migration succeeds although it was interrupted")
			}
			left := people
			if engine == "postgres" { // SQLite has rolled back the whole migration
				left = storetest.Query[int](t, write, `SELECT count(*) FROM users WHERE nick IS NULL`)
				if left == 0 || left == people {
					t.Fatalf("of %d rows %d are left to be filled, so the migration was not interrupted between batches", people, left)
				}
			}
			wantEachOnce(t, db, 0)

			var log bytes.Buffer
			db.LogTo(slog.New(slog.NewTextHandler(&log, nil)))
			ok(t, store.MigrateWith(t.Context(), db, filling))
			wantEachOnce(t, db, 1)
			if n := storetest.Query[int](t, write, `SELECT count(*) FROM users WHERE nick = lower(email)`); n != people {
				t.Errorf("%d of %d rows are filled", n, people)
			}
			if want := fmt.Sprintf("table=users rows=%d complete=true", left); !strings.Contains(log.String(), want) {
				t.Errorf("no %q in the log:\n%s", want, &log)
			}
		})
	}
}

// TestMakersAreFilled: the makers of webhooks from before the column are those of the trail: a user,
// or the owner of the API key; nobody for one of the operator.
func TestMakersAreFilled(t *testing.T) {
	files, err := filepath.Glob("schema/*_makers.sql")
	ok(t, err)
	text, err := os.ReadFile(files[0])
	ok(t, err)
	_, _, fill := store.StatementsOf(string(text))
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Migrated(t, dsn(t), time.Now)
			write, _ := store.Pools(db)
			storetest.Exec(t, write, `INSERT INTO tenants (id, name, status, created_at) VALUES ('tnt_1', 'Acme', 'active', 0)`)
			storetest.Exec(t, write, `INSERT INTO api_keys (id, tenant_id, name, search, role, permissions, status, owner_id, created_by, created_at, expires_at, ends_at, allowed_ips, per_second, noticed_at)
VALUES ('key_1', 'tnt_1', 'CI', 'ci', 'USER', '', 'active', 'usr_bob', 'usr_bob', 0, 9, 9, '', 0, 0)`)
			for id, by := range map[string]string{"whk_1": "user usr_ann", "whk_2": "key key_1", "whk_3": "operator key_2", "whk_4": ""} {
				storetest.Exec(t, write, `INSERT INTO webhooks (id, tenant_id, url, events, about, include, enabled, public_key, secret_sealed, private_sealed, created_at)
VALUES ($1, 'tnt_1', 'https://example.com/', '*', '', '', TRUE, '', $2, $2, 0)`, id, []byte("sealed"))
				kind, actor, _ := strings.Cut(by, " ")
				if by == "" { // the event is no longer kept
					continue
				}
				_, err := db.Write(t.Context(), func(tx *store.Tx) error {
					return tx.InsertEvent(t.Context(), doorward.Event{
						ID: "evt_" + id, Action: doorward.WebhookCreate, Outcome: doorward.Done, ActorType: doorward.PrincipalKind(kind), ActorID: actor,
						Target: doorward.Object{Type: "webhook", ID: id, TenantID: "tnt_1"},
					})
				})
				ok(t, err)
			}
			ok(t, store.MigrateWith(t.Context(), db, strings.Join(fill, ";\n")+";"))
			for id, want := range map[string]string{"whk_1": "usr_ann", "whk_2": "usr_bob", "whk_3": "", "whk_4": ""} {
				if got := storetest.Query[string](t, write, `SELECT created_by FROM webhooks WHERE id = $1`, id); got != want {
					t.Errorf("%s was made by %q, want %q", id, got, want)
				}
			}
		})
	}
}

// interrupter is a log that calls a function at a message.
type interrupter struct {
	slog.Handler
	message string
	call    func()
}

func (i *interrupter) Enabled(context.Context, slog.Level) bool { return true }

func (i *interrupter) Handle(_ context.Context, r slog.Record) error {
	if r.Message == i.message {
		i.call()
	}
	return nil
}

// TestMigrationsBlockNobody: no migration rewrites a table, locks it for long, or holds the lock
// on one while it waits for another. The first one creates all tables.
func TestMigrationsBlockNobody(t *testing.T) {
	files, err := filepath.Glob("schema/*")
	ok(t, err)
	for _, file := range files[1:] {
		raw, err := os.ReadFile(file)
		ok(t, err)
		if fault := blocking(string(raw)); fault != "" {
			t.Errorf("%s: %s; docs/upgrades.md says how", file, fault)
		}
	}
}

func TestBlockingMigrationsAreFound(t *testing.T) {
	for text, good := range map[string]bool{
		"ALTER TABLE users ADD COLUMN nick TEXT":                                                                                              true,
		"ALTER TABLE users ADD COLUMN nick TEXT NOT NULL DEFAULT ''":                                                                          true,
		"ALTER TABLE users ADD COLUMN nick TEXT DEFAULT 'it''s; -- x'":                                                                        true,
		"ALTER TABLE users ADD COLUMN age BIGINT NOT NULL DEFAULT -1":                                                                         true,
		"ALTER TABLE users ADD COLUMN a BOOLEAN NOT NULL DEFAULT FALSE; ALTER TABLE users ADD COLUMN b TEXT":                                  true,
		"ALTER TABLE users DROP COLUMN locale; UPDATE oldest_binary SET knows = 11":                                                           true,
		"ALTER TABLE users ADD COLUMN nick TEXT NOT NULL":                                                                                     false,
		"ALTER TABLE users ADD COLUMN at TIMESTAMP DEFAULT clock_timestamp()":                                                                 false,
		"ALTER TABLE users ADD COLUMN at BIGINT DEFAULT (random())":                                                                           false,
		"ALTER TABLE users ADD COLUMN n BIGINT GENERATED ALWAYS AS (revision + 1) STORED":                                                     false,
		"ALTER TABLE users ADD COLUMN nick TEXT UNIQUE":                                                                                       false,
		"ALTER TABLE users ADD COLUMN nick TEXT CHECK (nick <> '')":                                                                           false,
		"ALTER TABLE users ADD COLUMN boss TEXT REFERENCES users (id)":                                                                        false,
		"ALTER TABLE users ALTER COLUMN revision TYPE TEXT":                                                                                   false,
		"ALTER TABLE users ALTER COLUMN locale SET NOT NULL":                                                                                  false,
		"ALTER TABLE users ADD CONSTRAINT named CHECK (email <> '')":                                                                          false,
		"ALTER TABLE users ADD CONSTRAINT boss FOREIGN KEY (locale) REFERENCES users (id)":                                                    false,
		"ALTER TABLE users ADD CONSTRAINT named CHECK (email <> '') NOT VALID; ALTER TABLE users VALIDATE CONSTRAINT named":                   false,
		"ALTER TABLE users ADD COLUMN a TEXT; ALTER TABLE tenants ADD COLUMN a TEXT":                                                          false,
		"ALTER TABLE users ADD COLUMN a TEXT; CREATE TABLE b (t TEXT REFERENCES tenants (id) ON DELETE CASCADE)":                              false,
		"ALTER TABLE users ADD COLUMN a TEXT; CREATE TABLE b (id TEXT PRIMARY KEY)":                                                           true,
		"CREATE TABLE b (t TEXT REFERENCES tenants (id) ON DELETE CASCADE, u TEXT REFERENCES users (id))":                                     true,
		"CREATE TABLE b (t TEXT REFERENCES tenants (id)); CREATE TABLE c (u TEXT REFERENCES users (id))":                                      false,
		"CREATE TABLE b (id BIGINT PRIMARY KEY); CREATE UNIQUE INDEX b_id ON b (id); INSERT INTO b (id) VALUES (1)":                           true,
		"CREATE TABLE b (id TEXT); INSERT INTO b (id) SELECT id FROM users":                                                                   false,
		"CREATE TABLE b (id TEXT); INSERT INTO b (id) SELECT id FROM users u WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = u.id) LIMIT 1000": true,
		"CREATE TABLE b AS SELECT * FROM users":                                                                                               false,
		"CREATE INDEX a ON users (locale); CREATE INDEX b ON tenants (name); DROP INDEX users_left":                                           true,
		"CREATE INDEX a ON users (locale); ALTER TABLE users ADD COLUMN a TEXT":                                                               false, // runs first
		"CREATE INDEX CONCURRENTLY a ON users (locale)":                                                                                       false,
		"CREATE INDEX IF NOT EXISTS a ON users (locale)":                                                                                      false,
		"UPDATE users SET locale = 'en'":                                                                                                      false,
		"UPDATE users SET locale = 'en' WHERE locale = ''":                                                                                    false,
		"DELETE FROM users": false,
		"DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at < 7 LIMIT 1000)":                    true,
		"UPDATE users SET locale = 'en' WHERE id IN (SELECT id FROM users WHERE locale = '' LIMIT 1000)":    true,
		"UPDATE users SET locale = 'en' WHERE id IN (SELECT id FROM users WHERE locale = '' LIMIT 2000000)": false,
		"SELECT pg_sleep(60)":                     false,
		"LOCK TABLE users":                        false,
		"TRUNCATE users":                          false,
		"REINDEX TABLE users":                     false,
		"VACUUM FULL users":                       false,
		"DROP TABLE users":                        false,
		"INSERT INTO users (id) VALUES ('usr_1')": false,
	} {
		if fault := blocking("-- +goose Up\n" + text + ";\n-- the end; of it\n"); (fault == "") != good {
			t.Errorf("%s: %q", text, fault)
		}
	}
	if blocking("CREATE TABLE a (id TEXT);\nCREATE TABLE b (id TEXT)\n") == "" {
		t.Error("a statement without its semicolon is not found")
	}
}

var (
	altersTable  = regexp.MustCompile(`^ALTER TABLE (\w+) (ADD COLUMN|DROP COLUMN) `)
	addsColumn   = regexp.MustCompile(`^ALTER TABLE \w+ ADD COLUMN \w+ (TEXT|BIGINT|BOOLEAN|BYTEA)( (NOT NULL )?DEFAULT ('[^']*'(?:'[^']*')*|-?\d+|TRUE|FALSE|NULL))?$`)
	createsOne   = regexp.MustCompile(`(?s)^CREATE TABLE (\w+) \(`)
	buildsIndex  = regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX \w+ ON (\w+) \(`)
	insertsInto  = regexp.MustCompile(`(?s)^INSERT INTO (\w+) \([^)]*\) VALUES `)
	refersTo     = regexp.MustCompile(`REFERENCES (\w+)`)
	raisesOldest = regexp.MustCompile(`^UPDATE oldest_binary SET knows = \d+$`)
	batchSize    = regexp.MustCompile(`LIMIT (\d{1,4})\)?$`)
)

// blocking returns why a migration may block others for long on PostgreSQL; empty: it doesn't.
// The migrator runs indexes of older tables, and batches, outside of the transaction. All else
// must need its locks for an instant, and may lock one older table.
func blocking(text string) string {
	all, together, apart := store.StatementsOf(text)
	if !slices.Equal(all, slices.Concat(together, apart)) {
		return "indexes and batches run after the transaction: put them at the end of the file"
	}
	if rest := regexp.MustCompile(`--[^\n]*`).ReplaceAllString(text, ""); !strings.HasSuffix(strings.TrimSpace(rest), ";") {
		return "the last statement has no semicolon, so it would not run"
	}
	for _, s := range apart {
		if !buildsIndex.MatchString(s) && !strings.HasPrefix(s, "DROP INDEX ") && !batchSize.MatchString(s) {
			return "a batch of more than 9999 rows holds their locks for long: " + s
		}
	}
	made, locked := map[string]bool{}, ""
	for _, s := range together {
		locks, fault := locksOf(s, made)
		if fault != "" {
			return fault
		}
		if locks != "" && locked != "" && locks != locked {
			return "the lock for " + locked + " is held while this waits for one; use a file for each: " + s
		}
		if locks != "" {
			locked = locks
		}
	}
	return ""
}

// locksOf returns what a statement of the transaction locks: an older table, or itself, if it
// creates a table that refers to older ones. made are the tables of the migration.
func locksOf(s string, made map[string]bool) (locks, fault string) {
	if created := createsOne.FindStringSubmatch(s); created != nil {
		made[created[1]] = true
		for _, to := range refersTo.FindAllStringSubmatch(s, -1) {
			if !made[to[1]] {
				locks = s
			}
		}
		return locks, ""
	}
	for _, form := range []*regexp.Regexp{buildsIndex, insertsInto} {
		if table := form.FindStringSubmatch(s); table != nil && made[table[1]] {
			return "", ""
		}
	}
	altered := altersTable.FindStringSubmatch(s)
	switch {
	case raisesOldest.MatchString(s):
		return "", ""
	case altered == nil:
		return "", "this may rewrite a table, or lock it for long: " + s
	case altered[2] == "ADD COLUMN" && !addsColumn.MatchString(s):
		return "", "a column is added for an instant only if it is NULL or has a constant default, and no constraint: " + s
	}
	return altered[1], ""
}
