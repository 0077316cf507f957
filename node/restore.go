package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/store"
)

// ErrOverwrites says that there is a database already.
var ErrOverwrites = errors.New("node: there is a database already")

// Restored is what a restore has done.
type Restored struct {
	Ended installation.Ended
	Aside string // where the database is that was there before; empty if there was none
	// Undone counts what had been done in that one since the backup, by its name;
	// nil when it could not be read.
	Undone map[doorward.Action]int
	// Tampered counts the faults in the audit trail of the backup.
	Tampered int
}

// Restore makes the SQLite database of cfg what a backup holds, its schema
// brought up to date, and ends what must not live again (see
// installation.Restored). All is prepared beside the database and then put in
// its place at once. What was there is kept in a file beside it; without force
// it is ErrOverwrites. Errors: store.ErrOwnTools, ErrItself, ErrInUse,
// ErrNoBackup, ErrSchema.
func Restore(ctx context.Context, cfg Config, backup string, keep installation.Keep, force bool) (Restored, error) {
	path, exists, err := restorable(cfg, force)
	switch {
	case store.SameFile(path, backup):
		return Restored{}, store.ErrItself
	case err != nil:
		return Restored{}, err
	}
	if err := store.CheckBackup(ctx, backup); err != nil {
		return Restored{}, err
	}
	return replace(ctx, cfg, path, exists, keep, func(to string) error { return store.CopyFile(backup, to) })
}

// RestoreFrom is Restore with a backup out of a pipe, which is read to its end
// before anything happens.
func RestoreFrom(ctx context.Context, cfg Config, backup *os.File, keep installation.Keep, force bool) (Restored, error) {
	path, exists, err := restorable(cfg, force)
	switch {
	case isOpen(backup, path):
		return Restored{}, store.ErrItself
	case err != nil:
		return Restored{}, err
	}
	return replace(ctx, cfg, path, exists, keep, func(to string) error { return store.ReceiveBackup(ctx, backup, to) })
}

// isOpen reports whether the file is the one at the path: a shell gives either as
// standard input, a pipe or a file.
func isOpen(f *os.File, path string) bool {
	one, err := f.Stat()
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(one, other)
}

// replace puts what fetch writes to a new file in the place of the database.
func replace(ctx context.Context, cfg Config, path string, exists bool, keep installation.Keep, fetch func(to string) error) (r Restored, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return r, err
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".restore-*")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	prepared := filepath.Join(folder, "doorward.db")
	if err := fetch(prepared); err != nil {
		return r, err
	}
	since, err := r.prepare(ctx, cfg, prepared, keep)
	if err != nil {
		return r, err
	}
	if exists {
		r.Undone = undone(ctx, cfg, since)
		r.Aside = path + ".before-" + time.Now().UTC().Format("20060102T150405Z")
	}
	return r, store.Replace(ctx, path, prepared, r.Aside)
}

// restorable returns where the database of cfg is and whether there is one, if
// another may take its place.
func restorable(cfg Config, force bool) (path string, exists bool, err error) {
	if path, err = store.SQLitePath(cfg.Database); err != nil {
		return path, false, err
	}
	_, err = os.Stat(path)
	exists = err == nil
	if exists && !force {
		return path, exists, fmt.Errorf("%w: %s", ErrOverwrites, path)
	}
	return path, exists, nil
}

// prepare returns when the last event in the backup happened.
func (r *Restored) prepare(ctx context.Context, cfg Config, path string, keep installation.Keep) (since time.Time, err error) {
	cfg.Database, cfg.Migrate = "sqlite:"+path, true
	n, err := Open(ctx, cfg)
	if err != nil {
		return since, err
	}
	defer func() { err = errors.Join(err, n.Close()) }() // which leaves one file
	if since, err = n.DB.Read().NewestEvent(ctx); err != nil {
		return since, err
	}
	if r.Ended, err = n.App.Whole.Restored(ctx, doorward.OperatorAtTerminal(), keep); err != nil {
		return since, err
	}
	r.Tampered, err = n.App.Audit.VerifyAll(ctx)
	return since, err
}

// undone looks at the database that is about to be replaced. It may be what is
// damaged, so no error counts.
func undone(ctx context.Context, cfg Config, since time.Time) map[doorward.Action]int {
	db, err := store.OpenExisting(ctx, cfg.Database, cfg.Clock)
	if err != nil {
		return nil
	}
	defer db.Close()
	deeds, err := db.Read().CountDeeds(ctx, since)
	if err != nil {
		return nil
	}
	return deeds
}
