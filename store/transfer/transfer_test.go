package transfer_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/pgtest"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/storetest"
	"github.com/doorward/doorward/store/transfer"
)

// database is a database with a connection for statements of the test.
type database struct {
	*store.DB
	raw *sql.DB
}

func newDatabase(t testing.TB, dsn string) database {
	t.Helper()
	return database{storetest.Migrated(t, dsn, time.Now), storetest.Raw(t, dsn)}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill inserts values that databases might write differently: letters, NULL and empty
// values, bytes, extreme numbers, and more rows than fit in a batch.
func fill(t testing.TB, db *store.DB) {
	t.Helper()
	ctx := t.Context()
	_, err := db.Write(ctx, func(tx *store.Tx) error {
		tenant := doorward.Tenant{ID: "tnt_1", Name: "Ägme \"&' 株式会社 🚪", Status: doorward.TenantActive, CreatedAt: tx.Now}
		if err := tx.InsertTenant(ctx, tenant); err != nil {
			return err
		}
		for i := range 1200 {
			a := doorward.Account{ID: fmt.Sprintf("usr_%04d", i), Email: fmt.Sprintf("p%d@acme.example", i), CreatedAt: tx.Now}
			if _, err := tx.InsertAccount(ctx, a); err != nil {
				return err
			}
			u := doorward.User{ID: a.ID, Email: a.Email, TenantID: tenant.ID, Role: doorward.RoleUser, Status: doorward.UserActive, CreatedAt: tx.Now}
			if _, err := tx.InsertMembership(ctx, u); err != nil {
				return err
			}
		}
		if err := tx.PutLogo(ctx, tenant.ID, doorward.Logo{Hash: "h", Width: 1, Height: 1}, []byte{0x89, 0, 0xff}); err != nil {
			return err
		}
		if _, err := tx.MakeSharedSecret(ctx, "empty", []byte{}); err != nil {
			return err
		}
		if _, err := tx.MakeSharedSecret(ctx, "bytes", []byte{0, 0xff, '\'', 0}); err != nil {
			return err
		}
		tx.RequestFlush([]byte{1})
		return tx.InsertEvent(ctx, doorward.Event{ID: "evt_1", Action: doorward.TenantCreate, Outcome: doorward.Done, ActorType: doorward.Operator, Changes: []doorward.Change{{Field: "name", To: "\t\n"}}})
	})
	ok(t, err)
}

// TestMoveRoundTrip: a move to PostgreSQL and back changes nothing in any table
// that the migrations make.
func TestMoveRoundTrip(t *testing.T) {
	file := func() database { return newDatabase(t, storetest.Engines["sqlite"](t)) }
	first, second, third := file(), newDatabase(t, pgtest.DSN(t)), file()
	fill(t, first.DB)
	toPostgres, err := transfer.Move(t.Context(), first.DB, second.DB)
	ok(t, err)
	back, err := transfer.Move(t.Context(), second.DB, third.DB)
	ok(t, err)
	if diff := cmp.Diff(toPostgres, back); diff != "" {
		t.Errorf("the database after the moves differs from the source:\n%s", diff)
	}
	if got := storetest.Query[string](t, third.raw, `SELECT name || (SELECT count(*) FROM users) || (SELECT hex(value) FROM shared_secrets WHERE name = 'bytes') FROM tenants`); got != "Ägme \"&' 株式会社 🚪120000FF2700" {
		t.Errorf("the value that arrived is %q", got)
	}
	if n := storetest.Query[int](t, third.raw, `SELECT count(*) FROM logos WHERE tenant_id = 'tnt_1' AND hex(image) = '8900FF'`); n != 1 {
		t.Error("the logo has changed")
	}
	if n := storetest.Query[int](t, third.raw, `SELECT count(*) FROM shared_secrets WHERE length(value) = 0 AND name = 'empty'`); n != 1 {
		t.Error("an empty value has become NULL")
	}
	counts := map[string]int64{}
	for _, m := range toPostgres {
		counts[m.Table] = m.Rows
	}
	want := storetest.Query[int](t, third.raw, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name <> 'goose_db_version' AND name <> 'sqlite_sequence'`)
	if len(counts) != want || counts["users"] != 1200 || counts["change_position"] != 1 || counts["changes"] != 1 {
		t.Errorf("of %d tables %d were moved: %v", want, len(counts), counts)
	}
}

// TestMoveRefuses: Move refuses a target with rows other than those of the migrations, and a
// source without a schema.
func TestMoveRefuses(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			from, to := newDatabase(t, storetest.Engines["sqlite"](t)), newDatabase(t, dsn(t))
			fill(t, from.DB)
			storetest.Exec(t, to.raw, `UPDATE change_position SET last = 7`) // a row of the migrations
			if _, err := transfer.Move(t.Context(), from.DB, to.DB); !errors.Is(err, transfer.ErrNotEmpty) {
				t.Errorf("into a database in use: %v, want ErrNotEmpty", err)
			}
			storetest.Exec(t, to.raw, `UPDATE change_position SET last = 0`)
			if _, err := transfer.Move(t.Context(), storetest.Open(t, dsn(t), time.Now), to.DB); !errors.Is(err, store.ErrSchema) {
				t.Errorf("from a database without a schema: %v, want ErrSchema", err)
			}
			if n := storetest.Query[int](t, to.raw, `SELECT count(*) FROM users`); n != 0 {
				t.Errorf("%d people were moved in spite of the error", n)
			}
			_, err := transfer.Move(t.Context(), from.DB, to.DB)
			ok(t, err)
		})
	}
}

// TestMoveIsAtomic: a failure in a later table rolls the first one back.
func TestMoveIsAtomic(t *testing.T) {
	for engine, dsn := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			from, to := newDatabase(t, storetest.Engines["sqlite"](t)), newDatabase(t, dsn(t))
			fill(t, from.DB)
			storetest.Exec(t, to.raw, map[string]string{
				"sqlite":   `CREATE TRIGGER spoil BEFORE INSERT ON memberships BEGIN SELECT RAISE(ABORT, 'spoilt'); END`,
				"postgres": `ALTER TABLE memberships ADD CONSTRAINT spoil CHECK (role = 'nobody')`,
			}[engine])
			if _, err := transfer.Move(t.Context(), from.DB, to.DB); err == nil {
				t.Fatal("moved although a table refused its rows")
			}
			if n := storetest.Query[int](t, to.raw, `SELECT count(*) FROM tenants`); n != 0 {
				t.Errorf("a failed move left %d tenants", n)
			}
		})
	}
}

// TestMoveComparesContent: Move detects a database that alters what is inserted.
func TestMoveComparesContent(t *testing.T) {
	from, to := newDatabase(t, storetest.Engines["sqlite"](t)), newDatabase(t, storetest.Engines["sqlite"](t))
	fill(t, from.DB)
	for _, spoil := range []string{
		`CREATE TRIGGER spoil AFTER INSERT ON events BEGIN UPDATE events SET ip = 'elsewhere'; END`,
		`CREATE TRIGGER spoil AFTER INSERT ON users WHEN new.id = 'usr_0700' BEGIN DELETE FROM users WHERE id = 'usr_0700'; END`,
	} {
		storetest.Exec(t, to.raw, spoil)
		if _, err := transfer.Move(t.Context(), from.DB, to.DB); err == nil {
			t.Errorf("moved in spite of: %s", spoil)
		}
		storetest.Exec(t, to.raw, `DROP TRIGGER spoil`)
	}
	_, err := transfer.Move(t.Context(), from.DB, to.DB)
	ok(t, err)
}

// TestBackupIsOneFile: a backup is complete and needs no other file, even if the last writes
// are only in the write-ahead log.
func TestBackupIsOneFile(t *testing.T) {
	folder := t.TempDir()
	db := newDatabase(t, "sqlite:"+filepath.Join(folder, "doorward.db"))
	fill(t, db.DB)
	to := filepath.Join(t.TempDir(), "copy.db")
	ok(t, transfer.Backup(t.Context(), db.DB, to))
	info, err := transfer.Check(t.Context(), to, false)
	ok(t, err)
	if !info.Verified {
		t.Error("the backup has no checksum")
	}
	beside, err := filepath.Glob(to + "?*")
	ok(t, err)
	if len(beside) > 0 {
		t.Errorf("beside the backup there is %q", beside)
	}
	copied := storetest.Raw(t, "sqlite:"+to)
	if n := storetest.Query[int](t, copied, `SELECT count(*) FROM users`); n != 1200 {
		t.Errorf("the backup has %d people", n)
	}
	pg := newDatabase(t, pgtest.DSN(t))
	if err := transfer.Backup(t.Context(), pg.DB, to); !errors.Is(err, transfer.ErrOwnTools) {
		t.Errorf("a backup of PostgreSQL: %v, want ErrOwnTools", err)
	}
}

// TestFailedBackupLeavesNoFile: a failed backup leaves no file, not even a temporary one.
func TestFailedBackupLeavesNoFile(t *testing.T) {
	db := newDatabase(t, storetest.Engines["sqlite"](t))
	folder := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := transfer.Backup(ctx, db.DB, filepath.Join(folder, "copy.db")); err == nil {
		t.Error("backed up although it was cancelled")
	}
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	ok(t, err)
	if len(left) > 0 {
		t.Errorf("the files left are %q", left)
	}
}

// TestCutOffBackupIsFound: the error says that a backup is empty, or that it was cut off, at
// any length. A complete backup is accepted.
func TestCutOffBackupIsFound(t *testing.T) {
	db := newDatabase(t, storetest.Engines["sqlite"](t))
	fill(t, db.DB)
	var complete bytes.Buffer
	ok(t, transfer.BackupTo(t.Context(), db.DB, &complete))
	for _, length := range []int{0, 1, 16, 99, 100, 4095, 4096, 8192, complete.Len() / 2, complete.Len() - 4096, complete.Len() - 1} {
		err, want := receive(t, complete.Bytes()[:length]), "cut off"
		if length == 0 {
			want = "is empty"
		}
		if !errors.Is(err, transfer.ErrBadBackup) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d of %d bytes: %v, want %q", length, complete.Len(), err, want)
		}
	}
	ok(t, receive(t, complete.Bytes()))
}

// receive sends the bytes through a pipe, and returns the error of Receive.
func receive(t *testing.T, sent []byte) error {
	t.Helper()
	from, to, err := os.Pipe()
	ok(t, err)
	defer from.Close()
	written := make(chan error)
	go func() {
		_, err := to.Write(sent)
		written <- errors.Join(err, to.Close())
	}()
	_, received := transfer.Receive(t.Context(), from, filepath.Join(t.TempDir(), "received.db"), false)
	ok(t, <-written)
	return received
}

// TestBackupToLeavesNoFile: BackupTo leaves no file, whether it succeeds, the pipe breaks or
// it is cancelled. A damaged database is not sent at all.
func TestBackupToLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	db := newDatabase(t, "sqlite:"+filepath.Join(folder, "doorward.db"))
	fill(t, db.DB)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx context.Context
		to  io.Writer
		ok  bool
	}{
		"success":     {t.Context(), io.Discard, true},
		"broken pipe": {t.Context(), brokenPipe{}, false},
		"stopped":     {stopped, io.Discard, false},
	} {
		if err := transfer.BackupTo(c.ctx, db.DB, c.to); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := filepath.Glob(filepath.Join(folder, "*.part")); err != nil || len(left) > 0 {
			t.Errorf("%s: the files left are %q, %v", name, left, err)
		}
	}
	storetest.Exec(t, db.raw, `PRAGMA foreign_keys=OFF`)
	storetest.Exec(t, db.raw, `DELETE FROM tenants`)
	var out bytes.Buffer
	if err := transfer.BackupTo(t.Context(), db.DB, &out); !errors.Is(err, transfer.ErrBadBackup) || out.Len() > 0 {
		t.Errorf("of a damaged database %d bytes were sent, %v", out.Len(), err)
	}
	if err := transfer.BackupTo(t.Context(), newDatabase(t, pgtest.DSN(t)).DB, &out); !errors.Is(err, transfer.ErrOwnTools) {
		t.Errorf("a backup of PostgreSQL: %v, want ErrOwnTools", err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestDamagedBackupIsFound: a broken index, a dangling reference, another program's
// database.
func TestDamagedBackupIsFound(t *testing.T) {
	for name, damage := range map[string]string{
		"a dangling row":  `PRAGMA foreign_keys=OFF; DELETE FROM tenants`,
		"a broken index":  `PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql = replace(sql, 'user_id', 'role') WHERE name = 'memberships_user'; PRAGMA writable_schema=OFF`,
		"another program": `DROP TABLE goose_db_version`,
	} {
		db := newDatabase(t, storetest.Engines["sqlite"](t))
		fill(t, db.DB)
		copied := filepath.Join(t.TempDir(), "copy.db")
		ok(t, transfer.Backup(t.Context(), db.DB, copied))
		bad := storetest.Raw(t, "sqlite:"+copied)
		for statement := range strings.SplitSeq(damage, ";") {
			storetest.Exec(t, bad, statement)
		}
		ok(t, bad.Close())
		if _, err := transfer.Check(t.Context(), copied, true); !errors.Is(err, transfer.ErrBadBackup) {
			t.Errorf("%s: %v, want ErrBadBackup", name, err)
		}
	}
}
