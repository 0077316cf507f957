package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store/internal/rows"
)

// A backup ends with a trailer: lines after the last page, which SQLite doesn't read, with
// a checksum of everything before. So it is one file, which sqlite3 can still open. The
// application id in the header says that a trailer must follow, so a truncated backup is
// not mistaken for one of an old version, which wrote no trailers.

// ErrChecksum says that a backup isn't what was written. It is an ErrBadBackup, too.
var ErrChecksum = fmt.Errorf("%w: the checksum", ErrBadBackup)

// Info describes a checked backup.
type Info struct {
	Verified      bool      // its checksum is right; without ChecksumWrong either it has none: a copy, or made by an old version
	ChecksumWrong bool      // its checksum is wrong or lost
	Taken         time.Time // zero unless Verified
	Bytes         int64     // without the trailer
	SHA256        string    // of these bytes and the trailer's first lines, in hexadecimal; empty unless Verified
	Schema        int64     // the number of its newest migration
}

const (
	trailerHead   = "\nDoorward backup 1\ntaken %s\nbytes %020d\nsha256 "
	trailerTime   = "2006-01-02T15:04:05.000000Z" // all trailers have the same length
	trailerLength = len(trailerHead) - len("%s") + len(trailerTime) - len("%020d") + 20 + 2*sha256.Size + 1

	headApplication   = 68         // in the header of a SQLite file
	backupApplication = 0x44574231 // DWB1 in ASCII
)

// trailerForm is large, so a start doesn't compile it.
var trailerForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\nDoorward backup 1\ntaken (\S{27})\nbytes (\d{20})\nsha256 ([0-9a-f]{64})\n$`)
})

// trailer is the content of the lines at the end of a backup.
type trailer struct {
	taken time.Time
	bytes int64
	sum   string
}

func (t trailer) head() string {
	return fmt.Sprintf(trailerHead, t.taken.UTC().Format(trailerTime), t.bytes)
}

// parseTrailer reports whether the text is a trailer as written by this program.
func parseTrailer(text []byte) (t trailer, ok bool) {
	found := trailerForm().FindSubmatch(text)
	if found == nil {
		return t, false
	}
	taken, err := time.Parse(trailerTime, string(found[1]))
	if err != nil {
		return t, false
	}
	t.bytes, err = strconv.ParseInt(string(found[2]), 10, 64)
	t.taken, t.sum = taken, string(found[3])
	return t, err == nil
}

// checksum is the SHA-256 of the database and of the trailer's other lines.
func (t trailer) checksum(ctx context.Context, f io.ReaderAt) (string, error) {
	progress.Step(ctx, "computing the checksum", t.bytes, nil)
	h := sha256.New()
	if _, err := io.Copy(h, &ctxReader{ctx, io.NewSectionReader(f, 0, t.bytes)}); err != nil {
		return "", err
	}
	_, _ = io.WriteString(h, t.head()) // never fails
	return hex.EncodeToString(h.Sum(nil)), nil
}

// addTrailer completes a copy, which only f has open.
func addTrailer(ctx context.Context, f *os.File, taken time.Time) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(application(backupApplication), headApplication); err != nil {
		return err
	}
	t := trailer{taken: taken, bytes: size}
	if t.sum, err = t.checksum(ctx, f); err != nil {
		return err
	}
	if _, err := io.WriteString(f, t.head()+t.sum+"\n"); err != nil {
		return err
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// removeTrailer turns a copy of a backup into a database to be served. It also removes the
// mark in the header: a copy that another program makes of this database has no trailer,
// and must not look like a truncated backup.
func removeTrailer(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	marked, t, ok, err := readTrailer(f)
	if err != nil {
		return err
	}
	if ok {
		err = f.Truncate(t.bytes)
	}
	if marked && err == nil {
		_, err = f.WriteAt(application(0), headApplication)
	}
	return errors.Join(err, f.Sync())
}

func application(id uint32) []byte { return binary.BigEndian.AppendUint32(nil, id) }

// readTrailer reads the trailer of a file. ok reports whether it is valid for the file's
// length, and marked whether the header says that there must be one.
func readTrailer(f *os.File) (marked bool, t trailer, ok bool, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size < headLength {
		return false, t, false, err
	}
	id := make([]byte, 4)
	if _, err := f.ReadAt(id, headApplication); err != nil {
		return false, t, false, err
	}
	marked = binary.BigEndian.Uint32(id) == backupApplication
	if size < int64(trailerLength) {
		return marked, t, false, nil
	}
	end := make([]byte, trailerLength)
	if _, err := f.ReadAt(end, size-int64(trailerLength)); err != nil {
		return marked, t, false, err
	}
	t, ok = parseTrailer(end)
	return marked, t, ok && t.bytes == size-int64(trailerLength), nil
}

// checkTrailer compares the complete file with its checksum, in bounded memory. Errors:
// ErrChecksum and read errors.
func checkTrailer(ctx context.Context, file, name string) (info Info, err error) {
	f, err := os.Open(file)
	if err != nil {
		return info, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return info, err
	}
	marked, t, ok, err := readTrailer(f)
	switch {
	case err != nil:
		return info, err
	case ok:
		return t.check(ctx, f, name)
	case marked:
		return info, fmt.Errorf("%w at the end of %s is missing: it was cut off, something was added, or a program has written to it", ErrChecksum, name)
	}
	return Info{Bytes: size}, nil
}

func (t trailer) check(ctx context.Context, f *os.File, name string) (info Info, err error) {
	sum, err := t.checksum(ctx, f)
	if err != nil {
		return info, err
	}
	if sum != t.sum {
		return info, fmt.Errorf("%w of %s is wrong: the file isn't what was written at %s", ErrChecksum, name, t.taken.Format(time.RFC3339))
	}
	return Info{Verified: true, Taken: t.taken, Bytes: t.bytes, SHA256: t.sum}, nil
}

// CheckIfBackup returns nil for a database that isn't a backup, else the result of Check.
// It is for a source file that may be either.
func CheckIfBackup(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil // opening it will fail
	}
	if err != nil {
		return rows.Fault(err)
	}
	defer f.Close()
	marked, _, ok, err := readTrailer(f)
	if err == nil && (marked || ok) {
		_, err = Check(ctx, file, false)
	}
	return err
}
