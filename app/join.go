package app

import (
	"context"
	"sync"

	"github.com/doorward/doorward"
)

// Join loads the master key, registers this process as a node, corrects stored times that
// lie in the future, and reads the pause of changes and the signing keys. Call it before Run.
// If the database is unavailable, the node starts all the same and registers later. Errors:
// *lease.DiffersError, *masterkey.FileError, *masterkey.NeededError.
func (a *App) Join(ctx context.Context) error {
	err := a.loadMasterKey(ctx)
	if err == nil {
		err = a.Lease.Join(ctx)
	}
	if offset := a.db.Clock().InstallationOffset(); err == nil && offset != 0 {
		a.log.Warn("--clock-offset moves this installation's clock, for tests", "moved", offset.String())
	}
	if err == nil && !a.db.Clock().Wrong() {
		err = a.clampFuture(ctx)
	}
	if err == nil {
		_, err = a.Access.Maintenance(ctx)
	}
	if err == nil {
		err = a.Assertions.Prepare(ctx)
	}
	if doorward.HasCode(err, doorward.CodeUnavailable) {
		a.log.Warn("the node starts without the database", "err", err)
		return nil
	}
	return err
}

// CountDiffering returns how many nodes have another value of the setting.
func (a *App) CountDiffering(name string) (n float64) {
	for _, d := range a.Lease.Differences() {
		if d.Setting.Name == name {
			n++
		}
	}
	return n
}

// futureClamp is the state of clampFuture.
type futureClamp struct {
	mu          sync.Mutex
	done        bool  // there was a run
	corrections int64 // of store.Clock at that time
}

// clampFuture corrects stored times that are in the future. It reads entire tables, so it does
// so only at the start and after a correction of the clock.
func (a *App) clampFuture(ctx context.Context) error {
	f, corrections := &a.futureClamp, a.db.Clock().Corrections()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done && corrections == f.corrections {
		return nil
	}
	n, err := a.Sessions.ClampFuture(ctx)
	if err != nil {
		return err
	}
	f.done, f.corrections = true, corrections
	if n > 0 {
		a.log.Warn("sessions with a time in the future were corrected: they end as if opened now", "sessions", n)
	}
	return nil
}
