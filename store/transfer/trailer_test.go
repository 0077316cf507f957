package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/store/storetest"
	"github.com/doorward/doorward/store/transfer"
)

// TestChangedBackupIsFound: one flipped bit in the header, the pages, unused space or the
// trailer; pages that are missing, twice or exchanged; a trailer that is missing, twice or
// longer.
func TestChangedBackupIsFound(t *testing.T) {
	db := newDatabase(t, storetest.Engines["sqlite"](t))
	fill(t, db.DB)
	var out bytes.Buffer
	ok(t, transfer.BackupTo(t.Context(), db.DB, &out))
	complete := out.Bytes()
	at := bytes.LastIndex(complete, []byte("\nDoorward backup 1\n"))
	if at < 0 || at%4096 != 0 || len(complete)-at != transfer.TrailerLength {
		t.Fatalf("the trailer is at %d of %d bytes", at, len(complete))
	}
	changed := map[string][]byte{
		"without its trailer":    complete[:at],
		"without a page":         slices.Concat(complete[:at-4096], complete[at:]),
		"with a page twice":      slices.Concat(complete[:at], complete[at-4096:]),
		"with a byte more":       append(slices.Clone(complete), 0),
		"with a line more":       append(slices.Clone(complete), "\n"...),
		"with its trailer twice": slices.Concat(complete, complete[at:]),
		"two pages exchanged":    slices.Concat(complete[:4096], complete[8192:12288], complete[4096:8192], complete[12288:]),
	}
	for i := at; i < len(complete); i++ {
		changed[fmt.Sprintf("byte %d of the trailer", i-at)] = flipped(complete, i)
	}
	for _, i := range []int{0, 17, 20, 25, 30, 41, 60, 68, 71, 75, 95, 99, 101, 4096 + 50, at / 2, at/2 + 1, at - 4095, at - 1} {
		changed[fmt.Sprintf("byte %d", i)] = flipped(complete, i)
	}
	for what, content := range changed {
		file := filepath.Join(t.TempDir(), "changed.db")
		ok(t, os.WriteFile(file, content, 0o600))
		if _, err := transfer.Check(t.Context(), file, false); !errors.Is(err, transfer.ErrBadBackup) {
			t.Errorf("%s: %v, want ErrBadBackup", what, err)
		}
		ok(t, os.Remove(file))
	}
	ok(t, receive(t, complete))
	if err := receive(t, flipped(complete, at/2)); !errors.Is(err, transfer.ErrChecksum) {
		t.Errorf("from a pipe, changed in the middle: %v, want ErrChecksum", err)
	}
}

func flipped(complete []byte, i int) []byte {
	other := slices.Clone(complete)
	other[i] ^= 1
	return other
}

// TestBackupWithoutATrailer: a backup of an old version passes, as one without a checksum.
func TestBackupWithoutATrailer(t *testing.T) {
	folder := t.TempDir()
	db := newDatabase(t, "sqlite:"+filepath.Join(folder, "doorward.db"))
	fill(t, db.DB)
	older := filepath.Join(folder, "older.db")
	storetest.Exec(t, db.raw, `VACUUM INTO '`+older+`'`)
	info, err := transfer.Check(t.Context(), older, false)
	ok(t, err)
	schema, err := db.Schema(t.Context())
	ok(t, err)
	if info.Verified || info.Schema != schema || info.Bytes == 0 {
		t.Errorf("the backup's info is %+v", info)
	}
}

// TestRestoredCopyHasNoTrailer: the copy is an ordinary database, as are copies of it. A
// damaged backup can be copied, too, on request.
func TestRestoredCopyHasNoTrailer(t *testing.T) {
	db := newDatabase(t, storetest.Engines["sqlite"](t))
	fill(t, db.DB)
	folder := t.TempDir()
	backup, copied, bad := filepath.Join(folder, "backup.db"), filepath.Join(folder, "copied.db"), filepath.Join(folder, "bad.db")
	ok(t, transfer.Backup(t.Context(), db.DB, backup))
	ok(t, transfer.Copy(t.Context(), backup, copied))
	info, err := transfer.Check(t.Context(), copied, false)
	ok(t, err)
	original, err := transfer.Check(t.Context(), backup, false)
	ok(t, err)
	if info.Verified || !original.Verified || info.Bytes != original.Bytes || time.Since(original.Taken).Abs() > time.Minute {
		t.Errorf("the copy's info is %+v, the backup's %+v", info, original)
	}
	content, err := os.ReadFile(backup)
	ok(t, err)
	name := bytes.Index(content, []byte("株式会社"))
	ok(t, os.WriteFile(bad, flipped(content, name), 0o600))
	if err := transfer.CheckIfBackup(t.Context(), bad); !errors.Is(err, transfer.ErrChecksum) || !strings.Contains(err.Error(), "bad.db") {
		t.Errorf("checked before a move: %v, want ErrChecksum of bad.db", err)
	}
	ok(t, transfer.CheckIfBackup(t.Context(), copied))
	ok(t, os.Remove(copied))
	info, err = transfer.Check(t.Context(), bad, true)
	if err != nil || info.Verified || !info.ChecksumWrong {
		t.Errorf("a damaged backup, on request: %+v, %v", info, err)
	}
	ok(t, transfer.Copy(t.Context(), bad, copied))
	_, err = transfer.Check(t.Context(), copied, false)
	ok(t, err)
}
