// Package sqlitefile has the operations of store and store/transfer on SQLite
// databases as files: DSNs, creation, locks, pools that cache statements, and
// classification of errors.
package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/doorward/doorward/store/internal/rows"
)

// DSN is the driver's name for the file. more has parameters as in the query of a URL.
func DSN(path, more string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	return u.String() + "?_pragma=foreign_keys(1)&" + more
}

// CreatePrivate creates the file, if it doesn't exist, for its owner alone; SQLite gives
// its side files the same mode. It returns the absolute path: connections are opened when
// needed, when the working directory may be another one, and no absolute path is one of the
// names that are special to SQLite, such as :memory:.
func CreatePrivate(path string) (string, error) {
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

// Exclusive runs fn while no other process is in Exclusive for the same database. It locks
// a file beside the database: a transaction per migration would come
// too late to keep a second process from starting the same one.
func Exclusive(ctx context.Context, path string, fn func() error) error {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return rows.Fault(fmt.Errorf("lock for migration: %w", err))
	}
	defer f.Close() // which releases the lock
	if err := lock(ctx, f); err != nil {
		return rows.Fault(fmt.Errorf("lock for migration: %s: %w", f.Name(), err))
	}
	return fn()
}

// lock polls, because a blocking flock can't be cancelled.
func lock(ctx context.Context, f *os.File) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// IsLocked reports whether another connection holds the lock that a statement needs.
func IsLocked(err error) bool { return primary(err) == sqlite3.SQLITE_BUSY }

// IsFull reports whether there is no space for what is to be written.
func IsFull(err error) bool { return primary(err) == sqlite3.SQLITE_FULL }

// IsDamaged reports whether the file can't be read as a database.
func IsDamaged(err error) bool {
	code := primary(err)
	return code == sqlite3.SQLITE_NOTADB || code == sqlite3.SQLITE_CORRUPT
}

// IsTransient reports whether the transaction may be run again. With a single
// immediate writer only a stale snapshot is transient; for a busy database the
// driver has already waited.
func IsTransient(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_BUSY_SNAPSHOT
}

// primary is the code of an error of SQLite without its extension; 0 for other errors.
func primary(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}
