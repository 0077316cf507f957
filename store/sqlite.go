package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/doorward/doorward/store/internal/sqlitefile"
)

const hasMigrationsSQLite = `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'`

// readOptions keep the page cache of each of the eight readers at 512 KiB, in place of
// 2 MB: what it doesn't hold is in the system's cache, one read away.
const readOptions = "mode=ro&_pragma=busy_timeout(2000)&_pragma=query_only(1)&_pragma=cache_size(-512)"

// openSQLite opens one writer, so that writers queue in the process instead of failing on
// each other's locks, and read-only readers. With synchronous=FULL a committed transaction
// survives a power cut. secure_delete overwrites what is deleted, so that an erased account
// is not in free parts of the file.
func openSQLite(path string) (*DB, error) {
	path, err := sqlitefile.CreatePrivate(path)
	if err != nil {
		return nil, fault(fmt.Errorf("sqlite database: %w", err))
	}
	write, err := sqlitefile.OpenCaching(sqlitefile.DSN(path, "_txlock=immediate&_pragma=busy_timeout(100)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)"))
	if err != nil {
		return nil, fault(err)
	}
	write.SetMaxOpenConns(1)
	read, err := sqlitefile.OpenCaching(sqlitefile.DSN(path, readOptions))
	if err != nil {
		return nil, errors.Join(fault(err), write.Close())
	}
	read.SetMaxOpenConns(8)
	read.SetMaxIdleConns(8)
	return &DB{
		rules: newRulesCache(),
		engine: engine{
			touch: sqlTouchSession,
			name:  "sqlite", path: path,
			size:      `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`,
			transient: sqlitefile.IsTransient, locked: sqlitefile.IsLocked, full: sqlitefile.IsFull, lockTimedOut: sqlitefile.IsLocked,
			exclusive: func(ctx context.Context, _ *DB, fn func(*sql.Conn) error) error {
				return sqlitefile.Exclusive(ctx, path, func() error { return fn(nil) })
			},
			versions: `CREATE TABLE goose_db_version (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    version_id INTEGER NOT NULL,
    is_applied INTEGER NOT NULL,
    tstamp     TIMESTAMP DEFAULT (datetime('now'))
)`,
			tables:        `SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name`,
			indexes:       `SELECT name FROM sqlite_master WHERE type = 'index'`,
			hasMigrations: hasMigrationsSQLite,
			clock:         `SELECT 0, moved FROM shared_clock WHERE id = 1`,
			snapshot:      sql.TxOptions{ReadOnly: true}, // in WAL mode every transaction is one
		},
		write: write, read: read,
		pools: func() []Pool { return []Pool{sqlitePool("write", write), sqlitePool("read", read)} },
		close: func() error {
			openWriterForCleanup(read, write)
			return errors.Join(read.Close(), write.Close())
		},
	}, nil
}

func sqlitePool(name string, db *sql.DB) Pool {
	s := db.Stats()
	return Pool{Name: name, Max: s.MaxOpenConnections, Busy: s.InUse, Idle: s.Idle, Waits: s.WaitCount, Waited: s.WaitDuration}
}

// openWriterForCleanup opens the writer if only readers are open: readers of a WAL
// database leave the side files -wal and -shm behind, which the last connection
// removes only if it may write.
func openWriterForCleanup(read, write *sql.DB) {
	var mode string
	if write.Stats().OpenConnections > 0 || read.Stats().OpenConnections == 0 {
		return
	}
	if read.QueryRow("PRAGMA journal_mode").Scan(&mode) == nil && mode == "wal" {
		_ = write.Ping() // else the files stay, which is harmless
	}
}

// OpenImmutable opens a SQLite file that no process writes to, such as a backup.
// Writes fail, and no files or locks are created beside it. The schema may be
// older than this binary's.
func OpenImmutable(file string) (*DB, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	read, err := sql.Open("sqlite", sqlitefile.DSN(path, "mode=ro&immutable=1"))
	if err != nil {
		return nil, err
	}
	return &DB{
		rules:  newRulesCache(),
		engine: engine{name: "sqlite", path: path, hasMigrations: hasMigrationsSQLite},
		read:   read, write: read, clock: newClock(time.Now), mailQueued: make(chan struct{}, 1), close: read.Close,
	}, nil
}

// File is the path of a SQLite database; empty for PostgreSQL.
func (db *DB) File() string { return db.engine.path }
