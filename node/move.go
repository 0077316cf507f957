package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/doorward/doorward/app/masterkey"
	"github.com/doorward/doorward/internal/progress"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/transfer"
)

// ErrAlive is returned when a server runs on the database.
var ErrAlive = errors.New("node: a server runs on the database")

// Move copies the installation in the database from into that of cfg, whose schema it
// creates first, compares all rows, and counts the faults in the copied audit trail.
// from may be a backup whose checksum is right. Errors: ErrAlive while a server runs on
// from, unless forced; *masterkey.FileError when there is a key file that doesn't fit; and
// those of transfer.CheckIfBackup and transfer.Move.
func Move(ctx context.Context, cfg Config, from string, force bool) (moved []transfer.MovedTable, tampered int, fit masterkey.Fit, err error) {
	if path, err := transfer.SQLitePath(from); err == nil {
		if err := transfer.CheckIfBackup(ctx, path); err != nil {
			return nil, 0, fit, err
		}
	}
	source, err := store.OpenExisting(ctx, from, cfg.Clock)
	if err != nil {
		return nil, 0, fit, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := source.CheckOwnSchema(ctx); err != nil {
		return nil, 0, fit, fmt.Errorf("--from: %w", err)
	}
	if !force {
		if err := checkNoServer(ctx, source); err != nil {
			return nil, 0, fit, err
		}
	}
	if fit, err = masterkey.CheckFile(ctx, source.Read(), cfg.KeyFile()); err != nil {
		return nil, 0, fit, err
	}
	cfg.Migrate, cfg.Log = true, slog.New(warnings{cfg.Log.Handler()}) // its migrations are part of the progress
	progress.Step(ctx, "preparing the new database", 0, nil)
	n, err := Open(ctx, cfg)
	if err != nil {
		return nil, 0, fit, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if moved, err = transfer.Move(ctx, source, n.DB); err != nil {
		return nil, 0, fit, err
	}
	if err := n.App.Installation.Moved(ctx, n.Operator(), source.Engine(), n.DB.Engine()); err != nil {
		return moved, 0, fit, err
	}
	tampered, err = n.App.Audit.VerifyAll(ctx)
	return moved, tampered, fit, err
}

// warnings is a handler that drops what is less than a warning.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// checkNoServer returns ErrAlive while a server runs, whose writes would be lost.
func checkNoServer(ctx context.Context, db *store.DB) error {
	alive, err := lease.Alive(ctx, db)
	if err == nil && alive {
		err = ErrAlive
	}
	return err
}
