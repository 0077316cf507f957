package store_test

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

	"github.com/doorward/doorward/store"
)

// TestChangedBackupIsFound: one byte that is another, in the head, in the pages, in
// what no page uses and anywhere in the seal; an end that is missing or longer.
func TestChangedBackupIsFound(t *testing.T) {
	db := migrated(t, engines["sqlite"](t), time.Now)
	furnish(t, db)
	var out bytes.Buffer
	ok(t, db.BackupTo(t.Context(), &out))
	whole := out.Bytes()
	at := bytes.LastIndex(whole, []byte("\nDoorward backup 1\n"))
	if at < 0 || at%4096 != 0 || len(whole)-at != store.SealLength {
		t.Fatalf("the seal is at %d of %d bytes", at, len(whole))
	}
	changed := map[string][]byte{
		"without its seal":    whole[:at],
		"without a page":      slices.Concat(whole[:at-4096], whole[at:]),
		"with a page twice":   slices.Concat(whole[:at], whole[at-4096:]),
		"with a byte more":    append(slices.Clone(whole), 0),
		"with a line more":    append(slices.Clone(whole), "\n"...),
		"with its seal twice": slices.Concat(whole, whole[at:]),
		"two pages exchanged": slices.Concat(whole[:4096], whole[8192:12288], whole[4096:8192], whole[12288:]),
	}
	for i := at; i < len(whole); i++ {
		changed[fmt.Sprintf("byte %d of the seal", i-at)] = flipped(whole, i)
	}
	for _, i := range []int{0, 17, 20, 25, 30, 41, 60, 68, 71, 75, 95, 99, 101, 4096 + 50, at / 2, at/2 + 1, at - 4095, at - 1} {
		changed[fmt.Sprintf("byte %d", i)] = flipped(whole, i)
	}
	for what, content := range changed {
		file := filepath.Join(t.TempDir(), "changed.db")
		ok(t, os.WriteFile(file, content, 0o600))
		if _, err := store.CheckBackup(t.Context(), file, false); !errors.Is(err, store.ErrNoBackup) {
			t.Errorf("%s: %v", what, err)
		}
		ok(t, os.Remove(file))
	}
	ok(t, receive(t, whole))
	if err := receive(t, flipped(whole, at/2)); !errors.Is(err, store.ErrChecksum) {
		t.Errorf("from a pipe, changed in the middle: %v", err)
	}
}

func flipped(whole []byte, i int) []byte {
	other := slices.Clone(whole)
	other[i] ^= 1
	return other
}

// TestBackupOfAnOlderDoorward: one without a checksum passes, and that is known of it.
func TestBackupOfAnOlderDoorward(t *testing.T) {
	folder := t.TempDir()
	db := migrated(t, "sqlite:"+filepath.Join(folder, "doorward.db"), time.Now)
	furnish(t, db)
	older := filepath.Join(folder, "older.db")
	write, _ := store.Pools(db)
	run(t, write, `VACUUM INTO '`+older+`'`)
	info, err := store.CheckBackup(t.Context(), older, false)
	ok(t, err)
	if info.Sealed || info.Schema != store.SchemaNeeded || info.Bytes == 0 {
		t.Errorf("it is %+v", info)
	}
}

// TestRestoredCopyHasNoSeal: what is served from is a database like any other, and so
// is a copy of it. One that is damaged can be had, too, on request.
func TestRestoredCopyHasNoSeal(t *testing.T) {
	db := migrated(t, engines["sqlite"](t), time.Now)
	furnish(t, db)
	folder := t.TempDir()
	backup, copied, bad := filepath.Join(folder, "backup.db"), filepath.Join(folder, "copied.db"), filepath.Join(folder, "bad.db")
	ok(t, db.Backup(t.Context(), backup))
	ok(t, store.CopyBackup(backup, copied))
	info, err := store.CheckBackup(t.Context(), copied, false)
	ok(t, err)
	sealed, err := store.CheckBackup(t.Context(), backup, false)
	ok(t, err)
	if info.Sealed || !sealed.Sealed || info.Bytes != sealed.Bytes || time.Since(sealed.Taken).Abs() > time.Minute {
		t.Errorf("the copy is %+v, the backup %+v", info, sealed)
	}
	content, err := os.ReadFile(backup)
	ok(t, err)
	name := bytes.Index(content, []byte("株式会社"))
	ok(t, os.WriteFile(bad, flipped(content, name), 0o600))
	if err := store.CheckSealed(t.Context(), bad); !errors.Is(err, store.ErrChecksum) || !strings.Contains(err.Error(), "bad.db") {
		t.Errorf("to be moved: %v", err)
	}
	ok(t, store.CheckSealed(t.Context(), copied))
	ok(t, os.Remove(copied))
	info, err = store.CheckBackup(t.Context(), bad, true)
	ok(t, err)
	ok(t, store.CopyBackup(bad, copied))
	if _, err = store.CheckBackup(t.Context(), copied, false); err != nil || info.Sealed {
		t.Errorf("of a damaged one there is %v, %+v", err, info)
	}
}
