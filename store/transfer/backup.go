// Package transfer copies a complete installation: it makes, checks and restores
// backups of SQLite databases, and copies every row from one database into another.
// What such a copy must not revive (sessions, links) is ended by app/installation.
//
// A backup is one file: a SQLite database followed by a trailer with a checksum,
// see trailer.go.
package transfer

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

	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/internal/sqlitefile"
)

var (
	// ErrOwnTools says that the database must be copied with its own programs:
	// pg_dump, pg_basebackup and the like.
	ErrOwnTools = errors.New("store: PostgreSQL is backed up and restored by its own programs")
	// ErrInUse says that another process has the database open.
	ErrInUse = errors.New("store: the database is in use")
	// ErrItself says that a database would be copied onto itself.
	ErrItself = errors.New("store: that is the database itself")
	// ErrBadBackup says that a file isn't an intact backup of a Doorward database.
	ErrBadBackup = errors.New("store: not an intact backup")
)

// SQLitePath returns the path in a DSN of SQLite, or ErrOwnTools.
func SQLitePath(dsn string) (string, error) {
	path, isSQLite := strings.CutPrefix(dsn, "sqlite:")
	if !isSQLite {
		return "", ErrOwnTools
	}
	return filepath.Abs(path)
}

// Backup writes a copy of a SQLite database to a file, which it replaces atomically. The
// copy shows one instant, is complete in one file, readable by its owner only, checked,
// and ends with a checksum; writers don't wait for it. Errors: ErrItself, ErrBadBackup for
// a damaged database, and ErrOwnTools on other engines.
func Backup(ctx context.Context, db *store.DB, file string) error {
	if db.File() == "" {
		return ErrOwnTools
	}
	if SameFile(db.File(), file) {
		return ErrItself
	}
	part, err := copyBeside(ctx, db, file)
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // after publish there is nothing to remove
	defer part.Close()
	if err := part.Sync(); err != nil { // VACUUM INTO doesn't
		return err
	}
	return publish(part.Name(), file)
}

// BackupTo writes to w what Backup writes to a file. It writes the first byte when the copy
// is complete and checked; Check detects a truncated transmission. The copy is an unlinked
// file beside the database, of its size at most: nothing is left, however the process ends.
// Errors: those of Backup and of w.
func BackupTo(ctx context.Context, db *store.DB, w io.Writer) error {
	if db.File() == "" {
		return ErrOwnTools
	}
	part, err := copyBeside(ctx, db, db.File())
	if err != nil {
		return err
	}
	defer part.Close()
	if err := os.Remove(part.Name()); err != nil {
		return err
	}
	progress.Step(ctx, "sending the backup", sizeOfOpen(part), nil)
	_, err = io.Copy(w, &ctxReader{ctx, part})
	return err
}

// ctxReader fails once its context has ended, and counts bytes in the context's progress.
type ctxReader struct {
	ctx context.Context
	io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.Reader.Read(p)
	progress.Add(r.ctx, int64(n))
	return n, err
}

// copyBeside makes a checked copy in the folder of a file and opens it. The caller must
// remove or rename it.
func copyBeside(ctx context.Context, db *store.DB, file string) (*os.File, error) {
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.part") // of mode 0600
	if err != nil {
		return nil, err
	}
	progress.Step(ctx, "copying the database", sizeOf(db.File()), func() int64 { return sizeOf(part.Name()) })
	if err = vacuumInto(ctx, db.File(), part.Name()); err != nil {
		err = fmt.Errorf("store: backup: %w", err)
	} else if err = addTrailer(ctx, part, db.Now()); err != nil {
		err = fmt.Errorf("store: backup: %w", err)
	} else if _, err = Check(ctx, part.Name(), false); err != nil {
		err = fmt.Errorf("store: backup: the copy is not sound and was removed: %w", err)
	}
	if err != nil {
		return nil, errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	return part, nil
}

// sizeOf returns the size of a file in bytes, 0 if that isn't known.
func sizeOf(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// sizeOfOpen is sizeOf for a file that may have no name any more.
func sizeOfOpen(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
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

// vacuumInto copies with VACUUM INTO: one read transaction, so it sees one instant and, in
// WAL mode, blocks no writer. SQLite's backup API would restart at each commit of another
// process and never end on a busy server. The copy has no deleted rows.
func vacuumInto(ctx context.Context, source, dest string) error {
	db, err := sql.Open("sqlite", sqlitefile.DSN(source, "_pragma=busy_timeout(2000)"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO $1`, dest)
	return errors.Join(err, db.Close())
}

// publish renames a finished file, and syncs the folder so that a power cut can't undo it.
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

// Check returns nil if the file is a complete and consistent Doorward database, with a
// schema that this binary supports or can migrate, and its checksum, if it has one, is right:
// copies that other programs made have none. With allowDamaged, a wrong checksum passes if SQLite finds no fault.
// Errors: ErrBadBackup, also for a truncated file, ErrChecksum, store.ErrSchema for another
// schema, and read errors.
func Check(ctx context.Context, file string, allowDamaged bool) (Info, error) {
	return check(ctx, file, file, allowDamaged)
}

// check is Check with another name for the file in errors.
func check(ctx context.Context, file, name string, allowDamaged bool) (info Info, err error) {
	if err := checkLength(file, name); err != nil {
		return info, err
	}
	info, err = checkTrailer(ctx, file, name)
	if err != nil && !(allowDamaged && errors.Is(err, ErrChecksum)) {
		return info, err
	}
	info.ChecksumWrong = err != nil
	info.Schema, err = checkContent(ctx, file, name)
	return info, err
}

// checkContent checks that a database is complete and returns its schema.
func checkContent(ctx context.Context, file, name string) (schema int64, err error) {
	if log, err := os.Stat(file + "-wal"); err == nil && log.Size() > 0 {
		return 0, fmt.Errorf("%w: %s is a database in use; its newest rows are in %[2]s-wal. Take a backup of it", ErrBadBackup, file)
	}
	if err := checkPages(ctx, file); err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrBadBackup, name, err)
	}
	db, err := store.OpenImmutable(file)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if schema, err = db.Schema(ctx); schema == 0 {
		return 0, fmt.Errorf("%w: %s is a database of another program", ErrBadBackup, name)
	}
	return schema, err
}

// The header of a SQLite file (https://sqlite.org/fileformat2.html, section 1.3): its
// first bytes, and the offsets of numbers of four bytes each, except the page size,
// of two.
const (
	headMagic    = "SQLite format 3\x00"
	headLength   = 100
	headPageSize = 16
	headChanges  = 24
	headPages    = 28
	headValidFor = 92 // the number of changes at which headPages was written
)

// checkLength returns ErrBadBackup if the file is shorter than its header says. SQLite
// would call that damage, although the cause is a broken pipe.
func checkLength(file, name string) error {
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
		return fmt.Errorf("%w: %s: it is empty", ErrBadBackup, name)
	case !strings.HasPrefix(string(head), headMagic[:min(n, len(headMagic))]):
		return nil // SQLite will report that it is no database
	case err != nil:
		return fmt.Errorf("%w: %s: it was cut off after %d bytes", ErrBadBackup, name, n)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if want := lengthIn(head); err == nil && size < want {
		return fmt.Errorf("%w: %s: it was cut off: only %d of its %d bytes are there", ErrBadBackup, name, size, want)
	}
	return err
}

// lengthIn returns the file's length according to the header, or 0 if unknown.
func lengthIn(head []byte) int64 {
	number := func(at int) uint32 { return binary.BigEndian.Uint32(head[at:]) }
	if number(headChanges) != number(headValidFor) {
		return 0
	}
	pageSize := int64(binary.BigEndian.Uint16(head[headPageSize:]))
	if pageSize == 1 { // 65536 doesn't fit into two bytes
		pageSize = 65536
	}
	return pageSize * int64(number(headPages))
}

// checkPages returns nil if SQLite finds no fault in pages, indexes and references.
func checkPages(ctx context.Context, file string) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", sqlitefile.DSN(path, "mode=ro&immutable=1"))
	if err != nil {
		return err
	}
	defer db.Close()
	progress.Step(ctx, "checking pages and indexes", 0, nil)
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
