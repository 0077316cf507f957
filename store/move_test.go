package store_test

import (
	"bytes"
	"context"
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
)

// furnish puts in what databases might write differently: letters, NULL and
// empty values, bytes, the ends of numbers, and more rows than go into a batch.
func furnish(t testing.TB, db *store.DB) {
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
		tx.AskFlush([]byte{1})
		return tx.InsertEvent(ctx, doorward.Event{ID: "evt_1", Action: doorward.TenantCreate, Outcome: doorward.Done, ActorType: doorward.Operator, Changes: []doorward.Change{{Field: "name", To: "\t\n"}}})
	})
	ok(t, err)
}

// TestMoveRoundTrip: to PostgreSQL and back nothing changes, in any table that
// the migrations make.
func TestMoveRoundTrip(t *testing.T) {
	file := func() *store.DB { return migrated(t, engines["sqlite"](t), time.Now) }
	first, second, third := file(), migrated(t, pgtest.DSN(t), time.Now), file()
	furnish(t, first)
	there, err := store.Move(t.Context(), first, second, nil)
	ok(t, err)
	back, err := store.Move(t.Context(), second, third, nil)
	ok(t, err)
	if diff := cmp.Diff(there, back); diff != "" {
		t.Errorf("what arrived differs from what left:\n%s", diff)
	}
	write, _ := store.Pools(third)
	if got := ask[string](t, write, `SELECT name || (SELECT count(*) FROM users) || (SELECT hex(value) FROM shared_secrets WHERE name = 'bytes') FROM tenants`); got != "Ägme \"&' 株式会社 🚪120000FF2700" {
		t.Errorf("arrived has %q", got)
	}
	if n := ask[int](t, write, `SELECT count(*) FROM logos WHERE tenant_id = 'tnt_1' AND hex(image) = '8900FF'`); n != 1 {
		t.Error("the logo has not arrived as it was")
	}
	if n := ask[int](t, write, `SELECT count(*) FROM shared_secrets WHERE length(value) = 0 AND name = 'empty'`); n != 1 {
		t.Error("an empty value has become none")
	}
	counts := map[string]int64{}
	for _, m := range there {
		counts[m.Table] = m.Rows
	}
	want := ask[int](t, write, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name <> 'goose_db_version' AND name <> 'sqlite_sequence'`)
	if len(counts) != want || counts["users"] != 1200 || counts["change_position"] != 1 || counts["changes"] != 1 {
		t.Errorf("of %d tables %d were moved: %v", want, len(counts), counts)
	}
}

// TestMoveRefuses: nothing is mixed with what is there, and a schema that differs
// is no target and no source.
func TestMoveRefuses(t *testing.T) {
	for engine, dsn := range engines {
		t.Run(engine, func(t *testing.T) {
			from, to := migrated(t, engines["sqlite"](t), time.Now), migrated(t, dsn(t), time.Now)
			furnish(t, from)
			write, _ := store.Pools(to)
			run(t, write, `UPDATE change_position SET last = 7`) // the only row of a fresh database
			if _, err := store.Move(t.Context(), from, to, nil); !errors.Is(err, store.ErrNotEmpty) {
				t.Errorf("into a database in use: %v", err)
			}
			run(t, write, `UPDATE change_position SET last = 0`)
			if _, err := store.Move(t.Context(), open(t, dsn(t), time.Now), to, nil); !errors.Is(err, store.ErrSchema) {
				t.Errorf("from a database without a schema: %v", err)
			}
			if n := ask[int](t, write, `SELECT count(*) FROM users`); n != 0 {
				t.Errorf("%d people were moved all the same", n)
			}
			_, err := store.Move(t.Context(), from, to, nil)
			ok(t, err)
		})
	}
}

// TestMoveIsWholeOrNot: what goes wrong in the last table takes the first one
// back.
func TestMoveIsWholeOrNot(t *testing.T) {
	for engine, dsn := range engines {
		t.Run(engine, func(t *testing.T) {
			from, to := migrated(t, engines["sqlite"](t), time.Now), migrated(t, dsn(t), time.Now)
			furnish(t, from)
			ctx, stop := context.WithCancel(t.Context())
			_, err := store.Move(ctx, from, to, func(table string, rows int64) {
				if table == "memberships" {
					stop()
				}
			})
			if err == nil {
				t.Fatal("moved although it was stopped")
			}
			write, _ := store.Pools(to)
			if n := ask[int](t, write, `SELECT count(*) FROM tenants`); n != 0 {
				t.Errorf("%d tenants are left of a move that failed", n)
			}
		})
	}
}

// TestMoveNoticesWhatArrivedOtherwise: a database that alters what it is given.
func TestMoveNoticesWhatArrivedOtherwise(t *testing.T) {
	from, to := migrated(t, engines["sqlite"](t), time.Now), migrated(t, engines["sqlite"](t), time.Now)
	furnish(t, from)
	write, _ := store.Pools(to)
	for _, spoil := range []string{
		`CREATE TRIGGER spoil AFTER INSERT ON events BEGIN UPDATE events SET ip = 'elsewhere'; END`,
		`CREATE TRIGGER spoil AFTER INSERT ON users WHEN new.id = 'usr_0700' BEGIN DELETE FROM users WHERE id = 'usr_0700'; END`,
	} {
		run(t, write, spoil)
		if _, err := store.Move(t.Context(), from, to, nil); err == nil {
			t.Errorf("nothing was noticed of: %s", spoil)
		}
		run(t, write, `DROP TRIGGER spoil`)
	}
	_, err := store.Move(t.Context(), from, to, nil)
	ok(t, err)
}

// TestAlive: a node that runs shows it; one that was killed doesn't.
func TestAlive(t *testing.T) {
	t.Parallel()
	for engine, dsn := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db := migrated(t, dsn(t), time.Now)
			alive := func() bool {
				is, err := db.Alive(t.Context())
				ok(t, err)
				return is
			}
			if alive() {
				t.Error("nobody was ever there")
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { db.Watch(store.MinLease).Run(ctx); close(ended) }()
			write, _ := store.Pools(db)
			for ask[int](t, write, `SELECT count(*) FROM nodes`) == 0 {
				<-time.After(time.Millisecond)
			}
			if !alive() {
				t.Error("a node that runs is taken for dead")
			}
			stop()
			<-ended
			run(t, write, `INSERT INTO nodes (id, lease, applied, beat) VALUES ('nod_killed', 1000000, 0, 5)`)
			if alive() {
				t.Error("a node that was killed is taken for alive")
			}
		})
	}
}

// TestBackupIsOneFile: of one instant, of its owner alone, with nothing beside
// it, also where the last writes are in the log only.
func TestBackupIsOneFile(t *testing.T) {
	folder := t.TempDir()
	db := migrated(t, "sqlite:"+filepath.Join(folder, "doorward.db"), time.Now)
	furnish(t, db)
	to := filepath.Join(t.TempDir(), "copy.db")
	ok(t, db.Backup(t.Context(), to))
	info, err := store.CheckBackup(t.Context(), to, false)
	ok(t, err)
	if !info.Sealed {
		t.Error("it has no checksum")
	}
	beside, err := filepath.Glob(to + "?*")
	ok(t, err)
	if len(beside) > 0 {
		t.Errorf("beside the backup there is %q", beside)
	}
	write, _ := store.Pools(open(t, "sqlite:"+to, time.Now))
	if n := ask[int](t, write, `SELECT count(*) FROM users`); n != 1200 {
		t.Errorf("the backup has %d people", n)
	}
	pg := migrated(t, pgtest.DSN(t), time.Now)
	if err := pg.Backup(t.Context(), to); !errors.Is(err, store.ErrOwnTools) {
		t.Errorf("a backup of PostgreSQL: %v", err)
	}
}

// TestBackupThatFailsLeavesNothing: no half of a file, under no name.
func TestBackupThatFailsLeavesNothing(t *testing.T) {
	db := migrated(t, engines["sqlite"](t), time.Now)
	folder := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := db.Backup(ctx, filepath.Join(folder, "copy.db")); err == nil {
		t.Error("backed up although it was stopped")
	}
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	ok(t, err)
	if len(left) > 0 {
		t.Errorf("left is %q", left)
	}
}

// TestCheckBackupFindsTheEnd: wherever a backup was cut off on its way, that is
// seen, and said as what it is. A whole one from a pipe is taken.
func TestCheckBackupFindsTheEnd(t *testing.T) {
	db := migrated(t, engines["sqlite"](t), time.Now)
	furnish(t, db)
	var whole bytes.Buffer
	ok(t, db.BackupTo(t.Context(), &whole))
	for _, length := range []int{0, 1, 16, 99, 100, 4095, 4096, 8192, whole.Len() / 2, whole.Len() - 4096, whole.Len() - 1} {
		err := receive(t, whole.Bytes()[:length])
		if want := "cut off"; length > 0 && (!errors.Is(err, store.ErrNoBackup) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d of %d bytes: %v, want %q", length, whole.Len(), err, want)
		} else if length == 0 && (!errors.Is(err, store.ErrNoBackup) || !strings.Contains(err.Error(), "is empty")) {
			t.Errorf("nothing: %v", err)
		}
	}
	ok(t, receive(t, whole.Bytes()))
}

// receive sends the bytes through a pipe.
func receive(t *testing.T, sent []byte) error {
	t.Helper()
	out, in, err := os.Pipe()
	ok(t, err)
	defer out.Close()
	written := make(chan error)
	go func() {
		_, err := in.Write(sent)
		written <- errors.Join(err, in.Close())
	}()
	_, received := store.ReceiveBackup(t.Context(), out, filepath.Join(t.TempDir(), "received.db"), false)
	ok(t, <-written)
	return received
}

// TestBackupToLeavesNothing: neither when all went well, nor when the way out is
// shut, nor when it was stopped; and of a damaged database nothing leaves.
func TestBackupToLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	db := migrated(t, "sqlite:"+filepath.Join(folder, "doorward.db"), time.Now)
	furnish(t, db)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for what, c := range map[string]struct {
		ctx context.Context
		to  io.Writer
		ok  bool
	}{
		"all went well": {t.Context(), io.Discard, true},
		"shut":          {t.Context(), shut{}, false},
		"stopped":       {stopped, io.Discard, false},
	} {
		if err := db.BackupTo(c.ctx, c.to); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
		if left, err := filepath.Glob(filepath.Join(folder, "*.part")); err != nil || len(left) > 0 {
			t.Errorf("%s: left is %q, %v", what, left, err)
		}
	}
	write, _ := store.Pools(db)
	run(t, write, `PRAGMA foreign_keys=OFF`)
	run(t, write, `DELETE FROM tenants`)
	var out bytes.Buffer
	if err := db.BackupTo(t.Context(), &out); !errors.Is(err, store.ErrNoBackup) || out.Len() > 0 {
		t.Errorf("of a damaged database %d bytes left, %v", out.Len(), err)
	}
	if err := migrated(t, pgtest.DSN(t), time.Now).BackupTo(t.Context(), &out); !errors.Is(err, store.ErrOwnTools) {
		t.Errorf("a backup of PostgreSQL: %v", err)
	}
}

// shut is a pipe that nobody reads.
type shut struct{}

func (shut) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestCheckBackupFindsDamage: a page that is torn, a row that refers to nothing, a
// database of another program.
func TestCheckBackupFindsDamage(t *testing.T) {
	for what, spoil := range map[string]string{
		"a dangling row":  `PRAGMA foreign_keys=OFF; DELETE FROM tenants`,
		"a broken index":  `PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql = replace(sql, 'user_id', 'role') WHERE name = 'memberships_user'; PRAGMA writable_schema=OFF`,
		"another program": `DROP TABLE goose_db_version`,
	} {
		db := migrated(t, engines["sqlite"](t), time.Now)
		furnish(t, db)
		copied := filepath.Join(t.TempDir(), "copy.db")
		ok(t, db.Backup(t.Context(), copied))
		bad := open(t, "sqlite:"+copied, time.Now)
		write, _ := store.Pools(bad)
		for statement := range strings.SplitSeq(spoil, ";") {
			run(t, write, statement)
		}
		ok(t, bad.Close())
		if _, err := store.CheckBackup(t.Context(), copied, true); !errors.Is(err, store.ErrNoBackup) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
