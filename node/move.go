package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/store"
	"github.com/doorward/doorward/store/lease"
	"github.com/doorward/doorward/store/transfer"
)

// ErrAlive says that a server runs on the database.
var ErrAlive = errors.New("node: a server runs on the database")

// Move copies the installation in the database from into that of cfg, whose
// schema it makes first, compares all rows, and counts the faults in the audit
// trail that has arrived. While a server runs on from it is ErrAlive, unless
// forced. A backup can be moved, too, if its checksum is right. Errors: also those of
// transfer.Move.
func Move(ctx context.Context, cfg Config, from string, force bool, progress func(table string, rows int64)) (moved []transfer.Moved, tampered int, err error) {
	if path, err := transfer.SQLitePath(from); err == nil {
		if err := transfer.CheckSealed(ctx, path); err != nil {
			return nil, 0, err
		}
	}
	source, err := store.OpenExisting(ctx, from, cfg.Clock)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := source.OwnSchema(ctx); err != nil {
		return nil, 0, fmt.Errorf("--from: %w", err)
	}
	if err := checkNoServer(ctx, source, force); err != nil {
		return nil, 0, err
	}
	cfg.Migrate = true
	n, err := Open(ctx, cfg)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if moved, err = transfer.Move(ctx, source, n.DB, progress); err != nil {
		return nil, 0, err
	}
	if err := n.App.Installation.Moved(ctx, doorward.OperatorAtTerminal(), source.Engine(), n.DB.Engine()); err != nil {
		return moved, 0, err
	}
	tampered, err = n.App.Audit.VerifyAll(ctx)
	return moved, tampered, err
}

// checkNoServer returns ErrAlive while a server could write what would be lost.
func checkNoServer(ctx context.Context, db *store.DB, force bool) error {
	if force {
		return nil
	}
	alive, err := lease.Alive(ctx, db)
	if err == nil && alive {
		err = ErrAlive
	}
	return err
}
