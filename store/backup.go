package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var (
	// ErrOwnTools says that the database is one that its own programs copy:
	// pg_dump, pg_basebackup and their like.
	ErrOwnTools = errors.New("store: PostgreSQL is backed up and restored by its own programs")
	// ErrInUse says that another process has the database open.
	ErrInUse = errors.New("store: the database is in use")
	// ErrItself says that a database would be copied onto itself.
	ErrItself = errors.New("store: that is the database itself")
	// ErrNoBackup says that a file is no sound copy of a Doorward database.
	ErrNoBackup = errors.New("store: no sound backup")
)

// SQLitePath returns the path in a DSN of SQLite, or ErrOwnTools.
func SQLitePath(dsn string) (string, error) {
	path, isSQLite := strings.CutPrefix(dsn, "sqlite:")
	if !isSQLite {
		return "", ErrOwnTools
	}
	return filepath.Abs(path)
}

// Backup writes a copy of a SQLite database to a file, which it replaces as a
// whole or not at all. The copy is the database of one instant, complete in the
// one file, readable by its owner alone, and has been looked through; writers
// aren't held up meanwhile. Errors: ErrItself, ErrNoBackup for a database that is
// damaged, and ErrOwnTools on other engines.
func (db *DB) Backup(ctx context.Context, to string) error {
	if db.engine.path == "" {
		return ErrOwnTools
	}
	if SameFile(db.engine.path, to) {
		return ErrItself
	}
	part, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*.part") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // nothing is there any more when all went well
	defer part.Close()
	if err := vacuumInto(ctx, db.engine.path, part.Name()); err != nil {
		return fmt.Errorf("store: backup: %w", err)
	}
	if err := CheckBackup(ctx, part.Name()); err != nil {
		return fmt.Errorf("store: the copy is not kept: %w", err)
	}
	if err := part.Sync(); err != nil { // SQLite leaves this to whoever asks for the copy
		return err
	}
	return publish(part.Name(), to)
}

// SameFile reports whether two paths lead to one file.
func SameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// vacuumInto copies by VACUUM INTO: one read transaction, so that it sees one
// instant and, in WAL mode, keeps no writer waiting. SQLite's backup API would
// begin anew at each commit of another process and never end on a busy server.
// What was deleted is not in the copy either.
func vacuumInto(ctx context.Context, path, to string) error {
	db, err := sql.Open("sqlite", sqliteDSN(path, "_pragma=busy_timeout(2000)"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO $1`, to)
	return errors.Join(err, db.Close())
}

// publish gives a finished file its name, durably.
func publish(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// CheckBackup returns nil when the file is a whole and consistent database of a
// Doorward that this one understands, of an older schema too. Errors:
// ErrNoBackup, ErrSchema for one that is too new, and those of reading.
func CheckBackup(ctx context.Context, file string) error {
	if _, err := os.Stat(file); err != nil {
		return err
	}
	if log, err := os.Stat(file + "-wal"); err == nil && log.Size() > 0 {
		return fmt.Errorf("%w: %s is a database in use; its newest rows are in %[2]s-wal. Take a backup of it", ErrNoBackup, file)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	// Immutable: nothing is written beside the file, not even locks.
	db, err := sql.Open("sqlite", sqliteDSN(path, "mode=ro&immutable=1"))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := sound(ctx, db); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNoBackup, file, err)
	}
	have := int64(0)
	if err := db.QueryRowContext(ctx, sqlSchema).Scan(&have); err != nil || have == 0 {
		return fmt.Errorf("%w: %s is a database of another program", ErrNoBackup, file)
	}
	if have > schemaNeeded {
		return goesOn(ctx, db, have)
	}
	return nil
}

// sound returns nil when SQLite finds no fault in pages, indexes and references.
func sound(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return errors.New(verdict)
	}
	dangling, err := db.QueryContext(ctx, `PRAGMA foreign_key_check`)
	if err != nil {
		return err
	}
	defer dangling.Close()
	if dangling.Next() {
		return errors.New("a row refers to one that is not there")
	}
	return dangling.Err()
}

// CopyFile copies a backup to a new file that its owner alone can read.
func CopyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Replace makes the SQLite database at path one with the content of another
// file, and keeps the old content in the file aside, if there was any. It is done
// wholly or not at all, also when the process is killed. Errors: ErrInUse when any
// process has the database open.
//
// It writes into the file that is there, as a transaction. Were another file
// renamed to its name instead, a process that opens it at that moment would go on
// with the old one.
func Replace(ctx context.Context, path, with, aside string) error {
	_, err := os.Stat(path)
	old := err == nil
	if path, err = createPrivate(path); err != nil {
		return err
	}
	return exclusiveSQLite(path)(ctx, nil, func() error {
		err := replaceAlone(ctx, path, with, aside, old)
		if damaged(err) { // it can't be read any more, so nobody can be using it
			if err = moveAside(path, aside); err == nil {
				err = replaceAlone(ctx, path, with, aside, false)
			}
		}
		return err
	})
}

// replaceAlone works on one connection, from which it knows that it is the only
// one in any process.
func replaceAlone(ctx context.Context, path, with, aside string, keep bool) (err error) {
	db, err := sql.Open("sqlite", sqliteDSN(path, "_pragma=busy_timeout(500)&_pragma=synchronous(FULL)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if err := alone(ctx, db); err != nil {
		return err
	}
	if keep {
		if err := keepAside(ctx, path, aside); err != nil {
			return err
		}
	}
	if err := copyInto(ctx, db, with); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `PRAGMA journal_mode=WAL`)
	return err
}

// alone returns nil when no other connection anywhere has the database open: only
// then does SQLite leave WAL mode, since each connection holds a lock as long as
// it lives, the idle ones of a server too.
func alone(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `PRAGMA journal_mode=DELETE`)
	if err != nil && sqliteLocked(err) {
		return ErrInUse
	}
	return err
}

// keepAside lets the old content be looked at, and brought back.
func keepAside(ctx context.Context, path, aside string) error {
	f, err := os.OpenFile(aside, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), vacuumInto(ctx, path, aside)); err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	return nil
}

// moveAside takes a database that can't be read out of the way, as it is.
func moveAside(path, aside string) error {
	for _, side := range []string{"-wal", "-shm", "-journal"} {
		if err := os.Rename(path+side, aside+side); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return publish(path, aside)
}

// copyInto copies all pages as one transaction.
func copyInto(ctx context.Context, db *sql.DB, from string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(driver any) error {
		restore, err := driver.(interface {
			NewRestore(string) (*sqlite.Backup, error)
		}).NewRestore(from)
		if err != nil {
			return err
		}
		_, err = restore.Step(-1)
		return errors.Join(err, restore.Finish())
	})
}

// damaged reports whether a database can't be read.
func damaged(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff
	return code == sqlite3.SQLITE_NOTADB || code == sqlite3.SQLITE_CORRUPT
}
