package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/audit"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/transfer"
)

// ErrOverwrites is returned when the database already exists.
var ErrOverwrites = errors.New("node: there is a database already")

// ErrTampered is returned when the audit trail in a backup was changed.
var ErrTampered = errors.New("node: the audit trail in the backup was tampered with")

// RestoreOptions say what of a backup becomes valid again, whether a database is replaced, and
// which faults are accepted.
type RestoreOptions struct {
	Keep  installation.Keep
	Force bool // replace the database that is there
	// AcceptDamage restores a backup although its checksum is wrong or its audit trail
	// was tampered with. SQLite must still be able to read it.
	AcceptDamage bool
}

// Restored is what a restore has done.
type Restored struct {
	Backup transfer.Info
	Ended  installation.Ended
	// ReplacedFile names the file that has the replaced database; empty if there was none.
	ReplacedFile string
	// Undone counts the actions in the replaced database since the backup, by name; nil if
	// there was none, or if it could not be read.
	Undone map[doorward.Action]int
	// KeysRevoked are the operator keys of the backup that the replaced database has
	// revoked; they stay revoked. KeysUnknown are those for which that is not known; they
	// are valid.
	KeysRevoked, KeysUnknown []store.OperatorKey
	MasterKey                masterkey.Fit
	// Tampered counts the faults in the audit trail of the backup.
	Tampered int
}

// Restore replaces the SQLite database of cfg with a backup, brings its schema up to
// date, and ends what must not become valid again (see installation.Restored). It
// prepares the new database beside the old one and swaps it in atomically; the old one
// is kept in a file beside it. Errors: ErrOverwrites without Force, ErrTampered and
// transfer.ErrChecksum without AcceptDamage, transfer.ErrOwnTools, ErrItself, ErrInUse, ErrRestoring and
// ErrBadBackup, store.ErrSchema; *masterkey.FileError when there is a key file that doesn't
// fit.
func Restore(ctx context.Context, cfg Config, backup string, o RestoreOptions) (Restored, error) {
	path, exists, err := restoreTarget(cfg, o.Force)
	switch {
	case transfer.SameFile(path, backup):
		return Restored{}, transfer.ErrItself
	case err != nil:
		return Restored{}, err
	}
	return replace(ctx, cfg, path, exists, o, func(to string) (transfer.Info, error) {
		info, err := transfer.Check(ctx, backup, o.AcceptDamage)
		if err != nil {
			return info, err
		}
		return info, transfer.Copy(ctx, backup, to)
	})
}

// RestoreFrom is Restore with a backup from a pipe, which is read to its end before
// anything is changed.
func RestoreFrom(ctx context.Context, cfg Config, backup *os.File, o RestoreOptions) (Restored, error) {
	path, exists, err := restoreTarget(cfg, o.Force)
	switch {
	case isFileAt(backup, path):
		return Restored{}, transfer.ErrItself
	case err != nil:
		return Restored{}, err
	}
	return replace(ctx, cfg, path, exists, o, func(to string) (transfer.Info, error) {
		return transfer.Receive(ctx, backup, to, o.AcceptDamage)
	})
}

// FinishRestore ends what must not become valid again in a database that other programs
// have restored, and returns its valid operator keys. Errors: ErrAlive while a server
// runs on it, which would answer from outdated memory; *masterkey.FileError when there is
// a key file that doesn't fit.
func FinishRestore(ctx context.Context, cfg Config, keep installation.Keep) (ended installation.Ended, keys []store.OperatorKey, fit masterkey.Fit, err error) {
	n, err := Open(ctx, cfg)
	if err != nil {
		return ended, nil, fit, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if err := checkNoServer(ctx, n.DB); err != nil {
		return ended, nil, fit, err
	}
	if fit, err = masterkey.CheckFile(ctx, n.DB.Read(), cfg.KeyFile()); err != nil {
		return ended, nil, fit, err
	}
	progress.Step(ctx, "ending sessions and links", 0, nil)
	if ended, err = n.App.Installation.Restored(ctx, n.Operator(), keep); err != nil {
		return ended, nil, fit, err
	}
	keys, err = n.DB.Read().OperatorKeys(ctx)
	return ended, keys, fit, err
}

// isFileAt reports whether f is the file at the path, as when a shell redirects it to
// standard input.
func isFileAt(f *os.File, path string) bool {
	one, err := f.Stat()
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(one, other)
}

// replace has fetch write a new database, prepares it, and replaces the old one with it.
func replace(ctx context.Context, cfg Config, path string, exists bool, o RestoreOptions, fetch func(to string) (transfer.Info, error)) (r Restored, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return r, err
	}
	return r, transfer.Alone(path, func() error {
		r, err = replaceAlone(ctx, cfg, path, exists, o, fetch)
		return err
	})
}

func replaceAlone(ctx context.Context, cfg Config, path string, exists bool, o RestoreOptions, fetch func(to string) (transfer.Info, error)) (r Restored, err error) {
	folder, err := os.MkdirTemp(filepath.Dir(path), ".restore-*")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	prepared := filepath.Join(folder, "doorward.db")
	if r.Backup, err = fetch(prepared); err != nil {
		return r, err
	}
	if exists {
		r.ReplacedFile = path + ".before-" + time.Now().UTC().Format("20060102T150405.000Z")
	}
	if err := r.prepare(ctx, cfg, prepared, o); err != nil {
		return r, err
	}
	return r, transfer.Replace(ctx, path, prepared, r.ReplacedFile)
}

// restoreTarget returns the path of the database of cfg, and whether it exists. Without
// force, an existing one is the error ErrOverwrites.
func restoreTarget(cfg Config, force bool) (path string, exists bool, err error) {
	if path, err = transfer.SQLitePath(cfg.Database); err != nil {
		return path, false, err
	}
	_, err = os.Stat(path)
	exists = err == nil
	if exists && !force {
		return path, exists, fmt.Errorf("%w: %s", ErrOverwrites, path)
	}
	return path, exists, nil
}

// prepare turns the copied backup into the database that will be served.
func (r *Restored) prepare(ctx context.Context, cfg Config, path string, o RestoreOptions) (err error) {
	target := cfg
	cfg.Database, cfg.Migrate, cfg.Log = "sqlite:"+path, true, slog.New(warnings{cfg.Log.Handler()})
	progress.Step(ctx, "bringing the schema up to date", 0, nil)
	n, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }() // so that the database is one file, without a WAL
	if r.Tampered, err = n.App.Audit.VerifyAll(ctx); err != nil {
		return err
	}
	if r.Tampered > 0 && !o.AcceptDamage {
		return ErrTampered
	}
	if r.MasterKey, err = masterkey.CheckFile(ctx, n.DB.Read(), target.KeyFile()); err != nil {
		return err
	}
	if err := r.compare(ctx, n, target); err != nil {
		return err
	}
	for _, key := range r.KeysRevoked {
		if err := n.App.Keys.RevokeOperator(ctx, n.Operator(), key); err != nil {
			return err
		}
	}
	progress.Step(ctx, "ending sessions and links", 0, nil)
	r.Ended, err = n.App.Installation.Restored(ctx, n.Operator(), o.Keep)
	return err
}

// compare finds what was done since the backup. It reads that from the database of target,
// which will be replaced, if that can be read.
func (r *Restored) compare(ctx context.Context, backup *Node, target Config) error {
	keys, err := backup.DB.Read().OperatorKeys(ctx)
	if err != nil {
		return err
	}
	since, err := backup.DB.Read().NewestEvent(ctx)
	if err != nil {
		return err
	}
	newest, err := backup.DB.Read().NewestEventID(ctx)
	if err != nil {
		return err
	}
	r.KeysUnknown = keys
	if r.ReplacedFile == "" {
		return nil
	}
	db, err := store.OpenExisting(ctx, target.Database, target.Clock)
	if err != nil {
		return nil //nolint:nilerr // a damaged database may be the reason for the restore
	}
	defer db.Close()
	if undone, err := db.Read().CountDone(ctx, since); err == nil {
		r.Undone = undone
	}
	if revoked, unknown, err := revokedIn(ctx, db, keys, newest); err == nil {
		r.KeysRevoked, r.KeysUnknown = revoked, unknown
	}
	return nil
}

// revokedIn returns which of the keys the database has revoked, and for which that is unknown.
// If it has the newest event of the backup, every key missing there was revoked; otherwise
// only those whose revocation is in its trail.
func revokedIn(ctx context.Context, db *store.DB, keys []store.OperatorKey, newest string) (revoked, unknown []store.OperatorKey, err error) {
	read := db.Read()
	hasNewest, err := read.HasEvent(ctx, newest)
	if err != nil {
		return nil, nil, err
	}
	live, err := read.OperatorKeys(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range keys {
		if slices.ContainsFunc(live, func(k store.OperatorKey) bool { return k.ID == key.ID }) {
			continue
		}
		revocations, err := read.EventPage(ctx, "", store.EventFilter{Action: doorward.KeyRevoke, Target: key.ID, Outcome: doorward.Done}, doorward.Window{Limit: 1})
		switch {
		case err != nil:
			return nil, nil, err
		case hasNewest || len(revocations.Items) > 0:
			revoked = append(revoked, key)
		default:
			unknown = append(unknown, key)
		}
	}
	return revoked, unknown, nil
}

// VerifiedBackup is the result of VerifyBackup.
type VerifiedBackup struct {
	transfer.Info
	Tampered int // faults in the audit trail
}

// VerifyBackup checks a backup and doesn't change it. Its memory is bounded.
// Errors: transfer.ErrBadBackup and ErrChecksum, store.ErrSchema.
func VerifyBackup(ctx context.Context, file string) (v VerifiedBackup, err error) {
	const allowDamaged = false
	if v.Info, err = transfer.Check(ctx, file, allowDamaged); err != nil {
		return v, err
	}
	return v, v.verifyTrail(ctx, file)
}

// VerifyBackupFrom is VerifyBackup for a pipe. The backup is kept in the folder for
// temporary files during the check.
func VerifyBackupFrom(ctx context.Context, backup *os.File) (v VerifiedBackup, err error) {
	folder, err := os.MkdirTemp("", "doorward-verify-*")
	if err != nil {
		return v, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "doorward.db")
	const allowDamaged = false
	if v.Info, err = transfer.Receive(ctx, backup, file, allowDamaged); err != nil {
		return v, err
	}
	return v, v.verifyTrail(ctx, file)
}

// verifyTrail counts the faults in the audit trail.
func (v *VerifiedBackup) verifyTrail(ctx context.Context, file string) (err error) {
	db, err := store.OpenImmutable(file)
	if err != nil {
		return err
	}
	defer db.Close()
	noPending := func(context.Context) {} // a backup has no refusals to record first
	v.Tampered, err = audit.New(db, noPending).VerifyAll(ctx)
	return err
}
