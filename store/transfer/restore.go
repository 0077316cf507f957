package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"

	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store/internal/sqlitefile"
)

// Copy copies a checked backup to a new file, without its checksum: a database to be
// served. Only its owner can read the file.
func Copy(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	progress.Step(ctx, "copying the backup", sizeOf(from), nil)
	if err := copyNew(&ctxReader{ctx, in}, to); err != nil {
		return err
	}
	return removeTrailer(to)
}

func copyNew(in io.Reader, path string) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Receive copies a backup from a pipe to a new file that only its owner can read,
// checks it like Check, and removes its checksum.
func Receive(ctx context.Context, pipe *os.File, path string, allowDamaged bool) (Info, error) {
	progress.Step(ctx, "receiving the backup", 0, nil)
	if err := copyNew(&ctxReader{ctx, pipe}, path); err != nil {
		return Info{}, err
	}
	info, err := check(ctx, path, pipe.Name(), allowDamaged)
	if err != nil {
		return info, err
	}
	return info, removeTrailer(path)
}

// ErrRestoring says that another restore writes into the folder.
var ErrRestoring = errors.New("store: another restore is under way")

// Alone runs fn while no other call of Alone runs for a file in the same folder, of any process. Errors:
// ErrRestoring if one does; those of fn.
func Alone(path string, fn func() error) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close() // which releases the lock
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%w in %s", ErrRestoring, folder.Name())
	}
	if err != nil {
		return err
	}
	return fn()
}

// Replace gives the SQLite database at path the content of source, and keeps the old
// content, if any, in oldFile. It is atomic even if the process is killed, except that it
// moves a damaged database to oldFile first. Errors: ErrInUse if any process has the database
// open.
//
// It writes into the existing file, as a transaction. If it renamed another file to its
// name, a process opening it at that moment would continue with the old one.
func Replace(ctx context.Context, path, source, oldFile string) error {
	progress.Step(ctx, "replacing the database", 0, nil)
	_, err := os.Stat(path)
	exists := err == nil
	if path, err = sqlitefile.CreatePrivate(path); err != nil {
		return err
	}
	return sqlitefile.Exclusive(ctx, path, func() error {
		err := replaceAlone(ctx, path, source, oldFile, exists)
		if sqlitefile.IsDamaged(err) { // no process can be using it
			if err = moveAside(path, oldFile); err != nil {
				return err
			}
			if _, err = sqlitefile.CreatePrivate(path); err == nil { // SQLite would let others read it
				err = replaceAlone(ctx, path, source, oldFile, false)
			}
		}
		return err
	})
}

// replaceAlone uses one connection, and makes sure that no process has another. keep says
// whether there is old content to keep.
func replaceAlone(ctx context.Context, path, source, oldFile string, keep bool) (err error) {
	db, err := sql.Open("sqlite", sqlitefile.DSN(path, "_pragma=busy_timeout(500)&_pragma=synchronous(FULL)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if err := checkAlone(ctx, db); err != nil {
		return err
	}
	if keep {
		if err := keepAside(ctx, path, oldFile); err != nil {
			return err
		}
	}
	if err := copyInto(ctx, db, source); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `PRAGMA journal_mode=WAL`)
	return err
}

// checkAlone returns ErrInUse if another connection of any process has the database open.
// SQLite leaves WAL mode only without other connections: each holds a lock while it is
// open, including idle ones of a server.
func checkAlone(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `PRAGMA journal_mode=DELETE`)
	if err != nil && sqlitefile.IsLocked(err) {
		return ErrInUse
	}
	return err
}

// keepAside copies the old content, to be inspected or restored.
func keepAside(ctx context.Context, path, oldFile string) error {
	f, err := os.OpenFile(oldFile, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), vacuumInto(ctx, path, oldFile)); err != nil {
		return errors.Join(err, os.Remove(oldFile))
	}
	return nil
}

// moveAside renames an unreadable database, with its side files.
func moveAside(path, oldFile string) error {
	for _, side := range []string{"-wal", "-shm", "-journal"} {
		if err := os.Rename(path+side, oldFile+side); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return publish(path, oldFile)
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
