package store

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3/database"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// readOptions keep the page cache of each of the eight readers at 512 KiB, in place of
// 2 MB: what it doesn't hold is in the system's cache, one read away.
const readOptions = "mode=ro&_pragma=busy_timeout(2000)&_pragma=query_only(1)&_pragma=cache_size(-512)"

// openSQLite opens a single writer, so that writers queue in the process
// instead of failing on each other's locks, and readers that can't write.
// WAL with synchronous=FULL: what was answered survives a power cut. The writer's
// own wait for a lock is short, see begin; readers are hardly ever locked out,
// and theirs is below the 3 s in which every request is answered.
func openSQLite(path string) (*DB, error) {
	path, err := createPrivate(path)
	if err != nil {
		return nil, fault(fmt.Errorf("sqlite database: %w", err))
	}
	write, err := openKeeping(sqliteDSN(path, "_txlock=immediate&_pragma=busy_timeout(100)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"))
	if err != nil {
		return nil, fault(err)
	}
	write.SetMaxOpenConns(1)
	read, err := openKeeping(sqliteDSN(path, readOptions))
	if err != nil {
		return nil, errors.Join(fault(err), write.Close())
	}
	read.SetMaxOpenConns(8)
	read.SetMaxIdleConns(8)
	return &DB{
		engine: engine{
			name: "sqlite", path: path, size: `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`, dialect: database.DialectSQLite3, transient: sqliteTransient, locked: sqliteLocked, full: sqliteFull, exclusive: exclusiveSQLite(path), behind: sqliteLocked,
			versioned: `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'`,
			clock:     `SELECT 0, moved FROM shared_clock WHERE id = 1`,
			snapshot:  sql.TxOptions{ReadOnly: true}, // in WAL mode every transaction is one
		},
		write: write, read: read,
		pools: func() []Pool { return []Pool{sqlitePool("write", write), sqlitePool("read", read)} },
		close: func() error {
			bringBroom(read, write)
			return errors.Join(read.Close(), write.Close())
		},
	}, nil
}

func sqlitePool(name string, db *sql.DB) Pool {
	s := db.Stats()
	return Pool{Name: name, Max: s.MaxOpenConnections, Busy: s.InUse, Idle: s.Idle, Waits: s.WaitCount, Waited: s.WaitDuration}
}

// bringBroom opens the writer where there were only readers: of a database in
// WAL mode, readers leave the side files -wal and -shm behind, and the last
// connection to close removes them only if it may write.
func bringBroom(read, write *sql.DB) {
	var mode string
	if write.Stats().OpenConnections > 0 || read.Stats().OpenConnections == 0 {
		return
	}
	if read.QueryRow("PRAGMA journal_mode").Scan(&mode) == nil && mode == "wal" {
		_ = write.Ping() // else the files stay, which harms nobody
	}
}

func sqliteDSN(path, more string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	return u.String() + "?_pragma=foreign_keys(1)&" + more
}

// createPrivate makes the file readable by its owner alone before SQLite opens
// it; SQLite gives its side files the same mode. It returns the absolute path:
// connections are opened when needed, wherever the process stands by then, and
// SQLite knows no special names with a slash in front.
func createPrivate(path string) (string, error) {
	if path == "" {
		return "", errors.New("the path is missing; write sqlite:PATH")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	return path, f.Close()
}

func sqliteLocked(err error) bool { return primary(err) == sqlite3.SQLITE_BUSY }

func sqliteFull(err error) bool { return primary(err) == sqlite3.SQLITE_FULL }

// primary is the code of an error of SQLite without what specifies it further;
// 0 for other errors.
func primary(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// sqliteTransient: with a single immediate writer nothing is aborted for
// another's sake; a busy database has already been waited for.
func sqliteTransient(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_BUSY_SNAPSHOT
}
