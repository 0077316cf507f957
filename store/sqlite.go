package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3/database"

	"github.com/doorward/doorward/store/internal/sqlitefile"
)

const versionedSQLite = `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'`

// readOptions keep the page cache of each of the eight readers at 512 KiB, in place of
// 2 MB: what it doesn't hold is in the system's cache, one read away.
const readOptions = "mode=ro&_pragma=busy_timeout(2000)&_pragma=query_only(1)&_pragma=cache_size(-512)"

// openSQLite opens a single writer, so that writers queue in the process
// instead of failing on each other's locks, and readers that can't write.
// WAL with synchronous=FULL: what was answered survives a power cut. The writer's
// own wait for a lock is short, see begin; readers are hardly ever locked out,
// and theirs is below the 3 s in which every request is answered.
func openSQLite(path string) (*DB, error) {
	path, err := sqlitefile.CreatePrivate(path)
	if err != nil {
		return nil, fault(fmt.Errorf("sqlite database: %w", err))
	}
	write, err := sqlitefile.OpenCaching(sqlitefile.DSN(path, "_txlock=immediate&_pragma=busy_timeout(100)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"))
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
		engine: engine{
			name: "sqlite", path: path, size: `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`, dialect: database.DialectSQLite3, transient: sqlitefile.IsTransient, locked: sqlitefile.IsLocked, full: sqlitefile.IsFull, behind: sqlitefile.IsLocked,
			exclusive: func(ctx context.Context, _ *DB, do func() error) error { return sqlitefile.Exclusive(ctx, path, do) },
			versioned: versionedSQLite,
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

// OpenImmutable opens a SQLite file that nobody writes to, such as a backup. Writing
// fails, and nothing is left beside the file, not even locks. The schema may be older
// than this binary's.
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
		engine: engine{name: "sqlite", path: path, versioned: versionedSQLite},
		read:   read, write: read, clock: newClock(time.Now), wake: make(chan struct{}, 1), close: read.Close,
	}, nil
}

// File is the path of a SQLite database; empty of PostgreSQL.
func (db *DB) File() string { return db.engine.path }
