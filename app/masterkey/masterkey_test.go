package masterkey_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/dbtest"
	"github.com/doorward/doorward/store/lease"
)

// node is one process with a key file of its own, on a database that several share.
type node struct {
	*masterkey.Keys
	db     *store.DB
	writer *access.Writer
	path   string
}

// put replaces the key file as an operator does, by a rename.
func (n *node) put(t *testing.T, k seal.Key) {
	t.Helper()
	check(t, os.WriteFile(n.path+".new", []byte(k.Reveal()), 0o600))
	check(t, os.Rename(n.path+".new", n.path))
}

// newNode returns a node with the key in its file; with the zero key there is no file.
func newNode(t *testing.T, dsn string, file seal.Key) *node {
	t.Helper()
	db, err := store.Open(t.Context(), dsn, time.Now)
	if err == nil {
		err = db.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	n := &node{db: db, writer: access.New(db, lease.New(db, time.Second)), path: filepath.Join(t.TempDir(), "master.key")}
	source := masterkey.File{}
	if !file.IsZero() {
		n.put(t, file)
		source.Path = n.path
	}
	n.Keys = masterkey.New(n.writer, db, source)
	return n
}

func onBoth(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, dbtest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, dbtest.Postgres(t)) })
}

var operator = doorward.OperatorAtTerminal()

func place(id string) seal.Place {
	return seal.Place{Table: "signing_keys", ID: id, Column: "private_sealed"}
}

// sealAndStore seals a value and stores it.
func (n *node) sealAndStore(ctx context.Context, id string) error {
	return n.writer.Upkeep(ctx, func(tx *store.Tx) error {
		sealed, err := n.Seal(ctx, tx, place(id), []byte("plain "+id))
		if err != nil {
			return err
		}
		return tx.InsertSigningKey(ctx, store.SigningKey{ID: id, Public: []byte{1}, Sealed: sealed, StartsAt: tx.Now, CreatedAt: tx.Now})
	})
}

// unreadable returns the ids of the values that the node can't open, each with the error.
func (n *node) unreadable(t *testing.T) (all []string) {
	t.Helper()
	keys, err := n.db.Read().SigningKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		plain, err := n.Open(t.Context(), place(k.ID), k.Sealed)
		if err != nil || string(plain) != "plain "+k.ID {
			all = append(all, fmt.Sprint(k.ID, ": ", err))
		}
	}
	return all
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWithoutAKey(t *testing.T) {
	n := newNode(t, "sqlite:"+filepath.Join(t.TempDir(), "doorward.db"), seal.Key{})
	check(t, n.Load(t.Context()))
	if err := n.sealAndStore(t.Context(), "a"); !doorward.HasCode(err, doorward.CodeMasterKeyMissing) {
		t.Errorf("sealing without a key: %v", err)
	}
	sealed := seal.NewKey().Seal(place("a"), nil)
	if _, err := n.Open(t.Context(), place("a"), sealed); !doorward.HasCode(err, doorward.CodeMasterKeyMissing) {
		t.Errorf("opening without a key: %v", err)
	}
}

func TestWrongKeyIsFoundAtStart(t *testing.T) {
	dsn := dbtest.SQLite(t)
	right, wrong := seal.NewKey(), seal.NewKey()
	a := newNode(t, dsn, right)
	check(t, a.Load(t.Context()))
	check(t, a.sealAndStore(t.Context(), "a"))
	var refused *masterkey.WrongKeyError
	if err := newNode(t, dsn, wrong).Load(t.Context()); !errors.As(err, &refused) || refused.Needed != right.ID() || refused.File != wrong.ID() {
		t.Errorf("a wrong key is loaded with %v", err)
	}
	b := newNode(t, dsn, right)
	check(t, b.Load(t.Context()))
	if lost := b.unreadable(t); lost != nil {
		t.Errorf("a second node can't open %v", lost)
	}
	if _, err := b.Open(t.Context(), place("b"), right.Seal(place("a"), nil)); !doorward.HasCode(err, doorward.CodeUnavailable) {
		t.Errorf("a value of another row opens with %v", err)
	}
}

// Several nodes start at once, with different keys, on a database that has used none. One of
// them succeeds.
func TestFirstKey(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		newNode(t, dsn, seal.Key{}) // migrates
		errs := make(chan error)
		for range 4 {
			n := newNode(t, dsn, seal.NewKey())
			go func() { errs <- n.Load(t.Context()) }()
		}
		won := 0
		for range 4 {
			var refused *masterkey.WrongKeyError
			switch err := <-errs; {
			case err == nil:
				won++
			case !errors.As(err, &refused):
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d keys are the first, want 1", won)
		}
	})
}

// The key is rotated while nodes seal; the first attempt is interrupted. Afterwards nodes with
// either file open every value.
func TestRotateWhileNodesSeal(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		old, next := seal.NewKey(), seal.NewKey()
		a, b := newNode(t, dsn, old), newNode(t, dsn, old)
		check(t, a.Load(t.Context()))
		check(t, b.Load(t.Context()))
		for i := range 150 { // more than a batch
			check(t, a.sealAndStore(t.Context(), fmt.Sprint("before", i)))
		}
		var writers sync.WaitGroup
		rotated := make(chan struct{})
		for i, n := range []*node{a, b} {
			writers.Go(func() {
				for count, after := 0, 0; after < 5; count++ {
					select {
					case <-rotated:
						after++
					default:
					}
					if err := n.sealAndStore(t.Context(), fmt.Sprint("during", i, "-", count)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		operatorsNode := newNode(t, dsn, seal.Key{})
		interrupted, stop := context.WithCancel(t.Context())
		stop()
		if _, err := operatorsNode.Rotate(interrupted, operator, old, next, nil); err == nil {
			t.Error("an interrupted rotation reports success")
		}
		if n, err := operatorsNode.Rotate(t.Context(), operator, old, next, nil); err != nil || n < 150 {
			t.Errorf("%d values are sealed again, %v", n, err)
		}
		if n, err := operatorsNode.Rotate(t.Context(), operator, old, next, nil); err != nil || n != 0 {
			t.Errorf("a second time %d values are sealed again, %v", n, err)
		}
		close(rotated)
		writers.Wait()

		state, err := masterkey.ReadState(t.Context(), a.db.Read())
		if want := (masterkey.State{Current: next.ID().String(), Previous: old.ID().String(), Sealed: true}); err != nil || state != want {
			t.Fatalf("the state is %+v, %v; want %+v", state, err, want)
		}
		for name, file := range map[string]seal.Key{"old": old, "new": next} {
			n := newNode(t, dsn, file)
			if err := n.Load(t.Context()); err != nil {
				t.Errorf("a node with the %s file starts with %v", name, err)
			}
			if lost := n.unreadable(t); lost != nil {
				t.Errorf("with the %s file these are lost: %v", name, lost)
			}
		}
		for _, n := range []*node{a, b} {
			if lost := n.unreadable(t); lost != nil {
				t.Errorf("a node that went on can't open %v", lost)
			}
		}
	})
}

// The old file works until each live node has the new one and Forget has removed the old key.
func TestForgetTheOldKey(t *testing.T) {
	dsn := dbtest.SQLite(t)
	old, next, third := seal.NewKey(), seal.NewKey(), seal.NewKey()
	a, b := newNode(t, dsn, old), newNode(t, dsn, old)
	check(t, a.Load(t.Context()))
	check(t, b.Load(t.Context()))
	check(t, a.sealAndStore(t.Context(), "a"))
	live := func() []string { return []string{a.FileID(), masterkey.None, b.FileID()} }
	if _, err := a.Rotate(t.Context(), operator, old, next, live()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{a, b} {
		if done, err := a.Forget(t.Context(), live()); done || err != nil {
			t.Errorf("with a node that has the old file: forgotten %v, %v", done, err)
		}
		check(t, newNode(t, dsn, old).Load(t.Context()))
		var unfinished *masterkey.UnfinishedError
		if _, err := a.Rotate(t.Context(), operator, next, third, live()); !errors.As(err, &unfinished) {
			t.Errorf("a third key is taken with %v", err)
		}
		n.put(t, next)
		if isReplacing, err := n.Refresh(t.Context()); !isReplacing || err != nil {
			t.Errorf("Refresh reports that the key is being replaced: %v, %v", isReplacing, err)
		}
	}
	if done, err := a.Forget(t.Context(), live()); !done || err != nil {
		t.Errorf("with the new file on each node: forgotten %v, %v", done, err)
	}
	var refused *masterkey.WrongKeyError
	if err := newNode(t, dsn, old).Load(t.Context()); !errors.As(err, &refused) {
		t.Errorf("after Forget the old file is loaded with %v", err)
	}
	rows, err := a.db.Read().MasterKeys(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Wrapped != nil {
		t.Errorf("%d keys are left, %v", len(rows), err)
	}
	for _, n := range []*node{a, b} {
		if lost := n.unreadable(t); lost != nil {
			t.Errorf("these are lost: %v", lost)
		}
	}
	if n, err := a.Rotate(t.Context(), operator, next, third, live()); err != nil || n != 1 {
		t.Errorf("the next rotation seals %d values again, %v", n, err)
	}
}

// An optional file is made once, by the first of several starts, and not for a database
// that has used another key.
func TestOptionalFileIsMadeOnce(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	first := newNode(t, dsn, seal.Key{})
	source := masterkey.File{Path: filepath.Join(t.TempDir(), "doorward.db.key"), Optional: true}
	errs := make(chan error)
	for range 4 {
		go func() { errs <- masterkey.New(first.writer, first.db, source).Load(t.Context()) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	key, err := source.Read()
	if err != nil || key.IsZero() {
		t.Fatalf("the file holds %v, %v", key, err)
	}
	if fit, err := masterkey.CheckFile(t.Context(), first.db.Read(), source); err != nil || fit.InFile != fit.Needed || fit.InFile != key.ID().String() {
		t.Errorf("the file fits as %+v, %v", fit, err)
	}
	check(t, os.Remove(source.Path))
	lost := masterkey.New(first.writer, first.db, source)
	check(t, lost.Load(t.Context()))
	if _, err := os.Stat(source.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key is made for a database that needs another: %v", err)
	}
	if err := lost.Ready(); !doorward.HasCode(err, doorward.CodeMasterKeyMissing) {
		t.Errorf("without its file the node is ready with %v", err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for name, prepare := range map[string]func(path string) error{
		"missing":   func(string) error { return nil },
		"not a key": func(path string) error { return os.WriteFile(path, []byte("SESAME"), 0o600) },
		"readable by others": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte(seal.NewKey().Reveal()), 0o600), os.Chmod(path, 0o644))
		},
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		f := masterkey.File{Path: filepath.Join(t.TempDir(), "master.key")}
		check(t, prepare(f.Path))
		var refused *masterkey.FileError
		if key, err := f.Read(); !errors.As(err, &refused) || !strings.Contains(err.Error(), f.Path) || strings.Contains(err.Error(), "SESAME") {
			t.Errorf("%s: read as %v, %v", name, key, err)
		}
	}
}

// Neither the key nor what it seals is in the database.
func TestDatabaseHoldsNoKey(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "doorward.db")
	old, next := seal.NewKey(), seal.NewKey()
	a := newNode(t, dsn, old)
	check(t, a.Load(t.Context()))
	check(t, a.sealAndStore(t.Context(), "a"))
	if _, err := a.Rotate(t.Context(), operator, old, next, nil); err != nil {
		t.Fatal(err)
	}
	all, err := a.db.Read().SigningKeys(t.Context())
	check(t, err)
	rows, err := a.db.Read().MasterKeys(t.Context())
	check(t, err)
	for _, secret := range []string{"plain a", old.Reveal()[:43], next.Reveal()[:43]} { // without padding and line break
		if bytes.Contains(all[0].Sealed, []byte(secret)) || bytes.Contains(fmt.Append(nil, rows), []byte(secret)) {
			t.Errorf("%q is in the database", secret)
		}
	}
}
