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
	"time"

	"github.com/doorward/doorward/store/internal/rows"
)

// A backup ends with a seal: lines after the last page, which SQLite doesn't read, with a
// checksum of everything before. So it is one file, which sqlite3 can still open. The
// application id in the header marks a sealed backup: one that lost its end isn't mistaken
// for one of an old version, which made no seals.

// ErrChecksum says that a backup isn't what was written. It is an ErrBadBackup, too.
var ErrChecksum = fmt.Errorf("%w: the checksum", ErrBadBackup)

// Info describes a checked backup.
type Info struct {
	Sealed bool      // its checksum is right
	Wrong  bool      // its checksum is wrong or lost; if neither, an old version made it
	Taken  time.Time // zero unless sealed
	Bytes  int64     // without the seal
	SHA256 string    // of these bytes and the seal's first lines, hexadecimal; empty unless sealed
	Schema int64     // the number of its newest migration
}

const (
	sealHead   = "\nDoorward backup 1\ntaken %s\nbytes %020d\nsha256 "
	sealTime   = "2006-01-02T15:04:05.000000Z" // all seals have the same length
	sealLength = len(sealHead) - len("%s") + len(sealTime) - len("%020d") + 20 + 2*sha256.Size + 1

	headApplication   = 68 // in the header of a SQLite file
	sealedApplication = 0x44574231
)

var sealForm = regexp.MustCompile(`^\nDoorward backup 1\ntaken (\S{27})\nbytes (\d{20})\nsha256 ([0-9a-f]{64})\n$`)

// seal is the content of a seal.
type seal struct {
	taken time.Time
	bytes int64
	sum   string
}

func (s seal) head() string { return fmt.Sprintf(sealHead, s.taken.UTC().Format(sealTime), s.bytes) }

// parseSeal reports whether the text is a seal as written by this program.
func parseSeal(text []byte) (s seal, ok bool) {
	found := sealForm.FindSubmatch(text)
	if found == nil {
		return s, false
	}
	taken, err := time.Parse(sealTime, string(found[1]))
	if err != nil {
		return s, false
	}
	s.bytes, err = strconv.ParseInt(string(found[2]), 10, 64)
	s.taken, s.sum = taken, string(found[3])
	return s, err == nil
}

// checksum also covers the head of the seal.
func (s seal) checksum(ctx context.Context, f io.ReaderAt) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, &ctxReader{ctx, io.NewSectionReader(f, 0, s.bytes)}); err != nil {
		return "", err
	}
	_, _ = io.WriteString(h, s.head()) // never fails
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sealFile seals a finished copy, which only f has open.
func sealFile(ctx context.Context, f *os.File, taken time.Time) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(application(sealedApplication), headApplication); err != nil {
		return err
	}
	s := seal{taken: taken, bytes: size}
	if s.sum, err = s.checksum(ctx, f); err != nil {
		return err
	}
	if _, err := io.WriteString(f, s.head()+s.sum+"\n"); err != nil {
		return err
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// unseal turns a copy of a backup into a database to be served. Copies of that by other
// programs must not look like a truncated backup.
func unseal(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	marked, s, ok, err := sealOf(f)
	if err != nil {
		return err
	}
	if ok {
		err = f.Truncate(s.bytes)
	}
	if marked && err == nil {
		_, err = f.WriteAt(application(0), headApplication)
	}
	return errors.Join(err, f.Sync())
}

func application(id uint32) []byte { return binary.BigEndian.AppendUint32(nil, id) }

// sealOf reads the seal of a file, if it ends with a valid one for its length, and
// whether its header says that it is sealed.
func sealOf(f *os.File) (marked bool, s seal, ok bool, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size < headLength {
		return false, s, false, err
	}
	id := make([]byte, 4)
	if _, err := f.ReadAt(id, headApplication); err != nil {
		return false, s, false, err
	}
	marked = binary.BigEndian.Uint32(id) == sealedApplication
	if size < int64(sealLength) {
		return marked, s, false, nil
	}
	end := make([]byte, sealLength)
	if _, err := f.ReadAt(end, size-int64(sealLength)); err != nil {
		return marked, s, false, err
	}
	s, ok = parseSeal(end)
	return marked, s, ok && s.bytes == size-int64(sealLength), nil
}

// checkSeal reads the complete file, in bounded memory. Errors: ErrChecksum and read
// errors.
func checkSeal(ctx context.Context, file, name string) (info Info, err error) {
	f, err := os.Open(file)
	if err != nil {
		return info, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return info, err
	}
	marked, s, ok, err := sealOf(f)
	switch {
	case err != nil:
		return info, err
	case ok:
		return s.check(ctx, f, name)
	case marked:
		return info, fmt.Errorf("%w at the end of %s is missing: it was cut off, something was added, or a program has written to it", ErrChecksum, name)
	}
	return Info{Bytes: size}, nil
}

func (s seal) check(ctx context.Context, f *os.File, name string) (info Info, err error) {
	sum, err := s.checksum(ctx, f)
	if err != nil {
		return info, err
	}
	if sum != s.sum {
		return info, fmt.Errorf("%w of %s is wrong: the file isn't what was written at %s", ErrChecksum, name, s.taken.Format(time.RFC3339))
	}
	return Info{Sealed: true, Taken: s.taken, Bytes: s.bytes, SHA256: s.sum}, nil
}

// CheckSealed returns nil for a database that isn't a backup, else the result of Check.
// It is for a source file that may be either.
func CheckSealed(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil // opening it will fail
	}
	if err != nil {
		return rows.Fault(err)
	}
	defer f.Close()
	marked, _, ok, err := sealOf(f)
	if err == nil && (marked || ok) {
		_, err = Check(ctx, file, false)
	}
	return err
}
