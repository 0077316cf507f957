package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
)

// hold takes n different connections of a pool.
func hold(t *testing.T, db *sql.DB, n int) (all []*sql.Conn) {
	t.Helper()
	for range n {
		conn, err := db.Conn(t.Context())
		ok(t, err)
		t.Cleanup(func() { conn.Close() })
		all = append(all, conn)
	}
	return all
}

// TestSQLiteIsSafe checks the settings of every connection: SQLite silently
// ignores a misspelt setting in the DSN.
func TestSQLiteIsSafe(t *testing.T) {
	write, read := store.Pools(storetest.Migrated(t, storetest.Engines["sqlite"](t), time.Now))
	common := map[string]string{"journal_mode": "wal", "foreign_keys": "1"}
	wants := []struct {
		conns []*sql.Conn
		extra map[string]string
	}{
		{hold(t, write, 1), map[string]string{"synchronous": "2", "query_only": "0", "busy_timeout": "100", "secure_delete": "1"}}, // 2 is FULL
		{hold(t, read, 8), map[string]string{"query_only": "1", "busy_timeout": "2000"}},
	}
	for _, w := range wants {
		for _, conn := range w.conns {
			var n int // a connection knows the mode only after a read
			ok(t, conn.QueryRowContext(t.Context(), `SELECT count(*) FROM tenants`).Scan(&n))
			for _, settings := range []map[string]string{common, w.extra} {
				for name, want := range settings {
					var got string
					ok(t, conn.QueryRowContext(t.Context(), "PRAGMA "+name).Scan(&got))
					if got != want {
						t.Errorf("%s is %s, want %s", name, got, want)
					}
				}
			}
		}
	}
	if n := write.Stats().MaxOpenConnections; n != 1 {
		t.Errorf("%d writers at once, want one", n)
	}
}

// TestReadersCantWrite: readers can't write, whatever they run, and see at once what was
// committed.
func TestReadersCantWrite(t *testing.T) {
	db := storetest.Migrated(t, storetest.Engines["sqlite"](t), time.Now)
	write, read := store.Pools(db)
	for _, statement := range []string{`DELETE FROM tenants`, `CREATE TABLE t (a)`, `PRAGMA user_version = 7`, `INSERT INTO change_position VALUES (2, 2)`} {
		if _, err := read.Exec(statement); err == nil {
			t.Errorf("a reader could run %s", statement)
		}
	}
	for i := range 50 {
		id := fmt.Sprint("tnt_", i)
		_, err := db.Write(t.Context(), func(tx *store.Tx) error { return tx.InsertTenant(t.Context(), doorward.Tenant{ID: id}) })
		ok(t, err)
		if _, err := db.Read().Tenant(t.Context(), id); err != nil {
			t.Fatalf("a committed row isn't visible: %v", err)
		}
	}
	if n := storetest.Query[int](t, write, `PRAGMA user_version`); n != 0 {
		t.Errorf("user_version is %d", n)
	}
}

func TestForeignKeysHold(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			db := storetest.Migrated(t, dsn(t), time.Now)
			_, err := db.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.InsertMembership(t.Context(), doorward.User{ID: "usr_none", TenantID: "tnt_none"})
				return err
			})
			if !doorward.HasCode(err, doorward.CodeUnavailable) {
				t.Errorf("a membership without a tenant: %v, want unavailable", err)
			}
		})
	}
}

// TestFilesAreOwnerOnly: only the owner can read the database, which holds password hashes, and
// SQLite's side files.
func TestFilesAreOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	db := storetest.Migrated(t, "sqlite:"+filepath.Join(dir, "doorward.db"), time.Now)
	_, err := db.Write(t.Context(), func(tx *store.Tx) error { return tx.InsertTenant(t.Context(), doorward.Tenant{ID: "tnt_1"}) })
	ok(t, err)
	entries, err := os.ReadDir(dir)
	ok(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		info, err := e.Info()
		ok(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", e.Name(), info.Mode())
		}
	}
	if got := strings.Join(names, " "); got != "doorward.db doorward.db-shm doorward.db-wal doorward.db.lock" {
		t.Errorf("the files are %s", got)
	}
	info, err := os.Stat(dir)
	ok(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, want 0700", info.Mode())
	}
	ok(t, db.Close())
	if _, err := os.Stat(filepath.Join(dir, "doorward.db-wal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a clean shutdown the log still exists (%v)", err)
	}
}

// TestOddPaths: any path works, even with characters that are special in URLs,
// SQLite or drivers.
func TestOddPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	home, err := os.Getwd()
	ok(t, err)
	for _, path := range []string{
		"plain.db", "./dot.db", "with space.db", "per%cent.db", "%41.db", "what?.db", "what?mode=memory&cache=shared",
		"hash#tag.db", "ünï/🚪.db", "a&b=c;d.db", "quo'te\"s.db", `back\slash.db`, ":memory:", "file:name.db", "colon:s.db", "-dash.db", " lead",
		home + "/absolute.db", "/" + home + "/two slashes.db", "latin\xe9.db",
	} {
		db := storetest.Open(t, "sqlite:"+path, time.Now)
		write, read := store.Pools(db)
		storetest.Exec(t, write, `PRAGMA user_version = 7`)
		if n := storetest.Query[int](t, read, `PRAGMA user_version`); n != 7 {
			t.Errorf("%q: the readers opened another file", path)
		}
		ok(t, db.Close())
		again, err := store.OpenExisting(t.Context(), "sqlite:"+path, time.Now)
		ok(t, err)
		_, read = store.Pools(again)
		if n := storetest.Query[int](t, read, `PRAGMA user_version`); n != 7 {
			t.Errorf("%q: the data is in another file", path)
		}
		ok(t, again.Close())
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: the file doesn't exist (%v)", path, err)
		}
	}
}

// TestFolderChanges: connections are opened on demand, and the process may have changed its
// working directory since Open.
func TestFolderChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	db := storetest.Migrated(t, "sqlite:doorward.db", time.Now)
	t.Chdir(t.TempDir())
	_, read := store.Pools(db)
	for _, conn := range hold(t, read, 8) {
		var n int
		ok(t, conn.QueryRowContext(t.Context(), `SELECT count(*) FROM tenants`).Scan(&n))
	}
}

// TestRaceCommandBesideAServer: two processes write to one file. Neither loses a write.
func TestRaceCommandBesideAServer(t *testing.T) {
	address := storetest.Engines["sqlite"](t)
	nodes := []*store.DB{storetest.Migrated(t, address, time.Now), storetest.Open(t, address, time.Now)}
	const each = 100
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, db := range nodes {
		all.Go(func() {
			for range each {
				errs[i] = errors.Join(errs[i], storetest.Patiently(func() error {
					_, err := db.Write(t.Context(), func(tx *store.Tx) error {
						_, err := tx.HitThrottle(t.Context(), "shared", time.Hour)
						return err
					})
					return err
				}))
			}
		})
	}
	all.Wait()
	ok(t, errors.Join(errs...))
	_, read := store.Pools(nodes[1])
	if n := storetest.Query[int](t, read, `SELECT hits FROM throttles`); n != each*len(nodes) {
		t.Errorf("%d of %d hits were counted", n, each*len(nodes))
	}
}

// TestBusyFileIsAFault: another process keeps its transaction open for longer than
// a request may take.
func TestBusyFileIsAFault(t *testing.T) {
	t.Parallel() // waits for all of lockTimeout
	address := storetest.Engines["sqlite"](t)
	db, other := storetest.Migrated(t, address, time.Now), storetest.Open(t, address, time.Now)
	_, err := other.Write(t.Context(), func(tx *store.Tx) error {
		_, err := db.Write(t.Context(), func(*store.Tx) error { t.Error("two writers at once"); return nil })
		if !doorward.HasCode(err, doorward.CodeUnavailable) {
			t.Errorf("got %v: want unavailable", err)
		}
		_, err = db.Read().TenantsAfter(t.Context(), "", 1) // readers don't wait
		return err
	})
	ok(t, err)
}

func TestOpenExistingMakesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "doorward.db")
	db, err := store.OpenExisting(t.Context(), "sqlite:"+path, time.Now)
	if !doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("got %v, %v: want unavailable", db, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was created (%v)", err)
	}
}

// TestCachedStatements: cached statements run again on one connection, nested, after a change
// of the schema and after a failure.
func TestCachedStatements(t *testing.T) {
	write, _ := store.Pools(storetest.Migrated(t, storetest.Engines["sqlite"](t), time.Now))
	conn := hold(t, write, 1)[0]
	ctx := t.Context()
	run := func(statement string, args ...any) {
		t.Helper()
		_, err := conn.ExecContext(ctx, statement, args...)
		ok(t, err)
	}
	// pairs joins t with itself: the same statement runs again while its rows are being read.
	pairs := func() (all []string) {
		const query = `SELECT * FROM t WHERE a >= $1 ORDER BY a`
		outer, err := conn.QueryContext(ctx, query, 0)
		ok(t, err)
		defer outer.Close()
		for len(all) < 10 && outer.Next() { // a statement that was reset would loop for ever
			var a int
			ok(t, outer.Scan(&a))
			inner, err := conn.QueryContext(ctx, query, a)
			ok(t, err)
			for len(all) < 10 && inner.Next() {
				var b int
				ok(t, inner.Scan(&b))
				all = append(all, fmt.Sprint(a, b))
			}
			ok(t, errors.Join(inner.Err(), inner.Close()))
		}
		ok(t, outer.Err())
		return all
	}
	const insert = `INSERT INTO t (a) VALUES ($1)`
	run(`CREATE TABLE t (a INTEGER PRIMARY KEY)`)
	run(insert, 1)
	run(insert, 2)
	if _, err := conn.ExecContext(ctx, insert, 2); err == nil {
		t.Error("a key was inserted twice")
	}
	run(insert, 3)
	want := []string{"1 1", "1 2", "1 3", "2 2", "2 3", "3 3"}
	for range 2 {
		if got := pairs(); !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	run(`DROP TABLE t`)
	run(`CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)`)
	run(insert, 7)
	var a int
	var b sql.NullString
	ok(t, conn.QueryRowContext(ctx, `SELECT * FROM t WHERE a >= $1 ORDER BY a`, 0).Scan(&a, &b))
	if a != 7 {
		t.Errorf("read %d from the new table, want 7", a)
	}
}
