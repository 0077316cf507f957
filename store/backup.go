package store

import (
	"context"
	"database/sql"
	"encoding/binary"
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
// one file, readable by its owner alone, has been looked through, and ends with a
// checksum; writers aren't held up meanwhile. Errors: ErrItself, ErrNoBackup for a database that is
// damaged, and ErrOwnTools on other engines.
func (db *DB) Backup(ctx context.Context, to string) error {
	if db.engine.path == "" {
		return ErrOwnTools
	}
	if SameFile(db.engine.path, to) {
		return ErrItself
	}
	part, err := db.copyBeside(ctx, to)
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // nothing is there any more when all went well
	defer part.Close()
	if err := part.Sync(); err != nil { // SQLite leaves this to whoever asks for the copy
		return err
	}
	return publish(part.Name(), to)
}

// BackupTo writes to w what Backup writes to a file. The first byte leaves when
// the copy is complete and looked through, so that only the way can cut it off,
// which CheckBackup finds out. Until then it is a file beside the database, of
// its size at most; whatever ends the process later leaves nothing of it. Errors:
// as of Backup, and those of w.
func (db *DB) BackupTo(ctx context.Context, w io.Writer) error {
	if db.engine.path == "" {
		return ErrOwnTools
	}
	part, err := db.copyBeside(ctx, db.engine.path)
	if err != nil {
		return err
	}
	defer part.Close()
	if err := os.Remove(part.Name()); err != nil {
		return err
	}
	_, err = io.Copy(w, &reader{ctx, part})
	return err
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// copyBeside makes a copy in the folder of a file, open and looked through, which
// the caller removes or gives a name.
func (db *DB) copyBeside(ctx context.Context, file string) (*os.File, error) {
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.part") // of mode 0600
	if err != nil {
		return nil, err
	}
	if err = vacuumInto(ctx, db.engine.path, part.Name()); err != nil {
		err = fmt.Errorf("store: backup: %w", err)
	} else if err = sealFile(ctx, part, db.Now()); err != nil {
		err = fmt.Errorf("store: backup: %w", err)
	} else if _, err = CheckBackup(ctx, part.Name(), false); err != nil {
		err = fmt.Errorf("store: the copy is not kept: %w", err)
	}
	if err != nil {
		return nil, errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	return part, nil
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
// Doorward that this one understands, of an older schema too, and byte for byte what
// was written: that is known of those with a checksum, which older ones don't have. With
// damaged, one whose checksum is wrong passes when SQLite finds nothing wrong. Errors:
// ErrNoBackup, also for one that was cut off on its way, ErrChecksum, ErrSchema for one
// that is too new, and those of reading.
func CheckBackup(ctx context.Context, file string, damaged bool) (BackupInfo, error) {
	return checkBackup(ctx, file, file, damaged)
}

// checkBackup gives the file a name of its own in errors.
func checkBackup(ctx context.Context, file, name string, damaged bool) (info BackupInfo, err error) {
	if err := cutOff(file, name); err != nil {
		return info, err
	}
	info, err = checkSeal(ctx, file, name)
	if err != nil && !(damaged && errors.Is(err, ErrChecksum)) {
		return info, err
	}
	info.Wrong = err != nil
	info.Schema, err = checkContent(ctx, file, name)
	return info, err
}

// checkContent returns the schema of a database that is whole.
func checkContent(ctx context.Context, file, name string) (have int64, err error) {
	if log, err := os.Stat(file + "-wal"); err == nil && log.Size() > 0 {
		return 0, fmt.Errorf("%w: %s is a database in use; its newest rows are in %[2]s-wal. Take a backup of it", ErrNoBackup, file)
	}
	db, err := OpenBackup(file)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if err := sound(ctx, db.read); err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrNoBackup, name, err)
	}
	if err := db.read.QueryRowContext(ctx, sqlSchema).Scan(&have); err != nil || have == 0 {
		return 0, fmt.Errorf("%w: %s is a database of another program", ErrNoBackup, name)
	}
	if have > schemaNeeded {
		return have, goesOn(ctx, db.read, have)
	}
	return have, nil
}

// The head of a SQLite file (https://sqlite.org/fileformat2.html, section 1.3):
// what it begins with, and where numbers are, each of four bytes but for the
// first, of two.
const (
	headMagic    = "SQLite format 3\x00"
	headLength   = 100
	headPageSize = 16
	headChanges  = 24
	headPages    = 28
	headValidFor = 92 // at which number of changes the number of pages was right
)

// cutOff returns ErrNoBackup when the file ends earlier than its head says. SQLite
// would find that too, but call it damage, where the cause is that a pipe broke.
func cutOff(file, name string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, headLength)
	n, err := io.ReadFull(f, head)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case n == 0:
		return fmt.Errorf("%w: %s: it is empty", ErrNoBackup, name)
	case !strings.HasPrefix(string(head), headMagic[:min(n, len(headMagic))]):
		return nil // no database at all, as SQLite will say
	case err != nil:
		return fmt.Errorf("%w: %s: it was cut off after %d bytes", ErrNoBackup, name, n)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if want := lengthIn(head); err == nil && size < want {
		return fmt.Errorf("%w: %s: it was cut off: only %d of its %d bytes are there", ErrNoBackup, name, size, want)
	}
	return err
}

// lengthIn is how long the file is to be, or 0 when its head doesn't say.
func lengthIn(head []byte) int64 {
	number := func(at int) uint32 { return binary.BigEndian.Uint32(head[at:]) }
	if number(headChanges) != number(headValidFor) {
		return 0
	}
	pageSize := int64(binary.BigEndian.Uint16(head[headPageSize:]))
	if pageSize == 1 { // which doesn't fit
		pageSize = 65536
	}
	return pageSize * int64(number(headPages))
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

// CopyBackup copies a backup that was checked to a new file that its owner alone can
// read, without its checksum: a database to be served.
func CopyBackup(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := copyNew(in, to); err != nil {
		return err
	}
	return unseal(to)
}

func copyNew(in io.Reader, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// ReceiveBackup copies what comes out of a pipe to a new file that its owner alone
// can read, checks it as CheckBackup does, and then does as CopyBackup does.
func ReceiveBackup(ctx context.Context, from *os.File, to string, damaged bool) (BackupInfo, error) {
	if err := copyNew(&reader{ctx, from}, to); err != nil {
		return BackupInfo{}, err
	}
	info, err := checkBackup(ctx, to, from.Name(), damaged)
	if err != nil {
		return info, err
	}
	return info, unseal(to)
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
